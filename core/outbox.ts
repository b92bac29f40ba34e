import type { CauseOf } from "../model/cause/cause.ts";
import type { PeerName } from "../model/cell/identifiers.ts";
import type { AuditEntry, Ring } from "../model/contract/audit/audit.ts";
import type { Chain } from "../model/contract/audit/chain.ts";
import { type Chains, chainsOf, otherRing, type Room, type Taken, takenInto } from "../model/contract/audit/rings.ts";
import type { Json, JsonObject } from "../model/json/json.ts";
import { limits } from "./distribution/limits.ts";
import type { Phase, Progress } from "./documents/vocabulary.ts";
import type { Effect, Instant, Restored } from "./env.ts";
import type { EventName } from "./telemetry/event-names.ts";

/**
 * What a service has already written, desired and published, so that a reconciler may say on every pass what should be
 * so and only the differences become effects. This is what makes the services' reconcilers idempotent.
 */
export interface Outbox {
  readonly records: Map<string, Json>;
  readonly desired: Map<PeerName, Map<string, Json>>;
  readonly published: Said;
  /** Documents that were taken back while their peer may not know it yet. */
  readonly releasing: Map<PeerName, Set<string>>;
  effects: Effect[];
  /** Documents that are longer than any frame may carry: they are not said, and what their peer had stays. */
  readonly tooLong: Map<PeerName, Map<string, number>>;
  /** Makes a collection of one peer's; a service that follows their changes makes its own. */
  readonly make: Collections;
  /** How far the chains of what was asked of this service go (`model/contract/audit/`). */
  audit: Chains;
  readonly refusals: Refusals;
  /** While a restarted service repeats what it published before, nothing has changed and nothing is logged. */
  quiet: boolean;
}

/** What is published, by its key. */
export interface Said {
  get(key: string): Json | undefined;
  has(key: string): boolean;
  set(key: string, value: Json): unknown;
  delete(key: string): boolean;
  keys(): Iterable<string>;
  [Symbol.iterator](): Iterator<[string, Json]>;
}

export interface Collections {
  map<Key, Value>(entries?: Iterable<readonly [Key, Value]>): Map<Key, Value>;
  set<Item>(items?: Iterable<Item>): Set<Item>;
}
const plain: Collections = { map: (entries = []) => new Map(entries), set: (items = []) => new Set(items) };

/** @param published where a service that says something of very many keeps it, empty */
export function createOutbox(restored: Restored, make: Collections = plain, published: Said = new Map()): Outbox {
  return {
    records: new Map(restored.records),
    desired: make.map([...restored.desiredAt].map(([peer, documents]) => [peer, make.map(documents)])),
    published,
    releasing: make.map([...(restored.releasingAt ?? [])].map(([peer, keys]) => [peer, make.set(keys)])),
    tooLong: make.map(),
    make,
    effects: [],
    audit: chainsOf({ changes: chainIn(restored, auditKeys.changes), refusals: chainIn(restored, auditKeys.refusals) }),
    refusals: { taken: new Map(), sinceMs: Number.NEGATIVE_INFINITY, inAll: 0, leftOut: 0 },
    quiet: false,
  };
}

/** The effects since the last call, in the order in which they came up. */
export function takeEffects(outbox: Outbox): readonly Effect[] {
  const { effects } = outbox;
  outbox.effects = [];
  return effects;
}

/** Equality of JSON values; the order of an object's keys does not matter. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item: Json, index) => sameJson(item, b[index]));
  }
  const [left, right] = [a as JsonObject, b as JsonObject];
  // No list of keys is made: this is asked more often than anything else.
  let keys = 0;
  for (const key in left) {
    if (!Object.hasOwn(right, key) || !sameJson(left[key], right[key])) return false;
    keys += 1;
  }
  for (const _key in right) keys -= 1;
  return keys === 0;
}

/** A document as JSON. Document types are interfaces, which TypeScript never takes for an index signature. */
export const toJson = (document: object): Json => document as unknown as Json;

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Writes or (null) deletes an own record, if that changes anything. */
export function write(outbox: Outbox, key: string, value: object | null): void {
  if (value === null ? !outbox.records.has(key) : sameJson(outbox.records.get(key), toJson(value))) return;
  if (value === null) outbox.records.delete(key);
  else outbox.records.set(key, toJson(value));
  outbox.effects.push({ kind: "write", key, value: value === null ? null : toJson(value) });
}

// --- audit -----------------------------------------------------------------------------------------------------------

