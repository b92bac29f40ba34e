import type { PeerName } from "../../../model/cell/identifiers.ts";
import { log, write } from "../../outbox.ts";
import { hasChildEnded } from "../cells/children.ts";
import { isManagement, isManagementGone } from "../network/management.ts";
import { type RulesAtHost, rulesAtHosts, whyNotInForce } from "../rules/rules-in-force.ts";
import {
  addressManager,
  type ControllerState,
  confirmedGone,
  dnsManager,
  type ElementRecord,
  inUse,
  storageManagerOf,
  type Wishes,
} from "../state.ts";
import { forgetGrant } from "./quota.ts";

/**
 * Forgets the elements that left the model and of which nothing is left: their documents are taken back and whoever
 * held something for them is in step and says that it is gone. Until then they are "deleting", also after a crash.
 */
export function forgetDeleted(state: ControllerState, wishes: Wishes): boolean {
  const used = inUse(state);
  const hosts = rulesAtHosts(state);
  let forgotten = false;
  for (const record of [...state.elements.values()]) {
    if (!record.deleting || used.has(record.uid) || !isGone(state, record, wishes, hosts)) continue;
    state.elements.delete(record.uid);
    write(state.outbox, `element/${record.uid}`, null);
    if (state.vms.delete(record.uid)) write(state.outbox, `vm/${record.uid}`, null);
    if (state.grants.has(record.uid)) forgetGrant(state, record.uid);
    state.runningSince.delete(record.uid);
    state.resting.delete(record.uid);
    state.starts.queue.delete(record.uid);
    log(state.outbox, "element/removed", { path: record.path, type: record.type, uid: record.uid });
    forgotten = true;
  }
  return forgotten;
}

function isGone(state: ControllerState, record: ElementRecord, wishes: Wishes, hosts: readonly RulesAtHost[]): boolean {
  switch (record.type) {
    case "VM":
      return (state.vms.get(record.uid)?.run ?? null) === null;
    case "Volume":
    case "VolumeCopy":
      return isWithdrawn(state, storageManagerOf(state), `volume/${record.uid}`, wishes);
    case "VolumeConnection":
      return isWithdrawn(state, storageManagerOf(state), `connection/${record.uid}`, wishes);
    case "Subnet":
      return isManagement(state, record)
        ? isManagementGone(state, record)
        : isWithdrawn(state, addressManager, `subnet/${record.uid}`, wishes);
    case "VirtualInterface":
      return record.name === null || isWithdrawn(state, dnsManager, `name/${record.uid}`, wishes);
    case "CellController":
      return state.options.cellManager !== true || hasChildEnded(state, record.uid, wishes);
    case "NetworkRule":
      return whyNotInForce(state, record, hosts) === null;
    case "VolumeGrant":
      return true;
  }
}

const isWithdrawn = (state: ControllerState, peer: PeerName, key: string, wishes: Wishes): boolean =>
  wishes.get(peer)?.has(key) !== true && confirmedGone(state, peer, key);
