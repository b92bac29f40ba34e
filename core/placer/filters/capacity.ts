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
          ? `it never fits there: ask for at most ${most} MiB`
          : `ask for at most ${free} MiB, or let ${request.memoryMiB - free} MiB become free there`,
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
          ? `it never fits there: ask for at most ${cpus} CPUs`
          : `ask for at most ${free} CPUs, or let ${request.cpus - free} become free there`,
    };
  }
  return null;
};
