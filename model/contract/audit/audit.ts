/*
 * What was asked of a service, by whom, and what came of it. Whoever accepts a change writes its record in the transaction of
 * that change, so that neither is ever without the other. The records of one service form two chains, of changes and of refusals: each record
 * holds the hash of the one before.
 */

export const outcomes = ["done", "refused"] as const;
export type Outcome = (typeof outcomes)[number];
/** What was changed, and what was refused: neither takes the room of the other. */
export const rings = ["changes", "refusals"] as const;
export type Ring = (typeof rings)[number];

/** Who asks, as the one who answers knows it. */
export interface AuditActor {
  /** As people read it: `ann@ROOT/acme`, `operator`, `credential a1b2c3 of shop`, or a service's name. */
  readonly who: string;
  /** Path of his account; absent: he has none. */
  readonly account?: string;
  /** What he showed, never what opens anything: `session` or `ticket` with the beginning of its hash. Absent: the operator's credential, or nothing. */
  readonly by?: string;
  /** By which door he came: the kind of the peer that passed it on. */
  readonly door: string;
  /** Address of the client, as that peer saw it. */
  readonly source?: string;
  /** What a personality that asked for him says of it (`via.ts`). Absent: none has, or a version before wrote it. */
  readonly via?: string;
}
export interface AuditEntry extends AuditActor {
  /** The name of the request in the table of routes, or of what no route names. */
  readonly verb: string;
  /** A path, a name or a UID. */
  readonly target: string;
  /** More of what was asked, without what is secret. */
  readonly what?: string;
  readonly outcome: Outcome;
  /** Of a refusal. */
  readonly why?: string;
  /** Version of the model before and after. */
  readonly before?: number;
  readonly after?: number;
  /** UIDs of the accounts and domains whose administrators may see it. */
  readonly within?: readonly string[];
  /** So many refusals before this one, which came too fast, have no record. */
  readonly leftOut?: number;
}
export interface AuditRecord extends AuditEntry {
  /** Its number in its chain; for whoever sees a part of what its service has, among all that he sees. */
  readonly n: number;
  /** Of one in the chain of refusals: the number of the change before it, 0: none. Absent also for whoever sees a part. */
  readonly behind?: number;
  /** ISO 8601. */
  readonly time: string;
  /** Hash of the record before; of the first one `beginning`. Empty, as `hash`, for whoever sees a part. */
  readonly previous: string;
  /** SHA-256 of all the rest. */
  readonly hash: string;
}

/** How far the chain of changes goes, and that of refusals. */
export interface AuditHead {
  /** Number of the oldest record that is kept. */
  readonly first: number;
  /** Number of the next one. */
  readonly next: number;
  /** Hash of the last one. */
  readonly hash: string;
  /** Absent: a version before, which has both in one, or for whoever sees a part, who has one count. */
  readonly refusals?: Omit<AuditHead, "refusals">;
}

/** What one service has. */
export interface AuditSource extends AuditHead {
  readonly service: string;
}
/** Answer of one service. */
export interface AuditPart extends AuditHead {
  /** Oldest first. */
  readonly records: readonly AuditRecord[];
}
export type ServiceAuditRecord = AuditRecord & { readonly service: string };
export interface AuditView {
  readonly sources: readonly AuditSource[];
  /** Oldest first. */
  readonly records: readonly ServiceAuditRecord[];
  /** Services that did not answer: what they know is not there. */
  readonly silent: readonly string[];
}

/** How many records one answer has at most. */
export const mostAnswered = 1000;
