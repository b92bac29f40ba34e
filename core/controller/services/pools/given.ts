import type { Cell, HostElement } from "../../../../model/cell/cell.ts";
import { elementPath, type HostName, type PeerName, type Uid } from "../../../../model/cell/identifiers.ts";
import type { WholeHost } from "../../../../model/cell/tenants/pools/flavors.ts";
import { freeHost } from "../../../../model/cell/tenants/pools/pools.ts";
import { rootCell } from "../../../documents/cells.ts";
import {
  type ActualStanding,
  type DesiredPooled,
  type PoolAsked,
  type PoolHostAsked,
  type PoolHostGiven,
  type PoolWishes,
  pooledKey,
  standingKey,
} from "../../../documents/pools.ts";
import { actualCell } from "../../../documents/readers/cells.ts";
import { actualStanding } from "../../../documents/readers/pools.ts";
import { cellOfController, log, sameJson, toJson, write } from "../../../outbox.ts";
import { deathOf } from "../../../presence/group/deaths.ts";
import type { Desires } from "../../changes/desires.ts";
import type { ElementRecord } from "../../records.ts";
import { actualOf, addDesire, type ControllerState, cellManager, childRecords } from "../../state.ts";
import { placesOf } from "../dedications.ts";
import { hostElements, hostOf, isRoot, placersOf } from "../hosts.ts";
import type { PooledRecord } from "./pooled-record.ts";

/*
 * Pools of whole hosts. What a pool is to have stands in the model of a cell that the root cell has made, and goes up to the root controller with that cell's
 * `life`; which host it gets is decided there, one after the other, and written down before anybody hears of it: so no host is ever in two. Placers
 * hear in which pool a host is and whether it is enabled, and say what stands there by that word. A host is given, or given back, only once all of
 * them have said so of the present word and nothing stands there: what a Placer promised under an earlier one is never overlooked.
 *
 * Up to its owner go names that he gave and UIDs of VMs, and never a host's real name.
 */

const pooledPrefix = "pooled/";

interface Asked {
  readonly child: Uid;
  readonly cell: string;
  readonly pool: PoolAsked;
  readonly host: PoolHostAsked;
}
const operators = "ROOT/operator";

/** What children ask for, by UID; of one that was not heard nothing is known. */
function askedOf(state: ControllerState): { readonly all: ReadonlyMap<Uid, Asked>; readonly heard: ReadonlySet<Uid> } {
  const [all, heard] = [new Map<Uid, Asked>(), new Set<Uid>()];
  for (const child of childRecords(state)) {
    const said = actualOf(actualCell, state, cellManager, `cell/${child.uid}`);
    const [pools, cell] = [said?.pools, said === undefined ? null : cellOfController(said.controller)];
    if (pools === undefined || cell === null) continue;
    heard.add(child.uid);
    // A UID begins with that of its cell: no child speaks of another's, neither of its hosts nor of its pools.
    const isOwn = ({ uid }: { readonly uid: Uid }): boolean => uid.startsWith(`${child.uid}-`);
    for (const pool of pools.filter(isOwn))
      for (const host of pool.hosts.filter(isOwn)) all.set(host.uid, { child: child.uid, cell, pool, host });
  }
  return { all, heard };
}

const flavoredIn = new WeakMap<Cell, readonly HostElement[]>();
/** Hosts that are of a flavour. */
function flavored(cell: Cell): readonly HostElement[] {
  const known = flavoredIn.get(cell);
  if (known !== undefined) return known;
  const found = hostElements(cell).filter(({ flavor }) => flavor !== undefined);
  flavoredIn.set(cell, found);
  return found;
}
const tagOf = (flavor: string, record: PooledRecord | undefined): string =>
  record === undefined ? flavor : `${record.uid} ${record.enabled}`;

/** UIDs of all that stands at a host, as all Placers say it; null: one of them has not said it, or not by this word. */
export function vmsAt(state: ControllerState, cell: Cell, host: HostName, tag: string | null): readonly Uid[] | null {
  const all = new Set<Uid>();
  for (const peer of placersOf(cell)) {
    const said: ActualStanding | undefined = actualOf(actualStanding, state, peer, standingKey(host));
    if (said === undefined || (tag !== null && said.tag !== tag)) return null;
    for (const vm of said.vms) all.add(vm);
  }
  return [...all].sort();
}

export const save = (state: ControllerState, record: PooledRecord): void => {
  if (sameJson(toJson(state.pooled.get(record.uid) ?? {}), toJson(record))) return;
  state.pooled.set(record.uid, record);
  write(state.outbox, `${pooledPrefix}${record.uid}`, record);
};
export const drop = (state: ControllerState, uid: Uid): void => {
  state.pooled.delete(uid);
  write(state.outbox, `${pooledPrefix}${uid}`, null);
};

