import type { PeerName } from "../model/cell/identifiers.ts";
import type { AuditActor, AuditEntry } from "../model/contract/audit/audit.ts";
import type { Json } from "../model/json/json.ts";
import type { Result } from "../model/result.ts";
import type { EventName } from "./telemetry/event-names.ts";
import type { Metric } from "./telemetry/metrics.ts";

/**
 * Every effect that the core can cause and every input that can reach it. A core service is a step function; what it
 * returns is carried out by whoever runs it: `runtime/` for real, `simulator/` over a virtual clock.
 *
 * Order of effects: all `write` and `desire` effects of a step are durable before anything that others can see
 * (`publish`, `desire`, `reply`) leaves. A crash between two steps therefore loses nothing that anyone was told.
 */

/** Time of a step. Rules rest on `ms` (monotonic, arbitrary origin) alone; `wallMs` (since 1970) is for people to read. */
export interface Instant {
  readonly ms: number;
  readonly wallMs: number;
}

export type Input =
  /** Once, after the state was restored and every stored desired document was delivered. */
  | { readonly kind: "start" }
  /**
   * A client's desired document is new or changed; null: its tombstone. Also delivered for every stored one at a start. One of
   * these may be malformed, where another version stored it: it is there, and what it is about must stay as it is.
   */
  | { readonly kind: "desired"; readonly from: PeerName; readonly key: string; readonly value: Json }
  /** A client takes a document back that is not here: this store was lost since, or never took the document. */
  | { readonly kind: "unknown-end"; readonly from: PeerName; readonly key: string }
  /** What a source says is so; null: no longer (taken back by it, or withdrawn because it is gone). */
  | { readonly kind: "actual"; readonly from: PeerName; readonly key: string; readonly value: Json }
  /** The connection to a source broke (its actual state stays, marked stale) or is in step again. */
  | { readonly kind: "reachable"; readonly peer: PeerName; readonly reachable: boolean }
  /** A peer has taken the tombstone of a document, and all that it said up to then is known. */
  | { readonly kind: "released"; readonly peer: PeerName; readonly key: string }
  /**
   * One of the two stores, this service's or the peer's, does not contain what the other has seen of it: it was lost, or is
   * older. Said when that changes. While `forked`, the peer keeps what it has of this service's documents. While
   * `itForked`, the peer's silence about a key says nothing.
   */
  | ({ readonly kind: "forked"; readonly peer: PeerName } & Forks)
  /**
   * Another one has the peer's name, with a store of its own: a machine that took the place of one that was removed, or is
   * dead; a cell that was made anew. What the former one was asked for is asked of it, too; its silence says nothing of what
   * the former one did.
   */
  | { readonly kind: "another"; readonly peer: PeerName }
  /**
   * The peer holds this document of this service, and keeps it: it is unknown here, or another one than is desired here.
   * A tombstone (`desire` of null) ends one that is unknown. Null: the peer holds none, and did not take the one sent.
   */
  | { readonly kind: "kept"; readonly peer: PeerName; readonly key: string; readonly value: Json }
  /** A client has said on its present connection all that it desires here. */
  | { readonly kind: "complete"; readonly peer: PeerName }
  /** An operator has looked at the peer, and lets count what it says here: it is waited for no more. The peer is this service itself where it is lost (`isLost`). */
  | { readonly kind: "excused"; readonly peer: PeerName }
  /** An operator ends what was named of a peer as `unclaimed`. */
  | { readonly kind: "ended"; readonly peer: PeerName; readonly keys: readonly string[] }
  /** A client has seen more of this service's store than it contains: it is older, or blank. Said before what the client desires. */
  | { readonly kind: "behind"; readonly peer: PeerName }
  /** A client's store does not contain what this one has seen of it, and nothing is held here of which that would be a fork. */
  | { readonly kind: "set-back"; readonly peer: PeerName }
  /** The peer has seen a later store of this service than this one, and holds nothing of it any more. Said once. */
  | { readonly kind: "seen-later"; readonly peer: PeerName }
  /** A client has connected that keeps no history of its store: it is of an earlier version, perhaps again. */
  | { readonly kind: "earlier"; readonly peer: PeerName }
  | { readonly kind: "timer"; readonly name: string }
  /** A query or request from the service's edge; answered by a `reply` with the same id, at once or later. */
  | { readonly kind: "request"; readonly id: number; readonly request: Json };

/** Which of the two sides of a client and its receiver has forked (`distribution/history.ts`). */
export interface Forks {
  /** This service's store, as the peer knows it. */
  readonly forked: boolean;
  /** The peer's. */
  readonly itForked: boolean;
}

