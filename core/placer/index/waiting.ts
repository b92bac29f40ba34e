import { askerOf } from "../owners.ts";
import type { PlacerState, Wanted } from "../state.ts";
import { choose } from "./choose.ts";

/** Above so many hosts what is said of one that waits, host by host, is said anew only with each so manieth change. */
export const manyHosts = 128;

/** Begins a round over those that wait, and says who is to be tried in it. */
export function whoIsTried(state: PlacerState): (wanted: Wanted) => boolean {
  state.retries += 1;
  if (state.hosts.size <= manyHosts || state.retries % manyHosts === 0) return () => true;
  return ({ client, document }) =>
    !state.refused.has(document.vm) || choose(state, document, askerOf(state, client)) !== null;
}
