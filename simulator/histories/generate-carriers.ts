import { createRandom } from "../kernel/random.ts";
import { type History, type HistoryStep, parseHistory } from "../world/history.ts";

/**
 * A small history of one cluster with two network hosts, to which all happens that makes a lease worth having: each is killed, loses its power, is cut off,
 * stands still, cannot put anything in place, for less than a lease and for more; and so is whoever gives the leases.
 */
export const carrierHistory = (seed: number): History => {
  const random = createRandom(seed, "network hosts");
  const untilMs = 40_000;
  const steps: HistoryStep[] = [];
  for (let atMs = random.between(4000, 9000); atMs < untilMs; atMs += random.between(500, 9000)) {
    const trouble = random.pick(troubles);
    steps.push({ atMs, words: `${trouble(random.pick(["h2", "h3"]))} for ${random.between(200, 12_000)}`.split(" ") });
  }
  const history = parseHistory(`
    hosts 3
    servers 1
    cells 1
    edge 1
    carriers 2
    seed ${seed}
    at 100 apply c1 elastic:net0 vm:b1:128 vm:b2:128 rule:net1>net0:80
    until ${untilMs}`);
  return { ...history, steps: [...history.steps, ...steps] };
};
const manager = "network-view-manager";
const ofHost: readonly ((host: string) => string)[] = [
  (host) => `crash host.${host}`,
  (host) => `power-off ${host}`,
  (host) => `pause host.${host}`,
  (host) => `cut ${host} *`,
  (host) => `cut ${host} ${manager}`,
  (host) => `driver ${host} network`,
];
const troubles = [
  ...ofHost,
  ...ofHost,
  () => `crash ${manager}`,
  () => `pause ${manager}`,
  () => `disk ${manager} slow`,
];
