import type { HostName } from "../../../model/cell/identifiers.ts";
import type { GoneHosts, Restored } from "../../env.ts";

/** What is known of the hosts of then, where this store was put back, or was let count though it is older (put-back.ts). */
export interface AfterRestore {
  /** Nothing of then runs there any more. */
  readonly gone: GoneHosts;
  /** The others of whom the store knew, and that have not been heard since. */
  readonly unheard: readonly HostName[];
  /** The Placer has not said yet which others there are. Absent: it has, or the backup alone tells. */
  readonly asksPlacer?: true;
}

/** What was said at an earlier restore is no word about this one. */
export const afterRestoreOf = ({ records, wasRestored, goneHosts }: Restored): AfterRestore | null => {
  if (wasRestored !== true) return (records.get("gone") ?? null) as unknown as AfterRestore | null;
  return goneHosts === undefined ? null : { gone: goneHosts, unheard: [] };
};
