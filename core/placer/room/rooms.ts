import { refusedText } from "../../../model/cause/words.ts";
import type { CellName, ElementPath, HostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredHost } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { cpusFor, memoryFor, noUse, ratiosAt, takenMiB, vmsAt } from "../candidate.ts";
import type { PlacerState } from "../state.ts";
import { lossOf } from "./loss.ts";
import { lackOf } from "./spare.ts";
import { shortOf } from "./system-hosts.ts";

/** Answer to the request `{kind: "hosts"}`. */
export interface HostRoom {
  readonly host: HostName;
  readonly reachable: boolean;
  readonly memoryMiB: number;
  readonly usedMiB: number;
  readonly cpus: number;
  readonly usedCpus: number;
  readonly vms: number;
  /** What the operator says of it. Absent: it takes VMs. */
  readonly closed?: DesiredHost["state"];
  /** VMs of this Placer's that are there and are to go. */
  readonly leaving: readonly LeavingVm[];
}
export interface LeavingVm {
  readonly cell: CellName;
  readonly path: ElementPath;
  /** Where room is kept for it; null: nowhere yet, and `reason` says why not. */
  readonly to: HostName | null;
  readonly reason: string | null;
}

export function rooms(state: PlacerState): Json {
  const hosts = [...state.hosts.values()].map(({ host, reachable, actual, closed, pooled }): HostRoom => {
    const use = state.usage.get(host) ?? noUse();
    const own = ratiosAt(pooled, state.ratios);
    return {
      host,
      reachable,
      memoryMiB: actual === null ? 0 : memoryFor(actual, own),
      usedMiB: actual === null ? use.memoryMiB : takenMiB(actual, use),
      cpus: actual === null ? 0 : cpusFor(actual, own),
      usedCpus: use.cpus,
      vms: vmsAt(use),
      ...(closed === undefined ? {} : { closed }),
      leaving: leavingFrom(state, host),
    };
  });
  const { spareHosts } = state;
  const spare = spareHosts === 0 ? {} : { spare: { hosts: spareHosts, lack: lackOf(state, spareHosts) } };
  const short = shortOf(state);
  return toJson({ hosts, loss: lossOf(state), ...spare, ...(short === null ? {} : { systemHosts: short }) });
}

function leavingFrom({ leaving, reservations }: PlacerState, from: HostName): readonly LeavingVm[] {
  return [...leaving]
    .flatMap(([vm, leave]): readonly LeavingVm[] => {
      const { cell, path, host } = reservations.get(vm) ?? {};
      if (cell === undefined || path === undefined || host !== from) return [];
      const [{ to }, why] = [leave, refusedText(leave)];
      const reason = to !== null ? null : why === "" ? "there is no other host" : why;
      return [{ cell, path, to, reason }];
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}
