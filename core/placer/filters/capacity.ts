import { cpusFor, type Filter, memoryFor } from "../candidate.ts";

/** What is reserved on a host never exceeds its memory and CPUs, times the ratios, less what the management needs. */
export const capacity: Filter = ({ actual, use }, request, ratios) => {
  const memory = memoryFor(actual, ratios);
  if (use.memoryMiB + request.memoryMiB > memory) {
    const free = Math.max(0, memory - use.memoryMiB);
    return {
      why: `${request.memoryMiB} MiB do not fit: ${free} of ${memory} MiB are free`,
      lifts:
        request.memoryMiB > memory
          ? `it never fits there: ask for at most ${memory} MiB`
          : `ask for at most ${free} MiB, or let ${request.memoryMiB - free} MiB become free there`,
    };
  }
  const cpus = cpusFor(actual, ratios);
  if (use.cpus + request.cpus > cpus) {
    const free = Math.max(0, cpus - use.cpus);
    return {
      why: `${request.cpus} CPUs do not fit: ${free} of ${cpus} (${actual.cpus} × ${ratios.cpu}) are free`,
      lifts:
        request.cpus > cpus
          ? `it never fits there: ask for at most ${cpus} CPUs`
          : `ask for at most ${free} CPUs, or let ${request.cpus - free} become free there`,
    };
  }
  return null;
};