export type Effect =
  /** A record in this service's own store; null deletes it. */
  | { readonly kind: "write"; readonly key: string; readonly value: Json }
  /**
   * A desired document at a peer, durable here and there, repeated until it arrived; null is its tombstone. `again`: one that the peer
   * has taken, and has forgotten since with its store.
   */
  | {
      readonly kind: "desire";
      readonly to: PeerName;
      readonly key: string;
      readonly value: Json;
      readonly again?: true;
    }
  /** A desired document is forgotten, and its peer is told nothing: what it has of it stays as it is, for an operator to look at. */
  | { readonly kind: "let-go"; readonly at: PeerName; readonly key: string }
  /**
   * What this service desires at a peer counts again, after one of the two had forked: all of it follows from what others
   * say, and it has heard them. Not taken from a controller, whose documents are somebody's desire: an operator says it.
   */
  | { readonly kind: "recovered"; readonly at: PeerName }
  /** An operator lets this service's store count, which was put back from a copy: others may have met later starts of it. */
  | { readonly kind: "counts-again" }
  /** Actual state of this service, to whoever subscribed and is entitled; null takes it back. Not durable. */
  | { readonly kind: "publish"; readonly key: string; readonly value: Json }
  /** Follow the actual state of a peer under keys that start with `prefix`. Not durable: repeat it at `start`. */
  | { readonly kind: "subscribe"; readonly to: PeerName; readonly prefix: string }
  | { readonly kind: "unsubscribe"; readonly to: PeerName; readonly prefix: string }
  /** One timer per name; setting it again replaces it, null cancels it. Not durable. */
  | { readonly kind: "timer"; readonly name: string; readonly afterMs: number | null }
  | { readonly kind: "reply"; readonly id: number; readonly response: Json }
  /** A state change worth a line in the log and, for a controller, in its event stream. */
  | { readonly kind: "log"; readonly event: EventName; readonly fields: { readonly [key: string]: Json } };

export interface Step<State> {
  readonly state: State;
  readonly effects: readonly Effect[];
}

/**
 * A request to a service that names what is `unclaimed`: what goes on under this key is what the client desires under another one. The
 * reply is null, or a sentence: why not.
 */
export interface AdoptRequest {
  readonly kind: "adopt";
  readonly client: PeerName;
  readonly key: string;
}

/** Their names; `all`: every one that there was. */
export type GoneHosts = "all" | readonly string[];

/** What a service finds when it starts again. */
export interface Restored {
  /** Own records, as written. */
  readonly records: ReadonlyMap<string, Json>;
  /** Own desired documents at others, tombstones left out: peer → key → value. */
  readonly desiredAt: ReadonlyMap<PeerName, ReadonlyMap<string, Json>>;
  /** Own documents that were taken back, and whose peer has not taken the tombstone: `released` will say so. Absent: none. */
  readonly releasingAt?: ReadonlyMap<PeerName, ReadonlySet<string>>;
  /** Peers with which something had forked, and nobody has released it. Absent: none. */
  readonly forkedAt?: ReadonlyMap<PeerName, Forks>;
  /** This store was put back from a copy since the last start. */
  readonly wasRestored?: boolean;
  /** Who had that done by a service's own door, and what it was put back from. Absent: whoever has the files. */
  readonly putBackBy?: { readonly actor: AuditActor; readonly from: string };
  /** Hosts of then at which nothing runs any more, of which whoever put it back was sure. Absent: nothing was said. */
  readonly goneHosts?: GoneHosts;
  /** 0 ≤ x < 1, drawn for this start. Absent: 0. */
  readonly drawn?: number;
}

/** For services of tests, which say to each other whatever they like. */
export const readAnything: DocumentReader = (_verb, _from, _key, value) => ({ ok: true, value });

/** `desired`: a peer desires it here; `actual`: a peer says that it is so; `kept`: a peer holds it as a desire of this service. */
export type DocumentVerb = "desired" | "actual" | "kept";
/** @returns the document without what its type does not know, or a sentence. `value` is never null: that takes back. */
export type DocumentReader = (verb: DocumentVerb, from: PeerName, key: string, value: Json) => Result<Json, string>;

/**
 * `step` owns the state that it is given: it may change it in place, and its caller keeps only what is returned.
 * It never throws for anything that came from outside: that is answered, or logged and ignored.
 */
export interface Service<State> {
  restore(restored: Restored): State;
  /**
   * What this service is, where another one may come after it under the same name: the UID of a controller's cell. Its
   * receivers then know the next one from one that has lost its store. Absent: there is never another.
   */
  readonly instance?: string;
  step(state: State, input: Input, now: Instant): Step<State>;
  /** Need to know: may this peer see this key of this service's actual state? Asked at the source, at every send. */
  entitled(state: State, peer: PeerName, key: string): boolean;
  /**
   * A value that is another one (by `===`) whenever `entitled` may answer otherwise than before; absent: ask it after every
   * step, for every key and follower. Constant where the key alone decides.
   */
  audience?(state: State): unknown;
  /** May this peer put a desired document under this key? A refused one is counted and logged, and harms nobody. */
  accepts(peer: PeerName, key: string): boolean;
  /**
   * Reads what another process sent, once and before a step sees it. The error says what is wrong and where: such a document
   * is counted, logged and otherwise as if it had not been sent, so that the last good one stays.
   */
  read: DocumentReader;
  /**
   * Desired documents that come from many clients all the time, each of which alone would cost a commit: they wait for each other, so long at
   * most, and share one. `isOne` is asked as one comes, and may know the state of then. Absent: none waits.
   */
  readonly gathers?: {
    readonly forMs: number;
    isOne(state: State, peer: PeerName, key: string, value: Json): boolean;
  };
  /**
   * Keys under which a client had desires here, as follows from what they led to, though this service's store does not know them any more. What
   * the client does not repeat of them is an orphan, and an operator may end it (`ended`), or give it back to its client (`AdoptRequest`).
   */
  unclaimed?(state: State): ReadonlyMap<PeerName, readonly string[]>;
  /** Its store was lost, as it found out by itself, and no operator has looked since (`excused` with its own name). */
  isLost?(state: State): boolean;
  /**
   * Who asked for something by a verb that is no document, as a record of the service's own audit: effects of the step that does it. Absent: such
   * records are kept beside the service.
   */
  record?(state: State, entry: AuditEntry, now: Instant): readonly Effect[];
  /** What its state says in numbers. Asked now and then; changes nothing. */
  measure?(state: State): readonly Metric[];
}
