import type { HostName } from "../../../model/cell/identifiers.ts";
import type { ActualNetworkBeat } from "../../documents/network/eucalyptus.ts";

/** What is known of leases of network hosts (`leases.ts`); none of it outlives the process. */
export interface Leases {
  readonly beats: Map<HostName, ActualNetworkBeat & { readonly atMs: number }>;
  /** By host, when it was answered last. One that a former life of this service has answered was answered before this one began. */
  readonly answeredMs: Map<HostName, number>;
  readonly answered: Map<HostName, number>;
  startedMs: number;
  dueMs: number | null;
}
export const noLeases = (): Leases => ({
  beats: new Map(),
  answeredMs: new Map(),
  answered: new Map(),
  startedMs: 0,
  dueMs: null,
});
