import { type Network, parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import { remedy } from "../../../model/cause/remedy.ts";
import { sentence, sentenceOf } from "../../../model/cause/sentence.ts";
import { andMore } from "../../../model/cause/words.ts";
import type { SubnetElement } from "../../../model/cell/cell.ts";
import { type ElementPath, type HostName, type Ipv4, ipv4 } from "../../../model/cell/identifiers.ts";
import { closestName } from "../../../model/diagnostics/closest-name.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { DesiredWant } from "../../documents/cells.ts";
import { type ConnectionGroups, connectionGroups } from "../network/connection-groups.ts";
import { addressOf, elasticAddressOf, isOnMode } from "../network/instances.ts";
import { contains } from "../network/ipv4-range.ts";
import { cellDomain, hostNameOf } from "../network/names.ts";
import type { ElementRecord } from "../records.ts";
import {
  foreignEnd,
  foreignLink,
  foreignNetworks,
  shownWant,
  whyNotAgreed,
  whyNotVisible,
} from "../references/foreign.ts";
import { hostPolicyRules } from "../rules/cell-policy.ts";
import { type ControllerState, elementOf, linksOf, recordAt } from "../state.ts";
import { prefixesOf, recordOf, type Unanswered } from "./session-requests.ts";

/** One end of a connection that somebody asks about. An address of no interface of the cell has no host. */
export interface WhyEnd {
  readonly path: string;
  readonly address: Ipv4;
  readonly vm: string | null;
  readonly host: HostName | null;
}
/** What the edge needs in order to ask both hosts. */
export interface WhyEnds {
  readonly from: WhyEnd;
  readonly to: WhyEnd;
  readonly cellNumber: number;
  /** Path of the element behind each compiled rule, by number. */
  readonly rules: { readonly [id: string]: string };
  /** Rules for one of the ends that have no effect, each with why, since the other cell does not agree. */
  readonly waiting: readonly string[];
  /** Why no rule of this cell could ever let a packet between them pass; null: one could. */
  readonly nowhere: string | null;
  /** Of a cell on a mode of Eucalyptus; absent: Diverter judges. */
  readonly groups?: ConnectionGroups;
}

/**
 * Resolves two ends as people name them: paths of VMs and interfaces, addresses, names that guests know each other by, and a group
 * with one VM in it. A VM stands for its first interface with an address; towards the outside for an external one, if it has that.
 */
export function whyEnds(state: ControllerState, from: string, to: string): Result<WhyEnds, Unanswered> {
  const first = endOf(state, from, isOutside(state, to));
  const second = endOf(state, to, isOutside(state, from));
  if (!first.ok) return first;
  if (!second.ok) return second;
  const rules = Object.fromEntries(hostPolicyRules(state).map(({ id, path }) => [String(id), path]));
  const waiting = waitingRules(state, [first.value.address, second.value.address]);
  const nowhere = whyNowhere(state, first.value, second.value) ?? whyNowhere(state, second.value, first.value);
  const ends = { from: first.value, to: second.value };
  const groups = isOnMode(state) ? { groups: connectionGroups(state, ends.from.address, ends.to.address) } : {};
  return ok({ ...ends, cellNumber: state.options.cellNumber, rules, waiting, nowhere, ...groups });
}

function waitingRules(state: ControllerState, addresses: readonly Ipv4[]): readonly string[] {
  const ranges = addresses.flatMap((address) => parseNetwork(address) ?? []);
  return [...state.elements.values()].flatMap((record) => {
    const element = elementOf(state, record);
    const end = element?.type === "NetworkRule" ? foreignEnd(element) : null;
    if (element?.type !== "NetworkRule" || end === null) return [];
    const isMeant = foreignNetworks(state, end).some((cidr) => {
      const network = parseNetwork(cidr);
      return network !== null && ranges.some((range) => contains(network, range));
    });
    const why = isMeant ? whyNotAgreed(state, record.uid, element) : null;
    return why === null ? [] : [waitingRule(record.path, why)];
  });
}

function waitingRule(path: string, why: Cause): string {
  const lifts = remedy(why);
  return `${path} waits: ${sentence(why)}${lifts === null ? "" : `; ${lifts}`}`;
}

/** An address that is in no subnet of the cell, and not its controller's: what is the other end for, if not for the outside? */
function isOutside(state: ControllerState, text: string): boolean {
  const written = parseIpv4(text) === null ? null : parseNetwork(text);
  if (written === null || text === state.options.address) return text === "internet";
  return [...state.elements.values()].every(({ range }) => {
    const network = range === null ? null : parseNetwork(range.cidr);
    return network === null || !contains(network, written);
  });
}

/** @param outwards a VM stands for its external interface */
function endOf(state: ControllerState, path: string, outwards: boolean): Result<WhyEnd, Unanswered> {
  if (parseIpv4(path) !== null) {
    // Whatever a machine says of itself: where the site gives addresses it may say this one.
    if (path === state.options.address) return ok({ path: "controller", address: path as Ipv4, vm: null, host: null });
    const owner = [...state.elements.values()].find(
      (record) => addressOf(state, record) === path || elasticAddressOf(state, record) === path,
    );
    if (owner !== undefined) return endOf(state, owner.path, outwards);
    return ok({ path, address: path as Ipv4, vm: null, host: null });
  }
  const foreign = foreignLink(path);
  if (foreign !== null) return foreignEndOf(state, foreign);
  if (path === "controller") return ok({ path, address: state.options.address, vm: null, host: null });
  if (path === "internet") return ok({ path, address: somewhereOutside, vm: null, host: null });
  const named = namedBy(state, path);
  if (!named.ok) return named;
  const record = named.value;
  const element = elementOf(state, record);
  if (element?.type !== "VM" && element?.type !== "VirtualInterface")
    return fail({
      status: 409,
      message: `${record.path} is a ${record.type}, and connections have VMs as their ends${examplesOf(state)}`,
    });
  const link = element.type === "VM" ? interfaceOf(state, element.path, outwards) : record;
  const vmPath = element.type === "VM" ? element.path : element.vm;
  const vm = recordAt(state, vmPath);
  const address = link === undefined ? null : addressOf(state, link);
  const forIt = `\`cells why ${vmPath}\` says more`;
  if (address === null) return fail({ status: 409, message: `${record.path} has no address yet: ${forIt}` });
  const host = (vm === undefined ? null : state.vms.get(vm.uid)?.run?.host) ?? null;
  if (host === null)
    return fail({
      status: 409,
      message: `${vmPath} is at no host now: ${sentenceOf(vm?.causes ?? []) ?? "it is off"}; ${forIt}`,
    });
  return ok({ path: record.path, address, vm: vmPath, host });
}

/** An element by its path, by the name that guests know its interface by, or the one VM of a group. */
function namedBy(state: ControllerState, text: string): Result<ElementRecord, Unanswered> {
  const own = recordOf(state, text);
  if (own !== undefined) return ok(own);
  const guest = guestNamed(state, text);
  if (guest !== undefined) return ok(guest);
  const vms = vmsBelow(state, text);
  const [only, ...more] = vms;
  if (only !== undefined && more.length === 0) return ok(only);
  if (only !== undefined) {
    const few = vms.slice(0, mostNamed).map(({ path }) => path);
    const message = `${text} has ${vms.length} VMs: name one of them, such as ${few.join(", ")}`;
    return fail({ status: 409, message });
  }
  const closest = closestName(text, connectable(state));
  const meant = closest === undefined ? examplesOf(state) : `. Did you mean ${closest}?`;
  return fail({
    status: 404,
    message: `${text} is no VM, interface, address or guest of the cell ${state.options.cell}${meant}`,
  });
}

const mostNamed = 3;
const vifNameOf = (state: ControllerState, record: ElementRecord): string | undefined => {
  const element = elementOf(state, record);
  return element?.type === "VirtualInterface" ? element.vifName : undefined;
};
/** By its host name, alone or with the cell's domain; of a VM that has none, by the one that its guest got of its path. */
function guestNamed(state: ControllerState, text: string): ElementRecord | undefined {
  const domain = `.${cellDomain(state)}`;
  const name = text.endsWith(domain) ? text.slice(0, -domain.length) : text;
  const records = [...state.elements.values()];
  return (
    records.find((record) => vifNameOf(state, record) === name) ??
    records.find((record) => record.type === "VM" && hostNameOf(record.path) === name)
  );
}
/** In a group, or in the cell itself. */
function vmsBelow(state: ControllerState, text: string): readonly ElementRecord[] {
  const paths = prefixesOf(state, text).map((path) => `${path}/`);
  return [...state.elements.values()]
    .filter(({ type, path }) => type === "VM" && paths.some((above) => path.startsWith(above)))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}
const connectable = (state: ControllerState): readonly string[] =>
  [...state.elements.values()].flatMap((record) => {
    const name = vifNameOf(state, record);
    const isEnd = record.type === "VM" || record.type === "VirtualInterface";
    return [...(isEnd ? [record.path] : []), ...(name === undefined ? [] : [name])];
  });
function examplesOf(state: ControllerState): string {
  const vms = [...state.elements.values()].filter(({ type }) => type === "VM").map(({ path }) => path);
  return vms.length === 0
    ? ": it has no VM"
    : `: its VMs are ${andMore(vms.sort().slice(0, mostNamed), Math.max(0, vms.length - mostNamed))}`;
}

/** What rules of this cell name in others, and may be known of there. */
const foreignPlaces = (state: ControllerState): readonly Network[] =>
  [...state.elements.values()].flatMap((record) => {
    const element = elementOf(state, record);
    const end = element?.type === "NetworkRule" ? foreignEnd(element) : null;
    return end === null ? [] : foreignNetworks(state, end).flatMap((cidr) => parseNetwork(cidr) ?? []);
  });

/** What `internet` stands for in a question: an address that is nobody's (RFC 5737), so that no narrower rule is about it. */
const somewhereOutside = ipv4("198.51.100.1");
/** Why an interface of the cell cannot speak with somebody outside; null: it has an external address. */
function whyNotOutside(state: ControllerState, { path, address }: WhyEnd): string | null {
  for (const record of state.elements.values()) {
    if (addressOf(state, record) !== address) continue;
    const of = subnetOf(state, record);
    if (of?.addressRange === "external" || of?.router !== undefined) return null;
    const where = of === undefined ? "" : `, of ${of.path}`;
    return `${path} has the internal address ${address}${where}: only an interface of a subnet with \`x.addressRange "external"\` or with an \`x.router\` speaks with addresses outside`;
  }
  return `${path} has no external address`;
}
/** An address that nobody has who could be reached: what a rule for it would lead to. */
function whyNowhere(state: ControllerState, { path, address, vm }: WhyEnd, other: WhyEnd): string | null {
  // There nobody's address is in no range of the cell's, and instances speak with the outside under their own.
  if (isOnMode(state))
    return path === "controller"
      ? "no rule of a group leads to the controller of a cell on a mode of Eucalyptus"
      : null;
  const written = parseNetwork(address);
  if (vm !== null || written === null) return null;
  if (path === "internet") return whyNotOutside(state, other);
  if (path !== address) return null;
  const management = state.options.root === undefined ? null : parseNetwork(state.options.root.management);
  if (management !== null && contains(management, written)) return null;
  if (foreignPlaces(state).some((network) => contains(network, written))) return null;
  for (const record of state.elements.values()) {
    const range = record.range === null ? null : parseNetwork(record.range.cidr);
    if (range !== null && contains(range, written)) return `no interface has ${address}, which is of ${record.path}`;
  }
  const internal = whyNotOutside(state, other);
  if (internal === null) return null;
  return `${address} is nobody's in the cell ${state.options.cell}: an element of another cell is named by its domain and path, as in //other.${state.options.domain}/vm; if it is outside, ${internal}`;
}

/** Of an element in another cell one address, if it has no more; who it belongs to and where it is are not told. */
function foreignEndOf(state: ControllerState, want: DesiredWant): Result<WhyEnd, Unanswered> {
  const path = shownWant(want);
  const hidden = whyNotVisible(state, want, "addresses");
  // Only what an element of the cell names is asked for at the directory.
  if (hidden !== null) return fail({ status: 404, message: `${sentence(hidden)}, or nothing in this cell names it` });
  const [network, ...more] = foreignNetworks(state, want);
  const address = network?.endsWith("/32") === true && more.length === 0 ? parseIpv4(network.slice(0, -3)) : null;
  if (network === undefined || address === null) {
    const message = `${path} has not exactly one address: name an interface there that has one, or an address`;
    return fail({ status: 409, message });
  }
  return ok({ path, address: ipv4(network.slice(0, -3)), vm: null, host: null });
}

/** The one that a VM stands for: of those with an address the first, or an external one towards the outside. */
function interfaceOf(state: ControllerState, vm: ElementPath, outwards: boolean): ElementRecord | undefined {
  const there = linksOf(state, vm).flatMap((link) => {
    const record = link.type === "VirtualInterface" ? recordAt(state, link.path) : undefined;
    return record === undefined || record.allocation === null ? [] : [record];
  });
  const external = outwards ? there.find((record) => subnetOf(state, record)?.addressRange === "external") : undefined;
  return external ?? there[0];
}

/** Of an interface; undefined: it is none, or its subnet is not there. */
function subnetOf(state: ControllerState, record: ElementRecord): SubnetElement | undefined {
  const element = elementOf(state, record);
  const subnet = element?.type === "VirtualInterface" ? recordAt(state, element.subnet) : undefined;
  const of = subnet === undefined ? undefined : elementOf(state, subnet);
  return of?.type === "Subnet" ? of : undefined;
}
