import { type ElementPath, type Uid, uid } from "../../../model/cell/identifiers.ts";
import { log, write } from "../../outbox.ts";
import { beyondUnheard } from "../histories/kept-numbers.ts";
import { grantAnew } from "../model/quota.ts";
import { serviceVms } from "../services/boot-disks.ts";
import { lastBootedFirst, ownVm } from "../services/succession.ts";
import {
  type ControllerState,
  linksOf,
  recordAt,
  saveCounters,
  saveElement,
  savePolicy,
  saveVm,
  type VmRecord,
} from "../state.ts";

/**
 * A controller whose store was put back from a backup (decision 59). What it gave out between the backup and its end may be in
 * no store any more, where its receivers were lost as well, and lives on in the volumes of storage servers: their UIDs, and
 * the incarnations that hold their leases. So it goes on far above all that it can have given out since.
 */
const withoutRun = (vm: VmRecord): VmRecord =>
  vm.run === null ? vm : { ...vm, failure: null, failures: 0, again: false, avoid: [], run: null };

/** Once, at the first start of such a store. */
export function goOnAbove(state: ControllerState): void {
  const { drawn, counters, policy } = state;
  const { nextNumber, nextIdentity, nextRule } = counters;
  saveCounters(state, {
    nextNumber: beyondUnheard(drawn, "element", nextNumber),
    nextIdentity: beyondUnheard(drawn, "identity", nextIdentity),
    nextRule: beyondUnheard(drawn, "rule", nextRule),
  });
  savePolicy(state, { ...policy, version: beyondUnheard(drawn, "policy version", policy.version) });
  grantAnew(state);
  for (const vm of [...state.vms.values()]) {
    const next = { ...vm, above: beyondUnheard(drawn, "incarnation", vm.incarnation) };
    saveVm(state, state.hostsAreGone ? withoutRun(next) : next);
  }
  if (state.options.root === undefined || !state.hostsAreGone) return;
  for (const { path } of serviceVms(state)) giveNewStores(state, path);
}

/**
 * Every service VM of the root cell begins anew where the stores were put back: on a volume of a new UID, which is blank, and takes
 * over its store of the backup. A store that survived on a server knows of later things than the others, and of hosts that are
 * gone; its volume stays there as it is.
 */
function giveNewStores(state: ControllerState, vm: ElementPath): void {
  const disks = linksOf(state, vm).filter((link) => link.type === "VolumeConnection");
  const [stores] = disks.sort(lastBootedFirst);
  const before = stores === undefined || disks.length < 2 ? undefined : recordAt(state, stores.volume);
  if (before === undefined) return;
  const number = state.counters.nextNumber;
  saveCounters(state, { nextNumber: number + 1 });
  state.elements.delete(before.uid);
  write(state.outbox, `element/${before.uid}`, null);
  const volume = uid(`${state.options.cellUid}-${number}`);
  state.uids.set(before.path, volume);
  saveElement(state, { ...before, uid: volume, unwritten: true, phase: null, reason: null });
  log(state.outbox, "volume/anew", { path: before.path, volume, before: before.uid });
}

/**
 * After the store of the root controller was put back, its own VM starts before every other of the root cell: until then it
 * runs as a process of one host, with a Placer that knows this host alone.
 */
export function waitsForOwnVm(state: ControllerState, vm: Uid): boolean {
  if (state.options.root === undefined) return false;
  const own = ownVm(state);
  return own !== undefined && own.uid !== vm && own.above !== undefined && own.run?.handedOver !== true;
}
