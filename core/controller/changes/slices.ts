import type { Cell } from "../../../model/cell/cell.ts";
import type { InSlices } from "../../../model/slices.ts";
import type { Effect, Input, Instant } from "../../env.ts";
import { isObject } from "../../outbox.ts";
import type { ControllerState } from "../state.ts";
import type { Work } from "./work.ts";

/**
 * A step of a controller in slices. After a new model, a start or a word of a service on which all elements rest, a pass looks
 * at everything, and in a large cell that takes a second. So it stops now and then, and a timer of no time lets it go on. In
 * between, whoever wants to read something has an answer; everything else waits, in its order, and finds the state as it would
 * have found it. So the effects are the same, in the same order, as of steps in one go (`agreement.ts`), and there is no moment
 * at which somebody changes what a pass is in the middle of.
 *
 * What a slice did is durable with it. A crash between two slices is one between two steps of a pass: what is desired where
 * follows from the records, and the start looks at everything again.
 *
 * Rejected: a pass over a copy of the state (what it finds was so before, and not now); to hold back all effects until the end
 * (an answer meanwhile would tell what is not durable).
 */
export const sliceTimer = "slice";

export const isWorking = ({ working }: Pick<ControllerState, "working">): boolean =>
  working.current !== null || working.requests.length > 0 || working.news.length > 0;

/** It changes nothing, and is answered also in the middle of a pass. */
const isRead = (input: Input): boolean =>
  input.kind === "request" && isObject(input.request) && reads.has(String(input.request.method));
const reads = new Set(["GET", "ELEMENTS", "CREDENTIALS", "CREDENTIAL-KNOWN"]);

/**
 * What is repeated after a crash, or was never durable, may wait. Everything else is taken in the step that it came with, whose
 * commit says that it was taken.
 */
const mayWait = ({ kind }: Input): boolean =>
  kind === "actual" || kind === "reachable" || kind === "released" || kind === "timer" || kind === "request";

/** What it costs to take an input, in keys of a pass. */
const perInput = 10;

/** Takes an input: now, or after what is being done. */
export function takeInput(
  state: ControllerState,
  input: Input,
  now: Instant,
  taker: { readonly take: (input: Input) => Work; readonly read: (input: Input) => void },
): void {
  const { working, pass, outbox } = state;
  const isSlice = input.kind === "timer" && input.name === sliceTimer;
  if (isRead(input)) {
    taker.read(input);
    return;
  }
  const isBusy = isWorking(state);
  if (!isSlice) (input.kind === "request" ? working.requests : working.news).push({ input, now });
  const isUrgent = !mayWait(input);
  if (isBusy && !isSlice && !isUrgent) return;
  pass.begin();
  for (let isOver = false; isWorking(state); ) {
    if (isOver && !isUrgent) {
      outbox.effects.push({ kind: "timer", name: sliceTimer, afterMs: 0 });
      return;
    }
    if (isOver) pass.begin();
    working.current ??= next(state, taker.take);
    const isDone = working.current.next().done === true;
    if (isDone) working.current = null;
    isOver = !isDone || pass.spend(perInput);
  }
}

function next(state: ControllerState, take: (input: Input) => Work): Work {
  const held = state.working.requests.shift() ?? state.working.news.shift();
  if (held === undefined) throw new Error("nothing waits");
  state.now = held.now;
  return take(held.input);
}

/** A model was looked at as a whole, besides what there is: a slice of a large one ends here. */
export function* lookedAt({ pass, elements }: ControllerState, model: Cell | null): Work {
  if (pass.spend(Math.max(elements.size, model?.elements.size ?? 0))) yield;
}

/** Goes on with what stops now and then, for as long as a slice lasts. */
export function* inSlices<Result>({ pass }: ControllerState, work: InSlices<Result>): Generator<void, Result> {
  for (;;) {
    const next = work.next();
    if (next.done === true) return next.value;
    if (pass.spend(next.value)) yield;
  }
}

/** Goes through some work in slices, all effects of which come with the last one: it is one transaction. */
export function* heldBack({ outbox, pass }: ControllerState, work: InSlices<void>): Work {
  const held: Effect[] = [];
  const goOn = (): boolean => {
    const ofThisStep = outbox.effects;
    outbox.effects = held;
    let next = work.next();
    while (next.done !== true && !pass.spend(next.value)) next = work.next();
    outbox.effects = ofThisStep;
    return next.done !== true;
  };
  while (goOn()) yield;
  for (const effect of held) outbox.effects.push(effect);
}

/** For what may not be interrupted. */
export function finish({ pass }: Pick<ControllerState, "pass">, work: Work): void {
  while (work.next().done !== true) pass.begin();
}