/** Of the chains. */
export const auditKeys: { readonly [R in Ring]: string } = { changes: "audit", refusals: "audit-refusals" };
const chainIn = ({ records }: Restored, key: string): Chain | undefined =>
  records.get(key) as unknown as Chain | undefined;
/** Of a record of a chain. A store keeps them apart from what a service reads at its start. */
export const auditRecordKey = (ring: Ring, n: number): string => `${auditKeys[ring]}/${n}`;
/** What is written of a record, without how far its chain goes. */
export const writesOfRecord = ({ ring, record, dropped, oldOnes }: Taken): readonly Effect[] => [
  { kind: "write", key: auditRecordKey(ring, record.n), value: toJson(record) },
  ...dropped.map((n): Effect => ({ kind: "write", key: auditRecordKey(ring, n), value: null })),
  ...oldOnes.map((n): Effect => ({ kind: "write", key: auditRecordKey(otherRing(ring), n), value: null })),
];

/** Refusals cost whoever is refused nothing, so so many an hour have a record; since the last of these that many have none. */
interface Refusals {
  /** By the part of the cloud, the account in it, and who it was, each within the one before. */
  readonly taken: Map<string, number>;
  sinceMs: number;
  inAll: number;
  leftOut: number;
}
const mostRefusals = { inAll: 300, ms: 3_600_000 } as const;
/**
 * There is one supply for all, and nobody's refusals keep another's out. A part of the cloud has a third of what others have left, an account in it
 * half of that, and a user of that half again: so one alone has 25, and whoever comes next finds some.
 */
const shares = [1 / 3, 1 / 2, 1 / 2] as const;

/**
 * Whose refusal it is. Who has shown who he is, takes of what his domain right below `ROOT` has, and his account in that. Who has not, is one of the
 * strangers, whosever name he tries: nothing is taken from that one.
 */
function sharersOf({ account, who, source = "" }: AuditEntry, isKnown: boolean): readonly [string, string, string] {
  if (!isKnown) return ["strangers", who, source];
  if (account !== undefined) return [account.split("/").slice(0, 2).join("/"), account, who];
  return [who === "operator" ? "the operator" : "nobody's", who, who];
}

/** Writes who has changed what: to be called in the step that makes the change, whose transaction it is part of. */
export function audit(outbox: Outbox, now: Instant, entry: AuditEntry, room?: Room): void {
  const { refusals } = outbox;
  const { leftOut } = refusals;
  const taken = takenInto(outbox.audit, leftOut === 0 ? entry : { ...entry, leftOut }, now.wallMs, room);
  const { ring, chains } = taken;
  refusals.leftOut = 0;
  outbox.audit = chains;
  outbox.effects.push(...writesOfRecord(taken));
  for (const each of taken.oldOnes.length === 0 ? [ring] : [ring, otherRing(ring)])
    outbox.effects.push({ kind: "write", key: auditKeys[each], value: toJson(chains[each]) });
}

/** The same of what was refused, unless there are too many. `isKnown`: whoever asked has shown that he is who it says. */
export function auditRefusal(
  outbox: Outbox,
  now: Instant,
  entry: AuditEntry,
  { room, isKnown }: { readonly room?: Room; readonly isKnown: boolean },
): void {
  const { refusals } = outbox;
  const { taken } = refusals;
  if (now.ms - refusals.sinceMs >= mostRefusals.ms) {
    refusals.sinceMs = now.ms;
    refusals.inAll = 0;
    taken.clear();
  }
  const within = sharersOf(entry, isKnown).map((_one, level, all) => all.slice(0, level + 1).join("\n"));
  let [most, own] = [mostRefusals.inAll as number, refusals.inAll];
  for (const [level, share] of shares.entries()) {
    const around = own;
    own = taken.get(within[level] ?? "") ?? 0;
    most = (most - (around - own)) * share;
  }
  if (own >= most) {
    refusals.leftOut += 1;
    return;
  }
  for (const each of within) taken.set(each, (taken.get(each) ?? 0) + 1);
  refusals.inAll += 1;
  audit(outbox, now, entry, room);
}

