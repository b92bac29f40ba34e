import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import { rootCell } from "../../documents/cells.ts";
import type { HostRefusal, Leave } from "../../documents/vocabulary.ts";
import { log, sameJson, toJson, write } from "../../outbox.ts";
import { type HostView, type Reservation, release, reserve } from "../candidate.ts";
import type { Amounts } from "../filters/wishes.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import type { PlacerState } from "../state.ts";
import { crossings } from "./crossings.ts";
import { toldOf } from "./told.ts";

/*
 * A VM leaves its host when that is in maintenance, or when the operator has it go to another one. It runs on where it is until room is kept
 * for its next incarnation elsewhere: only then its controller is told where to, stops it in order, and starts it there. So nothing
 * is off for want of room, and a VM that fits nowhere says why, host by host, and goes as soon as something has changed.
 *
 * The room is a reservation like any other, of the incarnation that leaves, under a record of its own. It ends with what it was kept for:
 * when the next incarnation is placed, or nobody wants the VM to leave any more.
 */
export const nextKey = (vm: Uid): string => `next/${vm}`;

/** Where a VM is asked to go; "anywhere": its host is in maintenance; null: it stays. */
function whereTo(state: PlacerState, { vm, host, incarnation, off }: Reservation): HostName | "anywhere" | null {
  const wanted = state.wanted.get(vm)?.document;
  if (wanted?.incarnation !== incarnation || wanted.on !== undefined || off === true) return null;
  if (wanted.moveTo !== undefined && wanted.moveTo !== host) return wanted.moveTo;
  return state.maintained.has(host) ? "anywhere" : null;
}

/** In the order in which they are to go: the root cell's first, the others by priority. */
function leavers(state: PlacerState): readonly Reservation[] {
  const found = new Set<Reservation>();
  for (const host of state.maintained)
    for (const { vm } of state.usage.get(host)?.reservations.values() ?? []) {
      const reservation = state.reservations.get(vm);
      if (reservation?.host === host) found.add(reservation);
    }
  for (const vm of state.asked) {
    const reservation = state.reservations.get(vm);
    if (reservation !== undefined) found.add(reservation);
  }
  const rankOf = ({ cell, vm }: Reservation): number =>
    cell === rootCell ? Number.POSITIVE_INFINITY : (state.wanted.get(vm)?.document.priority ?? 0);
  return [...found].sort((one, other) => {
    const [a, b] = [rankOf(one), rankOf(other)];
    return a === b ? (one.vm < other.vm ? -1 : 1) : a > b ? -1 : 1;
  });
}

/** @returns VMs of which something else is to be said than before */
export function settleLeaving(state: PlacerState): readonly Uid[] {
  // Before all hosts have been heard, or found to be away, room that is kept would look lost.
  if (state.silent.size > 0) return [];
  if (state.maintained.size === 0 && state.asked.size === 0 && state.leaving.size === 0) return [];
  const due = leavers(state).filter((reservation) => whereTo(state, reservation) !== null);
  const dueVms = new Set(due.map(({ vm }) => vm));
  const news: Uid[] = [];
  for (const vm of [...state.leaving.keys()]) {
    if (dueVms.has(vm)) continue;
    state.leaving.delete(vm);
    news.push(vm);
    // One whose incarnation is over keeps its room until the next one is placed.
    if (state.reservations.has(vm)) giveUp(state, vm);
  }
  for (const reservation of due) {
    const leave = leaveOf(state, reservation);
    const before = state.leaving.get(reservation.vm);
    if (before !== undefined && sameJson(toJson(before), toJson(leave))) continue;
    state.leaving.set(reservation.vm, leave);
    news.push(reservation.vm);
  }
  return news;
}

function leaveOf(state: PlacerState, reservation: Reservation): Leave {
  const { vm } = reservation;
  const kept = state.next.get(vm);
  const to = whereTo(state, reservation);
  const isMeant = ({ host }: HostView): boolean => host !== reservation.host && (to === "anywhere" || host === to);
  const hosts = [...state.hosts.values()].filter(isMeant);
  // Room that is kept stays where it is as long as it is good.
  if (kept !== undefined) {
    const there =
      "refusals" in
      placeAt(
        state,
        reservation,
        hosts.filter(({ host }) => host === kept.host),
      );
    if (!there && kept.memoryMiB === leastOf(state, reservation).memoryMiB) return { to: kept.host, refusals: [] };
    giveUp(state, vm);
  }
  const placed = placeAt(state, reservation, hosts);
  if (!("refusals" in placed)) {
    const { host, boot } = placed;
    const { boot: _former, ...rest } = reservation;
    const room: Reservation = {
      ...rest,
      ...leastOf(state, reservation),
      host,
      ...(boot === undefined ? {} : { boot }),
    };
    state.next.set(vm, room);
    reserve(state.usage, room);
    write(state.outbox, nextKey(vm), room);
    const { path, incarnation, host: from } = reservation;
    log(state.outbox, "placement/leaves", { vm, path, incarnation, from, to: placed.host });
    const alerts = crossings(state, reservation, placed.host);
    if (alerts.length > 0)
      log(state.outbox, "placement/crosses", { vm, path, from, to: placed.host, alerts: alerts.join(" ") });
    return { to: placed.host, refusals: [] };
  }
  const refusals: readonly HostRefusal[] =
    to !== "anywhere" && to !== null && hosts.length === 0
      ? [{ host: to, kind: "unreachable", why: "there is no such host", lifts: "let it join" }]
      : placed.refusals;
  return { to: null, ...toldOf(refusals) };
}

/** What it has to have: elsewhere it may get less than it has here by its nice wishes. */
function leastOf({ wanted }: PlacerState, { vm, memoryMiB, cpus }: Reservation): Amounts {
  const { memoryMiB: leastMiB = memoryMiB, cpus: least = cpus } = wanted.get(vm)?.document ?? {};
  return { memoryMiB: leastMiB, cpus: least };
}

function placeAt(state: PlacerState, { vm }: Reservation, hosts: readonly HostView[]): ReturnType<typeof place> {
  const wanted = state.wanted.get(vm);
  return wanted === undefined
    ? { refusals: [] }
    : place(hosts, state.usage, wanted.document, state.ratios, askerOf(state, wanted.client));
}

/** Room that was kept for a VM's next incarnation is free again. */
export function giveUp(state: PlacerState, vm: Uid): Reservation | null {
  const kept = state.next.get(vm);
  if (kept === undefined) return null;
  state.next.delete(vm);
  // At its own host the VM's reservation has taken the place of this one.
  if (state.reservations.get(vm)?.host !== kept.host) release(state.usage, kept);
  write(state.outbox, nextKey(vm), null);
  return kept;
}
