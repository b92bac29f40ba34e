import type { Instant } from "../../env.ts";
import type { AuthorityState } from "./state.ts";

/* How long certificates are valid. When a service asks for its next one: `renewal.ts`. */

const hourMs = 3_600_000;
/** Where the installation does not say. */
export const defaultLifetimeMs = 24 * hourMs;

/** How much a clock may be slow against the authority's: a certificate begins that long before it is issued. */
export const toleranceMs = (lifetimeMs: number): number => Math.min(hourMs, lifetimeMs / 24);

/** When a certificate that is issued now begins, in whole seconds: certificates know no finer time. */
export const validFromOf = (
  { options: { lifetimeMs = defaultLifetimeMs } }: AuthorityState,
  { wallMs }: Instant,
): number => Math.floor((wallMs - toleranceMs(lifetimeMs)) / 1000) * 1000;
