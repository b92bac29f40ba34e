import { hostPeer, type PeerName } from "../../model/cell/identifiers.ts";
import { poolsKey } from "../documents/network/network.ts";
import { adoptChildren } from "./cells/adopted.ts";
import { desireChildren } from "./cells/children.ts";
import { endAccounts } from "./cells/ending-accounts.ts";
import { desireAlert, desireGuard, settleGuard } from "./cells/guard.ts";
import { advanceEnding, nothingLeft, publishLife } from "./cells/life.ts";
import type { Work } from "./changes/work.ts";
import { updateStates } from "./explain/element-state.ts";
import { endForgotten, holdersOfForgotten } from "./histories/forgotten.ts";
import { isForked } from "./histories/fork.ts";
import { peersToHear } from "./histories/hearing.ts";
import { poolAccounts, publishGranted } from "./model/account-limits.ts";
import { followImages } from "./model/anew/follow-images.ts";
import { recreateVolumes } from "./model/anew/recreate.ts";
import { forgetDeleted } from "./model/deletion.ts";
import { adoptHosts } from "./model/hosts/adopt-hosts.ts";
import { cellOwners, desireCellOwners, desireOwners } from "./model/owners.ts";
import { advanceGrants, giveBack } from "./model/quota.ts";
import { allocateAddresses, desireSubnets } from "./network/addresses.ts";
import { desireInstances, desireSecurityGroups, isOnMode, networkViewManager } from "./network/instances.ts";
import { desireDoors, desireNames, desireZone } from "./network/names.ts";
import { learnForeign } from "./references/foreign.ts";
import { closeTickets } from "./requests/tickets.ts";
import { desirePlaces, desirePolicies, settlePolicy } from "./rules/cell-policy.ts";
import { desireDirectory } from "./rules/directory-desires.ts";
import { settlePlaces } from "./rules/places.ts";
import { settleHostRules } from "./rules/rules-in-force.ts";
import { advanceClaims, claimedHosts, desireClaims, publishOwners } from "./services/claims.ts";
import { desireDedications, desireMarks } from "./services/dedications.ts";
import { desireEnrolments } from "./services/enrolments.ts";
import { desireGroups } from "./services/groups.ts";
import { desireHosts, isRoot } from "./services/hosts.ts";
import { desirePools } from "./services/pools/external-pools.ts";
import { advancePools, desirePooled, placersToFollow } from "./services/pools/given.ts";
import { adoptSuccession, desireStandby, hostsWith, successors } from "./services/succession.ts";
import { desireTenants, followTenants } from "./services/tenants.ts";
import {
  addressManager,
  authority,
  type ControllerState,
  cellManager,
  directory,
  dnsManager,
  haManagerOf,
  offerKeys,
  placerOf,
  storageManagerOf,
} from "./state.ts";
import { advanceMoves } from "./upgrade/moves.ts";
import { advanceUpgrades } from "./upgrade/upgrade.ts";
import { advanceReservation, watchReservation } from "./vm/all-or-none.ts";
import { advanceVms } from "./vm/life-cycle.ts";
import { desirePlacements } from "./vm/places/placement.ts";
import { desireProtected } from "./vm/protected.ts";
import { desireVms, placeInterfaces } from "./vm/virtual-machines.ts";
import { desireStorage } from "./volumes/storage.ts";

/**
 * One pass: whatever came in, the same steps are taken in the same order, each over what concerns it (`changes/pass.ts`), and
 * only differences become effects. What is desired where follows from the records alone, so a pass after a crash desires the
 * same. A long one yields now and then, for whoever asks meanwhile (`changes/slices.ts`).
 */
export function* reconcile(state: ControllerState): Work {
  const { pass } = state;
  if (isForked(state)) {
    followPeers(state);
    publishLife(state);
    return;
  }
  settleGuard(state);
  learnForeign(state);
  followImages(state);
  recreateVolumes(state);
  yield* advanceReservation(state);
  adoptChildren(state);
  endAccounts(state);
  adoptHosts(state);
  advanceGrants(state);
  advancePools(state, poolAccounts);
  advanceClaims(state);
  // What one pass forgets may set free what the next one takes back: an interface's address, then its subnet.
  for (let forgotten = true; forgotten; ) {
    advanceEnding(state);
    yield* pass.slices(() => allocateAddresses(state));
    adoptSuccession(state);
    yield* advanceVms(state);
    if (advanceUpgrades(state)) yield* advanceVms(state);
    let moved = false;
    yield* pass.slices(() => {
      moved = advanceMoves(state);
    });
    if (moved) yield* advanceVms(state);
    yield* pass.slices(() => collectDesires(state));
    yield* pass.place(state.outbox);
    yield* pass.slices(() => settleHostRules(state));
    forgotten = false;
    yield* pass.slices(() => {
      forgotten = forgetDeleted(state) || forgotten;
    });
  }
  endForgotten(state);
  followPeers(state);
  yield* watchReservation(state);
  yield* pass.slices(() => updateStates(state));
  giveBack(state);
  if (nothingLeft(state)) state.outbox.effects.push(...closeTickets(state.tickets));
  publishLife(state);
  publishGranted(state);
  publishOwners(state, cellOwners);
}

