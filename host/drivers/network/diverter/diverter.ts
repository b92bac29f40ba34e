import { join } from "node:path";
import type { CellPolicy } from "../../../../core/documents/vocabulary.ts";
import { type Mac, mac } from "../../../../model/cell/identifiers.ts";
import { qemuIdentity } from "../../unix-users.ts";
import type {
  AsksElsewhere,
  GlobalNetwork,
  InterfaceCounters,
  InterfaceGroups,
  LocalInterface,
  LocalNetwork,
  NetworkAllocation,
  NetworkChanges,
  NetworkDriver,
  Outside,
  RouterFact,
  RuleCounters,
  Uplink,
} from "../driver.ts";
import { type Addressing, createAddressing } from "./addressing.ts";
import { examinePacket } from "./examine.ts";
import { type Names, openNames } from "./names.ts";
import { detachOutside, openOutside, type WayOut, withdrawOutside } from "./outside/outside.ts";
import { type OwnNetworks, openNetworks } from "./outside/own-networks.ts";
import { closeDataplane, type Dataplane, mountBpffs, openDataplane, unmountBpffs, unpin } from "./program/dataplane.ts";
import { config, dropReasons, interfaceCounters, policyState, ruleCounters, ruleKey, word } from "./program/layout.ts";
import { attachedProgram, detachAll, ensureAttached, indexOf, programId } from "./program/libbpf.ts";
import { type CellRules, createCellRules } from "./rules/cell-rules.ts";
import { createGenerations, type Generations } from "./rules/generations.ts";
import { createMemberships, type Memberships } from "./rules/memberships.ts";
import { whatWasTold } from "./rules/told.ts";
import { addressingMaps } from "./rules/wanted.ts";
import { bringUp, createTap, findTaps, leaveBridge, portsOf, removeDevice, tapName } from "./taps/devices.ts";
import { closeInterface, isOpenInterface, openInterface } from "./taps/interfaces.ts";
import { mtuOf } from "./taps/mtu.ts";
import { createProber, type Prober } from "./taps/probe.ts";
import {
  guardService,
  isServiceGuarded,
  receivedBy,
  serviceAllocation,
  servicePorts,
  whyNoBridge,
} from "./taps/service-taps.ts";
import { deviceOf, slotOf } from "./taps/slots.ts";

/** What every VM sees as its gateway, and everything else: locally administered, the same everywhere. */
export const gatewayMac: Mac = mac("02:ce:11:5d:00:01");
export interface DiverterOptions {
  /** Durable: names of rules and interfaces. */
  readonly directory: string;
  readonly runDirectory: string;
  /** A mounted bpffs; absent: one is mounted at `<runDirectory>/bpf`. */
  readonly bpffs?: string;
  /** Who may open the taps; absent: the user that QEMU runs as. */
  readonly tapOwner?: { readonly uid: number; readonly gid: number };
  /** Called with what is known of the upstream routers, as often as it changes. */
  readonly onRouters?: (routers: readonly RouterFact[]) => void;
  /** Called with the groups that guests have joined, all of them, as often as that changes. */
  readonly onGroups?: (groups: readonly InterfaceGroups[]) => void;
}

interface Opened {
  readonly dataplane: Dataplane;
  readonly uplink: Wire;
  readonly prober: Prober;
  readonly names: Names;
  readonly generations: Generations;
  readonly rules: CellRules;
  readonly addressing: Addressing;
  readonly networks: OwnNetworks;
  readonly wayOut: WayOut | null;
  readonly memberships: Memberships;
}
interface Wire {
  readonly device: string;
  readonly mtu: number;
  readonly bridge: string | null;
  readonly outside: Outside | null;
}
const key = (value: number): Buffer => word.encode({ value });
const nothing: GlobalNetwork = { interfaces: [], policies: [], locations: [] };

/**
 * The Diverter on this host: works on the network and mount namespace that the process is in. What is in force lives in
 * the kernel and is read from there, so that a new process continues where an old one stopped.
 * Methods throw `Error` with a sentence for the operator when the machine refuses (no privileges, no device).
 */
