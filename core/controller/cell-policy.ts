import type { HostName } from "../../model/identifiers.ts";
import type { CellPolicy, CompiledRule } from "../documents.ts";
import { isObject, sameJson, toJson } from "../outbox.ts";
import { foreignHosts } from "./directory-wishes.ts";
import { foreignNetworks } from "./foreign.ts";
import { isManagement, isOnManagement } from "./management.ts";
import { compilePolicy, type PolicyInterface } from "./policy.ts";
import {
  type ControllerState,
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
} from "./state.ts";
import { policyInterface } from "./virtual-machines.ts";

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
    savePolicy(state, { networks, rules, compiled: toJson(compiled), version: state.policy.version + 1 });
  }
  return { ...compiled, version: state.policy.version };
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
  for (const host of hostsInUse(state)) {
    if (policy === null) keepWish(state, wishes, hostPeer(host), key);
    else wish(wishes, hostPeer(host), key, policy);
  }
}

/** The rules that hosts were given last. */
export const hostPolicyRules = (state: ControllerState): readonly CompiledRule[] =>
  isObject(state.policy.compiled) ? (state.policy.compiled as unknown as CellPolicy).rules : [];
