import { log } from "../../outbox.ts";
import { reconcile } from "../reconcile.ts";
import type { ControllerState } from "../state.ts";
import { finish } from "./slices.ts";

/**
 * A look at everything, in slices. A step of a pass runs again when something that it has read is another (`tracked.ts`); what
 * rests on something that nobody tracks would be overlooked, and stay so until the next start. So every ten seconds some steps
 * run though nothing that they have read is another, all of them within an hour. Nothing must come of that. If something does,
 * it is mended by this, and the log says so: it is a mistake of this program.
 *
 * Rejected: everything at once, seldom (in a large cell nobody would get an answer meanwhile).
 */
export const checkTimer = "check";
const everyMs = 10_000;
const slices = 360;
const fewest = 50;

export function setCheck({ outbox }: ControllerState): void {
  outbox.effects.push({ kind: "timer", name: checkTimer, afterMs: everyMs });
}

/** The next slice. */
export function checkDue(state: ControllerState): void {
  const { outbox, pass } = state;
  setCheck(state);
  // What is on its way within the controller comes first.
  for (let before = -1; before < outbox.effects.length; ) {
    before = outbox.effects.length;
    finish(state, reconcile(state));
  }
  const before = outbox.effects.length;
  const steps = pass.look(slices, fewest);
  finish(state, reconcile(state));
  const count = outbox.effects.length - before;
  if (count > 0) log(outbox, "controller/overlooked", { effects: count, steps: [...steps] });
}
