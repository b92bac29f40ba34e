import type { Uid } from "../../model/cell/identifiers.ts";

export interface Hearing {
  /** An operator has let a store count that had forked. Record `lost`. */
  hasLost: boolean;
  /** And everybody has said since what they hold of it. */
  hasHeardAll: boolean;
}

/** Record `credential/<id>`. `hash`: SHA-256 of the credential, hexadecimal. `since`: milliseconds since 1970. */
export interface CredentialRecord {
  readonly id: string;
  readonly hash: string;
  readonly note: string;
  readonly since: number;
}

export interface StartState {
  /** Tokens that were taken and are not there again. */
  used: number;
  /** When `used` was right; null: not since this process started, `wallMs` says more. */
  atMs: number | null;
  wallMs: number;
  /** Since it was written down. */
  isTaken: boolean;
  /** VMs in the order in which they could have started. */
  readonly queue: Set<Uid>;
  /** When the timer is due; null: none is set. */
  dueMs: number | null;
}
