import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { AuditEntry } from "../../../model/contract/audit/audit.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Declared } from "../../documents/declaration.ts";
import type { DocumentReader, Input, Instant } from "../../env.ts";
import type { EventName } from "../../telemetry/event-names.ts";
import type { ClientMark, Mark, OwnHistory } from "../marks.ts";
import type { RunningDigest } from "./digest.ts";
import type { Frame, Refusal, ServerFrame } from "./frames.ts";
import type { StoredDocument } from "./stored.ts";

/** Which side of a connection this service is: the client dialled. */
export type Role = "client" | "server";

/** All that can happen to a service and its connections. Whoever drives a node numbers connections uniquely. */
export type NodeInput =
  | { readonly kind: "start" }
  /** A connection stands; `peer` is authenticated. It takes frames at once. */
  | { readonly kind: "connected"; readonly connection: number; readonly peer: PeerName; readonly role: Role }
  | { readonly kind: "disconnected"; readonly connection: number }
  /** An attempt to reach a peer failed; it is being repeated. */
  | { readonly kind: "unreachable"; readonly peer: PeerName }
  | { readonly kind: "frame"; readonly connection: number; readonly frame: Json }
  /** The connection has passed on what the node last sent and takes more. Comes once after every step that sent. */
  | { readonly kind: "sendable"; readonly connection: number }
  | { readonly kind: "timer"; readonly name: string }
  /** `by`: who asks for a change by it, where that is to have a record. */
  | { readonly kind: "request"; readonly id: number; readonly request: Json; readonly by?: AuditEntry }
  /** Something is done about which the service is not asked. */
  | { readonly kind: "record"; readonly id: number; readonly by: AuditEntry }
  /** Members of the Presence group from now on, where they are not those of `createNode`. */
  | { readonly kind: "presence"; readonly members: readonly PeerName[] }
  /** Presence declared that the peer's life with that number is over: all it said in it is withdrawn. */
  | { readonly kind: "declared-dead"; readonly peer: PeerName; readonly life: number }
  /** What is said from now on is of that life of this source's host. After a declared death it is a new one. */
  | { readonly kind: "life"; readonly life: number }
  /**
   * An operator has looked: what the peer desires here counts again, and what this service desires there, whichever of the
   * two had forked. With `keys`, nothing of that, but these documents of the peer end here, as by its tombstones; only
   * those that it did not repeat, or that are kept for it, do; of a client that is in no book of peers (`isGone`) and has not been
   * heard since this start, any.
   */
  | {
      readonly kind: "release";
      readonly peer: PeerName;
      readonly keys?: readonly string[];
      readonly isGone?: boolean;
      readonly by?: AuditEntry;
    }
  /** Orderly end: says goodbye on every connection. */
  | { readonly kind: "stop" };

export interface Write {
  readonly key: string;
  readonly value: Json;
}
export interface LogLine {
  readonly event: EventName;
  readonly fields: { readonly [key: string]: Json };
}
/**
 * What a step wants done, in this order: all `writes` at once and durable, then the rest. `timers` may be set at once.
 * `connects`: peers to be dialled from now on, again and again. `closes`: connections to end after the sends.
 */
export interface NodeOutput {
  readonly writes: Write[];
  readonly sends: { readonly connection: number; readonly frame: Frame }[];
  readonly timers: { readonly name: string; readonly afterMs: number | null }[];
  readonly logs: LogLine[];
  readonly replies: { readonly id: number; readonly response: Json }[];
  readonly connects: PeerName[];
  readonly closes: number[];
}

/** One step under way: its outputs, and the inputs that it makes for the service. */
export interface Turn extends NodeOutput {
  readonly now: Instant;
  readonly inbox: Input[];
  /** Connections that may have something to send. */
  readonly dirty: Set<number>;
  /** Key → what is said of it to every follower that is told in this step. */
  readonly shared: Map<string, ServerFrame>;
}

export interface OutgoingDocument {
  readonly seq: number;
  readonly value: Json;
  readonly text: string;
}
export interface ReceivedActual {
  readonly generation: number;
  readonly seq: number;
  /** Of the last value that could be read; empty: there was none. */
  readonly text: string;
}

