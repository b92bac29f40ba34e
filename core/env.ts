import type { PeerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";
import type { EventName } from "./event-names.ts";
import type { Metric } from "./metrics.ts";

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
  /** A client's desired document is new or changed; null: its tombstone. Also delivered for every stored one at a start. */
  | { readonly kind: "desired"; readonly from: PeerName; readonly key: string; readonly value: Json }
  /** What a source says is so; null: no longer (taken back by it, or withdrawn because it is gone). */
  | { readonly kind: "actual"; readonly from: PeerName; readonly key: string; readonly value: Json }
  /** The connection to a source broke (its actual state stays, marked stale) or is in step again. */
  | { readonly kind: "reachable"; readonly peer: PeerName; readonly reachable: boolean }
  /** A peer has taken the tombstone of a document, and all that it said up to then is known. */
  | { readonly kind: "released"; readonly peer: PeerName; readonly key: string }
  | { readonly kind: "timer"; readonly name: string }
  /** A query or request from the service's edge; answered by a `reply` with the same id, at once or later. */
  | { readonly kind: "request"; readonly id: number; readonly request: Json };

export type Effect =
  /** A record in this service's own store; null deletes it. */
  | { readonly kind: "write"; readonly key: string; readonly value: Json }
  /** A desired document at a peer, durable here and there, repeated until it arrived; null is its tombstone. */
  | { readonly kind: "desire"; readonly to: PeerName; readonly key: string; readonly value: Json }
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

/** What a service finds when it starts again. */
export interface Restored {
  /** Own records, as written. */
  readonly records: ReadonlyMap<string, Json>;
  /** Own desired documents at others, tombstones left out: peer → key → value. */
  readonly desiredAt: ReadonlyMap<PeerName, ReadonlyMap<string, Json>>;
  /** Own documents that were taken back, and whose peer has not taken the tombstone: `released` will say so. Absent: none. */
  readonly releasingAt?: ReadonlyMap<PeerName, ReadonlySet<string>>;
}

/**
 * `step` owns the state that it is given: it may change it in place, and its caller keeps only what is returned.
 * It never throws for anything that came from outside: that is answered, or logged and ignored.
 */
export interface Service<State> {
  restore(restored: Restored): State;
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
  /** What its state says in numbers. Asked now and then; changes nothing. */
  measure?(state: State): readonly Metric[];
}
