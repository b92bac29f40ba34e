import type { Filter } from "../candidate.ts";

/** A host's CPUs are at least as fast as asked for; 0 asks for nothing. */
export const speed: Filter = ({ actual }, request) =>
  actual.cpuSpeedMHz >= request.cpuSpeedMHz
    ? null
    : {
        kind: "speed",
        why: `its CPUs run at ${actual.cpuSpeedMHz} MHz, and ${request.cpuSpeedMHz} MHz are asked for`,
        lifts: `ask for x.cpuSpeed ${actual.cpuSpeedMHz} or less`,
      };
