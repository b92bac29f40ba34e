import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { alertsKey, type DesiredAlerts, mostTold, type ToldAlert, toldKinds } from "../../documents/ha.ts";
import { desiredAlerts } from "../../documents/readers/ha.ts";
import { servicePeer } from "../../documents/service-roles.ts";
import { desire, log, write } from "../../outbox.ts";
import type { HaState } from "../state.ts";
import { type Alert, leftRecord } from "./alert.ts";

/*
 * Alerts of further HA Managers. The operator registers one webhook and one address, and the first manager alone has them and tells what is open; so
 * the others say to it what they have open (`alerts`), and it opens the same, tells it, and ends it with them. They are shown once, as what is so at
 * several is.
 *
 * Rejected: the same receiver at each of them. Its secret would have to be handed on, also to those that come later, and who is told of one
 * loss by three senders hears it three times.
 */
const first = servicePeer("ha-manager");

/** A further one says what it has open. */
export function settleTold({ options, alerts, outbox }: HaState): void {
  if (options.self === first) return;
  const isTold = ({ kind }: Alert): boolean => (toldKinds as readonly string[]).includes(kind);
  const open = [...alerts.values()].filter(isTold).sort((one, other) => one.since - other.since);
  const told = open.slice(0, mostTold).map(({ kind, subject, sentence }) => ({ kind, subject, sentence }) as ToldAlert);
  desire(outbox, first, alertsKey, told.length === 0 ? null : ({ alerts: told } satisfies DesiredAlerts));
}

/** What another one has open; what is malformed changes nothing. */
export function takeTold(state: HaState, from: PeerName, value: Json): void {
  const said = value === null ? null : desiredAlerts.of(value);
  if (from === state.options.self || (value !== null && said === null)) {
    log(state.outbox, "document/refused", { from, key: alertsKey, why: "it is malformed, or this manager's own" });
    // Stored by another version: what is open of that one stays.
    if (from !== state.options.self && !state.started) state.told.set(from, null);
    return;
  }
  if (said === null) state.told.delete(from);
  else state.told.set(from, said.alerts);
  if (state.started) returnTold(state, from);
}

/** It speaks, so it is there: also where it says no more than that it desires what it did, of which nothing new is heard. */
export function returnTold({ left, outbox }: HaState, from: PeerName): void {
  if (left.delete(from)) write(outbox, leftRecord(from), null);
}

/**
 * A cell says that this manager is gone: nothing that it had open is looked after any more, and nobody else would end it. Not of one that this
 * manager knows to be there: a controller in somebody else's hands would hide what is open.
 */
export function leaveTold(state: HaState, manager: PeerName): void {
  if (!state.told.has(manager) || state.left.has(manager)) return;
  if (state.options.haManagers?.includes(manager) === true) return;
  state.left.add(manager);
  write(state.outbox, leftRecord(manager), {});
}

/** At the start, when all is known that was said: which managers there are is not what it was at that time. */
export function leaveAllTold(state: HaState): void {
  for (const manager of state.unguarded.values()) if (manager !== null) leaveTold(state, manager);
}

export const toldAlerts = ({ told, left, alerts }: HaState): readonly Omit<Alert, "since" | "acknowledged">[] =>
  [...told].flatMap(([by, theirs]) => {
    if (left.has(by)) return [];
    if (theirs !== null) return theirs.map((each) => ({ ...each, by }));
    return [...alerts.values()].flatMap(({ kind, subject, sentence, by: whose }) =>
      whose === by ? [{ kind, subject, sentence, by }] : [],
    );
  });