export function createDiverter(options: DiverterOptions): NetworkDriver & AsksElsewhere {
  const bpffs = options.bpffs ?? join(options.runDirectory, "bpf");
  const owner = options.tapOwner ?? qemuIdentity;
  let opened: Opened | null = null;
  /** What this process last put in force, all of it; null in between. */
  let told: GlobalNetwork | null = null;

  const state = () => {
    if (opened === null) throw new Error("the Diverter is used before `init` gave it an uplink");
    return opened;
  };
  const removeTap = (tap: string): void => {
    closeInterface(state().dataplane, indexOf(tap));
    removeDevice(tap);
  };

  return {
    async init(uplink: Uplink) {
      const index = indexOf(uplink.device);
      if (index === 0) throw new Error(`there is no device "${uplink.device}" to be the uplink of this host`);
      const obstacle = whyNoBridge(uplink);
      if (obstacle !== null) throw new Error(obstacle);
      if (options.bpffs === undefined) mountBpffs(bpffs);
      const dataplane = openDataplane(bpffs);
      const { address, mac: hostMac } = uplink;
      dataplane.maps.config.set(
        key(0),
        config.encode({ uplink: index, host_address: address, host_mac: hostMac, gateway_mac: gatewayMac }),
      );
      const generations = createGenerations(dataplane);
      generations.renewAll();
      ensureAttached(index, dataplane.programs.from_wire);
      if (opened !== null) closeAll(opened);
      const prober = createProber(dataplane, gatewayMac, { address, mac: hostMac }, index);
      const names = openNames(options.directory);
      const rules = createCellRules(dataplane, names, generations);
      const mtu = mtuOf(uplink.device);
      const memberships = createMemberships(dataplane, gatewayMac, deviceOf(dataplane), (groups) => {
        opened?.addressing.renewGroups(groups === null);
        if (groups !== null) options.onGroups?.(groups);
      });
      const addressing = createAddressing(dataplane, mtu, rules, generations, memberships.of);
      const { device, bridge = null, outside = null } = uplink;
      const told = options.onRouters ?? (() => undefined);
      const networks = openNetworks(dataplane, generations, outside ?? uplink.networks ?? null);
      const wayOut = outside === null ? null : openOutside(dataplane, device, outside, generations, networks, told);
      if (outside === null) withdrawOutside(dataplane);
      const parts = { prober, names, generations, rules, addressing, networks, wayOut, memberships };
      opened = { dataplane, uplink: { device, mtu, bridge, outside }, ...parts };
    },
    async inspect(): Promise<LocalNetwork> {
      return { taps: findTaps() };
    },
    scrub(global: GlobalNetwork, local: LocalNetwork): NetworkChanges {
      const { dataplane, uplink, rules, addressing, networks } = state();
      const wantedTaps = global.interfaces.map(({ desired }) => tapName(desired.uid));
      const ports = servicePorts(global, uplink.bridge);
      const network =
        global.interfaces.some((wanted) => {
          const { desired } = wanted;
          const tap = tapName(desired.uid);
          if (desired.management === true && uplink.bridge === null) return false;
          return !local.taps.includes(tap) || !isInPlace(dataplane, wanted, ports);
        }) || local.taps.some((tap) => !wantedTaps.includes(tap));
      return {
        network,
        securityGroup: global.policies.some((policy) => !rules.isInForce(policy)) || gone(dataplane, global).length > 0,
        addressing: network || !networks.isInForce(global.external) || !addressing.isInForce(global),
      };
    },
    async implementNetwork(global: GlobalNetwork) {
      const { dataplane, uplink, names } = state();
      told = null;
      const wanted = new Map(global.interfaces.map(({ desired }) => [tapName(desired.uid), desired.uid]));
      for (const tap of findTaps()) if (!wanted.has(tap)) removeTap(tap);
      names.setTaps(wanted);
      const ports = servicePorts(global, uplink.bridge);
      for (const local of global.interfaces) {
        const { desired, memoryMiB } = local;
        const tap = tapName(desired.uid);
        const { bridge, mtu } = uplink;
        // Nothing that could be made; what an earlier configuration made stays.
        if (desired.management === true && bridge === null) continue;
        if (indexOf(tap) === 0) createTap(tap, owner);
        if (isInPlace(dataplane, local, ports)) continue;
        if (desired.management === true && bridge !== null) guardService(dataplane, tap, mtu, bridge);
        else guard(dataplane, indexOf(tap), memoryMiB, () => withdraw(tap, uplink));
      }
    },
    async implementSecurityGroup(global: GlobalNetwork) {
      const { dataplane, rules } = state();
      told = null;
      for (const policy of global.policies) rules.implement(policy);
      for (const cell of gone(dataplane, global)) rules.remove(cell);
    },
    async implementAddressing(global: GlobalNetwork): Promise<NetworkAllocation> {
      const { dataplane, uplink, rules, addressing, networks, wayOut, memberships } = state();
      networks.tell(global.external);
      addressing.implement(global);
      wayOut?.tell(global);
      memberships.tell(global);
      told = global;
      const ports = servicePorts(global, uplink.bridge);
      return {
        interfaces: global.interfaces.map((local) =>
          local.desired.management === true
            ? serviceAllocation(dataplane, local.desired, ports)
            : allocation(dataplane, global, local, rules),
        ),
        policies: global.policies.map((policy) => ({
          cell: policy.cell,
          version: versionInForce(dataplane, policy),
          problem: rules.problem(policy),
        })),
      };
    },
    async flush() {
      told = null;
      state().addressing.doubt();
      for (const tap of findTaps()) removeTap(tap);
      state().wayOut?.tell(nothing);
      const { maps } = state().dataplane;
      for (const name of [...addressingMaps, "fanout"] as const)
        for (const entry of maps[name].keys()) maps[name].delete(entry);
      state().generations.renewAll();
    },
    async cleanup() {
      if (opened !== null) {
        for (const tap of findTaps()) removeTap(tap);
        detachAll(indexOf(opened.uplink.device));
        if (opened.uplink.outside !== null) detachOutside(opened.uplink.outside, opened.uplink.device);
        closeAll(opened);
        opened = null;
      }
      unpin(bpffs);
      if (options.bpffs === undefined) unmountBpffs(bpffs);
    },
    probe: async (interfaceUid, probe, timeoutMs) => state().prober.probe(interfaceUid, probe, timeoutMs),
    ask: async (machine, timeoutMs) => state().prober.ask(machine, timeoutMs),
    async examine(question) {
      const { dataplane, uplink, names, rules, addressing, wayOut } = state();
      const checks = examinePacket(dataplane, question, {
        rulePath: (cell, rule) => names.rule(cell, rule),
        announced: () => wayOut?.announced() ?? null,
        told:
          told === null
            ? null
            : whatWasTold(told, uplink.mtu, deviceOf(dataplane), (policy) => rules.problem(policy) !== null),
      });
      if (checks.some(({ check }) => check === "entry")) rules.doubt();
      // Where something is missing, no entry is there to be named.
      if (checks.some(({ check, passes }) => check === "entry" || (!passes && check !== "rule"))) addressing.doubt();
      return checks;
    },
    announced: async () => state().wayOut?.announced() ?? null,
    async counters() {
      const { dataplane, names } = state();
      return { interfaces: readInterfaceCounters(dataplane, names), rules: readRuleCounters(dataplane) };
    },
  };
}

