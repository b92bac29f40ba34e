import { setTimeout as sleep } from "node:timers/promises";
import { componentOf, controllerElements, controllersIn } from "../../core/cells/controller-vm.ts";
import type { CellReport, CellWorkAnswer, WantedController } from "../../core/cells/work.ts";
import { sameJson } from "../../core/outbox.ts";
import { type Ipv4, ipv4, type Uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { network } from "../installation.ts";
import type { ControllerComponents } from "./root-model.ts";

/**
 * Carries out what the Cell Manager wants: one task per cell at a time, always by the newest work known. Work and the end of
 * elements are held back until there is news, so nothing is asked twice without a failure in between.
 */
export interface Maker {
  /** Of the Cell Manager's service. Rejects when it stops. */
  readonly report: (report: CellReport) => Promise<Json>;
  readonly components: ControllerComponents;
  readonly signal: AbortSignal;
  /** Of the first pause after a failure, and of the longest. Default 0.5 s and 15 s. */
  readonly retryMs?: { readonly first: number; readonly last: number };
}

const retries = { first: 500, last: 15_000 } as const;
/** Requests to the root controller at a time; after a start there is one for every cell. */
const mostAtOnce = 8;

/** Runs until the signal. */
export const makeControllers = async (maker: Maker): Promise<void> => {
  const { report, signal } = maker;
  const wanted = new Map<Uid, WantedController>();
  const tasks = new Map<Uid, Task>();
  const inTurn = createTurns(mostAtOnce);
  await find(maker);
  for (let known = 0; !signal.aborted; ) {
    const answer = await report({ kind: "work", known }).catch(() => null);
    if (answer === null || signal.aborted) return;
    const { version, controllers } = answer as unknown as CellWorkAnswer;
    known = version;
    wanted.clear();
    for (const each of controllers) wanted.set(each.uid, each);
    for (const uid of [...tasks.keys()]) if (!wanted.has(uid)) tasks.delete(uid);
    for (const { uid } of controllers) {
      const task = tasks.get(uid) ?? { busy: false, there: false, made: false, ended: false };
      tasks.set(uid, task);
      if (!task.busy) void pursue(maker, inTurn, task, () => wanted.get(uid));
    }
  }
};

/** Says which controllers there are, as soon as the root controller can be heard. */
const find = async ({ report, components, signal, retryMs = retries }: Maker): Promise<void> => {
  for (let pauseMs = retryMs.first; !signal.aborted; pauseMs = Math.min(pauseMs * 2, retryMs.last)) {
    try {
      await report({ kind: "found", controllers: controllersIn(await components.all()) });
      return;
    } catch {
      // The root controller cannot be heard, or the service has not started.
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => null);
  }
};

interface Task {
  busy: boolean;
  /** Its elements are in the model, as they should be. */
  there: boolean;
  made: boolean;
  ended: boolean;
}

/** Goes on with one cell until there is nothing to do with what is known of it. */
const pursue = async (
  maker: Maker,
  inTurn: InTurn,
  task: Task,
  now: () => WantedController | undefined,
): Promise<void> => {
  const { signal, report, retryMs = retries } = maker;
  task.busy = true;
  let pauseMs = retryMs.first;
  for (let wanted = now(); wanted !== undefined && !signal.aborted && !isDone(task, wanted); wanted = now()) {
    try {
      await advance(maker, inTurn, task, wanted);
      pauseMs = retryMs.first;
    } catch (error) {
      if (signal.aborted) break;
      await report({ kind: "failed", uid: wanted.uid, reason: (error as Error).message }).catch(() => null);
      await sleep(pauseMs, undefined, { signal }).catch(() => null);
      pauseMs = Math.min(pauseMs * 2, retryMs.last);
    }
  }
  task.busy = false;
};

const isDone = (task: Task, { state, answers }: WantedController): boolean =>
  state === "end" ? task.ended : task.made || (task.there && !answers);

/** One step. Rejects with a sentence when it cannot be done now. */
const advance = async (
  { report, components }: Maker,
  inTurn: InTurn,
  task: Task,
  wanted: WantedController,
): Promise<void> => {
  const { uid, cell, cellNumber, state } = wanted;
  const component = componentOf(cell);
  if (component === null)
    throw new Error(`the name ${cell} is too long: name it, or a cell around it, in fewer letters`);
  if (state === "end") {
    await inTurn(() => components.remove(component));
    while (!(await components.gone(component)));
    await report({ kind: "ended", uid });
    task.ended = true;
    return;
  }
  const address = addressOf(cellNumber);
  if (!task.there) {
    const elements = controllerElements(wanted, component, address);
    await inTurn(async () => {
      if (!sameJson(await components.read(component), elements)) await components.put(component, elements);
    });
    await report({ kind: "making", uid });
    task.there = true;
  } else {
    await report({ kind: "made", uid, address });
    task.made = true;
  }
};

const addressOf = (cellNumber: number): Ipv4 => {
  if (cellNumber <= network.lastController) return ipv4(network.controller(cellNumber));
  throw new Error(`the management network has no address left for a controller: this is cell number ${cellNumber}`);
};

type InTurn = (work: () => Promise<void>) => Promise<void>;

const createTurns = (most: number): InTurn => {
  let running = 0;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => queue.push(resolve));
    running += 1;
    try {
      await work();
    } finally {
      running -= 1;
      queue.shift()?.();
    }
  };
};
