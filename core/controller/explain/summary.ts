import type { CellSummary, NotReady } from "../../../model/api.ts";
import { awaitedElement } from "../../../model/cause/cause.ts";
import { remedy } from "../../../model/cause/remedy.ts";
import { sentence } from "../../../model/cause/sentence.ts";
import { serviceNumber } from "../../documents/service-roles.ts";
import { isReleasing } from "../../outbox.ts";
import { told } from "../changes/standing.ts";
import { forkNote } from "../histories/fork.ts";
import type { ElementRecord } from "../records.ts";
import { whyUnguarded } from "../services/guard.ts";
import { type ControllerState, haManager, haManagerOf, placerOf, recordAt, storageManagerOf } from "../state.ts";

/** Answer to SUMMARY. `empty`: the cell was deleted and nothing of it is left, so that its controller may end. */
export interface ControllerSummary extends CellSummary {
  readonly empty: boolean;
}

const mostWaiting = 5;
/** What stands in the way tells more than what waits for it. */
const urgency: readonly string[] = ["failed", "waiting", "working", "deleting"];

/** A few of the elements that are not ready, with why: failed ones first, and causes before what waits for them. */
function firstWaiting(state: ControllerState): readonly NotReady[] {
  const rankOf = ({ phase, causes }: ElementRecord): number => {
    const awaited = awaitedElement(causes);
    const isEffect = awaited !== null && recordAt(state, awaited) !== undefined;
    return urgency.indexOf(phase ?? "waiting") + (isEffect ? urgency.length : 0);
  };
  return [...state.elements.values()]
    .filter(({ phase }) => phase !== "ready")
    .map((record) => ({ record, rank: rankOf(record) }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, mostWaiting)
    .map(({ record: { path, phase, causes } }) => ({
      path,
      phase: phase ?? "waiting",
      ...told(causes),
    }));
}

export function summary(state: ControllerState): ControllerSummary {
  const phases: Record<string, number> = {};
  for (const { phase } of state.elements.values()) phases[phase ?? "waiting"] = (phases[phase ?? "waiting"] ?? 0) + 1;
  const { version, document } = state.model;
  const elements = state.elements.size;
  const isWhole = !isReleasing(state.outbox) && state.forkedAt.size === 0;
  const empty = document === null && elements === 0 && isWhole;
  const [placer, storageManager] = [serviceNumber(placerOf(state)), serviceNumber(storageManagerOf(state))];
  const guard = haManagerOf(state);
  const unguarded = whyUnguarded(state);
  const services = {
    placer,
    storageManager,
    ...(guard === haManager ? {} : { haManager: serviceNumber(guard) }),
    ...(unguarded === null ? {} : { unguarded: `${sentence(unguarded)}: ${remedy(unguarded) ?? ""}` }),
  };
  return {
    cell: state.options.cell,
    version,
    phases,
    elements,
    services,
    waiting: [...forkNote(state), ...firstWaiting(state)],
    empty,
  };
}
