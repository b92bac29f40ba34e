import type {
  Cell,
  Element,
  Openness,
  VirtualInterfaceElement,
  VolumeConnectionElement,
} from "../../model/cell/cell.ts";
import {
  type CellName,
  type Cidr,
  type ElementPath,
  type HostName,
  type Ipv4,
  type Mac,
  type PeerName,
  peerName,
  type Uid,
} from "../../model/cell/identifiers.ts";
import type { Mode } from "../../model/cell/network/modes.ts";
import type { Usage } from "../../model/check/check-limits.ts";
import type { Supply } from "../../model/check/check-supply.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { Document } from "../../model/json/reader.ts";
import type { DesiredLife, QuotaGrant } from "../documents/cells.ts";
import { addressOffer } from "../documents/readers/network.ts";
import { hostOffers } from "../documents/readers/placement.ts";
import { actualKept, storageOffers } from "../documents/readers/storage.ts";
import { supplyOf } from "../documents/supply.ts";
import type { DesiredLimits } from "../documents/tenancy.ts";
import { actualKey, type DesiredConnection, type DesiredVm } from "../documents/vocabulary.ts";
import type { Instant, Restored } from "../env.ts";
import { log, type Outbox, toJson, write } from "../outbox.ts";
import type { Deaths } from "../presence/group/deaths.ts";
import type { Desires } from "./changes/desires.ts";
import type { Granted } from "./changes/granted.ts";
import type { Indexes } from "./changes/indexes.ts";
import type { Pass } from "./changes/pass.ts";
import type { TrackedMap, Tracking } from "./changes/tracked.ts";
import type { Working } from "./changes/work.ts";
import { knownPools } from "./network/known-pools.ts";
import type { Compiled } from "./network/policy.ts";
import type {
  Answers,
  CredentialRecord,
  ElementRecord,
  ForeignRecord,
  GuardRecord,
  Hearing,
  Run,
  SaidInUse,
  StartState,
  UpgradeClock,
  VmRecord,
} from "./records.ts";
import type { Tickets } from "./requests/tickets.ts";
import type { Audiences } from "./rules/audiences.ts";
import type { Derived } from "./rules/derived.ts";
import type { SlicedPolicy } from "./rules/policy-slices.ts";
import type { Turns } from "./rules/told-places.ts";
import type { Pooling } from "./services/pools/pooled-record.ts";
import type { AfterRestore } from "./vm/after-restore.ts";

/**
 * What a Cell Controller knows. Everything it must not forget is in records (`outbox.records`) and in the documents
 * that it desires at others (`outbox.desired`); the rest is what others said since the start, and is said again.
 */
