import type { Json } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";
import { limits } from "../limits.ts";
import { type History, type Mark, mostStarts, startLength } from "../marks.ts";
import { type Digest, isBuckets, isDigest } from "./digest.ts";

/**
 * What goes over one connection. The client is the side that dialled; it desires and subscribes. The server publishes.
 * Two services that are each other's client hold two connections. Frames of one connection arrive in order or not at
 * all; nothing is assumed between connections.
 *
 * An upgrade goes service by service, and back: a peer of the previous version or the next is as good as one of this, and
 * a connection speaks the older of its two. A version beyond those ends it. A frame of an unknown kind is ignored and
 * counted, an unknown field is left out, so that the next version may add both.
 *
 * | version | new in it |
 * | 1 | |
 * | 2 | digests: `holds` in `subscribe`, `same` in `actual-complete`, `digest`, `repair`, `repaired`; later `life`, by whose |
 * |   | absence nothing is wrong, so that it needs no version of its own; `history` and what comes with it likewise |
 */
export const protocolVersion = 2;
/** The version that a connection to such a peer speaks; null: none. */
export const spokenWith = (version: number): number | null =>
  Math.abs(version - protocolVersion) <= 1 ? Math.min(version, protocolVersion) : null;

/**
 * First frame in both directions. `generation` grows with each start of a service. `session` counts the connections of
 * one generation to one peer, so that a late connection never supersedes its successor; a server echoes it.
 */
export interface HelloFrame {
  readonly frame: "hello";
  readonly version: number;
  readonly generation: number;
  readonly session: number;
  readonly name: string;
  /** Of the sender's host, as Presence counts them; absent: not known. */
  readonly life?: number;
  /** Of the sender's store. Absent: one of an earlier version, which is taken as it comes. */
  readonly history?: History;
  /** From a client: what it is, where another one may come after it under its name. */
  readonly instance?: string;
  /**
   * The newest generation of the one greeted that this one has seen. A client says it where it knows one; a server where it
   * refuses an older one, and closes then.
   */
  readonly seen?: number;
  /** From a client: how far the store of the one greeted was when it said so last. */
  readonly knew?: Mark;
  /** From a server: the client's store does not contain what was seen of it here. */
  readonly forked?: true;
  /** From a server: the same, of which nothing is held here any more. */
  readonly seenLater?: true;
}
/** The side that sends it ends in an orderly way; from a server, all its actual state is withdrawn. */
export interface GoodbyeFrame {
  readonly frame: "goodbye";
}

export type ClientFrame =
  | HelloFrame
  | GoodbyeFrame
  /** Null is a tombstone. `seq` grows from one such frame of a connection to the next. */
  | {
      readonly frame: "desire";
      readonly key: string;
      readonly seq: number;
      readonly value: Json;
      /** It was desired by an earlier start of the client, and is as it was in its store. */
      readonly restored?: true;
      /** How far the client's store is. */
      readonly at?: Mark;
    }
  /** The client knows again all that it desires here; not taken from a controller. */
  | { readonly frame: "recovered" }
  /** Every document of this client was sent on this connection. What was not stays, and is an orphan. */
  | { readonly frame: "desired-complete" }
  /** `holds`: what the client still has under the prefix from an earlier connection, of that generation of the source. */
  | { readonly frame: "subscribe"; readonly prefix: string; readonly holds?: Holds }
  | { readonly frame: "unsubscribe"; readonly prefix: string }
  /** What the client holds in these buckets is not what the server's `digest` said: all in them once more, please. */
  | { readonly frame: "repair"; readonly buckets: readonly number[] };
export interface Holds {
  readonly generation: number;
  readonly digest: Digest;
}