function collectDesires(state: ControllerState): void {
  desireSubnets(state);
  desireNames(state);
  desireSecurityGroups(state);
  desireInstances(state);
  desireStorage(state);
  desirePlacements(state);
  desireGroups(state);
  state.pass.always("guard", (desires) => {
    desireGuard(state, desires);
    desireAlert(state, desires);
  });
  settlePolicy(state);
  // Before the VM documents: a host never learns of a VM without its rules.
  desirePolicies(state);
  placeInterfaces(state);
  desireProtected(state);
  settlePlaces(state);
  desirePlaces(state);
  desireVms(state);
  state.pass.always("standby", (desires) => desireStandby(state, desires));
  desireDirectory(state);
  state.pass.always("children", (desires) => desireChildren(state, desires));
  state.pass.always("hosts", (desires) => desireHosts(state, desires));
  state.pass.always("dedications", (desires) => desireDedications(state, desires));
  state.pass.always("marks", (desires) => desireMarks(state, desires));
  state.pass.always("pools", (desires) => desirePooled(state, desires));
  desireClaims(state);
  state.pass.always("external pools", (desires) => desirePools(state, desires));
  state.pass.always("zone", (desires) => desireZone(state, desires));
  state.pass.always("doors", (desires) => desireDoors(state, desires));
  desireTenants(state);
  state.pass.always("owners", (desires) => {
    desireOwners(state, desires);
    desireCellOwners(state, desires);
  });
  state.pass.always("enrolments", (desires) => desireEnrolments(state, desires));
}

/**
 * Follows the core services and the hosts that have something of this cell. A host that was followed once is followed
 * until the next start: that a peer is in step is said only when it changes, and must not be missed.
 */
export function followPeers(state: ControllerState): void {
  state.pass.whole("peers", () => follow(state));
}

function follow(state: ControllerState): void {
  const wanted = new Set<PeerName>([storageManagerOf(state), addressManager, dnsManager, placerOf(state)]);
  for (const peer of [...placersToFollow(state), ...claimedHosts(state)]) wanted.add(peer);
  for (const host of state.indexes.concerned.present.keys()) wanted.add(hostPeer(host));
  for (const host of state.afterRestore?.unheard ?? []) wanted.add(hostPeer(host));
  for (const host of successors(state)) wanted.add(host);
  for (const holder of holdersOfForgotten(state) ?? []) wanted.add(holder);
  for (const peer of peersToHear(state)) wanted.add(peer);
  if (isRoot(state)) for (const host of hostsWith(state, poolsKey)) wanted.add(hostPeer(host));
  if (state.foreign.size > 0) wanted.add(directory);
  if (isOnMode(state)) wanted.add(networkViewManager);
  if (state.ha) wanted.add(haManagerOf(state));
  if (state.options.root !== undefined) wanted.add(authority);
  // Also where this store knows of no child: it may be blank, and of a cell that has nothing but children nobody else says so.
  if (state.options.cellManager === true) wanted.add(cellManager);
  const prefix = `${state.options.self}/`;
  const offers = offerKeys(state);
  followTenants(state);
  for (const peer of wanted) {
    if (state.subscribed.has(peer)) continue;
    state.subscribed.add(peer);
    state.outbox.effects.push({ kind: "subscribe", to: peer, prefix });
    const offer = offers.get(peer);
    if (offer !== undefined) state.outbox.effects.push({ kind: "subscribe", to: peer, prefix: offer });
    // What it has on its way outside stands in the way of pools (`known-pools.ts`).
    if (isRoot(state) && peer.startsWith("host."))
      state.outbox.effects.push({ kind: "subscribe", to: peer, prefix: "host" });
  }
}
