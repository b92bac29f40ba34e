import type { Advice } from "../../../model/cause/cause.ts";
import { offeringOf } from "../../../model/cell/tenants/pools/offerings.ts";
import type { DesiredPlacement, HostRefusal } from "../../documents/vocabulary.ts";
import { choose } from "../index/choose.ts";
import { askerOf } from "../owners.ts";
import { isSparing, placeSparing } from "../room/spare.ts";
import { countsOf } from "../room/told.ts";
import type { PlacerState, Wanted } from "../state.ts";
import { changeText, smallestChange } from "./change.ts";

/** So many are advised anew in one round over those that wait; of the others what was said before still stands. */
const mostInARound = 16;

/** Why a VM waits, in short: which rule keeps how many hosts away, and the smallest change with which it would have a place. */
export function adviceFor(state: PlacerState, wanted: Wanted, refusals: readonly HostRefusal[]): Advice | undefined {
  const { advised, retries } = state;
  if (advised.round !== retries) Object.assign(advised, { round: retries, count: 0 });
  const { vm } = wanted.document;
  if (advised.count >= mostInARound || refusals.length === 0) return advised.last.get(vm);
  advised.count += 1;
  const rules = countsOf(refusals);
  const asker = askerOf(state, wanted.client);
  const places = (request: DesiredPlacement): boolean =>
    isSparing(state, request)
      ? !("refusals" in placeSparing(state, { client: wanted.client, document: request }))
      : choose(state, request, asker) !== null;
  const name = offeringOf(wanted.document.placement);
  const offering = state.offerings.find((each) => each.name === name);
  const changes = smallestChange(wanted.document, places, offering);
  const advice: Advice = { rules, change: changes === null ? null : changeText(changes) };
  advised.last.set(vm, advice);
  return advice;
}
