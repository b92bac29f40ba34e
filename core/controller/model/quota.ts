import type { Cell } from "../../../model/cell/cell.ts";
import type { Uid } from "../../../model/cell/identifiers.ts";
import { readChild } from "../../../model/check/check.ts";
import {
  demandOf,
  initialDemand,
  noUsage,
  shortages,
  sumOf,
  type Usage,
  usageFrom,
} from "../../../model/check/check-limits.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan, PlanStep } from "../../../model/plan/plan-types.ts";
import type { QuotaAsked, QuotaGrant } from "../../documents/cells.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { isObject, log, sameJson, toJson, write } from "../../outbox.ts";
import { readUsage, saveGrant } from "../histories/kept-grants.ts";
import { hasNext } from "../histories/kept-numbers.ts";
import {
  actualOf,
  type ControllerState,
  cellManager,
  elementOf,
  isChild,
  keptMiBOf,
  type RoomRecord,
} from "../state.ts";
import { beyondModel } from "../volumes/promised.ts";
import { accountLimitFaults, type ChildAfter, whyBeyondAccount } from "./account-limits.ts";

/**
 * Quotas of cells within cells (decisions/0030): the escrow of O'Neil ("The Escrow Transactional Method", 1986), down a
 * tree. A child may have what it *holds*; its parent counts what it has *granted*, which is never less. The parent alone
 * raises a grant, each time under a new serial, and the child alone binds itself to less, durably, under the serial that it
 * has seen; the parent takes that back only under that same serial. So at every moment, whatever is lost, late or crashed,
 * what the cells below have is within what is granted, and that within the limits of every ancestor.
 *
 * A change that needs more than the cell holds waits while its parent is asked, which may have to ask its own. A change that
 * needs less gives the rest back at once. Whatever a cell limits itself to (`x.limits`) it holds in full, so that it can give it
 * to its own children without asking anybody.
 *
 * What counts, and how much: `model/check/check-limits.ts`, which also refuses by the cell's own limits; limits of an account:
 * `account-limits.ts`.
 */

/** What the children have been granted, those that are being deleted included: they may still have it. */
const grantedTo = (state: ControllerState, except?: Uid): Usage =>
  sumOf([...state.grants].flatMap(([uid, { amount }]) => (uid === except ? [] : [amount])));

function saveRoom(state: ControllerState, room: RoomRecord): void {
  state.room = room;
  write(state.outbox, "room", room);
}
/**
 * With a model, what it asks for new children is granted to them, and what it says anew to those that have no model of their own
 * yet: they begin with that.
 */
export function createGrants(state: ControllerState, plan: Plan): void {
  const steps = new Map(plan.steps.map((step) => [step.path, step]));
  for (const record of state.elements.values()) {
    const element = elementOf(state, record);
    if (element?.type !== "CellController") continue;
    const grant = state.grants.get(record.uid);
    const amount = initialDemand(element.cell, readChild);
    if (grant === undefined) saveGrant(state, record.uid, { amount, serial: 1, answered: 0, refusal: null });
    else if (isFirstModelAnew(state, record.uid, steps.get(record.path)) && shortages(amount, grant.amount).length > 0)
      change(state, record.uid, { ...grant, amount: mostOf(amount, grant.amount), serial: grant.serial + 1 });
  }
}
/** The first model of a child is another one, and nobody says that the child has taken one. */
function isFirstModelAnew(state: ControllerState, child: Uid, step: PlanStep | undefined): boolean {
  if (step?.action !== "change" || !step.causes.some(({ attribute }) => attribute === "x.cell")) return false;
  return (actualOf(actualCell, state, cellManager, `cell/${child}`)?.version ?? 0) === 0;
}
const mostOf = (one: Usage, other: Usage): Usage => usageFrom((key) => Math.max(one[key], other[key]));

/** What all children have once this plan is executed. */
function childrenAfter(state: ControllerState, cell: Cell | null, plan: Plan): Usage {
  const added = plan.steps.flatMap((step) => {
    const element = cell?.elements.get(step.path);
    if (element?.type !== "CellController") return [];
    const demand = initialDemand(element.cell, readChild);
    if (step.action === "create" || step.action === "replace") return [demand];
    const uid = state.uids.get(step.movedFrom ?? step.path);
    const grant = uid === undefined ? undefined : state.grants.get(uid);
    if (uid === undefined || grant === undefined || !isFirstModelAnew(state, uid, step)) return [];
    return [usageFrom((key) => Math.max(0, demand[key] - grant.amount[key]))];
  });
  return sumOf([grantedTo(state), ...added]);
}

