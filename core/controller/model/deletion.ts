import type { PeerName } from "../../../model/cell/identifiers.ts";
import { groupKey as affinityKey, declaredKey, tenancy } from "../../documents/tenancy.ts";
import { log, write } from "../../outbox.ts";
import { isInUse } from "../changes/in-use.ts";
import { forgetGrant } from "../histories/kept-grants.ts";
import { groupKey, instanceKey, isOnMode, networkViewManager } from "../network/instances.ts";
import { isManagement, isManagementGone } from "../network/management.ts";
import type { ElementRecord } from "../records.ts";
import { whyNotInForce } from "../rules/rules-in-force.ts";
import { poolHostIsGone } from "../services/pools/asked.ts";
import {
  addressManager,
  type ControllerState,
  confirmedGone,
  dnsManager,
  placerOf,
  storageManagerOf,
} from "../state.ts";
import { hasChildEnded } from "./ended-child.ts";

/**
 * Forgets the elements that left the model and of which nothing is left: their documents are taken back and whoever
 * held something for them is in step and says that it is gone. Until then they are "deleting", also after a crash.
 */
export function forgetDeleted(state: ControllerState): boolean {
  let forgotten = false;
  state.pass.each(
    "deleted",
    state.indexes.deleting,
    (_flag, uid) => {
      const record = state.elements.get(uid);
      if (record === undefined || isInUse(state, uid) || !isGone(state, record)) return;
      forget(state, record);
      forgotten = true;
    },
    { order: (uid) => state.elements.orderOf(uid) },
  );
  return forgotten;
}

function forget(state: ControllerState, { uid, path, type }: ElementRecord): void {
  state.elements.delete(uid);
  write(state.outbox, `element/${uid}`, null);
  if (state.vms.delete(uid)) write(state.outbox, `vm/${uid}`, null);
  if (state.grants.has(uid)) forgetGrant(state, uid);
  state.runningSince.delete(uid);
  state.resting.delete(uid);
  state.starts.queue.delete(uid);
  log(state.outbox, "element/removed", { path, type, uid });
}

function isGone(state: ControllerState, record: ElementRecord): boolean {
  switch (record.type) {
    case "VM":
      return (
        (state.vms.get(record.uid)?.run ?? null) === null &&
        (!isOnMode(state) || isWithdrawn(state, networkViewManager, instanceKey(record.uid)))
      );
    case "Volume":
    case "VolumeCopy":
      return isWithdrawn(state, storageManagerOf(state), `volume/${record.uid}`);
    case "VolumeConnection":
      return isWithdrawn(state, storageManagerOf(state), `connection/${record.uid}`);
    case "Subnet":
      if (isOnMode(state)) return isWithdrawn(state, networkViewManager, groupKey(record.uid));
      return isManagement(state, record)
        ? isManagementGone(state, record)
        : isWithdrawn(state, addressManager, `subnet/${record.uid}`);
    case "VirtualInterface":
      return record.name === null || isWithdrawn(state, dnsManager, `name/${record.uid}`);
    case "CellController":
      return state.options.cellManager !== true || hasChildEnded(state, record.uid);
    case "AffinityGroup":
      return isWithdrawn(state, placerOf(state), affinityKey(record.uid));
    case "NetworkRule":
      return whyNotInForce(state, record) === null;
    case "VolumeGrant":
    case "Host":
    case "Zone":
    case "Pod":
    case "Cluster":
    case "Dedication":
    case "Offering":
    case "HostFlavor":
    case "Pool":
      return true;
    case "PoolHost":
      return poolHostIsGone(state, record.uid);
    case "Domain":
    case "Account":
    case "Role":
      return isWithdrawn(state, tenancy, declaredKey(record.uid));
  }
}

const isWithdrawn = (state: ControllerState, peer: PeerName, key: string): boolean =>
  !state.pass.isDesired(peer, key) && confirmedGone(state, peer, key);
