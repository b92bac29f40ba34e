import { parseIpv4 } from "../../../model/addresses/addresses.ts";
import type { Cause, CauseKind, RefusalKind } from "../../../model/cause/cause.ts";
import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { ElementRecord, Run, VmRecord } from "../records.ts";
import { TrackedMap, type Tracking } from "./tracked.ts";

/**
 * What would otherwise be looked for among all elements or VMs, again and again. Each follows the records at once, whoever
 * writes them, and changes only where its own part of a record did: that an element's phase is another one is no news here.
 */
export interface Indexes {
  readonly allocations: TrackedMap<Uid, NonNullable<ElementRecord["allocation"]>>;
  /** By address as a number: the elements that have it. */
  readonly holders: TrackedMap<number, readonly Uid[]>;
  /** Subnets in which some element has an address. */
  readonly occupied: Counted<Uid>;
  readonly identities: TrackedMap<Uid, number>;
  readonly deleting: TrackedMap<Uid, true>;
  /** Volumes that have left the model and stay for a copy. */
  readonly held: TrackedMap<Uid, true>;
  /** Members of an all-or-none deployment. */
  readonly reserving: TrackedMap<Uid, true>;
  /** Accepted, and not looked at by any pass. */
  readonly unseen: TrackedMap<Uid, true>;
  readonly children: TrackedMap<Uid, true>;
  /** Of the present model, and they stay as they are until somebody changes something. */
  readonly staying: TrackedMap<Uid, true>;
  /** Connections, volumes and interfaces that some incarnation has. */
  readonly used: Counted<Uid>;
  /** Hosts that were told of a VM and have not confirmed its end, and those that may run a forgotten one. */
  readonly hosts: Counted<HostName>;
  /** Hosts of all incarnations, and those that may run a forgotten one. */
  readonly concerned: Counted<HostName>;
  /** By host, the VMs that it was told of. */
  readonly vmsAt: TrackedMap<HostName, ReadonlySet<Uid>>;
  /** What hosts were told to run and have not said to have ended. Not tracked: it is read at the end of each pass. */
  running: Running;
  /** VMs that have an upgrade, or a spare disk of one. */
  readonly upgrades: TrackedMap<Uid, true>;
}

export interface Running {
  readonly vms: number;
  readonly memoryMiB: number;
  readonly cpus: number;
}

/** Keys that somebody counts for. */
export class Counted<Key> {
  readonly present: TrackedMap<Key, true>;
  readonly #counts = new Map<Key, number>();