export interface ControllerOptions {
  readonly cell: CellName;
  readonly cellUid: Uid;
  /** Unique in the installation, never 0. */
  readonly cellNumber: number;
  /** Parent domain: names are `<vifName>.<cell>.<domain>`. */
  readonly domain: string;
  /** The controller's own, on the underlay; the name server that the cell's VMs see. */
  readonly address: Ipv4;
  readonly mac: Mac;
  readonly self: PeerName;
  /** What the installation has: without a directory no other cell is visible, without a Cell Manager none has children. */
  readonly directory?: true;
  readonly cellManager?: true;
  /** A cell that another one made, as its name alone does not say of a child of the root cell. */
  readonly child?: true;
  /** There is an HA Manager, which looks after VMs whose host is lost. Absent: nobody does, until one is heard of. */
  readonly ha?: true;
  /** Members of the Presence group; none: no host is ever declared dead. */
  readonly presence?: readonly PeerName[];
  /** VMs that a cell may start a minute which nobody's child is; absent: `defaultStartsPerMinute` (start-limit.ts). */
  readonly startsPerMinute?: number;
  /** Resolvers of a cell which is nobody's child, on the management network (resolvers.ts); absent: none. */
  readonly resolvers?: readonly Ipv4[];
  /** A policy with more entries than that goes to hosts in slices; absent: `mostInDocument` (rules/policy-slices.ts). */
  readonly policyEntriesInDocument?: number;
  /** With more compiled rules than that it is stored in parts; absent: `mostInRecord` (rules/policy-record.ts). */
  readonly policyRulesInRecord?: number;
  /** Those of several that decide for this cell, since it was made (decision 37); absent: the first ones. */
  readonly placer?: PeerName;
  readonly storageManager?: PeerName;
  readonly haManager?: PeerName;
  /** The mode of Eucalyptus by whose rules its networks are made, since it was made; absent: Diverter. */
  readonly networkMode?: Mode;
  /** Of the root cell's controller, and of no other (decision 31). */
  readonly root?: RootOptions;
  /** Of every other one where services enrol: used only as far as its parent lets it have a gateway (decision 38). */
  readonly services?: RootOptions;
}
export interface RootOptions {
  /** The underlay: what a subnet with the address range "management" is. */
  readonly management: Cidr;
  /** Where a service VM enrols: address of the authority's VM, and the fingerprint of the authority's key. */
  readonly authority: { readonly address: Ipv4; readonly fingerprint: string };
  /** SHA-256 (hexadecimal) of the operator's credentials, which every controller and the gateway know. */
  readonly credentialHashes: readonly string[];
  /** The token of one role of one incarnation, always the same one, and its SHA-256 (hexadecimal). */
  readonly token: (vm: Uid, incarnation: number, role: string) => { readonly token: string; readonly hash: string };
  /** In the same way the credential by which a personality keeps a part of this cell. Absent: none does. */
  readonly credential?: RootOptions["token"];
  /** Of the root cell's: its HA Manager runs with it, and enrols with a token of this SHA-256. Absent: it has none. */
  readonly ha?: { readonly hash: string };
}
export const storageManager = peerName("storage-manager");
export const addressManager = peerName("address-manager");
export const dnsManager = peerName("dns-manager");
export const haManager = peerName("ha-manager");
export const placer = peerName("placer");
/** What the cell may have open, and whom it may ask for names outside, as its parent has it; null: nobody bounds it. */
export const boundOf = ({ life, options }: ControllerState): Openness | null => {
  if (options.root !== undefined) return null;
  if (life !== null) return life.bound ?? {};
  return options.resolvers === undefined ? {} : { resolvers: options.resolvers };
};
/** Those that this cell is bound to. */
export const placerOf = ({ options }: ControllerState): PeerName => options.placer ?? placer;
export const storageManagerOf = ({ options }: ControllerState): PeerName => options.storageManager ?? storageManager;
export const haManagerOf = ({ options, guard }: Pick<ControllerState, "options" | "guard">): PeerName =>
  guard?.haManager ?? options.haManager ?? haManager;
/** Its parent says how its life is. */
export const isChild = ({ options }: Pick<ControllerState, "options">): boolean =>
  options.child === true || options.cell.includes(".");
export const directory = peerName("directory");
export const cellManager = peerName("cell-manager");
export const authority = peerName("authority");
/** Record `model`. The document is null before the first change and after the whole cell was deleted. */
export interface ModelRecord {
  readonly version: number;
  readonly document: JsonObject | null;
}
/** Record `counters`. None ever goes back. */
export interface CountersRecord {
  readonly nextNumber: number;
  /** Numbers below it that this store never gave out, in order: from, and up to but not (`given-out.ts`). Absent: none. */
  readonly skipped?: readonly (readonly [number, number])[];
  readonly nextIdentity: number;
  readonly nextRule: number;
}
/**
 * Record `policy`: identities of networks and numbers of rules, both for good, and the version that hosts were given.
 * `since`: by path of a rule, the version in which what comes of it changed last. Absent: of the previous version.
 */
