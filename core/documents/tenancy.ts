import type { Rule } from "../../model/contract/tenancy/rules.ts";

/*
 * What a controller asks the service `tenancy` and hears from it (`core/documents/vocabulary.ts` has the table of all keys): `look/<hash>`, by
 * the SHA-256 (hexadecimal) of a ticket that its gateway was shown.
 */

/** The desire to know what a ticket for this cell is worth, for as long as it is used here. */
export interface DesiredLook {
  /** Its hash. */
  readonly ticket: string;
}
/**
 * What it is worth now: it is said anew when that changes, and a right that was taken back counts from then on. `open` false: nothing. That
 * nothing is said any more is no answer but silence.
 */
export interface ActualLook {
  readonly open: boolean;
  /** As people read it: `ann@ROOT/acme`. */
  readonly user: string;
  readonly account: string;
  readonly rules: readonly Rule[];
}