/** What each child has once this plan is executed. */
function childrenIn(state: ControllerState, cell: Cell, plan: Plan): readonly ChildAfter[] {
  const steps = new Map(plan.steps.map((step) => [step.path, step]));
  return [...cell.elements.values()].flatMap((element): readonly ChildAfter[] => {
    if (element.type !== "CellController") return [];
    const step = steps.get(element.path);
    const isNew = step?.action === "create" || step?.action === "replace";
    const uid = isNew ? undefined : state.uids.get(step?.movedFrom ?? element.path);
    const grant = uid === undefined ? undefined : state.grants.get(uid);
    if (uid === undefined || grant === undefined)
      return [{ element, uid: undefined, amount: initialDemand(element.cell, readChild) }];
    const isAnew = isFirstModelAnew(state, uid, step);
    const amount = isAnew ? mostOf(grant.amount, initialDemand(element.cell, readChild)) : grant.amount;
    return [{ element, uid, amount }];
  });
}

/** Why a model is beyond the cell's own limits, with what its children have by now. */
export function limitFaults(state: ControllerState, cell: Cell, plan: Plan): readonly Diagnostic[] {
  const children = childrenAfter(state, cell, plan);
  const { limits = {}, ...unlimited } = cell;
  const over = shortages(demandOf(unlimited, children), limits).map((shortage) => ({
    code: "cell/limits" as const,
    message: `With its child cells, the cell \`${cell.name}\` has ${shortage}`,
    hint: "Ask for less, raise the limit, or let a child cell give something back: what it does not use it does not keep.",
    path: cell.path,
  }));
  const beyond = [...over, ...accountLimitFaults(state, cell, childrenIn(state, cell, plan))];
  return beyond.length > 0 ? beyond : promisedFaults(state, cell, plan, children);
}

/** What volumes were promised beyond their model counts for who asks for more, and keeps nobody from having less. */
function promisedFaults(state: ControllerState, cell: Cell, plan: Plan, children: Usage): readonly Diagnostic[] {
  const limit = cell.limits?.storageMiB;
  const beyond = limit === undefined ? 0 : beyondModel(state, cell, plan);
  if (limit === undefined || beyond === 0) return [];
  const asks = storageOf(cell, children);
  const has = state.cell === null ? 0 : storageOf(state.cell, grantedTo(state)) + beyondModel(state, state.cell, null);
  const keptMiB = keptMiBOf(state) ?? 0;
  if (asks + beyond + keptMiB <= limit || asks + beyond <= has) return [];
  const kept = keptMiB === 0 ? "" : ` ${keptMiB} MiB of deleted volumes stay,`;
  // Nobody is kept from having less than now.
  const most = Math.max(limit - beyond - keptMiB, has - beyond);
  const limits = `\`x.limits.storage ${asks + beyond + keptMiB}\` or more`;
  const way = most > 0 ? `Ask for ${most} MiB or less, or write ${limits}` : `Write ${limits}`;
  return [
    {
      code: "cell/limits",
      message: `The cell \`${cell.name}\` asks for ${asks} MiB of storage, its volumes were given ${beyond} MiB more than it says,${kept} and its limit is ${limit}`,
      hint: `${way}. \`cells get ${state.options.cell} --state\` says which volumes have more than is declared, or are held for a copy: a volume never becomes smaller.`,
      path: cell.path,
    },
  ];
}
const storageOf = ({ limits: _, ...unlimited }: Cell, children: Usage): number =>
  demandOf(unlimited, children).storageMiB;

/** What a cell counts for at its parent. A limit of its own it holds in full, whatever it has. */
function demandAtParent(state: ControllerState, cell: Cell | null, plan: Plan | null, children: Usage): Usage {
  const demand = demandOf(cell, children);
  if (cell?.limits?.storageMiB !== undefined) return demand;
  return { ...demand, storageMiB: demand.storageMiB + beyondModel(state, cell, plan) };
}

/** What a model counts for at the parent, where that is more than the cell holds; null: it may be had. */
export function roomNeeded(state: ControllerState, cell: Cell | null, plan: Plan): Usage | null {
  if (!isChild(state)) return null;
  const demand = demandAtParent(state, cell, plan, childrenAfter(state, cell, plan));
  return shortages(demand, state.room.holds).length === 0 ? null : demand;
}

/** Asks the parent for so much in all. False: another question is under way. */
export function askForRoom(state: ControllerState, amount: Usage, by: Uid | "change"): boolean {
  if (state.ask !== null) return false;
  // A store that was lost knows of no question that was answered already.
  const number = Math.max(state.room.asked, state.life?.grant.answered ?? 0) + 1;
  saveRoom(state, { ...state.room, asked: number });
  state.ask = { number, amount, by };
  return true;
}

/** The parent's newest word. Answers whether a question of this cell was answered. */
export function takeGrant(
  state: ControllerState,
  { amount, serial, answered, refusal }: QuotaGrant,
): Uid | "change" | null {
  if (serial > state.room.serial) saveRoom(state, { ...state.room, serial, holds: readUsage(amount) });
  if (state.ask === null || answered < state.ask.number) return null;
  const { by } = state.ask;
  state.ask = null;
  state.upRefusal = refusal === null ? null : { by, reason: refusal };
  return by;
}