/** What is to be known of accounts, of which more is said where they are granted what they ask for. */
export interface PoolAccounts {
  /** Path of the account that a child of the root cell belongs to; null: the operator's. */
  readonly accountOf: (state: ControllerState, child: ElementRecord) => string | null;
  /** Why it must not have so many units more; null: it may. */
  readonly whyBeyondUnits: (state: ControllerState, account: string, units: number) => string | null;
}

/** What each child's hosts cost, those included that it is giving back: of all that have any, by going once over all hosts that are in pools. */
export function unitsByChild({ cell, pooled }: ControllerState): ReadonlyMap<Uid, number> {
  const units = new Map<Uid, number>();
  for (const { child, flavor } of pooled.values())
    if (cell !== null) units.set(child, (units.get(child) ?? 0) + (costOf(cell, flavor) ?? 0));
  return units;
}
const costOf = (cell: Cell, flavor: string): number | null => {
  const element = cell.elements.get(elementPath(`${flavorsAt}${flavor}`));
  return element?.type === "HostFlavor" ? element.units : null;
};

/** Gives hosts to those who ask, and takes back what nobody asks for any more. */
export function advancePools(state: ControllerState, known: PoolAccounts): void {
  const { cell } = state;
  if (!isRoot(state) || cell === null) return;
  const { all, heard } = askedOf(state);
  const accounts = new Map(childRecords(state).map((child) => [child.uid, known.accountOf(state, child) ?? operators]));
  for (const record of [...state.pooled.values()]) {
    const asked = all.get(record.uid);
    if (asked !== undefined) save(state, { ...keptOf(record), ...wordOf(asked, accounts) });
    else if (heard.has(record.child) || !accounts.has(record.child)) leave(state, cell, record);
  }
  for (const [uid, asked] of all) {
    if (state.pooled.has(uid)) continue;
    const account = accounts.get(asked.child) ?? operators;
    if (known.whyBeyondUnits(state, account, costOf(cell, asked.host.flavor) ?? 0) !== null) continue;
    const host = hostFor(state, cell, asked, account);
    if (host === null) continue;
    save(state, {
      uid,
      host,
      flavor: asked.host.flavor,
      child: asked.child,
      ...wordOf(asked, accounts),
      enabled: false,
    });
    log(state.outbox, "pools/taken", { uid, host, flavor: asked.host.flavor, account });
  }
}
/** Of a record what no owner changes. */
const keptOf = ({ uid, host, flavor, child }: PooledRecord) => ({ uid, host, flavor, child });
const wordOf = (
  { pool, host, cell, child }: Asked,
  accounts: ReadonlyMap<Uid, string>,
): Omit<PooledRecord, "uid" | "host" | "flavor" | "child"> => ({
  cell,
  pool: pool.uid,
  path: pool.path,
  name: host.name,
  enabled: host.enabled,
  authorised: pool.authorised ?? [accounts.get(child) ?? operators],
  ...wishesOf(pool),
});
/** Without what is absent. */
export const wishesOf = ({ cpuRatio, memoryPercent, fill, offerings, images }: PoolWishes): PoolWishes => ({
  ...(cpuRatio === undefined ? {} : { cpuRatio }),
  ...(memoryPercent === undefined ? {} : { memoryPercent }),
  ...(fill === undefined ? {} : { fill }),
  ...(offerings === undefined ? {} : { offerings }),
  ...(images === undefined ? {} : { images }),
});
/** One that no text names is nobody's: a Placer may have kept a word of it, or made it up. */
const isThere = (cell: Cell, host: HostName): boolean => hostElements(cell).some((each) => hostOf(each) === host);
/** First nothing new comes there; once all Placers have said so, and nothing is left, it is its flavour's again. */
function leave(state: ControllerState, cell: Cell, record: PooledRecord): void {
  const { uid, host, flavor } = record;
  if (record.enabled) save(state, { ...record, enabled: false });
  else if (!isThere(cell, host) || vmsAt(state, cell, host, tagOf(flavor, record))?.length === 0) {
    drop(state, uid);
    log(state.outbox, "pools/given-back", { uid, host, flavor });
  }
}