export interface PolicyRecord {
  readonly networks: { readonly [cidr: string]: number };
  /** Numbers of compiled rules by element and key; where they are in parts, those of no element. */
  readonly rules: { readonly [key: string]: number };
  /** As it was written; where it is in parts, without rules. */
  readonly compiled: Json;
  /** It is in parts (`PolicyPart`): marks of those of no element, by what they are called. */
  readonly parts?: { readonly [part: string]: string };
  readonly version: number;
  readonly since?: { readonly [path: string]: number };
  /** Of slices that are made now (`PolicySlice`). Absent: 0. */
  readonly base?: number;
}
/** Record `rules/<uid>`, of a rule of the model in a large cell: what came of it. */
export interface PolicyPart {
  readonly path: string;
  /** Its numbers by key. */
  readonly ids: { readonly [key: string]: number };
  /** Of the text of its compiled rules. */
  readonly mark: string;
}
/**
 * An all-or-none deployment on its way (all-or-none.ts). `asking`: its members are asked for, `isTimed` while some are
 * short; `resting`: all was given back; `clearing`: it asks again as soon as nothing of it is left.
 */
export interface ReservationState {
  readonly stage: "asking" | "resting" | "clearing";
  readonly attempt: number;
  readonly isTimed: boolean;
  /** Those that could not be had when all was given back. */
  readonly short: readonly ElementPath[];
  /** Members that are not had yet, short or still on their way. */
  readonly lacking: Lacking;
}
/** A few, and so many beside them, from ten on rounded down to one digit. */
export interface Lacking {
  readonly elements: readonly ElementPath[];
  readonly more?: number;
}
export const noReservation: ReservationState = {
  stage: "asking",
  attempt: 0,
  isTimed: false,
  short: [],
  lacking: { elements: [] },
};

/** `left`, `gone`: of one that was given back, whether something of it is anywhere. */
export type MemberStanding = "had" | "lacking" | "short" | "left" | "gone";
/** How far each member is, as the pass has found last. */
export interface Members {
  readonly standing: Map<Uid, MemberStanding>;
  /** How many are so. */
  readonly count: Record<MemberStanding, number>;
  /** Some member lacks now that did not: what is told of them is another thing. */
  isNews: boolean;
}
export interface AccountUids {
  /** The account's, then those of the domains that it is in, from within. */
  readonly byPath: Map<string, readonly string[]>;
  /** Path of an account, by its UID. */
  readonly pathOf: Map<string, string>;
}

/** Record `room`, of a child cell: what it may have (quota.ts). */
export interface RoomRecord {
  /** Of the newest grant that was seen. */
  readonly serial: number;
  readonly holds: Usage;
  /** The last question's number. */
  readonly asked: number;
}

/** Not durable: who keeps them says so again. */
export interface KeptOfVms {
  /** By VM and host: what that host says that it was told to run. */
  readonly claims: Map<Uid, Map<HostName, DesiredVm>>;
  /** By VM and connection: what the Storage Manager was told last. */
  readonly connections: Map<Uid, Map<Uid, DesiredConnection>>;
  /** By kind and name of a number that a receiver has raised: what it was before (kept-numbers.ts). */
  readonly raisedFrom: Map<string, number>;
}