/** Gives back what the cell does not need. A cell that has no model yet may need all of it. */
export function giveBack(state: ControllerState): void {
  if (!isChild(state) || state.ask !== null || state.roomWaiting.length > 0) return;
  if (state.model.version === 0 && state.life?.ending !== true) return;
  const demand = demandAtParent(state, state.cell, null, grantedTo(state));
  const had: Partial<Usage> = state.room.holds;
  // Of what the version before did not count it has what its model says.
  const holds = usageFrom((key) => Math.min(had[key] ?? demand[key], demand[key]));
  saveRoom(state, { ...state.room, holds });
}

export const quotaOf = ({ room, ask }: ControllerState): QuotaAsked => ({
  serial: room.serial,
  holds: room.holds,
  asks: ask === null ? null : { number: ask.number, amount: ask.amount },
});

/** Answers children that ask for more, and takes back what others do not hold any more. */
export function advanceGrants(state: ControllerState): void {
  for (const [uid, grant] of [...state.grants]) {
    const quota = actualOf(actualCell, state, cellManager, `cell/${uid}`)?.quota ?? null;
    if (quota !== null && quota.serial > grant.serial) {
      takeLaterGrant(state, uid, grant, quota);
      continue;
    }
    // A child that has not seen the newest grant speaks of an older one.
    if (quota === null || quota.serial !== grant.serial || !isObject(toJson(quota.holds))) continue;
    const held = readUsage(quota.holds);
    if (quota.asks !== null && quota.asks.number > grant.answered) {
      answerChild(state, uid, grant, held, quota.asks);
      continue;
    }
    // Of what this store did not count before, or the child did not, it is granted what it has.
    const amount = usageFrom((key) => (isLater(key) ? held[key] : Math.min(grant.amount[key], held[key])));
    if (!sameJson(grant.amount, amount)) change(state, uid, { ...grant, amount, serial: grant.serial + 1 });
  }
  // A child that does not ask any more does not hear it either.
  if (state.upRefusal !== null && state.upRefusal.by !== "change") state.upRefusal = null;
}

/**
 * The child has seen a later grant than this store knows, which was lost or is older: neither would ever hear the other again. What it
 * says that it holds is granted anew, under a serial above, as far as this cell lets it have so much.
 */
function takeLaterGrant(
  state: ControllerState,
  uid: Uid,
  grant: QuotaGrant,
  { serial, holds, asks }: QuotaAsked,
): void {
  if (!hasNext("grant", serial)) return;
  const [held, number] = [readUsage(holds), asks?.number ?? grant.answered];
  answerChild(state, uid, { ...grant, serial }, held, { number, amount: asks?.amount ?? grant.amount });
}

/** No version before this one counted it. */
const isLater = (key: keyof Usage): boolean => key === "publicAddresses";

function change(state: ControllerState, uid: Uid, grant: QuotaGrant): void {
  saveGrant(state, uid, grant);
  const { serial, refusal, amount } = grant;
  log(state.outbox, "quota/granted", { uid, path: state.elements.get(uid)?.path ?? null, serial, refusal, ...amount });
}

function answerChild(
  state: ControllerState,
  uid: Uid,
  grant: QuotaGrant,
  held: Usage,
  asks: NonNullable<QuotaAsked["asks"]>,
): void {
  // What it holds already it goes on holding. It may hold more than it asks for: it crashed with a question under way, asked
  // for less, and had the answer to the first question after that. Under one serial what is held only falls.
  const asked = readUsage(asks.amount);
  const amount = mostOf(asked, held);
  const answer = (given: Usage, refusal: string | null): void =>
    change(state, uid, { amount: given, serial: grant.serial + 1, answered: asks.number, refusal });
  const had = mostOf(grant.amount, held);
  const why = whyNot(state, uid, amount) ?? whyBeyondAccount(state, state.elements.get(uid), amount, had);
  if (why !== null) {
    answer(had, why);
    return;
  }
  const demand = demandAtParent(state, state.cell, null, sumOf([grantedTo(state, uid), amount]));
  if (!isChild(state) || shortages(demand, state.room.holds).length === 0) {
    answer(amount, null);
    return;
  }
  if (state.upRefusal?.by === uid) {
    const { reason } = state.upRefusal;
    state.upRefusal = null;
    answer(grant.amount, reason);
  } else askForRoom(state, demand, uid);
}

/** Why this cell itself cannot give a child so much; null: it can, as far as it goes by its own limits. */
function whyNot(state: ControllerState, uid: Uid, amount: Usage): string | null {
  const record = state.elements.get(uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  const own = state.options.cell;
  if (element?.type !== "CellController" || state.cell === null) return `its parent ${own} is deleting it`;
  const [beyondCap] = shortages(amount, readChild(element.cell)?.limits ?? {});
  if (beyondCap !== undefined) return `its parent ${own} lets it have no more: it would have ${beyondCap}`;
  const { limits = {}, ...unlimited } = state.cell;
  const [beyond] = shortages(demandOf(unlimited, sumOf([grantedTo(state, uid), amount])), limits);
  return beyond === undefined ? null : `its parent ${own} has no room for it: with it ${own} would have ${beyond}`;
}

export const noRoom: RoomRecord = { serial: 0, holds: noUsage, asked: 0 };
