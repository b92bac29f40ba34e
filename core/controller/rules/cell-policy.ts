import type { Cell, NetworkRuleElement, SubnetElement } from "../../../model/cell/cell.ts";
import { type ElementPath, type HostName, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import { effectiveOpenness } from "../../../model/check/openness.ts";
import { limits } from "../../distribution/limits.ts";
import type { DesiredPlaces } from "../../documents/network/network.ts";
import { cellPolicy } from "../../documents/readers/network.ts";
import type { CellPolicy, CompiledRule } from "../../documents/vocabulary.ts";
import { isObject, lengthOf, sameJson, toJson } from "../../outbox.ts";
import type { TrackedMap } from "../changes/tracked.ts";
import { isOnMode } from "../network/instances.ts";
import { isManagement, isOnManagement } from "../network/management.ts";
import { compile, type PolicyInput, type PolicySubnet } from "../network/policy.ts";
import type { ElementRecord } from "../records.ts";
import { foreignAddresses } from "../references/foreign.ts";
import {
  addDesire,
  boundOf,
  type ControllerState,
  desiredNow,
  elementOf,
  keepDesire,
  mintIdentity,
  saidOf,
  saveCounters,
} from "../state.ts";
import { placedOf, policyInterface } from "../vm/virtual-machines.ts";
import { identitiesOf } from "./audiences.ts";
import { foreignHosts } from "./directory-desires.ts";
import { keepPolicy, numberBefore } from "./policy-record.ts";
import { entriesOf, mostInDocument, policyAt, type SlicedPolicy, sliceKey, slicePolicy } from "./policy-slices.ts";

/** Identity of the cell's controller in every policy. */
export const controllerIdentity = 1;

/** Hosts that were told of a VM of the cell, or may run one that this store has forgotten, and have not confirmed its end. */
export const hostsInUse = (state: ControllerState): readonly HostName[] =>
  [...state.indexes.hosts.present.keys()].sort();

/** What interfaces and subnets are to rules. */
function settleEnds(state: ControllerState): void {
  const { interfaces, subnets } = state.derived;
  const settle = <Key, Value extends object>(known: TrackedMap<Key, Value>, key: Key, now: Value | null): void => {
    const before = known.peek(key);
    if (now === null) known.delete(key);
    else if (before === undefined || !sameJson(toJson(before), toJson(now))) known.set(key, now);
  };
  state.pass.each(
    "interfaces",
    state.elements,
    (record, uid) => {
      const element = elementOf(state, record);
      const isOther = element?.type !== "VirtualInterface" || isOnManagement(state, record) || isOnMode(state);
      const vm = isOther ? undefined : state.uids.get(element.vm);
      const vmIdentity = vm === undefined ? 0 : (state.indexes.identities.get(vm) ?? 0);
      settle(interfaces, uid, isOther ? null : policyInterface(state, record, vmIdentity));
    },
    { of: ({ type }) => type === "VirtualInterface" },
  );
  state.pass.each(
    "ends",
    state.elements,
    (record, uid) =>
      settle(subnets, uid, isManagement(state, record) || isOnMode(state) ? null : policySubnet(state, record)),
    { of: ({ type }) => type === "Subnet" },
  );
}

function policySubnet(state: ControllerState, record: ElementRecord): PolicySubnet {
  const element = elementOf(state, record);
  const router = element?.type === "Subnet" ? routerOf(state, element) : undefined;
  return {
    identity: record.identity,
    cidr: record.range?.cidr ?? null,
    ...(element?.type === "Subnet" && element.addressRange === "external" ? { external: true as const } : {}),
    ...(router === undefined ? {} : { router }),
  };
}
/** Undefined also while the router has no address. */
function routerOf(state: ControllerState, { router }: SubnetElement): PolicySubnet["router"] {
  const uid = router === undefined ? undefined : state.uids.get(router);
  const record = uid === undefined ? undefined : state.elements.get(uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  const end = uid === undefined ? undefined : state.derived.interfaces.get(uid);
  if (end === undefined || element?.type !== "VirtualInterface") return undefined;
  return { identity: end.identity, address: end.address, forwards: element.forwards ?? [] };
}
const inOrder = <Value>(state: ControllerState, values: ReadonlyMap<Uid, Value>): readonly Value[] =>
  [...values]
    .sort(([one], [other]) => state.elements.orderOf(one) - state.elements.orderOf(other))
    .map(([, value]) => value);

/** The policy of the present model; a new version exactly when something in it changed. None without a model. */
export function settlePolicy(state: ControllerState): void {
  settleEnds(state);
  state.pass.whole("policy", () => {
    const known = state.derived.policy;
    const now = currentPolicy(state);
    const before = known.peek("");
    if (now === null) known.delete("");
    else if (before === undefined || !sameJson(toJson(before), toJson(now))) known.set("", now);
  });
}

const rulesByCell = new WeakMap<Cell, readonly NetworkRuleElement[]>();
function rulesOf(cell: Cell): readonly NetworkRuleElement[] {
  const known = rulesByCell.get(cell) ?? [...cell.elements.values()].filter(({ type }) => type === "NetworkRule");
  rulesByCell.set(cell, known as readonly NetworkRuleElement[]);
  return known as readonly NetworkRuleElement[];
}

function currentPolicy(state: ControllerState): CellPolicy | null {
  if (state.cell === null) return null;
  const { options } = state;
  const networks: Record<string, number> = { ...state.policy.networks };
  const builtIn: Record<string, number> = {};
  let { nextRule } = state.counters;
  const identityAt = (path: ElementPath): number | undefined => {
    const uid = state.uids.get(path);
    return uid === undefined ? undefined : state.indexes.identities.get(uid) || undefined;
  };
  const input: PolicyInput = {
    cell: options.cell,
    cellNumber: options.cellNumber,
    version: 0,
    openness: effectiveOpenness(state.cell.policy, boundOf(state) ?? {}),
    controller: { address: options.address, mac: options.mac, identity: controllerIdentity },
    interfaces: inOrder(state, state.derived.interfaces),
    subnets: inOrder(state, state.derived.subnets),
    // On a mode none is Diverter's: its hosts have a policy that is empty.
    rules: (isOnMode(state) ? [] : rulesOf(state.cell)).flatMap((element) => {
      const uid = state.uids.get(element.path);
      return uid === undefined ? [] : [{ uid, element }];
    }),
    hosts: hostsToAsk(state),
    foreignNetworks: (want) => foreignAddresses(state, want),
    identityOf: identityAt,
    networkIdentity: (cidr) => {
      networks[cidr] ??= mintIdentity(state);
      return networks[cidr];
    },
    ruleId: (key, of) => {
      const id = numberBefore(state, key, of) ?? nextRule++;
      if (of === null) builtIn[key] = id;
      return id;
    },
  };
  // Who looks at everything compiles everything: what the last time left changes nothing of what comes out.
  const compiled = compile(input, state.pass.isWhole ? null : state.compiled);
  if (nextRule !== state.counters.nextRule) saveCounters(state, { nextRule });
  keepPolicy(state, compiled, { networks, builtIn });
  return { ...compiled.policy, version: state.policy.version };
}

/** Who may be asked where something is: the cell's own hosts, and those of other cells' ends that both cells agreed on. */
const hostsToAsk = (state: ControllerState): readonly HostName[] =>
  [...new Set([...hostsInUse(state), ...foreignHosts(state)])].sort();

/** The policy is at every host that was told of a VM of the cell or may run one, from before its VM until after it is gone. */
export function desirePolicies(state: ControllerState): void {
  const { cell } = state.options;
  const key = `policy/${cell}`;
  const { present } = state.indexes.hosts;
  state.pass.whole("told first", () => {
    for (const host of [...state.toldFirst.keys()]) if (!present.has(host)) state.toldFirst.delete(host);
  });
  state.pass.each("policies", present, (_flag, host, desires) => {
    const policy = state.derived.policy.get("");
    const peer = hostPeer(host);
    if (policy === undefined) {
      keepDesire(state, desires, peer, key);
      for (const each of state.outbox.desired.get(peer)?.keys() ?? [])
        if (each.startsWith(sliceKey(cell, ""))) keepDesire(state, desires, peer, each);
      return;
    }
    const before = desiredNow(state, peer, key);
    if (before === undefined && !state.toldFirst.has(host)) state.toldFirst.set(host, policy.version);
    if (!isInSlices(state, host, policy)) {
      addDesire(desires, peer, key, policy);
      return;
    }
    const { manifest, slices } = policyAt(slicedOf(state, policy), identitiesAt(state, host));
    // One that says the same keeps its version: what changed elsewhere is no news here.
    const isSame = isObject(before) && sameJson({ ...before, version: manifest.version }, toJson(manifest));
    addDesire(desires, peer, key, isSame ? before : manifest);
    for (const [name, slice] of slices) addDesire(desires, peer, sliceKey(cell, name), slice);
  });
}

/** A small one is one document, and so is any at a host that has not said that it takes slices, as long as it fits into one. */
function isInSlices(state: ControllerState, host: HostName, policy: CellPolicy): boolean {
  if (entriesOf(policy) <= (state.options.policyEntriesInDocument ?? mostInDocument)) return false;
  const peer = hostPeer(host);
  const key = `policy/${state.options.cell}`;
  const said = saidOf(state, peer, key);
  if (isObject(said)) return said.slices === true;
  const before = desiredNow(state, peer, key);
  return (isObject(before) && before.slices !== undefined) || isTooLong(policy);
}
/** What is surely too long is not written out to be counted. */
const isTooLong = (policy: CellPolicy): boolean =>
  policy.rules.length * shortestRule > limits.valueLength || lengthOf(policy) > limits.valueLength;
/** Of a rule in JSON, with all of its fields. */
const shortestRule = 100;

function slicedOf(state: ControllerState, policy: CellPolicy): SlicedPolicy {
  if (state.sliced?.policy === policy) return state.sliced;
  const { base = 0 } = state.policy;
  const before = state.pass.isWhole ? null : state.sliced;
  state.sliced = slicePolicy(policy, () => state.derived.interfaces.values(), base, before);
  return state.sliced;
}

/** Of whatever of a cell's rules may be about, of the VMs that a host was told of. */
function identitiesAt(state: ControllerState, host: HostName): ReadonlySet<number> {
  const identities = new Set<number>();
  for (const vm of state.indexes.vmsAt.get(host) ?? []) {
    const run = state.vms.get(vm)?.run ?? null;
    for (const entry of run === null ? [] : placedOf(state, vm, run))
      for (const identity of identitiesOf(entry)) identities.add(identity);
  }
  return identities;
}

/** What each host may know of where addresses are, and whom it may believe that. */
export function desirePlaces(state: ControllerState): void {
  const { cell } = state.options;
  state.pass.each("places", state.indexes.hosts.present, (_flag, host, desires) => {
    const foreign = state.derived.foreignPlaces.get(host);
    const places: DesiredPlaces = {
      cell,
      own: state.derived.toldPlaces.get(host) ?? [],
      foreign: foreign === undefined ? [] : foreign,
    };
    addDesire(desires, hostPeer(host), `places/${cell}`, places);
  });
}

/** The rules that hosts were given last. */
export const hostPolicyRules = ({ compiled, policy }: ControllerState): readonly CompiledRule[] =>
  compiled?.policy.rules ?? cellPolicy.of(policy.compiled)?.rules ?? [];
