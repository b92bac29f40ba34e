import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type Outbox, write } from "../../outbox.ts";
import { bounded, type CurrentKey, type CurrentKeys } from "../current-keys.ts";
import { isPinnable } from "../presented.ts";

/**
 * What the authority keeps of each name's keys beyond the identity itself: from when on which one is the name's. It outlives
 * the identity, or a name that ended and came back would have forgotten whom it shut out.
 */
/** Record `key/<name>`. `sinceMs` 0: nobody had the name before. */
export interface KeyRecord extends CurrentKey {
  /** Whose the name was last; the one that comes back without showing its token anew has it. */
  readonly last: string;
  /** Of the latest certificate over any key, when it begins. */
  readonly issuedMs: number;
}
export interface KeyFacts {
  /** Of the identity; null: there is none. */
  readonly key: string | null;
  /** An enrolment that stands grants the name. */
  readonly isGranted: boolean;
  /** A host or an agent: it shows a token whenever it comes, so until then nobody has the name. */
  readonly isMachine: boolean;
  /** When a certificate of now begins. */
  readonly nowMs: number;
  /** Nothing that was issued is good for longer. */
  readonly lifetimeMs: number;
}

/** The record that follows; undefined: nothing is to be remembered of the name. The same object: nothing has changed. */
export function nextKeyRecord(before: KeyRecord | undefined, facts: KeyFacts): KeyRecord | undefined {
  const { key, isGranted, isMachine, nowMs, lifetimeMs } = facts;
  // Of what the previous version issued nobody knows when.
  if (before === undefined) return key === null ? undefined : { key, last: key, sinceMs: 0, issuedMs: nowMs };
  const has = key ?? (isGranted && !isMachine ? before.last : null);
  if (has === before.key) {
    const isOver = before.issuedMs + 2 * lifetimeMs < nowMs && before.sinceMs + 2 * lifetimeMs < nowMs;
    return has === null && isOver && !isMachine ? undefined : before;
  }
  // Later than every certificate of before, also where the clock was set back meanwhile.
  const sinceMs = Math.max(nowMs, before.issuedMs, before.sinceMs + 1);
  return { key: has, last: has ?? before.last, sinceMs, issuedMs: before.issuedMs };
}

/** What `settleKeys` needs of the authority. */
export interface KeyHolders {
  readonly outbox: Outbox;
  readonly keys: Map<PeerName, KeyRecord>;
  /** Keys of the identities, and the authority's own. */
  readonly identities: ReadonlyMap<PeerName, string>;
  readonly granted: ReadonlySet<PeerName>;
  readonly nowMs: number;
  readonly lifetimeMs: number;
}
const isMachine = (name: PeerName): boolean => /^(host|agent)\./.test(name);

/** Brings the records in step with the identities. @returns names that have another key from now on, or none */
export function settleKeys({ outbox, keys, identities, granted, nowMs, lifetimeMs }: KeyHolders): readonly PeerName[] {
  const changed: PeerName[] = [];
  for (const name of new Set([...identities.keys(), ...keys.keys()])) {
    const before = keys.get(name);
    const facts = { key: identities.get(name) ?? null, isGranted: granted.has(name), isMachine: isMachine(name) };
    const next = nextKeyRecord(before, { ...facts, nowMs, lifetimeMs });
    if (before !== undefined && next !== undefined && next.key !== before.key && before.key !== null)
      changed.push(name);
    setKeyRecord(outbox, keys, name, next);
  }
  return changed;
}

/** A certificate that begins then was issued under this name. */
export function noteIssued(
  { outbox, keys }: Pick<KeyHolders, "outbox" | "keys">,
  name: PeerName,
  validFromMs: number,
): void {
  const before = keys.get(name);
  if (before !== undefined && before.issuedMs < validFromMs)
    setKeyRecord(outbox, keys, name, { ...before, issuedMs: validFromMs });
}

function setKeyRecord(
  outbox: Outbox,
  keys: Map<PeerName, KeyRecord>,
  name: PeerName,
  record: KeyRecord | undefined,
): void {
  if (record === keys.get(name)) return;
  if (record === undefined) keys.delete(name);
  else keys.set(name, record);
  write(outbox, `key/${name}`, record ?? null);
}

/**
 * Was this certificate issued by a later life of this authority than its store knows of, as after a restore? Then whoever
 * shows it has the name by now.
 */
export const isOfLaterLife = (record: KeyRecord | undefined, beganMs: Json | undefined, nowMs: number): boolean =>
  record !== undefined &&
  record.key !== null &&
  typeof beganMs === "number" &&
  beganMs > record.issuedMs &&
  beganMs > record.sinceMs &&
  beganMs <= nowMs;

/**
 * Has everybody been told that the name went on to another key, later than all that this store knows of it, as after a
 * restore? Of a service that ended it is no matter: what grants its name again gives it back the key that it had.
 */
export function wasReplaced(
  name: PeerName,
  key: string,
  record: KeyRecord | undefined,
  told: CurrentKeys,
  nowMs: number,
): boolean {
  const said = told.get(name);
  if (said === undefined || said.key === key || said.sinceMs > nowMs) return false;
  if (said.key === null && !isMachine(name)) return false;
  return record === undefined || (said.sinceMs > record.sinceMs && said.sinceMs >= record.issuedMs);
}

/** What everybody is to be told: of names that others had before, as long as a certificate of those may open something. */
export const publishedKeys = (
  records: ReadonlyMap<PeerName, KeyRecord>,
  nowMs: number,
  lifetimeMs: number,
): CurrentKeys =>
  bounded(
    new Map(
      [...records]
        .filter(([name, { sinceMs }]) => sinceMs > 0 && (isPinnable(name) || sinceMs + 2 * lifetimeMs >= nowMs))
        .map(([name, { key, sinceMs }]) => [name, { key, sinceMs }]),
    ),
  );
