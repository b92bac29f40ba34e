import { peerName } from "../../../model/cell/identifiers.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { type HostView, nobody, noUse, type Reservation, useWithout } from "../candidate.ts";
import { capacity } from "../filters/capacity.ts";
import type { PlacerState } from "../state.ts";

const viewBefore = ({ hosts }: PlacerState, { at }: DesiredPlacement): HostView | undefined =>
  at === undefined ? undefined : hosts.get(peerName(`host.${at}`));

/** Why this one is not placed yet: the host that its controller has it at may have it, and was not heard. Null: it is. */
export function whyNotKnown(state: PlacerState, document: DesiredPlacement): string | null {
  const view = viewBefore(state, document);
  if (view === undefined || view.actual !== null || (view.died ?? null) !== null) return null;
  return `a Placer placed it at ${view.host} before, which this one has not heard yet`;
}

/**
 * The place of an incarnation that this Placer's store does not know: the store was lost, or is older. It may run there, so
 * that others have to keep apart from it there. Its controller's word alone promises no more than the host has.
 */
export function placeBefore(state: PlacerState, document: DesiredPlacement): Pick<Reservation, "host" | "boot"> | null {
  const { host, actual = null } = viewBefore(state, document) ?? {};
  if (host === undefined || actual === null) return null;
  const use = state.usage.get(host) ?? noUse();
  const candidate = { actual, use: useWithout(use, document.vm) };
  const asked = { ...document, ...document.has };
  if (!use.taken.has(document.vm) && capacity(candidate, asked, state.ratios, nobody) !== null) return null;
  return { host, ...(actual.boot === undefined ? {} : { boot: actual.boot }) };
}
