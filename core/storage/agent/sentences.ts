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
