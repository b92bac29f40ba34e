import { createRandom } from "../kernel/random.ts";
import type { Served } from "./served.ts";

/** What can be done to a served simulation by one key. Which host it hits follows from the seed. */
export interface Fault {
  readonly says: string;
  readonly step: (host: string) => string;
}
export const faultKeys: ReadonlyMap<string, Fault> = new Map([
  ["h", { says: "a host loses its power for two minutes", step: (host) => `power-off ${host} for 120000` }],
  ["i", { says: "a host is cut off from all others for a minute", step: (host) => `isolate ${host} for 60000` }],
  ["c", { says: "a Host Manager crashes", step: (host) => `crash host.${host}` }],
  ["p", { says: "a Host Manager stands still for 20 s", step: (host) => `pause host.${host} for 20000` }],
]);

/** What a key does, and what it did, in words; null: it is none. */
export function createFaults(
  served: Pick<Served, "perform" | "busyHosts">,
  seed: number,
): (key: string) => string | null {
  const random = createRandom(seed).fork("faults by key");
  return (key) => {
    const fault = faultKeys.get(key);
    const hosts = served.busyHosts();
    if (fault === undefined || hosts.length === 0) return null;
    const step = fault.step(random.pick(hosts));
    served.perform(step);
    return step;
  };
}