/** This service as the client of one peer. */
export interface Target {
  readonly peer: PeerName;
  /** By key; a null value is a tombstone not yet acknowledged. */
  readonly documents: Map<string, OutgoingDocument>;
  /** Prefix → its snapshot of the present connection is complete. */
  readonly subscriptions: Map<string, boolean>;
  /** Those of `subscriptions` that are not the service's, but this layer's own. */
  readonly interests: Set<string>;
  readonly actual: Map<string, ReceivedActual>;
  /** This service's own generation there, at least (`raisedFloor`). */
  floor: number;
  /** Newest generation that the source showed; at most `withdrawn` is void. */
  generation: number;
  withdrawn: number;
  /** Newest life that was declared over, 0: none; and the newest generation that the source had shown by then. */
  deadLife: number;
  deadGeneration: number;
  /** Of its host, as Presence counts them; 0: the source did not say. */
  life: number;
  /** How far its store was, as it said last; null: it did not say. */
  at: Mark | null;
  /** What it is, as its hello said; null: it did not. */
  instance: string | null;
  /** This service's store does not contain what the peer has seen of it; the peer's does not contain `at`. */
  forked: boolean;
  itForked: boolean;
  /** The peer has said that it has seen a later store of this service, of which it holds nothing. */
  seenLater: boolean;
  /** Keys of documents of this service that only the peer knows. */
  readonly orphans: Set<string>;
  session: number;
  /** Null: nothing was said about it yet. */
  reachable: boolean | null;
  link: ClientLink | null;
}
export interface ClientLink {
  readonly role: "client";
  readonly connection: number;
  readonly target: Target;
  readonly control: Frame[];
  /** Keys of documents to send, in the order of their `seq`. */
  readonly pending: Set<string>;
  /** Keys of actual state that arrived on this connection, or stayed because the server has the same, with their `seq`. */
  readonly seen: Map<string, number>;
  /** Of `seen`. */
  readonly digest: RunningDigest;
  /** Documents that the server did not take, and their `seq`: their acknowledgement says nothing. */
  readonly kept: Map<string, number>;
  /** What was sent up to this `seq` was sent before it was said that all of it counts again; 0: that was not said. */
  recoveredAt: number;
  /** Prefixes for which the server was told what is still here. */
  readonly holding: Set<string>;
  /** Buckets that were asked for once more; null: none. */
  repairing: readonly number[] | null;
  completed: boolean;
  greeted: boolean;
  ready: boolean;
}

/** One peer as a client of this service. */
export interface Client {
  readonly peer: PeerName;
  readonly documents: Map<string, StoredDocument>;
  /** Keys of `documents` that its last whole snapshot lacked. */
  readonly orphans: Set<string>;
  /** Of `documents`, in characters. */
  characters: number;
  /** How far its store was, and what of it is kept; null: it never said. */
  mark: ClientMark | null;
  /** This service's own generation there, at least (`raisedFloor`). */
  floor: number;
  generation: number;
  session: number;
  link: ServerLink | null;
}
export interface ServerLink {
  readonly role: "server";
  readonly connection: number;
  readonly peer: PeerName;
  readonly control: ServerFrame[];
  readonly prefixes: Set<string>;
  /** Prefixes whose snapshot is to be declared complete once nothing is pending. */
  readonly completing: Set<string>;
  /** Buckets of a prefix that are not sent, because the client has the same. */
  readonly same: Map<string, readonly number[]>;
  readonly pending: Set<string>;
  /** Key → `seq` of what this connection was last given. */
  readonly sent: Map<string, number>;
  /** Of `sent`. */
  readonly digest: RunningDigest;
  /** Buckets that are being sent again. */
  readonly repairs: Set<number>;
  /** Since when the present window runs, how many changes went out in it, and whether what it held back is going out. */
  windowMs: number;
  windowFrames: number;
  draining: boolean;
  /** Of the protocol; 0 before the hello. */
  version: number;
  /** Keys of desired documents that arrived before `desired-complete`; null afterwards. */
  seen: Set<string> | null;
  /** The client has said its history, and is told what is kept here: keys, with the `seq` of a frame that was not taken. */
  speaksHistory: boolean;
  readonly telling: Map<string, number | null>;
  /** Null until its hello was accepted. */
  client: Client | null;
  seq: number;
  ack: number | null;
  ready: boolean;
}

/** Everything of a node but the service's own state. */
export interface Distribution {
  readonly self: PeerName;
  readonly instance: string | undefined;
  readonly history: OwnHistory;
  /** Receivers whose `at` is newer than its record, which is written with the next commit. */
  readonly newerMarks: Set<Target>;
  /** What whoever put the store back from a copy noted in it; null: nobody did since the last start. */
  readonly restored: Json;
  generation: number;
  /**
   * Its store was lost and others may know later generations than it: blank or put back at this start, raised before, or put back
   * as an operator says.
   */
  mayBeBehind: boolean;
  life: number;
  /** Members of the Presence group, whose declarations count. */
  presence: ReadonlySet<PeerName>;
  readonly declared: Declared;
  readonly targets: Map<PeerName, Target>;
  readonly clients: Map<PeerName, Client>;
  readonly links: Map<number, ClientLink | ServerLink>;
  readonly published: Map<string, OutgoingDocument>;
  readonly refusals: Map<Refusal, number>;
  readonly refusalsLogged: RefusalLog;
  /** Prefix → connections that follow it; and how many prefixes have which length. */
  readonly followers: Map<string, Set<ServerLink>>;
  readonly prefixLengths: Map<number, number>;
  readonly entitled: (peer: PeerName, key: string) => boolean;
  readonly accepts: (peer: PeerName, key: string) => boolean;
  /** Of the service (`Service.unclaimed`). */
  readonly unclaimed: () => ReadonlyMap<PeerName, readonly string[]>;
  /** Of the service (`Service.isLost`). */
  readonly isLost: () => boolean;
  readonly read: DocumentReader;
  /** Of the last document or publication of this generation. */
  /** The last `seq` of what this start found in its store. */
  restoredSeq: number;
  seq: number;
  scanning: boolean;
  /** What `Service.audience` last answered. */
  audience: unknown;
  /** Followers in the order in which they get their digests, and those that wait for the end of their window. */
  readonly digestRound: Set<ServerLink>;
  readonly held: Set<ServerLink>;
  readonly timersSet: Set<"digest" | "window">;
  phase: "created" | "running" | "stopped";
}

/** `<peer> <reason>` → how often it was refused, and when that was last logged. */
export type RefusalLog = Map<string, { loggedMs: number; count: number }>;