export interface ControllerState extends Hearing, Pooling {
  readonly options: ControllerOptions;
  readonly outbox: Outbox;
  readonly tracking: Tracking;
  /** How a pass goes over what there is. */
  readonly pass: Pass;
  /** What is done in slices, and what waits for that. */
  readonly working: Working;
  readonly indexes: Indexes;
  /** What steps of a pass worked out for later ones. */
  readonly derived: Derived;
  readonly audiences: Audiences;
  readonly turns: Turns;
  model: ModelRecord;
  cell: Cell | null;
  counters: CountersRecord;
  policy: PolicyRecord;
  /** Of a policy in parts, as they are stored. */
  readonly policyParts: Map<Uid, PolicyPart>;
  /** What the policy was compiled to last since the start; null: not yet, or something else is in force than that. */
  compiled: Compiled | null;
  /** Version of the policy that a host was told of first, of those to which it was not said before this start. */
  readonly toldFirst: Map<HostName, number>;
  /** The policy that was cut last. */
  sliced: SlicedPolicy | null;
  readonly elements: TrackedMap<Uid, ElementRecord>;
  readonly vms: TrackedMap<Uid, VmRecord>;
  /** Elements of the present model. */
  readonly uids: Map<ElementPath, Uid>;
  /** What peers say is so, by their own keys. */
  readonly actual: Map<PeerName, Map<string, Json>>;
  /** Absent: not heard of since the start, so that nothing follows from what it does not say. */
  readonly reachable: Map<PeerName, boolean>;
  /** Receivers that have seen more of this controller than its store contains (fork.ts). Not empty: nothing changes. */
  readonly forkedAt: Set<PeerName>;
  /** What receivers keep of this controller's VMs, for as long as it stands still (fork.ts). */
  readonly kept: KeptOfVms;
  /** Receivers whose own store was lost or is older: what they do not say is not known. */
  readonly olderPeers: Set<PeerName>;
  /** Documents of this controller that its receivers hold and that it does not desire; of a connection, its host. Not durable. */
  readonly forgotten: Map<PeerName, Map<string, HostName | null>>;
  /** Hosts that have not been reachable for longer than a restart takes: what they run is not known any more. */
  readonly lost: Set<PeerName>;
  /** Hosts that the Presence group declared dead: their machines may run on, and are not started elsewhere. */
  readonly deaths: Deaths;
  /** The installation has an HA Manager. */
  ha: boolean;
  /** Record `guard`: who looks after the cell in place of an HA Manager that is gone (cells/guard.ts); null: whom it was made with. */
  guard: GuardRecord | null;
  readonly subscribed: Set<PeerName>;
  readonly credentials: Map<string, CredentialRecord>;
  /** Of changes that may be asked for again. */
  readonly answers: Answers;
  /** What tickets of tenants are worth here. Not durable: who has one shows it again. */
  readonly tickets: Tickets;
  /** By key. What is no longer desired stays until the directory has taken its tombstone. */
  readonly foreign: Map<string, ForeignRecord>;
  /** Changes that came before it was known what the installation could ever give; null: no change waits any more. */
  waitingChanges: { readonly id: number; readonly request: Json }[] | null;
  reservation: ReservationState;
  readonly members: Members;
  /** What the parent says of a child cell; null: nothing yet, or it has no parent. */
  life: DesiredLife | null;
  /** The first model that was submitted, until there is one; and why it was refused. `held`: refused while the store was thought to be older, and for nothing else. */
  initial: { readonly model: Json; readonly refusal: string | null; readonly held?: boolean } | null;
  room: RoomRecord;
  /** What the cell uses, as its parent was told (cells/in-use.ts). */
  readonly said: SaidInUse;
  /** What the parent is being asked for, for a change of the model or for a child. */
  ask: { readonly number: number; readonly amount: Usage; readonly by: Uid | "change" } | null;
  /** The parent's last no, until whoever asked has heard it. */
  upRefusal: { readonly by: Uid | "change"; readonly reason: string } | null;
  /** Changes that need more than the cell holds, the first of them asked for. */
  readonly roomWaiting: { readonly id: number; readonly request: Json }[];
  /** Of its child cells, by their CellControllers. */
  readonly grants: Map<Uid, QuotaGrant>;
  /** Of the root cell: what accounts and domains may have, by their UIDs. */
  readonly accountLimits: TrackedMap<string, DesiredLimits>;
  /** And what was granted of that. */
  readonly granted: Granted;
  /** And what their UIDs are. */
  readonly accountUids: AccountUids;
  /** Record `ending`. */
  ending: boolean;
  /** What was stored has been delivered. */
  started: boolean;
  /** This store was put back from a copy since the last start. */
  readonly wasPutBack: boolean;
  readonly putBackBy: Restored["putBackBy"] | undefined;
  /** Record `gone`; null: it was not put back, or nobody said anything of the hosts of then. */
  afterRestore: AfterRestore | null;
  /** In this start, beyond what a lost store may have given out (fork.ts). */
  wentOn: boolean;
  /** 0 ≤ x < 1, of this start alone (kept-numbers.ts). */
  readonly drawn: number;
  /** VMs that failed and whose back-off timer has not come yet. */
  readonly resting: Set<Uid>;
  readonly starts: StartState;
  upgradeClock: UpgradeClock | null;
  /** Monotonic ms since which a VM runs; for the reset of the back-off. */
  readonly runningSince: Map<Uid, number>;
  now: Instant;
}

