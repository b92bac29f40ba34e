import type { PartFile } from "./part.ts";

/** The database of a service's store, in its directory. */
export const storeFile = "state.sqlite";

/**
 * What a backup holds of a process beside its store, by path in its directory; what is not there is left out. Volumes and
 * images are no part of it. Of which processes one is made is in `runtime/identity/authority/backup-order.ts`.
 */
export const besides: readonly (readonly [path: string, kind: PartFile["kind"]])[] = [
  ["events.sqlite", "sqlite"],
  ["root-secret", "file"],
  ["seal-key", "file"],
  ["peers.json", "file"],
  ["pins.json", "file"],
  ["authority/authority.key.pem", "file"],
  ["authority/authority.pem", "file"],
  ["identity/key.pem", "file"],
  ["identity/certificate.pem", "file"],
  ["identity/authority.pem", "file"],
  ["identity/gossip.key", "file"],
  ["identity/pins.json", "file"],
];

/** What of it is given to a service that starts anew: a key or a certificate is of the machine that was lost. */
export const isGivenBack = ({ path }: Pick<PartFile, "path">): boolean =>
  [storeFile, "events.sqlite", "root-secret", "seal-key"].includes(path);
