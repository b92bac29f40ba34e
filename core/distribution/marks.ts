/**
 * A store has a history. Each start of a service that changes its store draws an id, and counts its commits; the list of
 * these marks is the history of the store, and its last mark says how far it is. Who takes something from a service keeps
 * its last mark. A store that is blank, lost, or put back from an older copy does not contain that mark: it has *forked*, and
 * what it says of former documents is no desire of anybody.
 *
 * Generations cannot tell that: a store that was put back is started at a later time, and so in a later generation, than
 * the one that it is a copy of.
 */
export interface Mark {
  /** Drawn by a start of the store's owner, at its first commit. */
  readonly start: string;
  /** Commits since then; 1 or more. */
  readonly count: number;
}

/** Oldest first. The last one is the present. */
export type History = readonly Mark[];

/**
 * Starts that a history keeps. Whoever was not reached during so many starts that each changed something takes the store
 * for another one, and keeps what it has until somebody looks.
 */
export const mostStarts = 256;

/** Of an id, in characters. */
export const startLength = 64;

export const contains = (history: History, { start, count }: Mark): boolean =>
  history.some((mark) => mark.start === start && mark.count >= count);

/** Of a node: what is stored, and what its next start is called. */
export interface OwnHistory {
  /** With the number of its record. */
  readonly marks: { readonly number: number; readonly start: string; count: number }[];
  /** The id of this start. */
  readonly draw: string;
  drawn: boolean;
}

/** What is kept of a receiver: how far its store was, and which side of the two has forked. Absent: nothing worth a record. */
export interface StoredPeer {
  readonly at?: Mark;
  /** Of what the receiver is, as its hello said. */
  readonly instance?: string;
  readonly forked?: true;
  readonly itForked?: true;
  /** It has seen a later store of this service, and holds nothing of it. */
  readonly seenLater?: true;
}

/** How far a client's store was, and what of it is kept (`fork.ts`). */
export interface ClientMark extends Mark {
  /** Of what the client is, as its hello said. */
  readonly instance?: string;
  /** How far the store was from which the client's present one forked. */
  readonly lost?: Mark;
  /** Documents of this generation and of earlier ones are kept as they are. */
  readonly keptUpTo?: number;
  /** A later store than the client's was seen here when nothing of it was held any more. */
  readonly seenLater?: true;
}
