import type { CellName, PeerName, Uid } from "../../model/cell/identifiers.ts";
import type { Progress } from "./vocabulary.ts";

/*
 * What is said between controllers and the authority (`core/documents/vocabulary.ts` has the table of all keys): `enrolment/<id>` and
 * `pin/<name>`.
 */

/** The desire that whoever shows the token gets certificates of these names; they are renewed as long as it stands. */
export interface DesiredEnrolment {
  /** SHA-256 (hexadecimal) of the token. The token itself is in the `x.data` of its VM and nowhere else. */
  readonly hash: string;
  readonly cell: CellName;
  /** What the token is good for, one certificate each. */
  readonly grants: readonly IdentityGrant[];
  /** From then on the token is good for nothing. Milliseconds since 1970. */
  readonly endsAtMs: number;
}
export interface IdentityGrant {
  readonly name: PeerName;
  readonly role: string;
  /** Of the peer, IPv4; the first is where the others find it. */
  readonly addresses: readonly string[];
  /** Where it listens; absent: at the ports of a process with an address of its own. */
  readonly ports?: { readonly distribution: number; readonly http: number };
  /** Of a controller: the UID of its cell, which no later cell of that name has. Absent in what an earlier version said. */
  readonly cellUid?: Uid;
}
/**
 * Waiting: nobody has shown the token; ready: it is spent, by the key with this fingerprint; failed: it grants nothing, or
 * whoever showed it last was refused, by another key or too late.
 */
export interface ActualEnrolment extends Progress {
  readonly key: string | null;
}
/** The key of a host, of the root cell's controller or of the authority. */
export interface ActualPin {
  readonly key: string;
}