/** Of hosts that are dead, or of which not all Placers have said what stands there, none is given. */
function hostFor(
  state: ControllerState,
  cell: Cell,
  { host: { flavor, zone } }: Asked,
  account: string,
): HostName | null {
  const taken = new Set([...state.pooled.values()].map(({ host }) => host));
  const { rules, tree } = placesOf(cell);
  const hosts = new Map<HostName, WholeHost>();
  for (const element of flavored(cell)) {
    const host = hostOf(element);
    if (element.flavor !== flavor || deathOf(state.deaths, host) !== null || !tree.has(host)) continue;
    const vms = vmsAt(state, cell, host, tagOf(flavor, undefined));
    if (vms === null) continue;
    const { state: is, cluster } = element;
    hosts.set(host, { state: is, flavor, zone: cluster?.split("/")[0] ?? null, vms });
  }
  return freeHost({ hosts, rules }, taken, { account, flavor, zone: zone ?? null });
}

/** What a child hears of the hosts that it asks for, or has. */
export function givenTo(state: ControllerState, child: Uid, known: PoolAccounts): readonly PoolHostGiven[] {
  if (!isRoot(state) || state.cell === null) return [];
  const { cell } = state;
  const record = state.elements.get(child);
  const account = (record === undefined ? null : known.accountOf(state, record)) ?? operators;
  const whyNone = ({ flavor, zone }: PoolHostAsked): string => {
    const units = costOf(cell, flavor);
    // By the flavour alone: how many hosts there are, or whose, is not for whoever asks.
    if (units === null) return `there is no host flavour ${flavor}`;
    const none = `no host of ${flavor} is free${zone === undefined ? "" : ` in ${zone}`}`;
    return known.whyBeyondUnits(state, account, units) ?? none;
  };
  const given = new Map<Uid, PoolHostGiven>();
  for (const { uid, child: of, host } of state.pooled.values())
    if (of === child) given.set(uid, { uid, reason: null, vms: vmsAt(state, cell, host, null) ?? [] });
  for (const [uid, asked] of askedOf(state).all)
    if (asked.child === child && !given.has(uid)) given.set(uid, { uid, reason: whyNone(asked.host), vms: [] });
  return [...given.values()].sort((one, other) => (one.uid < other.uid ? -1 : 1));
}
export const flavorsAt = `${rootCell}/flavors/`;
export const flavorsOf = (cell: Cell): readonly string[] =>
  [...cell.elements.values()].flatMap(({ type, path }) =>
    type === "HostFlavor" ? [path.slice(flavorsAt.length)] : [],
  );

type PooledHost = Pick<DesiredPooled, "flavor" | "tag" | "pool">;
/** In which pool each host of a flavour is. */
function pooledHosts(state: ControllerState, cell: Cell): ReadonlyMap<HostName, PooledHost> {
  const all = new Map<HostName, PooledHost>();
  const records = new Map([...state.pooled.values()].map((record) => [record.host, record]));
  const hosts = new Map<HostName, string>(flavored(cell).map((element) => [hostOf(element), element.flavor ?? ""]));
  // What is in a pool stays its owner's, whatever a text says of it.
  for (const { host, flavor } of records.values()) hosts.set(host, flavor);
  for (const [host, flavor] of hosts) {
    const record = records.get(host);
    const pool =
      record === undefined
        ? null
        : {
            uid: record.pool,
            cell: record.cell,
            path: record.path,
            name: record.name,
            enabled: record.enabled,
            authorised: record.authorised,
            ...wishesOf(record),
          };
    all.set(host, { flavor, tag: tagOf(flavor, record), pool });
  }
  return all;
}
/** The same, without what is between Placers and the root controller alone. */
export const pooledAt = (
  state: ControllerState,
  cell: Cell,
): ReadonlyMap<HostName, Pick<PooledHost, "flavor" | "pool">> =>
  new Map([...pooledHosts(state, cell)].map(([host, { flavor, pool }]) => [host, { flavor, pool }]));
/** To all Placers. */
export function desirePooled(state: ControllerState, desires: Desires): void {
  const { cell, claims } = state;
  if (!isRoot(state) || cell === null) return;
  for (const [host, pooled] of pooledHosts(state, cell)) {
    const { epoch } = claims.get(host) ?? {};
    const document: DesiredPooled = { host, ...pooled, ...(epoch === undefined ? {} : { epoch }) };
    for (const peer of placersOf(cell)) addDesire(desires, peer, pooledKey(host), document);
  }
}
/** Keys under which something is said of this model's hosts. */
export const pooledKeys = ({ pooled }: ControllerState, cell: Cell): readonly string[] =>
  [...flavored(cell).map(hostOf), ...[...pooled.values()].map(({ host }) => host)].map(pooledKey);

/** Those who place VMs say what stands at hosts of flavours: all of them are followed. */
export const placersToFollow = (state: ControllerState): ReadonlySet<PeerName> =>
  isRoot(state) && state.cell !== null ? placersOf(state.cell) : new Set();
