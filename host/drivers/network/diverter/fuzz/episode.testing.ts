import { FrameDrawer } from "./draw/frames.testing.ts";
import { drawAllRules, drawRules, drawView } from "./draw/rules.testing.ts";
import { drawPlace, drawWorld } from "./draw/worlds.testing.ts";
import { Random } from "./random.testing.ts";
import type { HostUnderTest } from "./subject/host.testing.ts";
import { type Difference, newTally, type Tally, Trial } from "./trial.testing.ts";
import {
  type HostKey,
  hostKeys,
  type Place,
  type RuleSet,
  routerMacs,
  type Step,
  type World,
} from "./world.testing.ts";

/** One world of a seed, with all that happens in it. */
export interface Failure extends Difference {
  readonly seed: number;
  readonly world: World;
  readonly steps: readonly Step[];
}
type Subjects = Readonly<Record<HostKey, HostUnderTest>>;
export const framesAnEpisode = 2000;
/** Multiples of seven come near none of the limits after which a flow is no more. */
const waits = [7, 14, 35, 182, 3605];

/** What changes between frames. */
class Course {
  readonly #random: Random;
  readonly #world: World;
  readonly #places: Place[];
  readonly #rules: Map<number, RuleSet>;

  constructor(random: Random, world: World) {
    this.#random = random;
    this.#world = world;
    this.#places = world.interfaces.map(() => drawPlace(random));
    this.#rules = drawAllRules(random, world);
  }
  begin(): readonly Step[] {
    return hostKeys.flatMap((host) => [this.#tell(host), this.#routers(host)]);
  }
  #tell(host: HostKey): Step {
    return { kind: "tell", host, view: drawView(this.#random, this.#world, host, this.#places, new Map(this.#rules)) };
  }
  #routers(host: HostKey): Step {
    const macs = routerMacs.map((mac) => (this.#random.percent(85) ? mac : 0));
    const known = macs.filter((mac) => mac !== 0);
    return { kind: "routers", host, macs, used: known.length === 0 ? 0 : this.#random.pick(known) };
  }
  /** Hosts hear of a change one after the other, and not always soon. */
  change(): readonly Step[] {
    const random = this.#random;
    const chance = random.below(100);
    if (chance < 12) return [{ kind: "time", seconds: random.pick(waits) }];
    if (chance < 17) return [{ kind: "restart", host: random.pick(hostKeys) }];
    if (chance < 28) return [this.#routers(random.pick(hostKeys))];
    if (chance < 60) {
      const cell = random.pick(this.#world.cells);
      this.#rules.set(cell.number, drawRules(random, this.#world, cell, this.#rules.get(cell.number) ?? null));
    } else if (chance < 88) this.#places[random.below(this.#places.length)] = drawPlace(random);
    const hosts = hostKeys.filter(() => random.percent(70));
    return (random.percent(50) ? hosts : hosts.toReversed()).map((host) => this.#tell(host));
  }
}

/** @param changes between frames, in a thousand of these */
export function runEpisode(
  seed: number,
  subjects: Subjects,
  tally: Tally,
  frames = framesAnEpisode,
  changes = 8,
): Failure | null {
  const random = new Random(seed);
  const world = drawWorld(random);
  const trial = new Trial(world, subjects, tally);
  const course = new Course(random, world);
  const drawer = new FrameDrawer(random, world, { a: () => trial.view("a"), b: () => trial.view("b") });
  const steps: Step[] = [];
  const take = (step: Step): Failure | null => {
    steps.push(step);
    const wrong = trial.do(step);
    return wrong === null ? null : { ...wrong, seed, world, steps };
  };
  for (const step of course.begin()) take(step);
  for (let frame = 0; frame < frames; frame += 1) {
    if (random.below(1000) < changes)
      for (const step of course.change()) {
        const failed = take(step);
        if (failed !== null) return failed;
        if (step.kind === "time") drawer.waited();
      }
    const { delivered, outside } = tally;
    const failed = take(drawer.next());
    if (failed !== null) return failed;
    drawer.heard(tally.delivered + tally.outside > delivered + outside);
  }
  const wrong = trial.finish();
  return wrong === null ? null : { ...wrong, seed, world, steps };
}

/** Does it all again; the difference that comes up, and after how many steps. */
export function replay(world: World, steps: readonly Step[], subjects: Subjects): Difference | null {
  const trial = new Trial(world, subjects, newTally());
  for (const step of steps) {
    const wrong = trial.do(step);
    if (wrong !== null) return wrong;
  }
  return trial.finish();
}

/** The fewest steps that still differ: larger parts are left out first, then smaller ones, then one after the other. */
export function shortest(failure: Failure, subjects: Subjects, mostReplays = 400): Failure {
  let { steps } = failure;
  let found: Difference = failure;
  let replays = 0;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    let isShorter = true;
    while (isShorter && replays < mostReplays) {
      isShorter = false;
      for (let at = steps.length - size; at > -size && replays < mostReplays; at -= size) {
        const less = [...steps.slice(0, Math.max(0, at)), ...steps.slice(at + size)];
        if (less.length === steps.length) continue;
        replays += 1;
        const wrong = replay(failure.world, less, subjects);
        if (wrong === null) continue;
        [steps, found, isShorter] = [less, wrong, true];
      }
      if (size > 1) break;
    }
  }
  return { ...failure, ...found, steps };
}

const describeStep = (step: Step): string => {
  const text = (value: unknown): string =>
    JSON.stringify(value, (_key, each: unknown) => (each instanceof Map ? Object.fromEntries(each) : each));
  if (step.kind === "frame")
    return `frame ${text(step.port)} ${step.frame.toString("hex")}${step.pieces ? ` pieces ${step.pieces}` : ""}`;
  return text(step);
};
/** For whoever has to find out why. */
export const describe = ({ seed, world, steps, what }: Failure): string =>
  [
    `seed ${seed}: ${what}`,
    `way out: ${world.wayOut}`,
    ...world.interfaces.map(
      ({ at, name, cell, subnet, vm, address, mac }) =>
        `interface ${at}: ${name} of ${vm} in ${subnet.name} (cell ${cell}) ${[24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join(".")} ${mac.toString(16)}`,
    ),
    ...steps.map((step, at) => `${at}. ${describeStep(step)}`),
  ].join("\n");
