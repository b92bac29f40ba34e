import type { Service } from "../../core/env.ts";
import { parseHistory } from "../../simulator/world/history.ts";
import { Installation } from "../../simulator/world/installation.ts";
import { unsettled } from "../../simulator/world/settled.ts";
import { Steps } from "../../simulator/world/steps.ts";

/*
 * One simulated installation of this size, of `sizing.ts`. Arguments: hosts, cells.
 */
export interface Size {
  readonly hosts: number;
  readonly cells: number;
}
/** What one service had to do. */
export interface Load {
  readonly service: string;
  readonly storeKiB: number;
  /** Processor time of its steps until all is ready, and in an idle minute. */
  readonly growingMs: number;
  readonly idleMs: number;
  readonly idleSteps: number;
  readonly idleFrames: number;
}
export interface SizingReport {
  /** Virtual time. */
  readonly readyAfterMs: number;
  readonly loads: readonly Load[];
}

const machinesOfCell = 4;
const limitMs = 1_800_000;
const idleMs = 60_000;
/** After the last element is ready there is still something on its way. */
const restMs = 30_000;

/** Of this thread alone: what collects garbage beside it is nobody's step. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

class Account {
  ms = 0;
  steps = 0;
  frames = 0;
}

/** Steps and frames of each service, from when the installation is made. */
class Accounts {
  readonly #all = new Map<string, Account>();

  constructor({ kernel }: Installation) {
    const watched = kernel.watched.bind(kernel);
    // Each process asks for it at its start.
    kernel.watched = <State>(who: string, service: Service<State>): Service<State> =>
      watched(who, {
        ...service,
        step: (state, input, now) => {
          const begin = cpuMs();
          const step = service.step(state, input, now);
          const account = this.of(who);
          account.ms += cpuMs() - begin;
          account.steps += 1;
          return step;
        },
      });
    kernel.watchers.push({
      frame: (_from, to) => {
        this.of(to).frames += 1;
      },
    });
  }
  of(who: string): Account {
    const found = this.#all.get(who) ?? new Account();
    this.#all.set(who, found);
    return found;
  }
  /** What was counted, by service; from now on anew. */
  taken(): ReadonlyMap<string, Account> {
    const all = new Map(this.#all);
    this.#all.clear();
    return all;
  }
}

export async function measure({ hosts, cells }: Size): Promise<SizingReport> {
  const machines = Array.from({ length: machinesOfCell }, (_, at) => `vm:m${at + 1}:256`).join(" ");
  const wishes = Array.from({ length: cells }, (_, at) => `at ${100 + at} apply c${at + 1} ${machines}`);
  const sizes = `hosts ${hosts}\nservers ${Math.max(2, Math.ceil(hosts / 10))}\ncells ${cells}\nseed 1\nmemory 65536\nha 1`;
  const history = parseHistory(`${sizes}\n${wishes.join("\n")}`);
  const installation = new Installation(history, false);
  const accounts = new Accounts(installation);
  const { kernel } = installation;
  const steps = new Steps(installation);
  installation.start();
  for (const { atMs, words } of history.steps) kernel.clock.after(atMs, () => steps.perform(words));
  let readyAfterMs = 0;
  do {
    readyAfterMs += 1000;
    await kernel.runUntil(readyAfterMs);
    if (readyAfterMs > limitMs)
      throw new Error(
        `not ready after ${limitMs / 1000} s: ${unsettled(installation, steps.wishes.users).slice(0, 3).join("; ")}`,
      );
  } while (unsettled(installation, steps.wishes.users).length > 0);
  await kernel.runUntil(readyAfterMs + restMs);
  const growing = accounts.taken();
  await kernel.runUntil(readyAfterMs + restMs + idleMs);
  const idle = accounts.taken();
  const loads = [...installation.processes.values()].map(({ name, disk }): Load => {
    const bytes = [...disk.load()].reduce((sum, [key, value]) => sum + key.length + JSON.stringify(value).length, 0);
    const own = idle.get(name);
    return {
      service: name,
      storeKiB: Math.ceil(bytes / 1024),
      growingMs: growing.get(name)?.ms ?? 0,
      idleMs: own?.ms ?? 0,
      idleSteps: own?.steps ?? 0,
      idleFrames: own?.frames ?? 0,
    };
  });
  return { readyAfterMs, loads };
}

if (import.meta.main) {
  const [hosts = "3", cells = "2"] = process.argv.slice(2);
  process.stdout.write(`${JSON.stringify(await measure({ hosts: Number(hosts), cells: Number(cells) }))}\n`);
}
