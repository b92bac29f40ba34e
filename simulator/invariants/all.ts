import { onePlace } from "./cells/04-one-place.ts";
import { room } from "./cells/18-room.ts";
import { allOrNone } from "./cells/21-all-or-none.ts";
import { quotas } from "./cells/25-quotas.ts";
import { nothingLeft } from "./cells/26-nothing-left.ts";
import { starts } from "./cells/28-starts.ts";
import { severalPlacers } from "./cells/29-several-placers.ts";
import { numberOfACell } from "./cells/45-number-of-a-cell.ts";
import { spareRoom } from "./cells/47-spare-hosts.ts";
import { accountLimits } from "./cells/71-account-limits.ts";
import { endedAccounts } from "./cells/72-ended-accounts.ts";
import { usage } from "./cells/73-usage.ts";
import { declaredTenants } from "./cells/75-declared-tenants.ts";
import { whoseHosts } from "./cells/76-whose-hosts.ts";
import { affinityGroups } from "./cells/77-groups.ts";
import { twoNeverHaveOneHost } from "./cells/80-two-never.ts";
import { restartAfterEnd } from "./ha/05-restart-after-end.ts";
import { oneItem } from "./ha/09-one-item.ts";
import { fenceIsPhysical } from "./ha/31-fence-is-physical.ts";
import { freshIsNotFenced } from "./ha/32-fresh-is-not-fenced.ts";
import { powerOrders } from "./ha/35-power-orders.ts";
import { nobodyHears } from "./ha/37-nobody-hears.ts";
import { refutedRestartsNothing } from "./ha/38-refuted-restarts-nothing.ts";
import { draining } from "./ha/41-draining.ts";
import { oneAlert } from "./ha/42-one-alert.ts";
import type { Invariant } from "./invariant.ts";
import { rulesBeforePackets } from "./network/20-rules-before-packets.ts";
import { needToKnow } from "./network/22-need-to-know.ts";
import { rulesInForce } from "./network/30-rules-in-force.ts";
import { wholeVersions } from "./network/34-whole-versions.ts";
import { copies } from "./network/36-copies.ts";
import { addressesOfModes } from "./network/81-addresses-of-modes.ts";
import { rulesOfGroups } from "./network/82-rules-of-groups.ts";
import { oneNetworkHost } from "./network/83-one-network-host.ts";
import { presenceNeverFences } from "./presence/06-presence-never-fences.ts";
import { deadGeneration } from "./presence/14-dead-generation.ts";
import { viewsAgree } from "./presence/16-views-agree.ts";
import { refutedNeverDies } from "./presence/17-refuted.ts";
import { heardIsAlive } from "./presence/24-heard-is-alive.ts";
import { certainEnd } from "./presence/27-certain-end.ts";
import { numbersGrow } from "./services/03-numbers-grow.ts";
import { unknownIsNotStopped } from "./services/07-unknown-is-not-stopped.ts";
import { doneIsSeen } from "./services/08-done-is-seen.ts";
import { legalTransitions } from "./services/10-legal-transitions.ts";
import { noRepeatedEffect } from "./services/11-no-repeated-effect.ts";
import { neverBackwards } from "./services/23-never-backwards.ts";
import { documentsRead } from "./services/33-documents-read.ts";
import { takenRights } from "./services/70-taken-rights.ts";
import { refusals } from "./services/74-refusals.ts";
import { madeOnce } from "./services/78-made-once.ts";
import { oneWriter } from "./storage/01-one-writer.ts";
import { noOldWrite } from "./storage/02-no-old-write.ts";
import { liveSource } from "./storage/15-live-source.ts";
import { reconciled } from "./storage/19-reconciled.ts";
import { lostStores } from "./storage/44-lost-stores.ts";
import { heldVolumes } from "./storage/79-held-volumes.ts";

/** Every invariant that existing code can violate; README.md says why the others are not here. */
export const invariants: readonly Invariant[] = [
  oneWriter,
  noOldWrite,
  numbersGrow,
  onePlace,
  restartAfterEnd,
  presenceNeverFences,
  unknownIsNotStopped,
  doneIsSeen,
  oneItem,
  legalTransitions,
  noRepeatedEffect,
  deadGeneration,
  liveSource,
  viewsAgree,
  refutedNeverDies,
  room,
  reconciled,
  rulesBeforePackets,
  allOrNone,
  needToKnow,
  neverBackwards,
  heardIsAlive,
  quotas,
  nothingLeft,
  certainEnd,
  starts,
  severalPlacers,
  rulesInForce,
  fenceIsPhysical,
  freshIsNotFenced,
  powerOrders,
  nobodyHears,
  copies,
  refutedRestartsNothing,
  spareRoom,
  draining,
  oneAlert,
  documentsRead,
  wholeVersions,
  lostStores,
  numberOfACell,
  takenRights,
  accountLimits,
  endedAccounts,
  usage,
  refusals,
  madeOnce,
  heldVolumes,
  declaredTenants,
  whoseHosts,
  affinityGroups,
  twoNeverHaveOneHost,
  addressesOfModes,
  rulesOfGroups,
  oneNetworkHost,
];
