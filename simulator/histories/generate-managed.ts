import { createRandom, type Random } from "../kernel/random.ts";
import { type History, type HistoryStep, parseHistory } from "../world/history.ts";

/**
 * A history of a cell on MANAGED-NOVLAN: machines of two groups come, go and move between four nodes, hosts lose their power, are known to be off,
 * and are used again, and so do both network hosts. First-free addresses make those of who has gone the next ones that are given out.
 */
export const managedHistory = (seed: number): History => {
  const random = createRandom(seed, "managed");
  const untilMs = 90_000;
  const machines: string[] = [];
  // A subnet that becomes external is another one, whose members come one by one.
  const elastic = random.chance(0.7) ? "elastic:net0 " : "";
  let next = 0;
  const steps: HistoryStep[] = [];
  const say = (atMs: number, words: string): void => void steps.push({ atMs, words: words.split(" ") });
  const change = (atMs: number): void => {
    while (machines.length > 0 && random.chance(0.5)) machines.splice(random.between(0, machines.length - 1), 1);
    for (let more = random.between(1, 3); more > 0 && machines.length < 8; more -= 1) {
      next += 1;
      machines.push(`b${next}`);
    }
    say(
      atMs,
      `apply c1 ${elastic}${machines.map((name) => `vm:${name}:128`).join(" ")}${ruleOf(machines.length, random)}`,
    );
  };
  change(100);
  for (let atMs = random.between(3000, 6000); atMs < untilMs; atMs += random.between(500, 6000)) {
    const what = random.between(0, 9);
    if (what < 3) change(atMs);
    else if (what < 5) say(atMs, `move c1/${random.pick(machines)} h${random.between(1, nodes)}`);
    else if (what < 8) {
      const host = `h${random.between(1, nodes + carriers)}`;
      say(atMs, `power-off ${host} for ${random.between(4000, 30_000)}`);
      if (random.chance(0.7)) say(atMs + random.between(100, 2000), `dead ${host}`);
      // Addresses are asked for while it is away.
      if (random.chance(0.6)) change(atMs + random.between(2500, 5000));
    } else say(atMs, `${random.pick(troubles)} for ${random.between(200, 9000)}`);
  }
  const history = parseHistory(`
    hosts ${nodes + carriers}
    servers 1
    cells 1
    edge 1
    carriers ${carriers}
    seed ${seed}
    until ${untilMs}`);
  return { ...history, steps: steps.sort((one, other) => one.atMs - other.atMs) };
};
const [nodes, carriers] = [4, 2] as const;
/** Machines are in the two subnets in turn. */
const ruleOf = (count: number, random: Random): string =>
  count < 2 || random.chance(0.3) ? "" : ` rule:${random.pick(["net1>net0", "net0>net1"])}:80`;
const manager = "network-view-manager";
const troubles = [
  `crash ${manager}`,
  `crash ${manager} before-commit`,
  `pause ${manager}`,
  `disk ${manager} slow`,
  `cut ${manager} *`,
  ...Array.from({ length: nodes + carriers }, (_, index) => [
    `crash host.h${index + 1}`,
    `cut h${index + 1} *`,
    `driver h${index + 1} network`,
  ]).flat(),
];
