import { type Cause, said } from "../../../model/cause/cause.ts";
import type { Cell, VirtualInterfaceElement } from "../../../model/cell/cell.ts";
import { type ElementPath, type Ipv4, ipv4, mac, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { digestOnce } from "../../distribution/views/slices.ts";
import {
  type ActualInstance,
  type DesiredInstance,
  type DesiredSecurityGroup,
  type ElasticAddress,
  textOfRules,
} from "../../documents/network/eucalyptus.ts";
import { actualInstance, actualSecurityGroup, desiredInstance } from "../../documents/readers/eucalyptus.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { sameJson, toJson } from "../../outbox.ts";
import type { Desires } from "../changes/desires.ts";
import { because, standing, unanswered } from "../changes/standing.ts";
import type { ElementRecord, Run, Standing } from "../records.ts";
import {
  actualOf,
  addDesire,
  type ControllerState,
  desiredNow,
  elementOf,
  isOff,
  keepDesire,
  linksOf,
  recordAt,
} from "../state.ts";
import { type GroupRules, groupRules, noRules } from "./group-rules.ts";

/*
 * A cell whose networks are made by a mode of Eucalyptus (decision 161). Its VMs are instances of the Network View Manager, which is told the host of each
 * run and says the address that the instance has; its subnets are security groups. A machine is handed to its host once its address is known, and
 * that one starts it once the address is in place there.
 */

export const networkViewManager = peerName("network-view-manager");

export const isOnMode = ({ options }: ControllerState): boolean => options.networkMode !== undefined;

export const instanceKey = (vm: Uid): string => `instance/${vm}`;
export const groupKey = (subnet: Uid): string => `security-group/${subnet}`;

/** Of a placement. */
export const modeAsked = ({ options }: ControllerState): Pick<DesiredPlacement, "networkMode"> =>
  options.networkMode === undefined ? {} : { networkMode: options.networkMode };

/** What the Network View Manager says of a VM. */
export const instanceOf = (state: ControllerState, vm: Uid): ActualInstance | undefined =>
  actualOf(actualInstance, state, networkViewManager, instanceKey(vm));

/** It keeps what it has from its first place on until it is off, or leaves the model. */
function isKept(state: ControllerState, vm: Uid): boolean {
  if ((state.vms.get(vm)?.run ?? null) !== null) return true;
  const record = state.elements.get(vm);
  const element = record === undefined ? undefined : elementOf(state, record);
  return element?.type === "VM" && element.desiredState === "on" && !isOff(state);
}

/** Is there an instance of its VM, from which an interface has its address? Of one that is off there is none. */
export function isInstanceKept(state: ControllerState, { vm }: VirtualInterfaceElement): boolean {
  const uid = state.uids.get(vm);
  return uid !== undefined && isKept(state, uid);
}

/** Of an interface to which the site gives its address, once it runs: what its cell has of it. What it says then is the Network View Manager's word alone. */
const ofTheSite = ipv4("0.0.0.0");
/** Its address is the word of its machine alone, which may say any. */
export const isOfTheSite = (state: ControllerState, { allocation }: ElementRecord): boolean =>
  allocation?.address === ofTheSite && isOnMode(state);
/** The address by which an interface is known; null: it has none, or nobody knows it yet. */
export function addressOf(state: ControllerState, record: ElementRecord): Ipv4 | null {
  if (!isOfTheSite(state, record)) return record.allocation?.address ?? null;
  const element = elementOf(state, record);
  const vm = element?.type === "VirtualInterface" ? state.uids.get(element.vm) : undefined;
  return (vm === undefined ? undefined : instanceOf(state, vm)?.address) ?? null;
}

/** An interface has the address of its VM's instance. */
export function takeInstanceAddress(
  state: ControllerState,
  { allocation: held }: ElementRecord,
  element: VirtualInterfaceElement,
): ElementRecord["allocation"] {
  const vm = state.uids.get(element.vm);
  const subnet = recordAt(state, element.subnet);
  if (vm === undefined || subnet === undefined || !isKept(state, vm)) return null;
  const { address: said = null, mac: hardware = null, learnt } = instanceOf(state, vm) ?? {};
  const address = learnt === true ? ofTheSite : said;
  // One that has not been heard since a start has taken nothing back.
  if (address === null || hardware === null) return held;
  const now = { subnet: subnet.uid, address, mac: mac(hardware.toLowerCase()) };
  return held !== null && sameJson(toJson(held), toJson(now)) ? held : now;
}

/** Why no interface has an address yet. */
export function whyNoInstanceAddress(state: ControllerState, element: VirtualInterfaceElement): Cause {
  const vm = state.uids.get(element.vm);
  const why = vm === undefined ? null : instanceOf(state, vm)?.reason;
  const [first] = said(networkViewManager, why ?? null);
  return first ?? { kind: "address-asked" };
}

/** What an incarnation waits for before its host hears of it; empty: nothing. */
export function whyNoInstance(state: ControllerState, vm: Uid, { interfaces }: Run): readonly Cause[] {
  if (!isOnMode(state) || interfaces.length === 0) return [];
  const actual = instanceOf(state, vm);
  const lacking = interfaces.flatMap((uid) => {
    const record = state.elements.get(uid);
    return record === undefined || record.allocation !== null ? [] : [record.path];
  });
  if (actual !== undefined && actual.id !== null && lacking.length === 0) return [];
  const [path = ""] = lacking.length > 0 ? lacking : interfaces.map((uid) => state.elements.get(uid)?.path ?? "");
  const asked = state.reachable.get(networkViewManager) === false ? "service-unreachable" : "service-asked";
  const why =
    actual === undefined
      ? [{ kind: asked, service: networkViewManager } as const]
      : said(networkViewManager, actual.reason);
  return [{ kind: "waits-for", element: path as ElementPath, ...because(why) }];
}

/** Instances at the Network View Manager, each at the host of its run. */
export function desireInstances(state: ControllerState): void {
  if (!isOnMode(state)) return;
  state.pass.each("instances", state.vms, ({ uid, run }, _uid, desires) => {
    const record = state.elements.get(uid);
    if (record === undefined) return;
    if (!isKept(state, uid)) {
      desireElastic(state, desires, record);
      return;
    }
    const groups = run === null ? [] : groupsOf(state, run);
    // Between two places it keeps its address.
    if (run === null || run.host === null) {
      keepDesire(state, desires, networkViewManager, instanceKey(uid));
      return;
    }
    if (groups.length === 0) return;
    addDesire(desires, networkViewManager, instanceKey(uid), {
      uid,
      cell: state.options.cell,
      path: record.path,
      host: run.host,
      groups,
      ...(isOnExternal(state, record.path) ? { elastic: true as const } : {}),
    } satisfies DesiredInstance);
  });
}

/** Has a VM its interface in an external subnet? It has an elastic address there. */
const isOnExternal = (state: ControllerState, vm: ElementPath): boolean =>
  linksOf(state, vm).some((link) => link.type === "VirtualInterface" && isInExternal(state, link));
function isInExternal(state: ControllerState, { subnet }: VirtualInterfaceElement): boolean {
  const record = recordAt(state, subnet);
  const element = record === undefined ? undefined : elementOf(state, record);
  return element?.type === "Subnet" && element.addressRange === "external";
}

/** One that has had an elastic address keeps it while it is off. */
function desireElastic(state: ControllerState, desires: Desires, { uid, path }: ElementRecord): void {
  const element = state.elements.get(uid);
  if (element === undefined || elementOf(state, element)?.type !== "VM") return;
  const before = desiredInstance.of(desiredNow(state, networkViewManager, instanceKey(uid)), uid);
  if (before?.elastic !== true || !isOnExternal(state, path)) return;
  addDesire(desires, networkViewManager, instanceKey(uid), { ...before, off: true } satisfies DesiredInstance);
}

/** What the Network View Manager says of the elastic address of an interface's VM; undefined: nothing. */
const elasticOf = (state: ControllerState, { vm }: VirtualInterfaceElement): ElasticAddress | undefined => {
  const uid = state.uids.get(vm);
  return uid === undefined ? undefined : instanceOf(state, uid)?.elastic;
};

/** Of the record of an interface; null: it has none. */
export function elasticAddressOf(state: ControllerState, record: ElementRecord): Ipv4 | null {
  const element = record.type === "VirtualInterface" && isOnMode(state) ? elementOf(state, record) : undefined;
  return element?.type === "VirtualInterface" ? (elasticOf(state, element)?.address ?? null) : null;
}

/** Why an interface of an external subnet is not reached under an elastic address; null: it is, or is to have none. */
export function whyNoElastic(state: ControllerState, element: VirtualInterfaceElement): Standing | null {
  if (!isOnMode(state) || !isInExternal(state, element)) return null;
  const address = elasticOf(state, element);
  if (address === undefined) return standing("working", { kind: "service-asked", service: networkViewManager });
  return address.reason === null ? null : standing("waiting", ...said(networkViewManager, address.reason));
}

function groupsOf(state: ControllerState, { interfaces }: Run): readonly Uid[] {
  const groups = interfaces.flatMap((uid) => {
    const record = state.elements.get(uid);
    const element = record === undefined ? undefined : elementOf(state, record);
    const path = element?.type === "VirtualInterface" ? element.subnet : undefined;
    const group = path === undefined ? record?.allocation?.subnet : recordAt(state, path)?.uid;
    return group === undefined ? [] : [group];
  });
  return [...new Set(groups)];
}

const rulesByCell = new WeakMap<Cell, ReadonlyMap<ElementPath, GroupRules>>();
/** UIDs of a model's elements stay for as long as it is the model. */
function rulesOf(state: ControllerState, cell: Cell): ReadonlyMap<ElementPath, GroupRules> {
  const known = rulesByCell.get(cell) ?? groupRules(cell, (path) => state.uids.get(path));
  rulesByCell.set(cell, known);
  return known;
}
const groupRulesOf = (state: ControllerState, { path }: ElementRecord): GroupRules =>
  (state.cell === null ? undefined : rulesOf(state, state.cell).get(path)) ?? noRules;
const rulesDigest = digestOnce(textOfRules);
function documentOf(state: ControllerState, record: ElementRecord): DesiredSecurityGroup {
  const { uid } = record;
  const { ingress, egress } = groupRulesOf(state, record);
  return { uid, cell: state.options.cell, ingress, egress };
}

/** A group is there until its last member is not. */
export function desireSecurityGroups(state: ControllerState): void {
  if (!isOnMode(state)) return;
  state.pass.each(
    "security groups",
    state.elements,
    (record, uid, desires) => {
      if (elementOf(state, record) !== undefined)
        addDesire(desires, networkViewManager, groupKey(uid), documentOf(state, record));
      else if (state.indexes.occupied.has(uid)) keepDesire(state, desires, networkViewManager, groupKey(uid));
    },
    { of: ({ type }) => type === "Subnet" },
  );
}

/** Why a group's rules are not in force at every host that has a view; null: they are. */
export function whyGroupLags(state: ControllerState, record: ElementRecord): Standing | null {
  const actual = actualOf(actualSecurityGroup, state, networkViewManager, groupKey(record.uid));
  if (actual === undefined) return unanswered(state, networkViewManager);
  // What it says of other rules is no word about these.
  if (
    elementOf(state, record) !== undefined &&
    !sameJson(toJson(actual.rules), toJson(rulesDigest(groupRulesOf(state, record))))
  )
    return standing("working", { kind: "service-asked", service: networkViewManager });
  return actual.phase === "ready" ? null : standing(actual.phase, ...said(networkViewManager, actual.reason));
}

/** The same of a rule, which any of the cell's groups may have, or have had. */
export function whyRuleLags(state: ControllerState): Standing | null {
  for (const path of state.cell === null ? [] : subnetsIn(state.cell)) {
    const record = recordAt(state, path);
    const why = record === undefined ? null : whyGroupLags(state, record);
    if (why !== null) return why;
  }
  return null;
}
const subnetsByCell = new WeakMap<Cell, readonly ElementPath[]>();
function subnetsIn(cell: Cell): readonly ElementPath[] {
  const known =
    subnetsByCell.get(cell) ??
    [...cell.elements.values()].flatMap(({ type, path }) => (type === "Subnet" ? [path] : []));
  subnetsByCell.set(cell, known);
  return known;
}