export type ServerFrame =
  | HelloFrame
  | GoodbyeFrame
  /** The first life of the sender's host, which it did not know yet when it said hello. */
  | { readonly frame: "life"; readonly life: number }
  /** Every `desire` of this connection up to `seq` is durable here. */
  | { readonly frame: "ack"; readonly seq: number; readonly at?: Mark }
  /**
   * The server's document stays as `value` says: the client's snapshot lacked it, or its frame `seq` was not taken. The
   * acknowledgement that comes behind does not speak of it. Null: there is none. Only to who has said its history.
   */
  | { readonly frame: "kept"; readonly key: string; readonly value: Json; readonly seq?: number }
  | { readonly frame: "actual"; readonly key: string; readonly seq: number; readonly value: Json }
  /**
   * All that the client may see under the prefix was sent on this connection: what was not is withdrawn. Buckets that are
   * the `same` as what the client said it holds were not sent, and stay.
   */
  | { readonly frame: "actual-complete"; readonly prefix: string; readonly same?: readonly number[] }
  /** What all that was sent on this connection amounts to, in its place between the other frames. */
  | { readonly frame: "digest"; readonly digest: Digest }
  /** All in these buckets was sent again: what was not is withdrawn. */
  | { readonly frame: "repaired"; readonly buckets: readonly number[] };

export type Frame = ClientFrame | ServerFrame;

/** Why something from a peer was not accepted; the names under which refusals are counted. */
export type Refusal =
  | "malformed frame"
  | "unknown frame"
  | "unsupported version"
  | "name differs from certificate"
  | "old generation"
  /** No clock shows it, and nobody who has the name later could exceed it. */
  | "generation ahead of time"
  | "out of order"
  | "value too long"
  | "too many subscriptions"
  | "not accepted here"
  /** The document's reader found something else than its kind has. */
  | "malformed document"
  /** The client has forked, and this document was taken before. */
  | "kept as it is"
  | "too many documents"
  | "too much in documents"
  /** By the service, for what is in it. */
  | "not acceptable";

export const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

/** Keys become primary keys of a store, so text that UTF-8 cannot carry is refused. */
export const isPrefix = (value: unknown): value is string =>
  typeof value === "string" && value.length <= limits.keyLength && value.isWellFormed();
export const isKey = (value: unknown): value is string => isPrefix(value) && value !== "";

/** JSON text of a value for comparison and length; null when it is too long or nested too deeply to handle. */
export const textOf = (value: Json): string | null => {
  try {
    const text = JSON.stringify(value);
    return text.length <= limits.valueLength && isFlat(text) ? text : null;
  } catch {
    return null;
  }
};

/** Is this JSON text nested no deeper than it may be? A level takes two characters at least. */
const isFlat = (text: string): boolean => {
  if (text.length <= 2 * limits.nesting) return true;
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (inText) {
      if (character === backslash) at += 1;
      else if (character === quote) inText = false;
    } else if (character === quote) inText = true;
    else if (character === openBrace || character === openBracket) {
      depth += 1;
      if (depth > limits.nesting) return false;
    } else if (character === closeBrace || character === closeBracket) depth -= 1;
  }
  return true;
};
const [quote, backslash, openBracket, closeBracket, openBrace, closeBrace] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

type Fields = { readonly [key: string]: Json | undefined };

const parseHello = (fields: Fields): Result<HelloFrame, Refusal> => {
  const { version, generation, session, name, life, history, instance, seen, forked } = fields;
  if (!isCount(version) || spokenWith(version) === null) return fail("unsupported version");
  if (!isCount(generation) || !isCount(session) || !isKey(name)) return fail("malformed frame");
  if (life !== undefined && !isCount(life)) return fail("malformed frame");
  const marks = history === undefined ? undefined : historyOf(history);
  if (marks === null) return fail("malformed frame");
  if (instance !== undefined && !isKey(instance)) return fail("malformed frame");
  if (seen !== undefined && !isCount(seen)) return fail("malformed frame");
  const knew = markOf(fields.knew);
  return ok({
    frame: "hello",
    version,
    generation,
    session,
    name,
    ...(seen === undefined ? {} : { seen }),
    ...(life === undefined ? {} : { life }),
    ...(marks === undefined ? {} : { history: marks }),
    ...(instance === undefined ? {} : { instance }),
    ...(knew === null ? {} : { knew }),
    ...(forked === true ? { forked } : {}),
    ...(fields.seenLater === true ? { seenLater: true } : {}),
  });
};

