import { cpusFor, type Filter, memoryFor } from "../candidate.ts";

/** What is reserved on a host never exceeds its memory and CPUs, times the ratios, less what the management needs. */
export const capacity: Filter = ({ actual, use }, request, ratios) => {
  const memory = memoryFor(actual, ratios);
  if (use.memoryMiB + request.memoryMiB > memory) {
    return `${request.memoryMiB} MiB do not fit: ${memory - use.memoryMiB} of ${memory} MiB are free`;
  }
  const cpus = cpusFor(actual, ratios);
  if (use.cpus + request.cpus > cpus) {
    return `${request.cpus} CPUs do not fit: ${cpus - use.cpus} of ${cpus} (${actual.cpus} × ${ratios.cpu}) are free`;
  }
  return null;
};
