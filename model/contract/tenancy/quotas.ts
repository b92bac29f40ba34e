import { type Usage, usageKeys } from "../../check/check-limits.ts";
import type { Tagged } from "./pages.ts";

/*
 * What all cells of an account may have together, or all of the accounts in a domain and below. Quantities are those of a cell's own
 * `x.limits`, how many cells there are, and the units of whole hosts in pools (what one costs says its HostFlavor).
 */
export const limitKeys = [...usageKeys, "cells", "units"] as readonly LimitKey[];
export type LimitKey = keyof Usage | "cells" | "units";
/** Absent: as much as there is, or as those above let it. */
export type Limits = { readonly [key in LimitKey]?: number };
export const mostOfLimit = 2 ** 40;

export interface QuotaSummary extends Tagged {
  /** Of the account or domain. */
  readonly uid: string;
  readonly path: string;
  readonly kind: "account" | "domain";
  readonly limits: Limits;
  /** What was granted of them; null: the root controller has not said. */
  readonly granted: Limits | null;
}
/** In place of the former ones: what is absent is not limited any more. */
export interface QuotaChange {
  readonly limits: Limits;
}
