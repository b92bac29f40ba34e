import type { Json } from "../../../model/json/json.ts";
import { type ActualPresenceCall, presenceKey } from "../../documents/presence.ts";
import { isObject, log, write } from "../../outbox.ts";
import { type GroupState, type HostView, isGone, type Life, liveHosts, publish } from "./state.ts";

/**
 * Calls: how a member of the Presence group knows whom it hears now. A connection says it only 8 to 10 s after the last that
 * came over it, and the reports of hosts that are cut off together with this member may be there before that; so may packets
 * that waited while this member stood still. A member that has all the evidence for a death therefore publishes a number
 * that it never published before, and each host that hears it publishes it in return. Who has answered was heard after the
 * evidence was complete, whatever any clock says; what cut this member off came before the evidence that it caused.
 */
const record = "presence/starts";
/** Calls of one life of a member; the next life's are above. */
const callsOfLife = 2 ** 32;

export const isCallRecord = (key: string): boolean => key === record;

/** The number below the first call of this life, which no earlier life of this member used. */
export const callsBefore = (records: ReadonlyMap<string, Json>): number => (startsIn(records) + 1) * callsOfLife;
const startsIn = (records: ReadonlyMap<string, Json>): number => {
  const value = records.get(record) ?? null;
  return isObject(value) && Number.isSafeInteger(value.starts) ? Number(value.starts) : 0;
};
export const beginCalls = ({ outbox }: GroupState): void =>
  write(outbox, record, { starts: startsIn(outbox.records) + 1 });

/** A call or the answer to one; null: it is neither. */
export const callIn = (value: Json): number | null =>
  isObject(value) && Number.isSafeInteger(value.call) ? Number(value.call) : null;

/** Whether at least half of all living hosts have been heard since the evidence against this one was whole; else asks. */
export function heardSince(state: GroupState, view: HostView, { generation, incarnation }: Life): boolean {
  const { asked } = view;
  const isAsked = asked !== null && asked.generation === generation && asked.incarnation === incarnation;
  const call = isAsked ? asked.call : state.call + 1;
  if (!isAsked) {
    state.call = call;
    view.asked = { generation, incarnation, call };
    publish(state, presenceKey.call, { call } satisfies ActualPresenceCall);
    log(state.outbox, "presence/called", { host: view.host, call: call % callsOfLife });
  }
  const isHeard = hearsHalf(state, call);
  if (isHeard) state.asking.delete(view);
  else state.asking.add(view);
  return isHeard;
}

/** The evidence is not whole any more: when it is again, there is another call. */
export function endCall(state: GroupState, view: HostView): void {
  view.asked = null;
  state.asking.delete(view);
}

/** @returns the hosts that may be voted on now, which could not before */
export function takeAnswer(state: GroupState, view: HostView, value: Json): readonly HostView[] {
  const before = view.answered;
  view.answered = callIn(value) ?? 0;
  // It was taken back: votes may rest on it.
  if (view.answered < before) return [...state.hosts.values()].filter(({ asked }) => asked !== null);
  if (state.asking.size === 0) return [];
  const first = Math.min(...[...state.asking].map(({ asked }) => asked?.call ?? 0));
  // A thousand hosts answer, and almost none of these answers is the one that matters.
  return view.answered >= first && hearsHalf(state, first) ? [...state.asking] : [];
}

/** A host of the previous version does not know calls: its connection has to do. */
const hasAnswered = (state: GroupState, { answers, answered }: HostView, call: number): boolean =>
  !answers || (answered >= call && answered <= state.call);

function hearsHalf(state: GroupState, call: number): boolean {
  let heard = 0;
  for (const view of state.hosts.values()) {
    if (isGone(view)) continue;
    if (view.reachable === true && hasAnswered(state, view, call)) heard += 1;
  }
  return 2 * heard >= liveHosts(state);
}
