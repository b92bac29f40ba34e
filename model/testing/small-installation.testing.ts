import type { Supply } from "../check/check-supply.ts";

/** An installation that the examples of what is too much are too much for. */
const pool = { pool: "10.64.0.0/16", largest: 4096, fixed: ["10.64.0.0/12"] };
const sizeMiB = 65_536;
export const smallInstallation: Supply = {
  hosts: [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2400 }],
  storage: {
    totalMiB: sizeMiB,
    freeMiB: sizeMiB,
    largestFreeMiB: sizeMiB,
    largestMiB: sizeMiB,
    largestCopyMiB: sizeMiB,
    promisableMiB: sizeMiB,
  },
  offerings: [{ name: "small", memoryMiB: 1024, cpus: 2 }],
  addresses: { internal: pool, external: pool, reserved: [], shortestPrefix: 16, longestPrefix: 29 },
};