function closeAll({ prober, rules, names, dataplane, wayOut, memberships }: Opened): void {
  memberships.close();
  wayOut?.close();
  prober.close();
  rules.close();
  names.close();
  closeDataplane(dataplane);
}
function isGuarded(dataplane: Dataplane, ifindex: number, memoryMiB: number): boolean {
  return (
    attachedProgram(ifindex) === programId(dataplane.programs.from_vm) && isOpenInterface(dataplane, ifindex, memoryMiB)
  );
}

const isInPlace = (dataplane: Dataplane, local: LocalInterface, ports: ReadonlySet<string> | null): boolean =>
  local.desired.management === true
    ? isServiceGuarded(dataplane, tapName(local.desired.uid), ports)
    : isGuarded(dataplane, indexOf(tapName(local.desired.uid)), local.memoryMiB);

/** An ordinary tap is up, and no port of the bridge, which it may have been as a tap of the management network. */
function withdraw(tap: string, { bridge, mtu }: Wire): void {
  if (bridge !== null && portsOf(bridge).has(tap)) leaveBridge(tap);
  bringUp(tap, mtu);
}

/**
 * The program first, then the device up, and last the tables without which nothing passes: a device is never open by
 * accident, and one that is half made is made again.
 */
function guard(dataplane: Dataplane, ifindex: number, memoryMiB: number, bringUpDevice: () => void): void {
  ensureAttached(ifindex, dataplane.programs.from_vm);
  bringUpDevice();
  openInterface(dataplane, ifindex, memoryMiB);
}

