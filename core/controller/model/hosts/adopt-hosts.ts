import type { Cell } from "../../../../model/cell/cell.ts";
import { replaceAt } from "../../../../model/cell/document.ts";
import type { HostName } from "../../../../model/cell/identifiers.ts";
import { acceptedBefore } from "../../../../model/check/check-supply.ts";
import { inOneGo } from "../../../../model/slices.ts";
import { checkDocument } from "../../../../model/specification/specification.ts";
import { settingsKey, spareKey } from "../../../documents/ha.ts";
import { poolsKey } from "../../../documents/network/network.ts";
import { claimKey, pooledKey } from "../../../documents/pools.ts";
import { dedicatedKey, marksKey } from "../../../documents/tenancy.ts";
import { hostKey } from "../../../documents/vocabulary.ts";
import { log } from "../../../outbox.ts";
import { forkReason, takeBack } from "../../histories/fork.ts";
import { claimKeys } from "../../services/claims.ts";
import { dedicatedKeys } from "../../services/dedications.ts";
import { closedHosts, hostPath, isRoot, isSetFor, offersOf, placersOf } from "../../services/hosts.ts";
import { isPoolsForgotten } from "../../services/pools/external-pools.ts";
import { pooledKeys } from "../../services/pools/given.ts";
import type { ControllerState } from "../../state.ts";
import { acceptModel, planFor } from "../model-change.ts";
import { withPlaceFor } from "../root-model.ts";

/** Models that cannot be given what they lack: what stands in the way is the operator's own. */
const refusing = new WeakSet<object>();

/** Writes elements for hosts that have none. */
export function adoptHosts(state: ControllerState): void {
  const { document } = state.model;
  if (!isRoot(state) || state.cell === null || document === null || state.ending || forkReason(state) !== null) return;
  const { cell } = state;
  takeBackForgotten(state, cell);
  if (refusing.has(document)) return;
  const missing = (offersOf(state)?.hosts ?? []).filter(({ host }) => !cell.elements.has(hostPath(host)));
  if (missing.length === 0) return;
  let whole = withPlaceFor(state, document, hostPath("h"));
  for (const { host } of missing) {
    const replaced = replaceAt(whole, hostPath(host), { "x.type": "Host" });
    if (replaced.ok) whole = replaced.value;
  }
  const checked = checkDocument(whole, acceptedBefore);
  const faults = checked.ok ? acceptModel(state, checked.value, inOneGo(planFor(state, checked.value))) : ["refused"];
  if (faults.length > 0) refusing.add(document);
  else log(state.outbox, "hosts/adopted", { hosts: missing.map(({ host }) => host) });
}

/**
 * A store that was lost forgot which hosts were closed or somebody's, and what the operator had set for all; whoever was told keeps that. What holds is
 * what the model says, or a host would stay closed, and room be kept, of which nobody can see that it is.
 */
function takeBackForgotten(state: ControllerState, cell: Cell): void {
  const said = new Set([
    ...closedHosts(cell).map(hostKey),
    ...dedicatedKeys(cell),
    ...pooledKeys(state, cell),
    ...claimKeys(state),
  ]);
  for (const [peer, keys] of state.forgotten)
    for (const key of keys.keys())
      if (
        (key.startsWith(hostKey("" as HostName)) ||
          key.startsWith(dedicatedKey("" as HostName)) ||
          key.startsWith(marksKey("" as HostName)) ||
          key.startsWith(pooledKey("" as HostName)) ||
          key.startsWith(claimKey("" as HostName)) ||
          (key === poolsKey && isPoolsForgotten(state, peer)) ||
          ((key === spareKey || key === settingsKey) && !isSetFor(cell, placersOf(cell).has(peer), key))) &&
        !said.has(key) &&
        state.outbox.releasing.get(peer)?.has(key) !== true
      )
        takeBack(state, peer, key);
}
