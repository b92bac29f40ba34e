import type { ElementAnswer } from "../../../model/api.ts";
import { fail, ok } from "../../../model/result.ts";
import type { ElementRecord } from "../records.ts";
import type { ControllerState } from "../state.ts";
import { whyElement } from "./why-element.ts";

/** The order in which what is not ready is looked at: what stands in the way tells more than what waits for it. */
const urgency: readonly string[] = ["failed", "waiting", "working", "deleting"];
const phaseOf = ({ phase }: ElementRecord): string => phase ?? "waiting";

/**
 * Why a group, or the cell, is as it is: what holds up the first of its elements that is not as declared. Null: none of the
 * paths has an element below it, nor is it the cell's.
 */
export function whyPart(state: ControllerState, paths: readonly string[]): ReturnType<typeof whyElement> | null {
  for (const path of paths) {
    const isCell = path === state.cell?.path;
    const below = [...state.elements.values()].filter((record) => record.path.startsWith(`${path}/`));
    if (below.length === 0 && !isCell) continue;
    return answerFor(state, path, isCell ? "Cell" : "group", below);
  }
  return null;
}

function answerFor(
  state: ControllerState,
  path: string,
  type: string,
  below: readonly ElementRecord[],
): ReturnType<typeof whyElement> {
  const open = below
    .filter(({ phase }) => phase !== "ready")
    .sort((a, b) => urgency.indexOf(phaseOf(a)) - urgency.indexOf(phaseOf(b)) || (a.path < b.path ? -1 : 1));
  const whole = { path, type, reason: null, checks: [] };
  const [first] = open;
  const all = below.length === 1 ? "its only element is" : `all ${below.length} elements are`;
  if (first === undefined) {
    const verdict = `${path} is as declared: ${below.length === 0 ? "it has no elements" : all}`;
    return ok({ ...whole, phase: "ready", verdict: below.length === 0 ? verdict : `${verdict} ready` });
  }
  const found = whyElement(state, first);
  if (!found.ok) return fail(found.error);
  const { checks, verdict, reason, causes } = found.value;
  const told: ElementAnswer = {
    ...whole,
    ...(causes === undefined ? {} : { causes }),
    reason,
    checks,
    phase: phaseOf(first),
    verdict,
  };
  return ok({
    ...told,
    verdict: `${open.length} of ${below.length} elements of ${path} are not as declared; first ${verdict}`,
  });
}
