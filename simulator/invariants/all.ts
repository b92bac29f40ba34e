import { onePlace } from "./cells/04-one-place.ts";
import { room } from "./cells/18-room.ts";
import { allOrNone } from "./cells/21-all-or-none.ts";
import { quotas } from "./cells/25-quotas.ts";
import { nothingLeft } from "./cells/26-nothing-left.ts";
import { starts } from "./cells/28-starts.ts";
import { severalPlacers } from "./cells/29-several-placers.ts";
import { spareRoom } from "./cells/47-spare-hosts.ts";
import { accountLimits } from "./cells/71-account-limits.ts";
import { endedAccounts } from "./cells/72-ended-accounts.ts";
import { usage } from "./cells/73-usage.ts";
import { declaredTenants } from "./cells/75-declared-tenants.ts";
import { whoseHosts } from "./cells/76-whose-hosts.ts";
import { affinityGroups } from "./cells/77-groups.ts";
import { twoNeverHaveOneHost } from "./cells/80-two-never.ts";
import { numberOfACell } from "./cells/89-number-of-a-cell.ts";
import { restartAfterEnd } from "./ha/05-restart-after-end.ts";
import { oneItem } from "./ha/09-one-item.ts";
import { answersAreSo } from "./ha/30-answers-are-so.ts";
import { fenceIsPhysical } from "./ha/31-fence-is-physical.ts";
import { freshIsNotFenced } from "./ha/32-fresh-is-not-fenced.ts";
import { overIsWhatWasFenced } from "./ha/33-over-is-what-was-fenced.ts";
import { durableFirst } from "./ha/34-durable-first.ts";
import { powerOrders } from "./ha/35-power-orders.ts";
import { powerOfThatBoot } from "./ha/36-power-of-that-boot.ts";
import { nobodyHears } from "./ha/37-nobody-hears.ts";
import { refutedRestartsNothing } from "./ha/38-refuted-restarts-nothing.ts";
import { reservedHosts } from "./ha/39-reserved-hosts.ts";
import { priorities } from "./ha/40-priorities.ts";
import { draining } from "./ha/41-draining.ts";
import { oneAlert } from "./ha/42-one-alert.ts";
import { heldUntilReleased } from "./ha/43-held-until-released.ts";
import { fencedIsNotHeard } from "./ha/44-fenced-is-not-heard.ts";
import { retries } from "./ha/45-retries.ts";
import { rootControllersVm } from "./ha/46-root-controllers-vm.ts";
import type { Invariant } from "./invariant.ts";
import { rulesBeforePackets } from "./network/20-rules-before-packets.ts";
import { needToKnow } from "./network/22-need-to-know.ts";
import { addressesOfModes } from "./network/81-addresses-of-modes.ts";
import { rulesOfGroups } from "./network/82-rules-of-groups.ts";
import { oneNetworkHost } from "./network/83-one-network-host.ts";
import { rulesInForce } from "./network/84-rules-in-force.ts";
import { wholeVersions } from "./network/86-whole-versions.ts";
import { copies } from "./network/87-copies.ts";
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
import { takenRights } from "./services/70-taken-rights.ts";
import { refusals } from "./services/74-refusals.ts";
import { madeOnce } from "./services/78-made-once.ts";
import { documentsRead } from "./services/85-documents-read.ts";
import { oneWriter } from "./storage/01-one-writer.ts";
import { noOldWrite } from "./storage/02-no-old-write.ts";
import { liveSource } from "./storage/15-live-source.ts";
import { reconciled } from "./storage/19-reconciled.ts";
import { heldVolumes } from "./storage/79-held-volumes.ts";
import { lostStores } from "./storage/88-lost-stores.ts";

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
  answersAreSo,
  fenceIsPhysical,
  freshIsNotFenced,
  overIsWhatWasFenced,
  durableFirst,
  powerOrders,
  powerOfThatBoot,
  nobodyHears,
  refutedRestartsNothing,
  reservedHosts,
  priorities,
  draining,
  oneAlert,
  heldUntilReleased,
  fencedIsNotHeard,
  retries,
  rootControllersVm,
  spareRoom,
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
  rulesInForce,
  documentsRead,
  wholeVersions,
  copies,
  lostStores,
  numberOfACell,
];