/** Places or (null) takes back a desired document at a peer, if that changes anything. */
export function desire(outbox: Outbox, to: PeerName, key: string, value: object | null): void {
  const documents = outbox.desired.get(to) ?? outbox.make.map<string, Json>();
  outbox.desired.set(to, documents);
  if (value === null ? !documents.has(key) : sameJson(documents.get(key), toJson(value))) {
    outbox.tooLong.get(to)?.delete(key);
    return;
  }
  if (isTooLong(outbox, to, key, value)) return;
  const releasing = outbox.releasing.get(to) ?? outbox.make.set<string>();
  outbox.releasing.set(to, releasing);
  if (value === null) releasing.add(key);
  else releasing.delete(key);
  if (value === null) documents.delete(key);
  else documents.set(key, toJson(value));
  outbox.effects.push({ kind: "desire", to, key, value: value === null ? null : toJson(value) });
}

/** Forgets what is desired at a peer, and leaves what that has of it as it is. */
export function letGo(outbox: Outbox, to: PeerName, key: string): void {
  if (outbox.desired.get(to)?.delete(key) === true) outbox.effects.push({ kind: "let-go", at: to, key });
}

const lengths = new WeakMap<object, number>();
/** Of its text. One document may be desired at a thousand peers, and is written out once. */
export function lengthOf(value: object | null): number {
  if (value === null) return "null".length;
  const length = lengths.get(value) ?? JSON.stringify(value).length;
  lengths.set(value, length);
  return length;
}

function isTooLong(outbox: Outbox, to: PeerName, key: string, value: object | null): boolean {
  const length = lengthOf(value);
  const known = outbox.tooLong.get(to) ?? outbox.make.map<string, number>();
  outbox.tooLong.set(to, known);
  if (length <= limits.valueLength) {
    known.delete(key);
    return false;
  }
  if (known.get(key) !== length) log(outbox, "document/too-long", { to, key, characters: length });
  known.set(key, length);
  return true;
}

/** Why a document is not said to its peer; null: it is, or is not desired. */
export function tooLong({ tooLong }: Outbox, to: PeerName, key: string): CauseOf<"document-too-long"> | null {
  const characters = tooLong.get(to)?.get(key);
  return characters === undefined ? null : { kind: "document-too-long", to, key, characters, most: limits.valueLength };
}

/** Is there a document that was taken back while its peer may still have it? */
export const isReleasing = ({ releasing }: Outbox): boolean => [...releasing.values()].some((keys) => keys.size > 0);

/** Kinds of documents whose progress a service tells its clients, as the first part of their events' names. */
const areas = ["volume", "connection", "grant", "subnet", "name", "placement"] as const;
const isArea = (text: string): text is (typeof areas)[number] => (areas as readonly string[]).includes(text);

/** Says it unless it is said already; null takes it back. Nothing is logged. Returns whether it is another thing than before. */
export function publishValue({ published, effects }: Outbox, key: string, said: object | null): boolean {
  const [before, value] = [published.get(key), said === null ? null : toJson(said)];
  if (value === null ? before === undefined : sameJson(before, value)) return false;
  if (value === null) published.delete(key);
  else published.set(key, value);
  effects.push({ kind: "publish", key, value });
  return true;
}

/**
 * Publishes an actual document with its progress, if that changes anything; a change of its phase or reason is one line
 * of log, `<kind>/state`. null takes it back. The key is `<client>/<kind>/<uid>`.
 */
export function publish(outbox: Outbox, key: string, value: Progress | null): void {
  const before = outbox.published.get(key);
  const was = isObject(before) ? before : null;
  if (!publishValue(outbox, key, value) || outbox.quiet) return;
  const [client = "", area = "", uid = ""] = key.split("/");
  const cell = cellOfController(client as PeerName);
  if (!isArea(area)) return;
  if (value === null) log(outbox, `${area}/removed`, { cell, uid });
  else if (was?.phase !== value.phase || was.reason !== value.reason) {
    log(outbox, `${area}/state`, { cell, uid, phase: value.phase, reason: value.reason });
  }
}

export const log = (outbox: Outbox, event: EventName, fields: JsonObject): void => {
  outbox.effects.push({ kind: "log", event, fields });
};

/** A reason may quote what somebody else wrote, such as a path, which may be longer than what its reader takes. */
export const progress = (phase: Phase, reason: string | null = null): Progress => ({
  phase,
  reason: reason === null || reason.length <= longestSentence ? reason : `${reason.slice(0, longestSentence - 1)}…`,
});
/** Characters. */
export const longestSentence = 65_536;

/** `controller.shop` → `shop`, `controller.web.shop` → `web.shop`, a child cell of `shop`; null for every other peer. */
export function cellOfController(peer: PeerName): string | null {
  return /^controller\.([a-z0-9-]+(?:\.[a-z0-9-]+)*)$/.exec(peer)?.[1] ?? null;
}
