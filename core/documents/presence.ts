import type { HostName } from "../../model/cell/identifiers.ts";

/*
 * What hosts and the Presence group say of who lives (`core/documents/vocabulary.ts` has the table of all keys).
 */

/**
 * A host of itself (`presence/self`) and of another that it suspects (`presence/failed/<host>`; taken back when refuted). What it has suspected since a moment ago
 * (`presence/doubted/<host>`) counts for no vote.
 */
export interface ActualPresence {
  readonly host: HostName;
  /** Grows with each start and with each return after a declared death. */
  readonly generation: number;
  /** Within the generation: grows with each suspicion that it refuted. */
  readonly incarnation: number;
}
/** A host of itself: it also says that it answers the calls of the group's members. */
export interface ActualOwnPresence extends ActualPresence {
  readonly answers: true;
  /** `ActualHost.boot`. */
  readonly boot?: number;
}
/** A member of the Presence group asks who hears it (`call`); a host says that it did, to that member (`<member>/call`). */
export interface ActualPresenceCall {
  /** No member uses a number twice, and each is above its earlier ones. */
  readonly call: number;
}
/** A member of the Presence group would declare this life of a host over. */
export type ActualPresenceVote = ActualPresence;
/**
 * So many hosts report or doubt this life of a host that a member of the Presence group would vote for its end if all of them reported it, and it had not
 * heard the host lately itself. Taken back when it is refuted, or declared.
 */
export type ActualPresenceSuspicion = ActualPresence;
/**
 * A member of the Presence group does not hear a host, which is not over as far as it knows, and too few hosts report it for that to be
 * decided: they are to look for it, in this life. Taken back when it is heard, reported by enough, or over.
 */
export type ActualPresenceMissed = ActualPresence;
/** A majority of the Presence group declared it: this generation of the host is over for good. */
export interface ActualPresenceDeath extends ActualPresence {
  /** Milliseconds since 1970, for people. */
  readonly declaredAt: number;
  /** How many hosts reported it. */
  readonly reporters: number;
  /** The later generation in which the host has come back; absent: it has not. */
  readonly returned?: number;
  /**
   * The last boot of the host after which its power was known to be off: nothing that began in it, or before, runs any
   * more, whatever has become of the host since. Absent: nothing of the kind is known, and silence is no end.
   */
  readonly ended?: number;
  /** The generation that the host was in when that was said: of a later one it says nothing. Absent: not known. */
  readonly endedIn?: number;
}
export const presenceKey = {
  all: "presence/",
  self: "presence/self",
  report: (host: string): string => `presence/failed/${host}`,
  doubt: (host: string): string => `presence/doubted/${host}`,
  vote: (host: string): string => `vote/${host}`,
  death: (host: string): string => `dead/${host}`,
  suspected: (host: string): string => `suspected/${host}`,
  missed: (host: string): string => `missed/${host}`,
  call: "call",
  answer: (member: string): string => `${member}/call`,
} as const;
