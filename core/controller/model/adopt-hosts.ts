import { replaceAt } from "../../../model/cell/document.ts";
import { acceptedBefore } from "../../../model/check/check-supply.ts";
import { inOneGo } from "../../../model/slices.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { log } from "../../outbox.ts";
import { forkReason } from "../histories/fork.ts";
import { hostPath, isRoot, offersOf } from "../services/hosts.ts";
import type { ControllerState } from "../state.ts";
import { acceptModel, planFor } from "./model-change.ts";
import { withPlaceFor } from "./root-model.ts";

/** Writes elements for hosts that have none. */
export function adoptHosts(state: ControllerState): void {
  const { document } = state.model;
  if (!isRoot(state) || state.cell === null || document === null || state.ending || forkReason(state) !== null) return;
  const { cell } = state;
  const missing = (offersOf(state)?.hosts ?? []).filter(({ host }) => !cell.elements.has(hostPath(host)));
  if (missing.length === 0) return;
  let whole = withPlaceFor(state, document, hostPath("h"));
  for (const { host } of missing) {
    const replaced = replaceAt(whole, hostPath(host), { "x.type": "Host" });
    if (replaced.ok) whole = replaced.value;
  }
  const checked = checkDocument(whole, acceptedBefore);
  // What stands in the way, as a component of another kind under the name, is the operator's own.
  if (!checked.ok) return;
  const faults = acceptModel(state, checked.value, inOneGo(planFor(state, checked.value)));
  if (faults.length === 0) log(state.outbox, "hosts/adopted", { hosts: missing.map(({ host }) => host) });
}
