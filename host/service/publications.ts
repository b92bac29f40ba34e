import { type ActualMachine, type ActualMachines, machinesKey } from "../../core/documents/ha.ts";
import type { ActualPolicy } from "../../core/documents/network/network.ts";
import { claimKey } from "../../core/documents/pools.ts";
import {
  type ActualHost,
  type ActualLocation,
  type ActualTaken,
  type ActualVm,
  actualKey,
  type DesiredVm,
  takenKey,
} from "../../core/documents/vocabulary.ts";
import { displayShare } from "../../model/cell/attributes/display-memory.ts";
import { type CellName, type Ipv4, type PeerName, peerName, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { LocalInterface } from "../drivers/network/driver.ts";
import { guestOf, healthOf, isUnaskable, probesOf } from "../liveness/health.ts";
import { rootController } from "../machine/claims/claims.ts";
import { keepsOff } from "../machine/claims/standing.ts";
import { trialState } from "../root-vm/boot-trial.ts";
import type { VmRecord } from "../vm-record.ts";
import type { Found, Wanted } from "../wanted.ts";
import { addressesInUse, growingDisks, localInterfaces, mayStart, obstacle } from "./planner.ts";

/** What this host says is so, by key, as a function of what it knows. */
export const publications = (
  wanted: Wanted,
  found: Found,
  host: ActualHost,
  /** VMs whose last action failed and will be repeated, with the reason. */
  troubles: ReadonlyMap<Uid | "network", string>,
  /** That guests have joined, by interface. */
  groups: ReadonlyMap<Uid, readonly Ipv4[]> = new Map(),
): ReadonlyMap<string, Json> => {
  const result = new Map<string, Json>([["host", host as unknown as Json]]);
  const inUse = addressesInUse(wanted, found.records);
  for (const vm of new Set([...wanted.vms.keys(), ...found.records.keys()])) {
    const client = wanted.vms.get(vm)?.client ?? found.records.get(vm)?.client;
    const actual = withTrialState(actualVm(vm, wanted, found, inUse, troubles), vm, wanted, found);
    if (client !== undefined && actual !== null) result.set(actualKey(client, `vm/${vm}`), actual as unknown as Json);
  }
  for (const local of locatedInterfaces(wanted, found)) {
    const { address, identity, vmIdentity, subnetIdentity } = local.desired;
    const joined = groups.get(local.desired.uid) ?? [];
    const location: ActualLocation = {
      address,
      host: host.host,
      hostMac: host.mac,
      cellNumber: local.cellNumber,
      identity,
      vmIdentity,
      subnetIdentity,
      ...(joined.length === 0 ? {} : { groups: joined }),
    };
    result.set(`location/${address}`, location as unknown as Json);
  }
  for (const { cell, version } of wanted.policies) {
    const actual = actualPolicy(cell, version, found, troubles.get("network"));
    result.set(actualKey(controllerOf(cell), `policy/${cell}`), actual as unknown as Json);
  }
  if (wanted.claimed !== undefined && wanted.claimed.epoch > 0)
    result.set(actualKey(rootController, claimKey(host.host)), { epoch: wanted.claimed.epoch });
  result.set(machinesKey, machinesHere(found, host) as unknown as Json);
  for (const [vm, taken] of takenHere(wanted, found)) result.set(takenKey(vm), taken as unknown as Json);
  return result;
};

const controllerOf = (cell: CellName): PeerName => peerName(`controller.${cell}`);

/** What packets meet here of a cell's rules, which is said when it is so and not when it was asked for. */
const actualPolicy = (
  cell: CellName,
  wanted: number,
  { allocation }: Found,
  trouble: string | undefined,
): ActualPolicy => {
  const inForce = allocation.policies.find((each) => each.cell === cell);
  const version = inForce?.version ?? null;
  if (version === wanted) return { version, phase: "ready", reason: null, slices: true };
  const reason = inForce?.problem ?? trouble ?? null;
  return { version, phase: reason === null ? "working" : "failed", reason, slices: true };
};

/** What is there, whoever wants it: "off" is said of what is confirmed gone, or was refused for good. */
const machinesHere = ({ records }: Found, { host, boot }: ActualHost): ActualMachines => ({
  host,
  ...(boot === undefined ? {} : { boot }),
  machines: [...records.values()]
    .map(({ vm: { uid: vm, incarnation }, stage }): ActualMachine => {
      return { vm, incarnation, power: stage === "ended" ? "off" : "on" };
    })
    .sort((one, other) => (one.vm < other.vm ? -1 : 1)),
});

/** What each VM takes that runs here or is about to, and whose it is, for Placers whose VM it is not. */
const takenHere = (wanted: Wanted, { records }: Found): ReadonlyMap<Uid, ActualTaken> => {
  const taken = new Map<Uid, ActualTaken>();
  const add = (by: PeerName, { uid, memoryMiB: ofGuest, cpus, terms, display }: DesiredVm, counts = true): void => {
    // With its screen, also where the Placer that placed it was asked for less.
    const memoryMiB = ofGuest + displayShare({ display });
    taken.set(uid, { memoryMiB, cpus, by, ...(terms === undefined || !counts ? {} : { terms }) });
  };
  for (const { client, desired } of wanted.vms.values())
    if (mayStart(desired, records.get(desired.uid))) add(client, desired, keepsOff(client, desired, wanted, records));
  for (const { client, vm, stage } of records.values()) if (stage !== "ended") add(client, vm);
  return taken;
};

/**
 * Interfaces in place here, of VMs that shall run here: where one is about to go, its next host speaks for it. On the
 * management network nobody asks a host.
 */
const locatedInterfaces = (wanted: Wanted, found: Found): readonly LocalInterface[] =>
  localInterfaces(wanted, found.records).filter(
    ({ vm, desired }) =>
      desired.management !== true &&
      wanted.vms.get(vm)?.desired.power === "on" &&
      found.allocation.interfaces.some((allocated) => allocated.interface === desired.uid && allocated.ready),
  );

/** Who may see where the addresses here are: the hosts that each controller names. */
export const audiencesOf = (wanted: Wanted, found: Found): ReadonlyMap<string, ReadonlySet<PeerName>> =>
  new Map(
    locatedInterfaces(wanted, found).map(({ desired }) => [
      desired.address,
      new Set(desired.audience.map((host) => peerName(`host.${host}`))),
    ]),
  );
type Audiences = ReturnType<typeof audiencesOf>;
export const sameAudiences = (one: Audiences, other: Audiences): boolean => {
  if (one.size !== other.size) return false;
  for (const [address, peers] of one) {
    const others = other.get(address);
    if (others?.size !== peers.size || ![...peers].every((peer) => others.has(peer))) return false;
  }
  return true;
};

/** Never says that a machine is off before it is confirmed gone: its volumes may be given to another on that word. */
const actualVm = (
  vm: Uid,
  wanted: Wanted,
  found: Found,
  inUse: ReturnType<typeof addressesInUse>,
  troubles: ReadonlyMap<Uid | "network", string>,
): ActualVm | null => {
  const record = found.records.get(vm);
  const desired = wanted.vms.get(vm)?.desired;
  if (record !== undefined && record.stage !== "ended")
    return runningVm(
      record,
      desired === undefined || desired.power === "off" ? null : desired.incarnation,
      troubles.get(vm),
      wanted,
      found,
    );
  if (desired !== undefined && mayStart(desired, record))
    return {
      incarnation: desired.incarnation,
      power: "off",
      ended: null,
      phase: "waiting",
      reason: obstacle(desired, wanted, found, inUse) ?? troubles.get("network") ?? "it is about to be started",
    };
  if (record !== undefined) {
    const { incarnation } = record.vm;
    if (desired !== undefined && desired.power === "off" && desired.incarnation >= incarnation)
      return { incarnation: desired.incarnation, power: "off", ended: "stopped", phase: "ready", reason: null };
    return {
      incarnation,
      power: "off",
      ended: record.ended,
      phase: desired === undefined ? "deleting" : record.ended === "stopped" ? "ready" : "failed",
      reason: record.reason,
    };
  }
  if (desired === undefined) return null;
  return { incarnation: desired.incarnation, power: "off", ended: "stopped", phase: "ready", reason: null };
};

const withTrialState = (actual: ActualVm | null, vm: Uid, wanted: Wanted, found: Found): ActualVm | null => {
  const trial = trialState(wanted.vms.get(vm)?.desired, found.records.get(vm));
  return actual === null || trial === null ? actual : { ...actual, trial };
};

/** How far the disks are that grow while it runs. */
const grownDisks = ({ vm, grown }: VmRecord, trouble: string | undefined, { vms }: Wanted): Pick<ActualVm, "disks"> => {
  const newer = vms.get(vm.uid)?.desired;
  const growing = newer?.incarnation === vm.incarnation ? growingDisks(newer) : [];
  if (growing.length === 0) return {};
  const disks = growing.map(([{ connection }, sizeMiB]) => {
    const hasMiB = grown?.[connection] ?? null;
    return { connection, sizeMiB: hasMiB, reason: hasMiB === sizeMiB ? null : (trouble ?? null) };
  });
  return { disks };
};

const runningVm = (
  record: VmRecord,
  wantedIncarnation: number | null,
  trouble: string | undefined,
  wanted: Wanted,
  found: Found,
): ActualVm => {
  const { incarnation } = record.vm;
  const health = healthOf(record, wanted);
  const guest = guestOf(record, wanted);
  const base = {
    incarnation,
    power: "on",
    ended: null,
    ...(health === null ? {} : { health }),
    probes: probesOf(record, wanted),
    ...(record.reboots === undefined ? {} : { reboots: record.reboots }),
    ...(guest === null ? {} : { guest }),
    ...grownDisks(record, trouble, wanted),
  } as const;
  if (wantedIncarnation === null)
    return { ...base, phase: "deleting", reason: trouble ?? "its machine is being stopped" };
  if (wantedIncarnation > incarnation)
    return { ...base, phase: "working", reason: trouble ?? `making room for incarnation ${wantedIncarnation}` };
  if (record.ending === true)
    return { ...base, phase: "waiting", reason: `${record.reason}; nothing of it is given away before it is gone` };
  // "off" with neither an end nor a failure confirms nothing, and claims nothing.
  if (record.stage === "starting")
    return { ...base, power: "off", phase: "working", reason: "its machine is being started" };
  const stalled = found.stalled.get(record.vm.uid);
  if (stalled !== undefined) return { ...base, phase: "waiting", reason: stalled };
  if (health === "starting" && isUnaskable(record, wanted)) {
    const reason = "is not asked whether it lives: it was started without the interface that is to be asked";
    return { ...base, phase: "waiting", reason };
  }
  if (health === "starting")
    return { ...base, phase: "working", reason: "it starts: waits for the first answer to its liveness probes" };
  if (health === "silent") {
    const reason = record.silence ?? "does not answer its probes";
    // Nothing for its controller to do, which is what is silent here.
    if (record.vm.restart === "host")
      return { ...base, health: "starting", phase: "working", reason: `${reason}: its host starts it again` };
    return { ...base, phase: "failed", reason };
  }
  return { ...base, phase: "ready", reason: record.reason };
};
