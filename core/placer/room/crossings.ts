import { type HostName, peerName } from "../../../model/cell/identifiers.ts";
import { alertsOf, type Crossing, type CrossingAlert } from "../../../model/cell/tenants/dedication/alerts.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { log } from "../../outbox.ts";
import { implicitOf, noUse, type Reservation } from "../candidate.ts";
import { neighboursOf } from "../filters/implicit.ts";
import { askerOf } from "../owners.ts";
import type { PlacerState, Wanted } from "../state.ts";

/** What the root administrator is told of a VM that goes between what is dedicated, or held, and what is not. It is not refused for that. */
export function crossings(
  state: PlacerState,
  { vm, client, host: from, implicit }: Pick<Reservation, "vm" | "client" | "host" | "implicit">,
  to: HostName,
): readonly CrossingAlert[] {
  const asker = askerOf(state, client);
  const account = asker.account;
  if (asker.isSystem || account === null) return [];
  const at = (host: HostName): Crossing["from"] => ({
    rule: state.hosts.get(peerName(`host.${host}`))?.rule ?? null,
    there: [
      ...neighboursOf(state.usage.get(host) ?? noUse(), vm, asker),
      ...(host === from && state.wereHeld.has(host) ? [{ account: null, mode: "preferred" as const }] : []),
    ],
  });
  return alertsOf({ account, mode: implicit ?? null, from: at(from), to: at(to) });
}

/** Its incarnation is over, and it gets a place anew. */
export function continueAnew(state: PlacerState, before: Reservation, { restart }: DesiredPlacement): void {
  state.continuing.set(before.vm, before);
  if (restart === true && before.implicit !== undefined) state.wereHeld.add(before.host);
}

/** Where it was before, and left by the operator's word or since its host was lost; a move was told when room was kept for it. */
export function crossedBy(
  state: PlacerState,
  { client, document }: Wanted,
  to: HostName,
  isMoved: boolean,
): Pick<Reservation, "crossed"> {
  const { vm, path, restart, placement } = document;
  const from = state.continuing.get(vm)?.host ?? to;
  if (from === to || (restart !== true && !isMoved)) return {};
  const implicit = implicitOf(placement);
  const crossed = crossings(state, { vm, client, host: from, ...(implicit === null ? {} : { implicit }) }, to);
  if (crossed.length === 0) return {};
  if (!isMoved)
    log(state.outbox, "placement/crosses", { vm, path, from, to, alerts: crossed.join(" "), restart: true });
  return { crossed };
}
