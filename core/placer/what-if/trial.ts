import type { HostName } from "../../../model/cell/identifiers.ts";
import { crossingSays } from "../../../model/cell/tenants/dedication/alerts.ts";
import type { Trial, TrialAnswer } from "../../../model/contract/operator/placement.ts";
import type { HostView } from "../candidate.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import { crossings } from "../room/crossings.ts";
import type { PlacerState, Wanted } from "../state.ts";
import type { Sliced } from "./sliced.ts";
import { anew } from "./thought.ts";

/**
 * What would come of it if a VM went to another host: of each host whether it takes it now, by the rules that place, and what the root administrator would be told of
 * that. It is asked before anybody is moved, and nothing is kept.
 *
 * @param only of this host alone; null: of all but its own
 */
export function* trialOf(
  state: PlacerState,
  { client, document }: Wanted,
  { vm, only }: { readonly vm: string; readonly only: HostName | null },
): Sliced<TrialAnswer> {
  const from = state.reservations.get(document.vm)?.host ?? null;
  const hosts: Trial[] = [];
  for (const view of [...state.hosts.values()]) {
    yield 1;
    if (view.host === from || (only !== null && view.host !== only)) continue;
    hosts.push({ host: view.host, ...triedAt(state, { client, document }, view) });
  }
  return { vm, from, hosts };
}

function triedAt(state: PlacerState, { client, document }: Wanted, view: HostView): Omit<Trial, "host"> {
  const placed = place([view], state.usage, anew(document), state.ratios, askerOf(state, client));
  if ("refusals" in placed) {
    const [refusal] = placed.refusals;
    if (refusal !== undefined) {
      const { kind, why, lifts } = refusal;
      return { refusal: { kind: kind ?? "other", why, lifts }, alerts: [] };
    }
    return { refusal: { kind: "others", why: placed.said ?? "it is for others", lifts: "" }, alerts: [] };
  }
  const reservation = state.reservations.get(document.vm);
  const crossed = reservation === undefined ? [] : crossings(state, reservation, view.host);
  return { alerts: crossed.map((kind) => ({ kind, says: crossingSays[kind] })) };
}
