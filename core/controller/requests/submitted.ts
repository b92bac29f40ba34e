import type { Json } from "../../../model/json/json.ts";
import { isObject, toJson } from "../../outbox.ts";
import { publishLife, refuseInitial, takeLife } from "../cells/life.ts";
import type { Work } from "../changes/work.ts";
import { auditRefused } from "../model/audited.ts";
import { askForRoom } from "../model/quota.ts";
import { reconcile } from "../reconcile.ts";
import { type ControllerState, isChild, offerKeys } from "../state.ts";
import { answeredBefore, isSameOnce } from "./once.ts";
import { answerInSlices, askedIn, type ControllerResponse, isChange } from "./requests.ts";

/*
 * Changes of the model, and when each is answered: at once, when it is known what the installation has, when a parent has granted
 * more room, or behind those that wait already.
 */

/** A request, or the first model of a child cell, which nobody waits for. */
export function* submit(state: ControllerState, id: number, request: Json): Work {
  const before = answeredBefore(state, request);
  if (before?.status === 200) answered(state, id, before);
  else if (mustWait(state, request)) {
    if (state.waitingChanges?.length === 0)
      state.outbox.effects.push({ kind: "timer", name: offersTimer, afterMs: offersTimeoutMs });
    state.waitingChanges?.push({ id, request });
  } else if (state.roomWaiting.length > 0 && isMade(request) && state.roomWaiting.length < mostWaiting)
    state.roomWaiting.push({ id, request });
  else yield* reply(state, id, request);
}
export const initialId = -1;
const isMade = (request: Json): boolean => isChange(request) && request.dryRun !== true;

function* reply(state: ControllerState, id: number, request: Json, isLast = false): Work {
  const response = yield* answerInSlices(state, request);
  const { needed } = response;
  if (needed !== undefined && !isLast && state.roomWaiting.length < mostWaiting) {
    state.roomWaiting.unshift({ id, request });
    if (askForRoom(state, needed, "change"))
      state.outbox.effects.push({ kind: "timer", name: roomTimer, afterMs: roomTimeoutMs });
    yield* reconcile(state);
    return;
  }
  if (response.status >= 400) answerTwins(state, request, response);
  if (response.status >= 400 && isMade(request))
    auditRefused(state, askedIn(request as unknown as Parameters<typeof askedIn>[0]), messageOf(response.body));
  // The reply says what was accepted, not what was done; what follows from it is part of the same step.
  yield* reconcile(state);
  if (id !== initialId) answered(state, id, response);
  else if (response.status !== 200) {
    refuseInitial(state, messageOf(response.body));
    publishLife(state);
  }
}
/** Whoever asked for the same meanwhile hears the same. What was done they find by themselves. */
function answerTwins(state: ControllerState, request: Json, response: ControllerResponse): void {
  for (const twin of state.roomWaiting.filter((each) => isSameOnce(each.request, request))) {
    state.roomWaiting.splice(state.roomWaiting.indexOf(twin), 1);
    answered(state, twin.id, response);
  }
}
export function answered(
  { outbox }: ControllerState,
  id: number,
  { needed: _needed, ...response }: ControllerResponse,
): void {
  outbox.effects.push({ kind: "reply", id, response: toJson(response) });
}
const messageOf = (body: Json): string =>
  isObject(body) && isObject(body.error) && typeof body.error.message === "string"
    ? body.error.message
    : "it is refused";

/** How long a change waits for more room. A parent that is away, or has to ask its own, may take a moment. */
const roomTimeoutMs = 10_000;
export const roomTimer = "room";

export function* hearLife(state: ControllerState, value: Json): Work {
  const { answered, initial } = takeLife(state, value);
  if (answered) yield* nextInRoom(state);
  if (initial !== null) yield* submit(state, initialId, { method: "PUT", path: "", json: initial });
}

/** The first of those that wait has its answer: it has its room now, or is refused. */
function* nextInRoom(state: ControllerState): Work {
  const first = state.roomWaiting.shift();
  state.outbox.effects.push({ kind: "timer", name: roomTimer, afterMs: null });
  if (first !== undefined) yield* reply(state, first.id, first.request, true);
  if (state.upRefusal?.by === "change") state.upRefusal = null;
}
export function* givenUp(state: ControllerState): Work {
  if (state.ask?.by === "change") state.ask = null;
  state.upRefusal = { by: "change", reason: `its parent did not answer within ${roomTimeoutMs / 1000} s; try again` };
  yield* nextInRoom(state);
}
/** Those that waited behind another question are asked for in their turn. */
export function* resumeRoom(state: ControllerState): Work {
  for (let most = state.roomWaiting.length; most > 0 && state.ask === null; most -= 1) {
    const first = state.roomWaiting.shift();
    if (first !== undefined) yield* reply(state, first.id, first.request);
  }
}

/**
 * A change that comes before it is known what the installation could ever give, as the first one of a new cell does, waits
 * a moment for that: what can never be had is then refused at once. A Placer, a Storage Manager or an IP Address Manager
 * that stays silent delays a change no longer than this.
 */
const offersTimeoutMs = 3_000;
export const offersTimer = "offers-unknown";
const mostWaiting = 16;

export const offersHeard = (state: ControllerState): boolean =>
  [...offerKeys(state).keys()].every((peer) => state.reachable.has(peer));

const mustWait = (state: ControllerState, request: Json): boolean =>
  isChange(request) &&
  state.waitingChanges !== null &&
  // A deletion has nothing to wait for, but does not overtake what was asked for before it.
  (request.method !== "DELETE" || state.waitingChanges.length > 0) &&
  state.waitingChanges.length < mostWaiting &&
  (!offersHeard(state) || (isChild(state) && state.life === null));

export function* answerWaiting(state: ControllerState): Work {
  const waiting = state.waitingChanges ?? [];
  state.waitingChanges = null;
  if (waiting.length > 0) state.outbox.effects.push({ kind: "timer", name: offersTimer, afterMs: null });
  for (const { id, request } of waiting) yield* reply(state, id, request);
}