export function saveElement(state: ControllerState, record: ElementRecord): void {
  state.elements.set(record.uid, record);
  write(state.outbox, `element/${record.uid}`, record);
}
/** A number that others have seen may be minted anew above a run that goes on. */
const newestOf = ({ run, incarnation }: VmRecord): number => run?.incarnation ?? incarnation;
export function saveVm(state: ControllerState, record: VmRecord): void {
  const before = state.vms.get(record.uid);
  const { run, failure } = record;
  // One that was only heard of has no stage.
  const isNews = before?.run?.stage !== run?.stage || before?.run?.incarnation !== run?.incarnation;
  if (before !== undefined && isNews) {
    const incarnation = newestOf(record);
    const path = state.elements.get(record.uid)?.path ?? null;
    const stage = { stage: run?.stage ?? "none", host: run?.host ?? null, reason: failure };
    log(state.outbox, "vm/stage", { vm: record.uid, path, incarnation, ...stage });
  }
  state.vms.set(record.uid, record);
  write(state.outbox, `vm/${record.uid}`, record);
}
/** Whoever made the cell says that its account is disabled: nothing runs. */
export const isOff = ({ life }: Pick<ControllerState, "life">): boolean => life?.off === true;

export function saveModel(state: ControllerState, model: ModelRecord, cell: Cell | null): void {
  state.model = model;
  state.cell = cell;
  write(state.outbox, "model", model);
}
export function saveCounters(state: ControllerState, counters: Partial<CountersRecord>): void {
  state.counters = { ...state.counters, ...counters };
  write(state.outbox, "counters", state.counters);
}
/** How many compiled rules have a number. */
export function rulesOfPolicy({ rules, parts }: PolicyRecord, inParts: ReadonlyMap<Uid, PolicyPart>): number {
  const all = Object.keys(rules).length;
  if (parts === undefined) return all;
  return [...inParts.values()].reduce((sum, { ids }) => sum + countOf(ids), all);
}
const counts = new WeakMap<PolicyPart["ids"], number>();
function countOf(ids: PolicyPart["ids"]): number {
  const count = counts.get(ids) ?? Object.keys(ids).length;
  counts.set(ids, count);
  return count;
}
export function savePolicy(state: ControllerState, policy: PolicyRecord): void {
  if (policy.version !== state.policy.version) {
    log(state.outbox, "policy/version", {
      path: state.cell?.path ?? state.options.cell,
      version: policy.version,
      rules: rulesOfPolicy(policy, state.policyParts),
    });
  }
  state.policy = policy;
  write(state.outbox, "policy", policy);
}
export function mintIdentity(state: ControllerState): number {
  const { nextIdentity } = state.counters;
  saveCounters(state, { nextIdentity: nextIdentity + 1 });
  return nextIdentity;
}

/** From now on the volume may hold data that is nowhere else. */
export function mayBeWritten(state: ControllerState, volume: Uid): void {
  const record = state.elements.get(volume);
  if (record?.unwritten === undefined) return;
  const { unwritten: _unwritten, ...rest } = record;
  saveElement(state, rest);
}
/** The element of the model that a record stands for; undefined for one that is being deleted. */
export const elementOf = (state: ControllerState, record: ElementRecord): Element | undefined =>
  record.deleting ? undefined : state.cell?.elements.get(record.path);

/** Not asked for now: it was given back with all the others of its all-or-none deployment. */
export const isHeldBack = (state: ControllerState, record: ElementRecord): boolean =>
  record.reserving === true && state.reservation.stage !== "asking";

/** CellControllers, in the order of all elements. */
export const childRecords = (state: ControllerState): readonly ElementRecord[] =>
  [...state.indexes.children.keys()]
    .sort((one, other) => state.elements.orderOf(one) - state.elements.orderOf(other))
    .flatMap((uid) => state.elements.get(uid) ?? []);

export function recordAt(state: ControllerState, path: ElementPath): ElementRecord | undefined {
  const uid = state.uids.get(path);
  return uid === undefined ? undefined : state.elements.get(uid);
}