const markOf = (value: Json | undefined): Mark | null => {
  const { start, count } = (value === undefined ? null : fieldsOf(value)) ?? {};
  return isKey(start) && start.length <= startLength && isCount(count) && count > 0 ? { start, count } : null;
};
const historyOf = (value: Json): History | null => {
  if (!Array.isArray(value) || value.length > mostStarts) return null;
  const marks = value.map(markOf);
  return marks.includes(null) ? null : (marks as Mark[]);
};
/** A mark that makes no sense is as good as none: what came with it stands. */
const markIn = ({ at }: Fields): { readonly at?: Mark } => {
  const mark = markOf(at);
  return mark === null ? {} : { at: mark };
};

const fieldsOf = (json: Json): Fields | null =>
  typeof json === "object" && json !== null && !Array.isArray(json) ? (json as Fields) : null;

function holdsOf(json: Json): { readonly holds: Holds } | null {
  const { generation, digest } = fieldsOf(json) ?? {};
  return isCount(generation) && isDigest(digest) ? { holds: { generation, digest } } : null;
}

/** Reads a frame that a client sent. Fields that this version does not know are left out. */
export const parseClientFrame = (json: Json): Result<ClientFrame, Refusal> => {
  const fields = fieldsOf(json);
  if (fields === null) return fail("malformed frame");
  const { frame, key, seq, value, prefix } = fields;
  switch (frame) {
    case "hello":
      return parseHello(fields);
    case "goodbye":
    case "desired-complete":
      return ok({ frame });
    case "desire":
      return isKey(key) && isCount(seq) && value !== undefined
        ? ok({ frame, key, seq, value, ...(fields.restored === true ? { restored: true } : {}), ...markIn(fields) })
        : fail("malformed frame");
    case "recovered":
      return ok({ frame });
    case "subscribe": {
      const holds = fields.holds === undefined ? {} : holdsOf(fields.holds);
      return isPrefix(prefix) && holds !== null ? ok({ frame, prefix, ...holds }) : fail("malformed frame");
    }
    case "unsubscribe":
      return isPrefix(prefix) ? ok({ frame, prefix }) : fail("malformed frame");
    case "repair":
      return isBuckets(fields.buckets) ? ok({ frame, buckets: fields.buckets }) : fail("malformed frame");
    default:
      return fail("unknown frame");
  }
};

/** Reads a frame that a server sent. */
export const parseServerFrame = (json: Json): Result<ServerFrame, Refusal> => {
  const fields = fieldsOf(json);
  if (fields === null) return fail("malformed frame");
  const { frame, key, seq, value, prefix } = fields;
  switch (frame) {
    case "hello":
      return parseHello(fields);
    case "goodbye":
      return ok({ frame });
    case "life":
      return isCount(fields.life) && fields.life > 0 ? ok({ frame, life: fields.life }) : fail("malformed frame");
    case "ack":
      return isCount(seq) ? ok({ frame, seq, ...markIn(fields) }) : fail("malformed frame");
    case "kept": {
      const about = seq === undefined ? {} : isCount(seq) ? { seq } : null;
      return isKey(key) && value !== undefined && about !== null
        ? ok({ frame, key, value, ...about })
        : fail("malformed frame");
    }
    case "actual":
      return isKey(key) && isCount(seq) && value !== undefined
        ? ok({ frame, key, seq, value })
        : fail("malformed frame");
    case "actual-complete": {
      const { same } = fields;
      if (!isPrefix(prefix) || (same !== undefined && !isBuckets(same))) return fail("malformed frame");
      return ok({ frame, prefix, ...(same === undefined ? {} : { same }) });
    }
    case "digest":
      return isDigest(fields.digest) ? ok({ frame, digest: fields.digest }) : fail("malformed frame");
    case "repaired":
      return isBuckets(fields.buckets) ? ok({ frame, buckets: fields.buckets }) : fail("malformed frame");
    default:
      return fail("unknown frame");
  }
};