const gone = ({ maps }: Dataplane, { policies }: GlobalNetwork): readonly number[] => {
  const cells = new Set(policies.map(({ cellNumber }) => cellNumber));
  return maps.policies
    .keys()
    .map((bytes) => word.decode(bytes).value)
    .filter((cell) => !cells.has(cell));
};

/** The kernel has the low 32 bits of a version, and a cell's only grow. */
function versionInForce({ maps }: Dataplane, { cellNumber, version }: CellPolicy): number | null {
  const state = maps.policies.get(key(cellNumber));
  if (state === null) return null;
  const { version: low } = policyState.decode(state);
  return low === version >>> 0 ? version : low;
}

function allocation(
  dataplane: Dataplane,
  global: GlobalNetwork,
  { cellNumber, desired, memoryMiB }: LocalInterface,
  rules: CellRules,
): NetworkAllocation["interfaces"][number] {
  const tap = tapName(desired.uid);
  const index = indexOf(tap);
  const reason = !isGuarded(dataplane, index, memoryMiB)
    ? `device ${tap} is not there or not guarded yet`
    : dataplane.maps.policies.get(key(cellNumber)) === null
      ? `the rules of cell ${cellNumber} are not here yet`
      : dataplane.maps.interfaces.get(key(index)) === null
        ? `${desired.address} has no entry in the dataplane`
        : null;
  const policy = global.policies.find((candidate) => candidate.cellNumber === cellNumber);
  const problem = policy === undefined ? null : rules.problem(policy);
  return { interface: desired.uid, tap, ready: reason === null, reason: problem ?? reason };
}

const sum = (values: readonly bigint[]): number => Number(values.reduce((total, value) => total + value, 0n));

function readInterfaceCounters(dataplane: Dataplane, names: Names): readonly InterfaceCounters[] {
  return [...names.taps].flatMap(([tap, uid]) => {
    const slot = slotOf(dataplane, indexOf(tap));
    if (slot === null) return [];
    const perCpu = dataplane.maps.counters.getPerCpu(key(slot)).map((bytes) => interfaceCounters.decode(bytes));
    const drops = dropReasons.map((reason, index) => [
      reason,
      sum(perCpu.map(({ drops }) => Buffer.from(drops).readBigUInt64LE(8 * (index + 1)))),
    ]);
    // Its counter is where that of no drop would be.
    const copies = sum(perCpu.map(({ drops }) => Buffer.from(drops).readBigUInt64LE(0)));
    return {
      interface: uid,
      sent: {
        packets: sum(perCpu.map(({ sent_packets }) => sent_packets)),
        bytes: sum(perCpu.map(({ sent_bytes }) => sent_bytes)),
      },
      received: receivedBy(dataplane, tap) ?? {
        packets: sum(perCpu.map(({ received_packets }) => received_packets)),
        bytes: sum(perCpu.map(({ received_bytes }) => received_bytes)),
      },
      drops: { ...Object.fromEntries(drops), "too-many-copies": copies },
    };
  });
}

function readRuleCounters({ maps }: Dataplane): readonly RuleCounters[] {
  return maps.rule_counts.keys().map((bytes) => {
    const { cell, rule } = ruleKey.decode(bytes);
    const perCpu = maps.rule_counts.getPerCpu(bytes).map((value) => ruleCounters.decode(value));
    return {
      cellNumber: cell,
      rule,
      packets: sum(perCpu.map(({ packets }) => packets)),
      bytes: sum(perCpu.map(({ bytes }) => bytes)),
    };
  });
}