/** What a peer says about one of this controller's own documents, as it came. */
export const saidOf = (state: ControllerState, peer: PeerName, key: string): Json | undefined =>
  state.actual.get(peer)?.get(actualKey(state.options.self, key));
/** The same as a document of its kind. */
export const actualOf = <T>(kind: Document<T>, state: ControllerState, peer: PeerName, key: string): T | undefined =>
  kind.of(saidOf(state, peer, key)) ?? undefined;

/** Who says under which key what the installation could ever give. */
export const offerKeys = (state: ControllerState): ReadonlyMap<PeerName, string> =>
  new Map([
    [placerOf(state), "hosts"],
    [storageManagerOf(state), "storage"],
    [addressManager, "addresses"],
  ]);

/** What the installation could ever give; what is not known as a whole is null. */
export function offersOf(state: ControllerState): Supply {
  const said = <T>(kind: Document<T>, peer: PeerName, key: string): T | undefined =>
    kind.of(state.actual.get(peer)?.get(key)) ?? undefined;
  const keptMiB = keptMiBOf(state);
  return {
    ...supplyOf({
      hosts: said(hostOffers, placerOf(state), "hosts"),
      storage: said(storageOffers, storageManagerOf(state), "storage"),
      addresses: said(addressOffer, addressManager, "addresses"),
    }),
    ...knownPools(state.actual, state.options, addressManager),
    ...(state.cell === null ? {} : { present: state.cell }),
    ...(keptMiB === null ? {} : { keptMiB }),
    ...(state.options.networkMode === undefined ? {} : { networkMode: state.options.networkMode }),
  };
}
/** What stays of deleted volumes and counts for this cell; null: nothing was said of it. */
export function keptMiBOf(state: ControllerState): number | null {
  const kept = actualOf(actualKept, state, storageManagerOf(state), "kept");
  return kept === undefined ? null : kept.keptMiB + (kept.left?.[state.options.cellUid] ?? 0);
}

/** A document that is desired at a peer now. */
export const desiredNow = (state: ControllerState, peer: PeerName, key: string): Json | undefined =>
  state.outbox.desired.get(peer)?.get(key);

/**
 * Is it certain that a peer holds nothing under this key any more? Only a peer that is in step can say so by silence, and
 * only when nothing of it is on its way there: unknown is never taken for gone.
 */
export const confirmedGone = (state: ControllerState, peer: PeerName, key: string): boolean =>
  state.reachable.get(peer) === true &&
  desiredNow(state, peer, key) === undefined &&
  state.outbox.releasing.get(peer)?.has(key) !== true &&
  saidOf(state, peer, key) === undefined;

export function addDesire(desires: Desires, peer: PeerName, key: string, document: object): void {
  desires.add(peer, key, toJson(document));
}
/** Desires for exactly what is desired already, if it is. */
export function keepDesire(state: ControllerState, desires: Desires, peer: PeerName, key: string): void {
  const document = desiredNow(state, peer, key);
  if (document !== undefined) addDesire(desires, peer, key, document as object);
}

export type LinkElement = VolumeConnectionElement | VirtualInterfaceElement;
const linksByCell = new WeakMap<Cell, ReadonlyMap<ElementPath, readonly LinkElement[]>>();

/** Connections and interfaces of a VM in the present model, in document order. Indexed once per model. */
export const linksOf = (state: ControllerState, vm: ElementPath): readonly LinkElement[] =>
  state.cell === null ? [] : linksIn(state.cell, vm);
export function linksIn(cell: Cell, vm: ElementPath): readonly LinkElement[] {
  let index = linksByCell.get(cell);
  if (index === undefined) {
    index = Map.groupBy(
      [...cell.elements.values()].filter(
        (element) => element.type === "VolumeConnection" || element.type === "VirtualInterface",
      ),
      (element) => element.vm,
    );
    linksByCell.set(cell, index);
  }
  return index.get(vm) ?? [];
}

/** The runs of all VMs, those that are being stopped included. */
export function* runs(state: ControllerState): Generator<{ readonly vm: Uid; readonly run: Run }> {
  for (const { uid, run } of state.vms.values()) if (run !== null) yield { vm: uid, run };
}
