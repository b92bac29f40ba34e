import type { Uid } from "../../../model/cell/identifiers.ts";
import { noLease } from "./lease.ts";
import type { AgentState } from "./records.ts";

/** Sentences of a storage agent about a volume. */

/** @param server its name */
export const lostVolume = (server: string): string =>
  `storage server ${server} has lost it: it was made there and nothing of it is there now; is the server's disk ` +
  "mounted? Bring the server's directory back and start its agent again";

/** @param server its name @param why a sentence */
export const olderServer = (server: string, why: string): string =>
  `storage server ${server} is older than others know it: ${why}. \`cells server adopt ${server}\` takes what there is, or put back what is newer`;

/** What is to be said of a size that is not the wanted one, both in MiB; null: nothing. */
export function sizeRemark(actual: number, desired: number | null): string | null {
  if (desired === null || desired === actual) return null;
  return desired > actual
    ? `grows from ${actual} to ${desired} MiB`
    : `stays at ${actual} MiB: a volume can grow to ${desired} MiB, never shrink`;
}

/** Why the file cannot be removed yet; null: nobody uses it. */
export function inUse(state: AgentState, uid: Uid): string | null {
  const lease = state.leases.get(uid) ?? noLease;
  if (lease.holder !== null)
    return `waits until the lease of epoch ${lease.epoch} is fenced; ${lease.holder.vm} on ${lease.holder.host} holds it`;
  const origin = state.origins.get(uid);
  if (origin !== undefined && state.desired.readers.has(uid)) return "waits until no copy reads it any more";
  if (origin !== undefined && origin.access !== null) return "waits until its readers are cut off";
  return null;
}