  constructor(tracking: Tracking) {
    this.present = new TrackedMap(tracking);
  }
  has(key: Key): boolean {
    return this.present.has(key);
  }
  change(before: readonly Key[], after: readonly Key[]): void {
    for (const key of after) {
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      this.present.set(key, true);
    }
    for (const key of before) {
      const left = (this.#counts.get(key) ?? 0) - 1;
      if (left > 0) this.#counts.set(key, left);
      else {
        this.#counts.delete(key);
        this.present.delete(key);
      }
    }
  }
}

const flag = <Key>(map: TrackedMap<Key, true>, key: Key, isSet: boolean): void => {
  if (isSet) map.set(key, true);
  else map.delete(key);
};

export function indexesOf(
  tracking: Tracking,
  elements: TrackedMap<Uid, ElementRecord>,
  vms: TrackedMap<Uid, VmRecord>,
): Indexes {
  const map = <Key, Value>(): TrackedMap<Key, Value> => new TrackedMap(tracking);
  const counted = <Key>(): Counted<Key> => new Counted(tracking);
  const indexes: Indexes = {
    allocations: map(),
    holders: map(),
    occupied: counted(),
    identities: map(),
    deleting: map(),
    held: map(),
    reserving: map(),
    unseen: map(),
    children: map(),
    staying: map(),
    used: counted(),
    hosts: counted(),
    concerned: counted(),
    vmsAt: map(),
    running: { vms: 0, memoryMiB: 0, cpus: 0 },
    upgrades: map(),
  };
  elements.watch((uid, before, after) => followElement(indexes, uid, before, after));
  vms.watch((uid, before, after) => followVm(indexes, uid, before, after));
  return indexes;
}

/** What waits for a person: to start a machine anew, to add an image, to write something else. */
const untilChanged: ReadonlySet<CauseKind> = new Set([
  ...(["next-start", "grows-next-start", "asked-next-start", "no-image"] as const),
  ...(["no-directory", "foreign-own-cell", "foreign-wrong-type", "other-storage-manager"] as const),
  "controller-of-own-cell-only",
]);
/** Why a host does not take a VM, whatever becomes free there. */
const forGood: ReadonlySet<RefusalKind | undefined> = new Set(["closed", "pinned", "speed"] as const);
const stays = ({ phase, causes }: ElementRecord): boolean =>
  phase === "failed" ||
  (phase === "waiting" && causes.some((cause) => untilChanged.has(cause.kind) || isRefusedForGood(cause)));
const isRefusedForGood = (cause: Cause): boolean =>
  cause.kind === "no-host" && cause.refusals.length > 0 && cause.refusals.every(({ kind }) => forGood.has(kind));

function followElement(
  indexes: Indexes,
  uid: Uid,
  before: ElementRecord | undefined,
  after: ElementRecord | undefined,
): void {
  if (after === undefined) indexes.identities.delete(uid);
  else indexes.identities.set(uid, after.identity);
  flag(indexes.deleting, uid, after?.deleting === true);
  flag(indexes.held, uid, after?.deleting === true && after.held !== undefined);
  flag(indexes.reserving, uid, after?.reserving === true);
  flag(indexes.unseen, uid, after?.phase === null);
  flag(indexes.staying, uid, after !== undefined && !after.deleting && stays(after));
  flag(indexes.children, uid, after?.type === "CellController");
  const [had, has] = [before?.allocation ?? null, after?.allocation ?? null];
  if (had === has) return;
  if (has === null) indexes.allocations.delete(uid);
  else indexes.allocations.set(uid, has);
  indexes.occupied.change(had === null ? [] : [had.subnet], has === null ? [] : [has.subnet]);
  const [was, is] = [had, has].map((each) => (each === null ? null : parseIpv4(each.address)));
  if (was === is) return;
  if (was !== null && was !== undefined) {
    const left = (indexes.holders.get(was) ?? []).filter((other) => other !== uid);
    if (left.length === 0) indexes.holders.delete(was);
    else indexes.holders.set(was, left);
  }
  if (is !== null && is !== undefined) indexes.holders.set(is, [...(indexes.holders.get(is) ?? []), uid]);
}

function followVm(indexes: Indexes, uid: Uid, before: VmRecord | undefined, after: VmRecord | undefined): void {
  indexes.used.change(usedBy(before), usedBy(after));
  const [told, tells] = [toldHost(before?.run), toldHost(after?.run)];
  indexes.hosts.change([...told, ...(before?.strays ?? [])], [...tells, ...(after?.strays ?? [])]);
  indexes.concerned.change(hostsOf(before), hostsOf(after));
  countRun(indexes, before?.run, -1);
  countRun(indexes, after?.run, 1);
  flag(indexes.upgrades, uid, after?.upgrade !== undefined || after?.run?.spare !== undefined);
  if (told[0] === tells[0]) return;
  for (const host of told) {
    const left = new Set(indexes.vmsAt.get(host) ?? []);
    left.delete(uid);
    if (left.size === 0) indexes.vmsAt.delete(host);
    else indexes.vmsAt.set(host, left);
  }
  for (const host of tells) indexes.vmsAt.set(host, new Set([...(indexes.vmsAt.get(host) ?? []), uid]));
}

function countRun(indexes: Indexes, run: Run | null | undefined, by: 1 | -1): void {
  if (run?.handedOver !== true) return;
  const { vms, memoryMiB, cpus } = indexes.running;
  indexes.running = {
    vms: vms + by,
    memoryMiB: memoryMiB + by * run.memoryMiB,
    cpus: cpus + by * run.cpus,
  };
}

const toldHost = (run: Run | null | undefined): readonly HostName[] =>
  run?.handedOver === true && run.host !== null ? [run.host] : [];

const hostsOf = (vm: VmRecord | undefined): readonly HostName[] => [
  ...(vm?.run?.host == null ? [] : [vm.run.host]),
  ...(vm?.strays ?? []),
];

function usedBy(vm: VmRecord | undefined): readonly Uid[] {
  const kept = (vm?.keptDisks ?? []).flatMap(({ uid, volume }) => [uid, volume]);
  const run = vm?.run ?? null;
  if (run === null) return kept;
  const disks = run.spare === undefined ? run.disks : [...run.disks, run.spare];
  return [...run.interfaces, ...disks.flatMap(({ connection, volume }) => [connection, volume]), ...kept];
}
