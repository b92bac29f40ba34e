import type { ElementPath, HostName } from "../../../model/cell/identifiers.ts";
import type { DesiredPlace, DesiredPlaces } from "../../documents/network.ts";
import { cellPolicy } from "../../documents/readers/network.ts";
import type { CellPolicy, CompiledRule } from "../../documents/vocabulary.ts";
import { sameJson, toJson } from "../../outbox.ts";
import { isManagement, isOnManagement } from "../network/management.ts";
import { compilePolicy, type PolicyInterface } from "../network/policy.ts";
import { foreignNetworks } from "../references/foreign.ts";
import {
  type ControllerState,
  desiredNow,
  elementOf,
  hostPeer,
  keepWish,
  mintIdentity,
  recordAt,
  runs,
  saveCounters,
  savePolicy,
  type Wishes,
  wish,
} from "../state.ts";
import { placedInterfaces, policyInterface } from "../vm/virtual-machines.ts";
import { foreignHosts, foreignPlaces } from "./directory-wishes.ts";

/** Identity of the cell's controller in every policy. */
export const controllerIdentity = 1;

/** Hosts that were told of a VM of the cell and have not confirmed its end. */
export function hostsInUse(state: ControllerState): readonly HostName[] {
  const hosts = new Set<HostName>();
  for (const { run } of runs(state)) if (run.host !== null && run.handedOver) hosts.add(run.host);
  return [...hosts].sort();
}

/** The policy of the present model; a new version exactly when something in it changed. Null without a model. */
export function currentPolicy(state: ControllerState): CellPolicy | null {
  if (state.cell === null) return null;
  const { options } = state;
  const networks: Record<string, number> = { ...state.policy.networks };
  const rules: Record<string, number> = {};
  let { nextRule } = state.counters;
  const compiled = compilePolicy({
    cell: options.cell,
    cellNumber: options.cellNumber,
    version: 0,
    subnetConnectivity: state.cell.subnetConnectivity,
    controller: { address: options.address, mac: options.mac, identity: controllerIdentity },
    interfaces: policyInterfaces(state),
    subnets: [...state.elements.values()].flatMap((record) =>
      record.type === "Subnet" && !isManagement(state, record)
        ? [{ identity: record.identity, cidr: record.range?.cidr ?? null }]
        : [],
    ),
    rules: [...state.elements.values()].flatMap((record) => {
      const element = elementOf(state, record);
      return element?.type === "NetworkRule" ? [{ uid: record.uid, element }] : [];
    }),
    hosts: hostsToAsk(state),
    foreignNetworks: (want) => foreignNetworks(state, want),
    identityOf: (path) => recordAt(state, path)?.identity || undefined,
    networkIdentity: (cidr) => {
      networks[cidr] ??= mintIdentity(state);
      return networks[cidr];
    },
    ruleId: (key) => {
      const id = state.policy.rules[key] ?? rules[key] ?? nextRule++;
      rules[key] = id;
      return id;
    },
  });
  if (nextRule !== state.counters.nextRule) saveCounters(state, { nextRule });
  if (!sameJson(state.policy.compiled, toJson(compiled))) {
    const version = state.policy.version + 1;
    const since = sinceOf(state, compiled, version);
    savePolicy(state, { networks, rules, compiled: toJson(compiled), version, since });
  }
  return { ...compiled, version: state.policy.version };
}

/**
 * Since which version each rule of the model, or one that is being taken away, is as it is. Where the controller or a
 * network has moved, each is another one.
 */
function sinceOf(state: ControllerState, next: CellPolicy, version: number): Readonly<Record<string, number>> {
  const { compiled, since, version: former } = state.policy;
  const before = cellPolicy.of(compiled);
  const texts = (policy: CellPolicy | null): ReadonlyMap<string, string> =>
    new Map(
      [...Map.groupBy(policy?.rules ?? [], ({ path }) => path)].map(([path, all]) => [path, JSON.stringify(all)]),
    );
  const [was, now] = [texts(before), texts(next)];
  const isMoved = !sameJson(toJson(before?.controller ?? {}), toJson(next.controller));
  const paths = [...state.elements.values()].flatMap(({ type, path }) => (type === "NetworkRule" ? [path] : []));
  const entries = [...now.keys(), ...paths].map((path): [string, number] => {
    const isSame = was.get(path) === now.get(path) && !(isMoved && now.has(path));
    return [path, isSame ? (since === undefined ? former : (since[path] ?? 0)) : version];
  });
  return Object.fromEntries(entries);
}

/** Who may be asked where something is: the cell's own hosts, and those of other cells' ends that both cells agreed on. */
const hostsToAsk = (state: ControllerState): readonly HostName[] =>
  [...new Set([...hostsInUse(state), ...foreignHosts(state)])].sort();

function policyInterfaces(state: ControllerState): readonly PolicyInterface[] {
  return [...state.elements.values()].flatMap((record) => {
    const element = elementOf(state, record);
    if (element?.type !== "VirtualInterface" || isOnManagement(state, record)) return [];
    const entry = policyInterface(state, record, recordAt(state, element.vm)?.identity ?? 0);
    return entry === null ? [] : [entry];
  });
}

/** The policy is at every host that was told of a VM of the cell, from before its VM until after it is gone. */
export function wishForPolicies(state: ControllerState, wishes: Wishes, policy: CellPolicy | null): void {
  const key = `policy/${state.options.cell}`;
  const hosts = hostsInUse(state);
  for (const host of state.toldFirst.keys()) if (!hosts.includes(host)) state.toldFirst.delete(host);
  for (const host of hosts) {
    if (policy !== null && desiredNow(state, hostPeer(host), key) === undefined && !state.toldFirst.has(host))
      state.toldFirst.set(host, policy.version);
    if (policy === null) keepWish(state, wishes, hostPeer(host), key);
    else wish(wishes, hostPeer(host), key, policy);
  }
}

/** What each host may know of where addresses are, and whom it may believe that. */
export function wishForPlaces(
  state: ControllerState,
  wishes: Wishes,
  audience: ReadonlyMap<ElementPath, readonly HostName[]>,
): void {
  const { cell } = state.options;
  const placed = placedInterfaces(state);
  const foreign = foreignPlaces(state);
  const known = new Map<HostName, DesiredPlace[]>(hostsInUse(state).map((host) => [host, []]));
  for (const { path, address, host, identity, vmIdentity, subnetIdentity } of placed)
    for (const other of audience.get(path) ?? [])
      if (other !== host) known.get(other)?.push({ address, host, identity, vmIdentity, subnetIdentity });
  for (const [host, own] of known) {
    own.sort((a, b) => (a.address < b.address ? -1 : 1));
    const places: DesiredPlaces = { cell, own, foreign: foreign.has(host) ? (foreign.get(host) ?? null) : [] };
    wish(wishes, hostPeer(host), `places/${cell}`, places);
  }
}

/** The rules that hosts were given last. */
export const hostPolicyRules = (state: ControllerState): readonly CompiledRule[] =>
  cellPolicy.of(state.policy.compiled)?.rules ?? [];
