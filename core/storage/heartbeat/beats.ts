import { type HostName, hostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type ActualHeartbeat, beatKey, type DesiredBeat, heartbeatKey, lateMs } from "../../documents/ha.ts";
import { desiredBeat } from "../../documents/readers/ha.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import type { Effect, Input } from "../../env.ts";

/**
 * Which hosts this server hears. A host that uses it says every few seconds that it is there, with a number that grows; what it
 * says is durable here before it is acknowledged, so a server whose disk stands still hears nobody. Whether a host is heard is
 * evidence that it runs, and that it is not heard is none that it does not (decision 95).
 */
interface Heard extends DesiredBeat {
  /** When it came, monotonic, at the earliest; null: before this start, which says nothing of now. */
  readonly atMs: number | null;
  readonly fresh: boolean;
}
export interface Beats {
  readonly heard: Map<HostName, Heard>;
  isTimed: boolean;
}
export const createBeats = (): Beats => ({ heard: new Map(), isTimed: false });
const beatsTimer = "beats";

/**
 * Each beat alone would cost a commit: those that say nothing new wait for each other so long (`Service.gathers`). A host has 9 s until it takes
 * itself for unheard, and counts from when it said what was acknowledged.
 */
export const gatherMs = 1_000;
/** Nobody waits for it: its host is heard, in that boot. What is new, and what will be refused, is taken at once. */
export const mayGather = ({ heard }: Beats, from: PeerName, key: string, value: Json): boolean => {
  if (key !== beatKey) return false;
  const beat = desiredBeat.of(value);
  return beat !== null && isExpected(heard.get(hostOf(from)), beat);
};
const isExpected = (known: Heard | undefined, { boot, count }: DesiredBeat): boolean =>
  known?.fresh === true && boot === known.boot && count > known.count;
const hostOf = (from: PeerName): HostName => hostName(from.slice(hostPeer("" as HostName).length));

/**
 * A beat counts once, and only of the latest boot that has been heard: one that is repeated, or of an earlier boot, is no sign of
 * life. @returns why it is refused; null: it is not
 */
export function takeBeat(
  beats: Beats,
  from: PeerName,
  value: Json,
  { nowMs, started }: { readonly nowMs: number; readonly started: boolean },
  effects: Effect[],
): string | null {
  const host = hostOf(from);
  const known = beats.heard.get(host);
  if (value === null) {
    if (beats.heard.delete(host)) say(from, host, null, effects);
    return null;
  }
  const beat = desiredBeat.of(value);
  if (beat === null) return "it is malformed: it needs the number of a boot and a count";
  const { boot, count } = beat;
  if (known !== undefined && boot < known.boot) return `it is of boot ${boot}, and boot ${known.boot} was heard`;
  if (known !== undefined && boot === known.boot && count <= known.count) return null;
  const atMs = isExpected(known, beat) ? nowMs - gatherMs : nowMs;
  const heard: Heard = { boot, count, atMs: started ? atMs : null, fresh: started };
  beats.heard.set(host, heard);
  if (!started) return null;
  effects.push({ kind: "publish", key: actualKey(from, beatKey), value: { boot, count } });
  if (known?.fresh !== true || known.boot !== boot) sayHeartbeat(host, heard, effects);
  if (!beats.isTimed) setTimer(beats, nowMs, effects);
  return null;
}

/** What an agent hears of beats. @returns whether it was about that alone */
export function handleBeats(
  beats: Beats,
  input: Input,
  circumstances: { readonly nowMs: number; readonly started: boolean },
  effects: Effect[],
): boolean {
  if (input.kind === "timer" && input.name === beatsTimer) beatsAreDue(beats, circumstances.nowMs, effects);
  if (input.kind !== "desired" || input.key !== beatKey) return false;
  const { from, key, value } = input;
  const why = takeBeat(beats, from, value, circumstances, effects);
  if (why !== null) effects.push({ kind: "log", event: "document/refused", fields: { key, from, why } });
  return true;
}

/** Those that have not been heard for too long are late. */
export function beatsAreDue(beats: Beats, nowMs: number, effects: Effect[]): void {
  beats.isTimed = false;
  for (const [host, heard] of beats.heard) {
    if (!heard.fresh || heard.atMs === null || nowMs - heard.atMs < lateMs) continue;
    const late = { ...heard, fresh: false };
    beats.heard.set(host, late);
    sayHeartbeat(host, late, effects);
  }
  setTimer(beats, nowMs, effects);
}

function setTimer(beats: Beats, nowMs: number, effects: Effect[]): void {
  const times = [...beats.heard.values()].flatMap(({ fresh, atMs }) => (fresh && atMs !== null ? [atMs] : []));
  if (times.length === 0) return;
  beats.isTimed = true;
  // One look a second, however many there are.
  const afterMs = Math.max(1000, Math.min(...times) + lateMs - nowMs);
  effects.push({ kind: "timer", name: beatsTimer, afterMs });
}

function sayHeartbeat(host: HostName, { boot, fresh }: Heard, effects: Effect[]): void {
  const value: ActualHeartbeat = { host, boot, fresh };
  effects.push({ kind: "publish", key: heartbeatKey(host), value: { ...value } });
}
function say(from: PeerName, host: HostName, value: null, effects: Effect[]): void {
  effects.push({ kind: "publish", key: actualKey(from, beatKey), value });
  effects.push({ kind: "publish", key: heartbeatKey(host), value });
}
