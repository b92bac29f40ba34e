import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DocumentVerb } from "../../env.ts";
import type { Refusal } from "./frames.ts";
import type { Distribution, LogLine, RefusalLog, Turn } from "./types.ts";

const logEveryMs = 60_000;
/** Pairs that are remembered. Further ones are counted and not logged, until some have been quiet for a minute. */
const mostPairs = 1000;

/**
 * Of each pair at most one line a minute goes to the log, so that whoever repeats itself cannot fill the disk.
 *
 * @returns how often it was refused since this began to be counted, when that is to be logged now; otherwise null
 */
export const countRefusal = (log: RefusalLog, pair: string, nowMs: number): number | null => {
  const known = log.get(pair);
  if (known === undefined) {
    if (log.size >= mostPairs)
      for (const [other, { loggedMs }] of log) if (nowMs - loggedMs >= logEveryMs) log.delete(other);
    if (log.size >= mostPairs) return null;
    log.set(pair, { loggedMs: nowMs, count: 1 });
    return 1;
  }
  known.count += 1;
  if (nowMs - known.loggedMs < logEveryMs) return null;
  known.loggedMs = nowMs;
  return known.count;
};

/** Counts what a peer sent and this service does not take. The value is never logged: it may be a secret. */
export const refuse = (
  node: Distribution,
  turn: Turn,
  peer: PeerName,
  reason: Refusal,
  key: string | null,
  why?: string,
): void => {
  node.refusals.set(reason, (node.refusals.get(reason) ?? 0) + 1);
  const count = countRefusal(node.refusalsLogged, `${peer} ${reason}`, turn.now.ms);
  if (count === null) return;
  const fields = { peer, reason, key, count, ...(why === undefined ? {} : { why }) };
  turn.logs.push({ event: "distribution/refused", fields });
};

/**
 * Reads a document that came from a peer or out of the store, by the service's reader for its key.
 * @returns null for one that is malformed, which is counted and named
 */
export const readDocument = (
  node: Distribution,
  turn: Turn,
  verb: DocumentVerb,
  peer: PeerName,
  key: string,
  value: Json,
): Json => {
  const read = node.read(verb, peer, key, value);
  if (read.ok) return read.value;
  refuse(node, turn, peer, "malformed document", key, read.error);
  return null;
};

/** The same for a document that the service itself finds wrong, which it says by a line of log with the peer in it. */
export const refusedByService = (node: Distribution, turn: Turn, { event, fields }: LogLine): void => {
  const reason: Refusal = "not acceptable";
  node.refusals.set(reason, (node.refusals.get(reason) ?? 0) + 1);
  // Not by its sentence, which may repeat what the peer said, and so differ each time.
  const count = countRefusal(node.refusalsLogged, `${fields.from ?? fields.peer ?? ""} ${reason}`, turn.now.ms);
  if (count !== null) turn.logs.push({ event, fields: { ...fields, count } });
};

/** How much one step may hand to a connection before it waits for `sendable`. */
export const burst = { frames: 256, characters: 1024 * 1024 } as const;
