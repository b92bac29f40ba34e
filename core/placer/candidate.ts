import type { CellName, ElementPath, HostName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import { type GroupKind, type Membership, reservedGroupName } from "../../model/cell/tenants/affinity/affinity.ts";
import type { CrossingAlert } from "../../model/cell/tenants/dedication/alerts.ts";
import type { HostRule } from "../../model/cell/tenants/dedication/dedication.ts";
import { type ImplicitMode, implicitModes } from "../../model/cell/tenants/dedication/implicit.ts";
import type { Marks } from "../../model/cell/tenants/dedication/marks.ts";
import type { Json } from "../../model/json/json.ts";
import { cellAround } from "../documents/cells.ts";
import type { DesiredPooled, PlacedTerms } from "../documents/pools.ts";
import type { ActualHost, ActualTaken, DesiredHost, DesiredPlacement, HostRefusal } from "../documents/vocabulary.ts";
import { isObject } from "../outbox.ts";
import { allOf, type ByVm, type Few, putInto, takeFrom } from "./index/few.ts";
import { machineShares, roomFor } from "./machine-memory.ts";

/** Room for one VM incarnation on one host; durable until its desire goes or asks for another incarnation. */
export interface Reservation {
  readonly client: PeerName;
  readonly vm: Uid;
  readonly path: ElementPath;
  readonly cell: CellName;
  readonly incarnation: number;
  readonly memoryMiB: number;
  readonly cpus: number;
  readonly host: HostName;
  /** `ActualHost.boot` when it was made. */
  readonly boot?: number;
  readonly apartFrom: readonly string[];
  /** `x.placement.spread`; absent: none. */
  readonly spread?: string;
  /** `x.placement.dedication`; absent: it asks for none. */
  readonly implicit?: ImplicitMode;
  /** Affinity groups of its account that it names; absent: none. */
  readonly groups?: readonly string[];
  /** It was stopped: no room is reserved, and it counts for groups and for what is held by who is there alone. */
  readonly off?: true;
  /** By what it was placed; absent: by a version before. */
  readonly terms?: PlacedTerms;
  /** Names of its nice wishes that were so; absent: none. */
  readonly nice?: readonly string[];
  /** It came here from another host, and what of that the root administrator is told; absent: nothing. */
  readonly crossed?: readonly CrossingAlert[];
}

/**
 * What is taken of one host: by this Placer's reservations, and by the VMs that the host says it has, which may be another
 * Placer's. A VM that is both counts once, with the larger of the two.
 */
export interface HostUse {
  memoryMiB: number;
  cpus: number;
  /** How often their machines count (`machineShares`). */
  shares: number;
  readonly reservations: Map<Uid, Reservation>;
  /** Of those, by cell and `x.placement.spread` (`spreadKey`), and those that keep apart from others; absent: none does. */
  spreads: ReadonlyMap<string, Few<Reservation>>;
  keepingApart?: Set<Reservation>;
  taken: ReadonlyMap<Uid, ActualTaken>;
  /** How many of the reservations were placed by a claim. */
  claimed: number;
  /** How many of all that is there ask for implicit dedication: where it is 0 nobody has to look at whose they are. */
  implicit: number;
  /** Those of it that are in affinity groups. */
  members: ReadonlyMap<Uid, Member>;
}
/** A VM in affinity groups that has a place at a host, or is there: its reservation, or what is said of it. */
export interface Member {
  readonly vm: Uid;
  readonly client: PeerName;
  readonly host: HostName;
  readonly groups?: readonly string[];
  /** By name, where another Placer has placed it. */
  readonly kinds?: ReadonlyMap<string, GroupKind>;
}
/** By the child cell of the root cell that their client is of, or is in: whose a VM is, is known of that one. */
export type Members = ReadonlyMap<CellName, ReadonlySet<Member>>;
/** VMs that are off are not in it. */
export interface CellUse {
  count: number;
  readonly bySpread: Map<string, Set<Reservation>>;
  readonly keepingApart: Set<Reservation>;
}
export interface Usage extends ReadonlyMap<HostName, HostUse> {
  /** By the affinity groups that they name. */
  readonly members: ReadonlyMap<string, Members>;
  /** Kinds of groups by which other Placers have placed VMs: by name, and by whose VMs, how many. */
  readonly kinds: ReadonlyMap<string, ReadonlyMap<CellName, ReadonlyMap<GroupKind, number>>>;
  /** Those of all hosts by cell. */
  readonly cells: ReadonlyMap<CellName, CellUse>;
  /** Those of a cell that go by a path. */
  at(cell: CellName, path: string): Iterable<Reservation>;
  /** Where a VM has a place, or is. */
  readonly placesOf: Pick<ByVm<Few<HostName>>, "get" | "has">;
}
export class UsageTable extends Map<HostName, HostUse> implements Usage {
  readonly members = new Map<string, Map<CellName, Set<Member>>>();
  readonly kinds = new Map<string, Map<CellName, Map<GroupKind, number>>>();
  readonly cells = new Map<CellName, CellUse>();
  readonly placesOf: ByVm<Few<HostName>>;
  /** Hosts of which something else is known since it was last looked at. */
  readonly changed = new Set<HostName>();
  /** The same, since the root controller was told what stands there. */
  readonly unsaid = new Set<HostName>();
  /** The same, since those that wait were looked through. */
  readonly untried = new Set<HostName>();
  /** The same, since a copy of all was begun; null: none is being made. */
  since: Set<HostName> | null = null;
  constructor(placesOf: ByVm<Few<HostName>> = new Map<Uid, Few<HostName>>()) {
    super();
    this.placesOf = placesOf;
  }
  /** Null: nobody has asked. Where no VM names those that it keeps apart from, nobody does, and all paths of a cloud take a tenth of what a Placer has. */
  #paths: Map<CellName, Map<string, Few<Reservation>>> | null = null;
  at(cell: CellName, path: string): Iterable<Reservation> {
    if (this.#paths === null) {
      this.#paths = new Map();
      for (const { reservations } of this.values())
        for (const reservation of reservations.values()) this.notePath(undefined, reservation);
    }
    return allOf(this.#paths.get(cell)?.get(path));
  }
  /** One that is off goes by none. */
  notePath(before: Reservation | undefined, after: Reservation | undefined): void {
    const paths = this.#paths;
    if (paths === null) return;
    const ofCell = before === undefined ? undefined : paths.get(before.cell);
    if (before !== undefined && ofCell !== undefined) takeFrom(ofCell, before.path, before);
    if (before !== undefined && ofCell?.size === 0) paths.delete(before.cell);
    if (after === undefined || after.off === true) return;
    const there = paths.get(after.cell) ?? new Map<string, Few<Reservation>>();
    paths.set(after.cell, there);
    putInto(there, after.path, after);
  }
}

export interface HostView {
  readonly host: HostName;
  readonly reachable: boolean;
  /** When it was declared dead, for people; null or absent: it was not, or it is back. */
  readonly died?: string | null;
  /** null: never heard of it. */
  readonly actual: ActualHost | null;
  /** The operator lets nothing new be placed there; absent: he does. */
  readonly closed?: DesiredHost["state"];
  /** Whose it is; absent: everybody's. */
  readonly rule?: HostRule & { readonly epoch?: number };
  /** Of which flavour it is, and in which pool; absent: of none. */
  readonly pooled?: Pooled;
  /** Where it stands, and what it has. */
  readonly marks?: Marks;
}
export type Pooled = Omit<DesiredPooled, "host">;

/** For whom a VM is placed. */
export interface Asker {
  /** Path of its account; null: nobody knows of one. */
  readonly account: string | null;
  /** One of the cloud's own VMs, which stand anywhere. */
  readonly isSystem: boolean;
  /** Whose the VMs are that a client has placed. */
  readonly accountOf: (client: PeerName) => string | null;
  /** Child cells of the root cell whose affinity groups are those of the asker's VMs too, with those of all cells within them. */
  readonly ours: Iterable<CellName>;
  /** The affinity group that it means by a name; `why`: there are two; null: none. */
  readonly groupNamed: (name: string) => GroupKind | { readonly why: string } | null;
  /** Whether a strict VM may make one more host its account's alone; absent: it may. */
  readonly mayClaim?: () => boolean;
  /** Where a host stands, by names from the zone down; undefined: in no place that has a name. */
  readonly clusterOf: (host: HostName) => string | undefined;
  /** That VM at the host holds none of its groups there. */
  readonly isEmptied: (host: HostName, vm: Uid, kind: GroupKind) => boolean;
}
export const nobody: Asker = {
  account: null,
  isSystem: false,
  accountOf: () => null,
  ours: [],
  groupNamed: () => null,
  clusterOf: () => undefined,
  isEmptied: () => false,
};

/** A reachable host with all that a filter may look at. */
export interface Candidate {
  readonly actual: ActualHost;
  readonly use: HostUse;
  readonly closed?: DesiredHost["state"];
  readonly rule?: HostRule;
  /** Affinity groups that the request is in; absent: none. */
  readonly groups?: readonly Membership[];
  readonly pooled?: Pooled;
  readonly marks?: Marks;
}

/** Virtual CPUs per processor: they share it in time. The host holds to it too, whichever Placer sends it a VM. */
export const cpuRatio = 16;
/** How much of a resource may be promised for each unit that is there. */
export interface Ratios {
  readonly cpu: number;
  readonly memory: number;
}

/** One rule: null if the host passes, otherwise why it does not and what would lift that. */
export type Filter = (
  candidate: Candidate,
  request: DesiredPlacement,
  ratios: Ratios,
  asker: Asker,
) => Required<Omit<HostRefusal, "host">> | null;

/** One for all hosts at which there is none: of tens of thousands most would have an empty one. */
const none: ReadonlyMap<never, never> = new Map<never, never>();
export const noUse = (): HostUse => ({
  memoryMiB: 0,
  cpus: 0,
  shares: 0,
  claimed: 0,
  implicit: 0,
  reservations: new Map(),
  spreads: none,
  taken: none,
  members: none,
});
type Own = "spreads" | "taken" | "members";
/** The same as its own map, to be changed. */
function ownOf<Of extends Own>(
  use: HostUse,
  of: Of,
): HostUse[Of] extends ReadonlyMap<infer K, infer V> ? Map<K, V> : never {
  const made: ReadonlyMap<unknown, unknown> = use[of];
  if (made === none) use[of] = new Map<never, never>() as unknown as HostUse[Of];
  return use[of] as never;
}
/** At a host of a pool its owner's ratios count, which may be less than the usual ones and never more: the host holds to those. */
export function ratiosAt(pooled: Pooled | undefined, ratios: Ratios): Ratios {
  const { cpuRatio: cpu = ratios.cpu, memoryPercent } = pooled?.pool ?? {};
  const memory = memoryPercent === undefined ? ratios.memory : memoryPercent / 100;
  return cpu >= ratios.cpu && memory >= ratios.memory
    ? ratios
    : { cpu: Math.min(cpu, ratios.cpu), memory: Math.min(memory, ratios.memory) };
}
/** MiB that VMs may have on a host, taken or not. */
export const memoryFor = (actual: ActualHost, ratios: Ratios): number =>
  Math.max(0, Math.floor((actual.memoryMiB - actual.reservedMiB) * ratios.memory));
/** What is promised already, each machine's own need included. */
export const takenMiB = (actual: ActualHost, use: HostUse): number =>
  use.memoryMiB + use.shares * (actual.machineMiB ?? 0);
/** The most memory that one more guest could have now. */
export const freeMiB = (actual: ActualHost, use: HostUse, ratios: Ratios): number =>
  roomFor(memoryFor(actual, ratios) - takenMiB(actual, use), actual.machineMiB ?? 0);
export const cpusFor = (actual: ActualHost, ratios: Ratios): number => Math.floor(actual.cpus * ratios.cpu);

const shareOf = (use: HostUse, vm: Uid): ActualTaken & { readonly shares: number } => {
  const [reserved, taken] = [use.reservations.get(vm), use.taken.get(vm)];
  const larger = (of: (share: ActualTaken) => number): number =>
    Math.max(reserved === undefined ? 0 : of(reserved), taken === undefined ? 0 : of(taken));
  const memoryMiB = larger((share) => share.memoryMiB);
  return {
    memoryMiB,
    cpus: larger(({ cpus }) => cpus),
    shares: (reserved === undefined || reserved.off === true) && taken === undefined ? 0 : machineShares(memoryMiB),
  };
};
/** Changes what is known of one VM at a host, and the sums with it. */
function change(usage: UsageTable, host: HostName, vm: Uid, work: (use: HostUse) => void): void {
  const use = usage.get(host) ?? noUse();
  usage.set(host, use);
  usage.unsaid.add(host);
  usage.untried.add(host);
  usage.since?.add(host);
  const before = shareOf(use, vm);
  const asked = modeAt(use, vm) === undefined ? 0 : 1;
  work(use);
  const after = shareOf(use, vm);
  use.implicit += (modeAt(use, vm) === undefined ? 0 : 1) - asked;
  join(usage, use, host, vm);
  use.memoryMiB += after.memoryMiB - before.memoryMiB;
  use.cpus += after.cpus - before.cpus;
  use.shares += after.shares - before.shares;
  usage.changed.add(host);
  if (use.reservations.has(vm) || use.taken.has(vm)) putInto(usage.placesOf, vm, host);
  else takeFrom(usage.placesOf, vm, host);
}
export const reserve = (usage: UsageTable, reservation: Reservation): void =>
  change(usage, reservation.host, reservation.vm, (use) => {
    const before = use.reservations.get(reservation.vm);
    enterHost(use, before, reservation);
    enterCells(usage.cells, before, reservation);
    usage.notePath(before, reservation);
    use.reservations.set(reservation.vm, reservation);
  });
export const release = (usage: UsageTable, { host, vm }: Reservation): void =>
  change(usage, host, vm, (use) => {
    const before = use.reservations.get(vm);
    enterHost(use, before, undefined);
    enterCells(usage.cells, before, undefined);
    usage.notePath(before, undefined);
    use.reservations.delete(vm);
  });

/** What one there asks for: as this Placer has placed it, else as another has, by the host's word. */
const modeAt = ({ reservations, taken }: HostUse, vm: Uid): ImplicitMode | undefined => {
  const reserved = reservations.get(vm);
  return reserved === undefined ? taken.get(vm)?.terms?.implicit : reserved.implicit;
};
const spreadKey = (cell: CellName, spread: string): string => `${cell} ${spread}`;
const claims = (reservation: Reservation | undefined): 0 | 1 => (reservation?.terms?.claim === undefined ? 0 : 1);
function enterHost(use: HostUse, before: Reservation | undefined, after: Reservation | undefined): void {
  use.claimed += claims(after) - claims(before);
  if (before?.spread !== undefined) takeFrom(ownOf(use, "spreads"), spreadKey(before.cell, before.spread), before);
  if (before !== undefined) use.keepingApart?.delete(before);
  if (after === undefined || after.off === true) return;
  if (after.spread !== undefined) putInto(ownOf(use, "spreads"), spreadKey(after.cell, after.spread), after);
  if (after.apartFrom.length === 0) return;
  use.keepingApart ??= new Set();
  use.keepingApart.add(after);
}
function enterCells(cells: UsageTable["cells"], before: Reservation | undefined, after: Reservation | undefined): void {
  if (before !== undefined && before.off !== true) {
    const ofCell = cells.get(before.cell);
    if (ofCell !== undefined) ofCell.count -= 1;
    if (before.spread !== undefined) leave(ofCell?.bySpread, before.spread, before);
    ofCell?.keepingApart.delete(before);
    if (ofCell?.count === 0) cells.delete(before.cell);
  }
  if (after === undefined || after.off === true) return;
  const ofCell = cells.get(after.cell) ?? { count: 0, bySpread: new Map(), keepingApart: new Set() };
  cells.set(after.cell, ofCell);
  ofCell.count += 1;
  if (after.spread !== undefined)
    ofCell.bySpread.set(after.spread, (ofCell.bySpread.get(after.spread) ?? new Set()).add(after));
  if (after.apartFrom.length > 0) ofCell.keepingApart.add(after);
}
/** One there that is in groups; null: it is in none, or not there. */
function memberAt({ reservations, taken }: HostUse, host: HostName, vm: Uid): Member | null {
  const reserved = reservations.get(vm);
  if (reserved !== undefined) return reserved.groups === undefined ? null : reserved;
  const { by, terms } = taken.get(vm) ?? {};
  const kinds = new Map<string, GroupKind>();
  for (const { name, kind } of terms?.groups ?? []) if (kind !== null) kinds.set(name, kind);
  return by === undefined || kinds.size === 0 ? null : { vm, client: by, host, groups: [...kinds.keys()], kinds };
}
function join({ members, kinds }: UsageTable, use: HostUse, host: HostName, vm: Uid): void {
  const [before, after] = [use.members.get(vm), memberAt(use, host, vm)];
  if (before === undefined && after === null) return;
  if (before !== undefined) {
    ownOf(use, "members").delete(vm);
    const around = cellAround(before.client);
    for (const name of before.groups ?? []) {
      const named = members.get(name);
      const within = named?.get(around);
      within?.delete(before);
      if (within?.size === 0) named?.delete(around);
      if (named?.size === 0) members.delete(name);
    }
    count(kinds, before, -1);
  }
  if (after === null) return;
  ownOf(use, "members").set(vm, after);
  const around = cellAround(after.client);
  for (const name of after.groups ?? []) {
    const named = members.get(name) ?? new Map<CellName, Set<Member>>();
    members.set(name, named);
    named.set(around, (named.get(around) ?? new Set()).add(after));
  }
  count(kinds, after, 1);
}
function count(kinds: UsageTable["kinds"], { client, kinds: own }: Member, by: 1 | -1): void {
  if (own === undefined) return;
  const around = cellAround(client);
  for (const [name, kind] of own) {
    const named = kinds.get(name) ?? new Map<CellName, Map<GroupKind, number>>();
    const within = named.get(around) ?? new Map<GroupKind, number>();
    const now = (within.get(kind) ?? 0) + by;
    if (now > 0) within.set(kind, now);
    else within.delete(kind);
    if (within.size > 0) named.set(around, within);
    else named.delete(around);
    if (named.size > 0) kinds.set(name, named);
    else kinds.delete(name);
  }
}
function leave(map: Map<string, Set<Reservation>> | undefined, key: string, reservation: Reservation): void {
  const there = map?.get(key);
  there?.delete(reservation);
  if (there?.size === 0) map?.delete(key);
}

/** What a host says that it has of a VM; null: nothing any more. */
export const noteTaken = (usage: UsageTable, host: HostName, vm: Uid, taken: ActualTaken | null): void =>
  change(usage, host, vm, (use) => {
    if (taken !== null) ownOf(use, "taken").set(vm, taken);
    else if (use.taken.has(vm)) ownOf(use, "taken").delete(vm);
  });

/** The same without what one VM takes: its own last incarnation may still be on its way out there. */
export function useWithout(use: HostUse, vm: Uid): HostUse {
  if (!use.reservations.has(vm) && !use.taken.has(vm)) return use;
  const { memoryMiB, cpus, shares } = shareOf(use, vm);
  return shares === 0
    ? use
    : { ...use, memoryMiB: use.memoryMiB - memoryMiB, cpus: use.cpus - cpus, shares: use.shares - shares };
}

/** One for all that name nothing. */
const nothing: readonly string[] = [];
/** `x.placement.apartFrom`: one path or several, with or without the cell's own component in front. */
export function apartFrom(placement: Json): readonly string[] {
  const value = isObject(placement) ? placement.apartFrom : undefined;
  if (value === undefined) return nothing;
  const all = Array.isArray(value) ? value : [value];
  return all.filter((path): path is string => typeof path === "string");
}

/** `x.placement.dedication`; null: none. */
export function implicitOf(placement: Json): ImplicitMode | null {
  const wish = isObject(placement) ? placement.dedication : undefined;
  return implicitModes.find((mode) => mode === wish) ?? null;
}

/** `x.placement.pool`: the UID of a pool, or its path in the cell of the VM; null: it asks for none. */
export function poolOf(placement: Json): string | null {
  const pool = isObject(placement) ? placement.pool : undefined;
  return typeof pool === "string" ? pool : null;
}

/** `x.placement.groups`: names of affinity groups of its account, one or several. */
export function groupsOf(placement: Json): readonly string[] {
  const value = isObject(placement) ? placement.groups : undefined;
  const all: readonly Json[] = Array.isArray(value) ? value : value === undefined ? nothing : [value];
  return onlyOf(all, (name): name is string => typeof name === "string");
}
/** The list itself where all are so: a document has it, and no second one is kept. */
const onlyOf = <T, Of extends T>(all: readonly T[], is: (one: T) => one is Of): readonly Of[] =>
  all.every(is) ? all : all.filter(is);

/** `x.placement.spread`: name of a group of its cell whose VMs go to different hosts; null: none. */
export function spreadOf(placement: Json): string | null {
  const group = isObject(placement) ? placement.spread : undefined;
  return typeof group === "string" ? group : null;
}
/** How many others of the request's group are at a host. */
export function besidesAt(use: HostUse, request: DesiredPlacement): number {
  let count = 0;
  for (const { vm } of spreadAt(use, request)) if (vm !== request.vm) count += 1;
  return count;
}
/** All of the request's group that are at a host. */
export function spreadAt({ spreads }: HostUse, { cell, placement }: DesiredPlacement): Iterable<Reservation> {
  const group = spreadOf(placement);
  return group === null ? [] : allOf(spreads.get(spreadKey(cell, group)));
}

/** Of an incarnation that has its place at `at`. */
export function reservationOf(
  client: PeerName,
  { vm, path, cell, incarnation, memoryMiB, cpus, placement, off }: DesiredPlacement,
  { host, boot, terms, nice, crossed }: Pick<Reservation, "host" | "boot" | "terms" | "nice" | "crossed">,
): Reservation {
  const [spread, implicit] = [off === true ? null : spreadOf(placement), implicitOf(placement)];
  const groups = distinct(onlyOf(groupsOf(placement), (name): name is string => !reservedGroupName.test(name)));
  // Each field and each `...` here has its place in the object, used or not: what few have is one of them.
  const few = {
    ...(off === true ? { off } : {}),
    ...(spread === null ? {} : { spread }),
    ...(implicit === null ? {} : { implicit }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(nice === undefined ? {} : { nice }),
    ...(crossed === undefined ? {} : { crossed }),
  };
  return {
    client,
    vm,
    path,
    cell,
    incarnation,
    memoryMiB: off === true ? 0 : memoryMiB,
    cpus: off === true ? 0 : cpus,
    host,
    apartFrom: off === true ? nothing : apartFrom(placement),
    ...(boot === undefined ? {} : { boot }),
    ...(terms === undefined ? {} : { terms }),
    ...few,
  };
}

const distinct = (names: readonly string[]): readonly string[] => (names.length < 2 ? names : [...new Set(names)]);

/** How many machines have a place at a host, or are there. */
export const vmsAt = ({ reservations, taken }: HostUse): number =>
  new Set([...[...reservations.values()].flatMap(({ vm, off }) => (off === true ? [] : [vm])), ...taken.keys()]).size;
