import type { Json } from "../../../model/json/json.ts";
import { isObject } from "../../outbox.ts";
import type { PlacerState } from "../state.ts";
import { whatIf } from "./answers.ts";
import type { Questions } from "./question.ts";

/*
 * What the operator asks and nothing follows from takes seconds at a large cloud, and VMs are placed meanwhile: an answer is worked out in slices, one question
 * after the other, and between two slices everything else that is due has its turn. So few questions wait that what they cost is bounded, and
 * whoever does not wait for an answer any more says so. Rejected: a thread of its own with a copy of all. Handing over the copy would hold up the
 * Placer for longer than many slices.
 */
export const createQuestions = (): Questions => ({ waiting: [], current: null });

export const sliceTimer = "what-if";
/** The one that is worked on, too. */
export const mostQuestions = 4;
/** As many hosts are looked at in about a millisecond. */
export const unitsOfSlice = 100;

/** @returns whether it is one; it is answered now or later */
export function takeQuestion(state: PlacerState, id: number, request: Json): boolean {
  const { questions, outbox } = state;
  const answer = (to: number, response: Json): void => void outbox.effects.push({ kind: "reply", id: to, response });
  if (isObject(request) && request.kind === "withdrawn") {
    for (const gone of takeBack(questions, request.asked)) answer(gone, { withdrawn: true });
    answer(id, {});
    return true;
  }
  const asks = whatIf(state, request);
  if (asks === null) return false;
  if (typeof asks !== "function") {
    answer(id, asks);
    return true;
  }
  if (questions.waiting.length + (questions.current === null ? 0 : 1) >= mostQuestions) {
    answer(id, { busy: `${mostQuestions} such questions are asked already` });
    return true;
  }
  const asked = isObject(request) && typeof request.asked === "number" ? request.asked : null;
  questions.waiting.push({ id, asked, asks });
  workOn(state);
  return true;
}

/** @returns which requests are over */
function takeBack(questions: Questions, asked: Json | undefined): readonly number[] {
  if (typeof asked !== "number") return [];
  const over = questions.waiting.filter((each) => each.asked === asked).map(({ id }) => id);
  for (const id of over)
    questions.waiting.splice(
      questions.waiting.findIndex((each) => each.id === id),
      1,
    );
  const { current } = questions;
  if (current?.asked !== asked) return over;
  // What it was in the midst of is put away.
  current.work.return({});
  questions.current = null;
  return [...over, current.id];
}

/** A slice; the next one is due when everything else has been. */
export function workOn(state: PlacerState): void {
  const { questions, outbox } = state;
  for (let units = 0; units < unitsOfSlice; ) {
    questions.current ??= begun(questions);
    if (questions.current === null) return;
    const { id, work } = questions.current;
    const step = work.next();
    if (step.done === true) {
      outbox.effects.push({ kind: "reply", id, response: step.value });
      questions.current = null;
    } else units += step.value;
  }
  if (questions.current !== null || questions.waiting.length > 0)
    outbox.effects.push({ kind: "timer", name: sliceTimer, afterMs: 0 });
}
function begun({ waiting }: Questions): Questions["current"] {
  const next = waiting.shift();
  return next === undefined ? null : { ...next, work: next.asks() };
}
