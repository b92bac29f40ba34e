import type { Json } from "../../../model/json/json.ts";
import { inOneGo } from "../../../model/slices.ts";
import { type ActualLife, lifeKey } from "../../documents/cells.ts";
import { desiredLife } from "../../documents/readers/cells.ts";
import { tenancy } from "../../documents/tenancy.ts";
import { actualKey, type Progress } from "../../documents/vocabulary.ts";

import { isReleasing, log, progress, publish, sameJson, write } from "../../outbox.ts";
import { forgottenReason } from "../histories/forgotten.ts";
import { forkReason } from "../histories/fork.ts";

import { acceptModel, planFor } from "../model/model-change.ts";
import { quotaOf, takeGrant } from "../model/quota.ts";
import { guardSaid } from "../services/guard.ts";
import { poolsAsked } from "../services/pools/asked.ts";
import { type ControllerState, cellManager, isChild, saveElement } from "../state.ts";
import { inUse } from "./in-use.ts";

/**
 * The life of a cell that is another's child: it gets its first model from its parent, once; it may have what its parent
 * granted (quota.ts); and it ends when its parent says so. Whoever ends it, a cell with children ends from below: first its child
 * cells, and once nothing of them is left, what it has itself.
 */

/** What changed with the parent's document. */
export interface LifeNews {
  /** A question for room was answered. */
  readonly answered: boolean;
  /** The first model that is to be submitted now. */
  readonly initial: Json | null;
}

export function takeLife(state: ControllerState, value: Json): LifeNews {
  const nothing: LifeNews = { answered: false, initial: null };
  if (!isChild(state)) return nothing;
  const life = desiredLife.of(value);
  // Taken back: the cell has ended, and this controller is about to. Or it was stored by another version and cannot be read.
  if (life === null) return nothing;
  state.life = life;
  const answered = takeGrant(state, life.grant) === "change";
  if (life.ending) {
    state.initial = null;
    beginEnding(state);
    return { answered, initial: null };
  }
  const isNew = state.model.version === 0 && !sameJson(state.initial?.model, life.model);
  if (isNew) state.initial = { model: life.model, refusal: null };
  return { answered, initial: isNew ? life.model : null };
}

/** The first model was not accepted. The cell stays without one until it is given another, by its parent or by its users. */
export function refuseInitial(state: ControllerState, why: string): void {
  if (state.initial === null) return;
  state.initial = { ...state.initial, refusal: why, held: forkReason(state) !== null };
  log(state.outbox, "children/refused", { cell: state.options.cell, reason: why });
}

/** The first model that was refused only since the store was thought to be older, as soon as this one counts; null: there is none. */
export function heldInitial(state: ControllerState): Json | null {
  const { initial, life, model } = state;
  if (initial?.held !== true || model.version > 0 || life?.ending !== false || forkReason(state) !== null) return null;
  state.initial = { model: initial.model, refusal: null };
  return initial.model;
}

const isChildRecord = ({ type }: { readonly type: string }): boolean => type === "CellController";
export const hasChildren = (state: ControllerState): boolean => state.indexes.children.size > 0;

/** From now on the cell takes no changes, until nothing of it is left. */
export function beginEnding(state: ControllerState): void {
  if (state.ending || state.cell === null) return;
  state.ending = true;
  write(state.outbox, "ending", { ending: true });
  log(state.outbox, "children/end-first", { path: state.cell.path, type: "Cell" });
  for (const record of [...state.elements.values()]) {
    if (!isChildRecord(record) || record.deleting) continue;
    state.uids.delete(record.path);
    saveElement(state, { ...record, deleting: true });
  }
}

/** Once no child is left, the rest goes. */
export function advanceEnding(state: ControllerState): void {
  if (!state.ending || hasChildren(state)) return;
  const faults = state.cell === null ? [] : acceptModel(state, null, inOneGo(planFor(state, null)));
  // A plan that is not right is a mistake of ours: nothing is lost by waiting for somebody to look at it.
  if (faults.length > 0) return;
  state.ending = false;
  write(state.outbox, "ending", null);
}

/** Why the cell takes no changes now; null: it does. */
export function whyClosed(state: ControllerState): string | null {
  const forked = forkReason(state);
  if (forked !== null) return forked;
  if (state.life?.ending === true) return "the cell is being deleted by its parent";
  return state.ending ? "the cell is being deleted, its child cells first: submit it again when it is gone" : null;
}

/** The cell ends, and has nothing any more: whoever asks for it is let in no more (`requests/tickets.ts`). */
export const nothingLeft = ({ life, model, elements, grants }: ControllerState): boolean =>
  life?.ending === true && model.document === null && elements.size + grants.size === 0;
/** And what its controller asked about its users is forgotten. */
const isShut = ({ tickets }: ControllerState): boolean => tickets.isClosed && tickets.releasing.size === 0;

/** Says how it is, to the parent. */
export function publishLife(state: ControllerState): void {
  if (state.life === null) return;
  const { version } = state.model;
  const left = state.elements.size + state.grants.size;
  // Only what is to end is ever empty for good; and nobody is left who has not heard the last word.
  const isWhole = !isReleasing(state.outbox) && state.forkedAt.size === 0 && forgottenReason(state) === null;
  const empty = nothingLeft(state) && isWhole && isShut(state);
  const pools = poolsAsked(state);
  const life: ActualLife = {
    ...lifeState(state, left),
    ...guardSaid(state),
    version,
    empty,
    quota: { ...quotaOf(state), uses: inUse(state) },
    ...(pools === undefined ? {} : { pools }),
  };
  publish(state.outbox, actualKey(cellManager, lifeKey), life);
}

function lifeState(state: ControllerState, left: number): Progress {
  const forked = forkReason(state);
  if (forked !== null) return progress("failed", forked);
  if (state.life?.ending === true) {
    const children = [...state.elements.values()].filter(isChildRecord).map(({ path }) => path);
    const reason = children.length > 0 ? `waits for its child cells: ${children.slice(0, 3).join(", ")}` : null;
    if (reason !== null || left > 0) return progress("deleting", reason ?? `${left} of its elements are left`);
    return progress(
      "deleting",
      isShut(state) ? forgottenReason(state) : `waits for ${tenancy} to forget its users' tickets`,
    );
  }
  if (state.model.version > 0) return progress("ready");
  const refusal = state.initial?.refusal ?? null;
  return refusal === null
    ? progress("working", "its first model is being submitted")
    : progress("failed", `its first model is refused: ${refusal}`);
}
