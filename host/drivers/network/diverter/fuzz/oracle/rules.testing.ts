import {
  type Cell,
  type End,
  holds,
  type Interface,
  lastOf,
  type Ports,
  type Rule,
  type Subnet,
} from "../world.testing.ts";
import type { Knowledge } from "./knowledge.testing.ts";

/**
 * May one address open a flow to another one, by the rules of one cell as they are written? There are no identities, no
 * tries, no compiled rules here: each rule is read, end by end.
 */
export interface Opening {
  readonly from: number;
  readonly to: number;
  /** Number of the IP protocol. */
  readonly protocol: number;
  /** Of TCP and UDP. */
  readonly sourcePort: number;
  readonly port: number;
}
const protocols = { icmp: 1, tcp: 6, udp: 17 } as const;

const inside = (ports: Ports | null, port: number): boolean =>
  ports === null || (port >= ports.from && port <= ports.to);

type Kind = "interface" | "vm" | "subnet";
const isNamed = (kind: Kind, name: string, found: Interface): boolean =>
  (kind === "interface" ? found.name : kind === "vm" ? found.vm : found.subnet.name) === name;

/** What another cell shows under a name: a subnet's range, or the addresses of interfaces. */
function shows({ world }: Knowledge, end: End & { readonly kind: "foreign" }, at: number): boolean {
  const cell = world.cells.find(({ number }) => number === end.cell);
  if (end.of === "subnet")
    return cell?.subnets.some((each) => each.name === end.name && holds(each.range, at)) === true;
  return cell?.interfaces.some((each) => each.address === at && isNamed(end.of, end.name, each)) === true;
}

/** An address, and whoever of the cell is known to have it. */
interface Somebody {
  readonly address: number;
  readonly found: Interface | null;
  readonly isController: boolean;
}
function isAt(knowledge: Knowledge, end: End, { address, found, isController }: Somebody): boolean {
  switch (end.kind) {
    case "controller":
      return isController;
    case "cidr":
      return !isController && holds(end.range, address);
    case "internet":
      return found === null && !isController;
    case "foreign":
      return found === null && !isController && shows(knowledge, end, address);
    default:
      return found !== null && isNamed(end.kind, end.name, found);
  }
}

/** Replies need no rule, so an end is opened towards if it names a port, or if neither does (decision 2). */
function lets(rule: Rule, isFirst: boolean, { sourcePort, port }: Opening): boolean {
  const isPorted = rule.protocol === "tcp" || rule.protocol === "udp";
  const [first, second] = isPorted ? rule.ports : [null, null];
  const [own, other] = isFirst ? [first, second] : [second, first];
  if (rule.direction === "1to2") return isFirst && inside(own, sourcePort) && inside(other, port);
  if (own === null && other === null) return true;
  return other !== null && inside(other, port);
}

/** Rules that every cell has: its name service, and its subnets' own connectivity where it says so. */
function isBuiltIn(from: Somebody, to: Somebody, opening: Opening, subnetConnectivity: boolean): boolean {
  if (from.found === null) return false;
  if (to.isController && opening.port === 53 && opening.protocol !== protocols.icmp)
    return opening.protocol === protocols.tcp || opening.protocol === protocols.udp;
  return subnetConnectivity && to.found?.subnet === from.found.subnet;
}

export function opens(knowledge: Knowledge, cell: Cell, opening: Opening): boolean {
  const set = knowledge.view.rules.get(cell.number);
  if (set === undefined) return false;
  const somebody = (address: number): Somebody => {
    const found = knowledge.interfaceOf(cell.number, address);
    return { address, found, isController: found === null && address === cell.controller.address };
  };
  const [from, to] = [somebody(opening.from), somebody(opening.to)];
  if (isBuiltIn(from, to, opening, set.subnetConnectivity)) return true;
  return set.rules.some((rule) => {
    if (rule.protocol !== "any" && protocols[rule.protocol] !== opening.protocol) return false;
    const [one, other] = rule.ends;
    return (
      (lets(rule, true, opening) && isAt(knowledge, one, from) && isAt(knowledge, other, to)) ||
      (lets(rule, false, opening) && isAt(knowledge, other, from) && isAt(knowledge, one, to))
    );
  });
}

const covers = (range: Subnet["range"], inner: Subnet["range"]): boolean =>
  holds(range, inner.first) && holds(range, lastOf(inner));
/** Does an end stand for the whole of a subnet? */
function isWhole(end: End, cell: Cell, subnet: Subnet): boolean {
  const isOwn = subnet.cell === cell.number;
  switch (end.kind) {
    case "subnet":
      return isOwn && end.name === subnet.name;
    case "foreign":
      return !isOwn && end.of === "subnet" && end.cell === subnet.cell && end.name === subnet.name;
    case "cidr":
      return covers(end.range, subnet.range);
    case "internet":
      return !isOwn;
    default:
      return false;
  }
}
/** The same, by a rule whose end is a subnet as a whole. */
export function isOpenedTowards(knowledge: Knowledge, cell: Cell, opening: Opening, subnet: Subnet): boolean {
  const set = knowledge.view.rules.get(cell.number);
  const found = knowledge.interfaceOf(cell.number, opening.from);
  const from: Somebody = {
    address: opening.from,
    found,
    isController: found === null && opening.from === cell.controller.address,
  };
  if (set?.subnetConnectivity === true && found?.subnet === subnet) return true;
  return (set?.rules ?? []).some((rule) => {
    if (rule.protocol !== "any" && protocols[rule.protocol] !== opening.protocol) return false;
    const [one, other] = rule.ends;
    return (
      (lets(rule, true, opening) && isAt(knowledge, one, from) && isWhole(other, cell, subnet)) ||
      (lets(rule, false, opening) && isAt(knowledge, other, from) && isWhole(one, cell, subnet))
    );
  });
}
