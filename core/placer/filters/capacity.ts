import { smallestVm } from "../../../model/cell/schema.ts";
import { cpusFor, type Filter, freeMiB, noUse } from "../candidate.ts";

/** What is reserved on a host never exceeds its memory and CPUs, times the ratios, less what the management needs. */
export const capacity: Filter = ({ actual, use }, request, ratios) => {
  const free = freeMiB(actual, use, ratios);
  if (request.memoryMiB > free) {
    const most = freeMiB(actual, noUse(), ratios);
    return {
      kind: "memory",
      why: `${request.memoryMiB} MiB do not fit: ${free} of ${most} MiB are free`,
      lifts:
        request.memoryMiB > most
          ? never(most, "MiB", smallestVm.memoryMiB)
          : `${atMost(free, "MiB", smallestVm.memoryMiB)}let ${request.memoryMiB - free} MiB become free there`,
    };
  }
  const cpus = cpusFor(actual, ratios);
  if (use.cpus + request.cpus > cpus) {
    const free = Math.max(0, cpus - use.cpus);
    return {
      kind: "cpus",
      why: `${request.cpus} CPUs do not fit: ${free} of ${cpus} (${actual.cpus} × ${ratios.cpu}) are free`,
      lifts:
        request.cpus > cpus
          ? never(cpus, "CPUs", smallestVm.cpus)
          : `${atMost(free, "CPUs", smallestVm.cpus)}let ${request.cpus - free} CPUs become free there`,
    };
  }
  return null;
};

/** What is less than the smallest VM nobody can ask for. */
const atMost = (free: number, unit: string, least: number): string =>
  free < least ? "" : `ask for at most ${free} ${unit}, or `;
const never = (most: number, unit: string, least: number): string =>
  most < least
    ? "no VM ever fits there: let another host join"
    : `it never fits there: ask for at most ${most} ${unit}`;
