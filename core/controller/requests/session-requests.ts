import { parseIpv4, parseNetwork } from "../../../model/addresses.ts";
import type { Cause } from "../../../model/cause/cause.ts";
import { remedy } from "../../../model/cause/remedy.ts";
import { sentence, sentenceOf } from "../../../model/cause/sentence.ts";
import { elementPath, type HostName, type Ipv4, ipv4, type Uid } from "../../../model/cell/identifiers.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import type { DesiredWant } from "../../documents/cells.ts";
import { contains } from "../network/ipv4-range.ts";
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
import { actualVmOf } from "../vm/life-cycle.ts";

interface Unanswered {
  readonly status: number;
  readonly message: string;
}

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
}

/** Resolves two paths (a VM or an interface) or addresses. A VM stands for its first interface with an address. */
export function whyEnds(state: ControllerState, from: string, to: string): Result<WhyEnds, Unanswered> {
  const first = endOf(state, from);
  const second = endOf(state, to);
  if (!first.ok) return first;
  if (!second.ok) return second;
  const rules = Object.fromEntries(hostPolicyRules(state).map(({ id, path }) => [String(id), path]));
  const waiting = waitingRules(state, [first.value.address, second.value.address]);
  return ok({ from: first.value, to: second.value, cellNumber: state.options.cellNumber, rules, waiting });
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

const normal = (path: string): string => path.split("/").filter(Boolean).join("/");

/** A path as people write it: from the document, or from inside the cell. */
export function recordOf(state: ControllerState, path: string): ReturnType<typeof recordAt> {
  const written = normal(path);
  return (
    recordAt(state, elementPath(written)) ??
    (state.cell === null ? undefined : recordAt(state, elementPath(`${state.cell.path}/${written}`)))
  );
}

function endOf(state: ControllerState, path: string): Result<WhyEnd, Unanswered> {
  if (parseIpv4(path) !== null) {
    const owner = [...state.elements.values()].find((record) => record.allocation?.address === path);
    if (owner !== undefined) return endOf(state, owner.path);
    if (path === state.options.address) return ok({ path: "controller", address: path as Ipv4, vm: null, host: null });
    return ok({ path, address: path as Ipv4, vm: null, host: null });
  }
  const abroad = foreignLink(path);
  if (abroad !== null) return foreignEndOf(state, abroad);
  if (path === "controller") return ok({ path, address: state.options.address, vm: null, host: null });
  const record = recordOf(state, path);
  const element = record === undefined ? undefined : state.cell?.elements.get(record.path);
  if (record === undefined || (element?.type !== "VM" && element?.type !== "VirtualInterface")) {
    const message = `${path} is no VM, interface or address of the cell ${state.options.cell}`;
    return fail({ status: 404, message });
  }
  const link = element.type === "VM" ? firstInterface(state, element.path) : record;
  const address = link?.allocation?.address;
  if (address === undefined) return fail({ status: 409, message: `${record.path} has no address yet` });
  const vmPath = element.type === "VM" ? element.path : element.vm;
  const vm = recordAt(state, vmPath);
  const host = (vm === undefined ? null : state.vms.get(vm.uid)?.run?.host) ?? null;
  if (host === null)
    return fail({
      status: 409,
      message: `${vmPath} is at no host now: ${sentenceOf(vm?.causes ?? []) ?? "it is off"}`,
    });
  return ok({ path: record.path, address, vm: vmPath, host });
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

function firstInterface(state: ControllerState, vm: ReturnType<typeof elementPath>): ReturnType<typeof recordAt> {
  for (const link of linksOf(state, vm)) {
    const record = link.type === "VirtualInterface" ? recordAt(state, link.path) : undefined;
    if (record !== undefined && record.allocation !== null) return record;
  }
  return undefined;
}

export interface ExecTarget {
  readonly path: string;
  readonly host: HostName;
  readonly uid: Uid;
  readonly incarnation: number;
}

/** Where a command or a session for a VM must go: only to an incarnation that runs. */
export function execTarget(state: ControllerState, path: string): Result<ExecTarget, Unanswered> {
  const record = recordOf(state, path);
  if (record?.type !== "VM") {
    return fail({ status: 404, message: `${path} is no VM of the cell ${state.options.cell}` });
  }
  const run = state.vms.get(record.uid)?.run ?? null;
  const power = run === null ? "off" : actualVmOf(state, record.uid, run)?.power;
  if (run?.host == null || power !== "on") {
    return fail({ status: 409, message: `${record.path} does not run: ${sentenceOf(record.causes) ?? "it is off"}` });
  }
  return ok({ path: record.path, host: run.host, uid: record.uid, incarnation: run.incarnation });
}
