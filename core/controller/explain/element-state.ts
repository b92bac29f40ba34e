import type { Element, VirtualInterfaceElement, VmElement, VolumeConnectionElement } from "../../../model/cell/cell.ts";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { actualName, actualSubnet } from "../../documents/readers/network.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import type { Progress } from "../../documents/vocabulary.ts";
import { log, progress, tooLong } from "../../outbox.ts";
import { serviceNumber } from "../../service-roles.ts";
import { childState } from "../cells/children.ts";
import { heldReason, isHeldAt, straysReason } from "../histories/fork.ts";
import { chooseAddress } from "../network/addresses.ts";
import { isManagement } from "../network/management.ts";
import { foreignLink, whyNoOrigin, whyNotAgreed, whyNotConnected, whyNotVisible } from "../references/foreign.ts";
import { type RulesAtHost, rulesAtHosts, whyNotInForce } from "../rules/rules-in-force.ts";
import { bootLink } from "../services/boot-disks.ts";
import { refusedEnrolments } from "../services/enrolments.ts";
import {
  actualOf,
  addressManager,
  type ControllerState,
  cellManager,
  dnsManager,
  type ElementRecord,
  elementOf,
  hostPeer,
  placerOf,
  type Run,
  recordAt,
  saveElement,
  storageManagerOf,
  type VmRecord,
} from "../state.ts";
import { keptFor, upgradeState } from "../upgrade/upgrade.ts";
import { reservationReason, shortened } from "../vm/all-or-none.ts";
import { hostDied } from "../vm/host-died.ts";
import { actualVmOf, connectionOf, retryDelayMs } from "../vm/life-cycle.ts";
import { placementOf, refusalReason } from "../vm/placement.ts";
import { unheardReason } from "../vm/put-back.ts";
import { requirementsOf } from "../vm/requirements.ts";
import { startWait } from "../vm/start-limit.ts";

/** Works out every element's state; a change of phase or reason is durable and one event. */
export function updateStates(state: ControllerState): void {
  // VMs first: the states of their links follow from theirs.
  const records = [...state.elements.values()];
  const hosts = rulesAtHosts(state);
  for (const record of records.filter(({ type }) => type === "VM")) update(state, record, hosts);
  for (const record of records.filter(({ type }) => type !== "VM")) update(state, record, hosts);
}

function update(state: ControllerState, record: ElementRecord, hosts: readonly RulesAtHost[]): void {
  const element = elementOf(state, record);
  if (element === undefined) setState(state, record, deletingState(state, record, hosts));
  else if (record.phase === null || isHeardOf(state, record, hosts))
    setState(state, record, stateOf(state, record, element, hosts));
}

/**
 * Have those spoken since the start on whom an element's state rests? Until then its last known state stays: that a
 * controller started again is no news about its cell.
 */
function isHeardOf(state: ControllerState, record: ElementRecord, hosts: readonly RulesAtHost[]): boolean {
  const host = state.vms.get(record.uid)?.run?.host;
  const peers = [storageManagerOf(state), addressManager, dnsManager, placerOf(state)];
  if (record.type === "CellController" && state.options.cellManager === true) peers.push(cellManager);
  if (host) peers.push(hostPeer(host));
  if (record.type === "NetworkRule") peers.push(...hosts.map((each) => hostPeer(each.host)));
  return peers.every((peer) => state.reachable.has(peer));
}

/** The one function that changes an element's state, and logs it. */
function setState(state: ControllerState, record: ElementRecord, { phase, reason }: Progress): void {
  if (record.phase === phase && record.reason === reason) return;
  const since = record.phase === phase ? record.since : state.now.wallMs;
  saveElement(state, { ...record, phase, reason, since });
  log(state.outbox, "element/state", { path: record.path, type: record.type, uid: record.uid, phase, reason });
}

function deletingState(state: ControllerState, record: ElementRecord, hosts: readonly RulesAtHost[]): Progress {
  if (record.type === "NetworkRule") {
    const why = whyNotInForce(state, record, hosts);
    return progress("deleting", why === null ? null : `its removal is not in force yet: ${why.reason}`);
  }
  const run = state.vms.get(record.uid)?.run;
  if (run?.host && state.reachable.get(hostPeer(run.host)) === false) {
    return progress("deleting", hostDied(state, run.host) ?? `host ${run.host} is not reachable`);
  }
  if (record.type === "CellController") {
    return progress("deleting", actualOf(actualCell, state, cellManager, `cell/${record.uid}`)?.reason ?? null);
  }
  if (record.type === "Volume" || record.type === "VolumeCopy") {
    const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
    const kept = keptFor(state, record.uid);
    if (kept !== null) return progress("deleting", `kept until ${kept} has proved itself with its new boot volume`);
    return progress("deleting", actual?.phase === "deleting" || actual?.available === false ? actual.reason : null);
  }
  return progress("deleting", run?.host ? `waits for host ${run.host} to stop it` : null);
}

function stateOf(
  state: ControllerState,
  record: ElementRecord,
  element: Element,
  hosts: readonly RulesAtHost[],
): Progress {
  const heldBack = reservationReason(state, record);
  if (heldBack !== null) return progress("waiting", heldBack);
  switch (element.type) {
    case "VM":
      return vmState(state, record, element);
    case "Volume":
    case "VolumeCopy": {
      const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${record.uid}`);
      const why = whyNoOrigin(state, record, element);
      return why === null
        ? (actual ?? pending(state, storageManagerOf(state), "the Storage Manager"))
        : progress("waiting", why.reason);
    }
    case "Subnet": {
      if (isManagement(state, record)) return progress("ready");
      const actual = actualOf(actualSubnet, state, addressManager, `subnet/${record.uid}`);
      return actual ?? pending(state, addressManager, "the IP Address Manager");
    }
    case "VirtualInterface":
      return interfaceState(state, record, element);
    case "VolumeConnection":
      return connectionState(state, record, element);
    case "NetworkRule": {
      const why = whyNotAgreed(state, record.uid, element);
      if (why !== null) return progress("waiting", why.reason);
      return whyNotInForce(state, record, hosts) ?? progress("ready");
    }
    case "VolumeGrant": {
      const want = element.to.kind === "vm" ? foreignLink(element.to.vm) : null;
      const why = want === null ? null : whyNotVisible(state, want, "addresses");
      return why === null ? progress("ready") : progress("waiting", why.reason);
    }
    case "CellController":
      return childState(state, record, element);
  }
}

/** Said of a document that its receiver has not answered. */
function pending(state: ControllerState, peer: PeerName, name: string): Progress {
  const number = serviceNumber(peer);
  const who = number === 1 ? name : `${name} ${number}`;
  const isLost = state.reachable.get(peer) === false;
  return progress("waiting", isLost ? `${who} is not reachable` : `waits for ${who}`);
}

function vmState(state: ControllerState, record: ElementRecord, element: VmElement): Progress {
  const vm = state.vms.get(record.uid);
  if (vm === undefined) throw new Error(`${record.path} has no record of its incarnations`);
  const strays = straysReason(state, vm) ?? unheardReason(state, vm);
  if (strays !== null && vm.run?.handedOver !== true && element.desiredState === "on")
    return progress("waiting", strays);
  if (vm.run !== null) return runState(state, record, element, vm, vm.run);
  if (element.desiredState === "off") return progress("ready");
  if (vm.failure !== null && !vm.again) {
    return progress("failed", `${vm.failure}; it stays off because x.restartOnFailure is false`);
  }
  if (vm.failure !== null && state.resting.has(record.uid)) {
    return progress("waiting", `${vm.failure}; starts again after ${retryDelayMs(vm.failures) / 1000} s`);
  }
  const { missing } = requirementsOf(state, element);
  const turn = startWait(state, record.uid);
  const before = turn === null || vm.failure === null ? "" : `; before: ${vm.failure}`;
  return progress("waiting", missing.join("; ") || `${turn ?? "is about to start"}${before}`);
}

function runState(state: ControllerState, record: ElementRecord, element: VmElement, vm: VmRecord, run: Run): Progress {
  // What ended the last incarnation is worth reading until the next one runs.
  const after = vm.failure === null ? "" : `; before: ${vm.failure}`;
  if (run.stage === "placing") {
    const placement = placementOf(state, vm.uid, run);
    if (placement === undefined) return progress("working", `asks for a host${after}`);
    if (placement.host === null) return progress("waiting", `${refusalReason(placement)}${after}`);
    const others = shortened(state.reservation.lacking);
    return progress("waiting", `all-or-none: waits until ${others} can be had too${after}`);
  }
  if (run.stage === "connecting") {
    const reasons = run.disks.flatMap((disk) => {
      const connection = connectionOf(state, disk.connection, run);
      if (connection?.phase === "ready") return [];
      const path = state.elements.get(disk.volume)?.path ?? disk.volume;
      return [`waits to connect ${path}${connection?.reason ? `: ${connection.reason}` : ""}`];
    });
    return progress("working", `${reasons.join("; ") || "connects its volumes"}${after}`);
  }
  const peer = run.host === null ? null : hostPeer(run.host);
  if (run.host !== null && peer !== null && state.reachable.get(peer) === false) {
    const died = hostDied(state, run.host);
    if (died !== null) return progress("waiting", died);
    const reason = `host ${run.host} is not reachable`;
    if (state.lost.has(peer)) return progress("waiting", `${reason}: whether it still runs there is not known`);
    return { phase: record.phase ?? "working", reason };
  }
  if (isHeldAt(state, run.host)) {
    const actual = actualVmOf(state, vm.uid, run);
    const said = actual?.reason == null ? "" : `${actual.reason}; `;
    if (run.stage === "stopping" || actual?.power !== "on")
      return progress("waiting", `${said}${heldReason(state, run.host)}`);
  }
  if (run.stage === "stopping") return stopping(run, after);
  const untold = peer === null ? null : tooLong(state.outbox, peer, `vm/${vm.uid}`);
  if (untold !== null) return progress("failed", `host ${run.host} cannot be told: ${untold}`);
  const actual = actualVmOf(state, vm.uid, run);
  if (actual?.power === "on") {
    const isLeft = actual.health === "silent" && !element.restartOnFailure;
    const why = isLeft ? `${actual.reason}; it is left as it is because x.restartOnFailure is false` : actual.reason;
    const phase = actual.phase === "deleting" ? "working" : actual.phase;
    return progress(phase, sentences(why, ...diskTroubles(state, run), ...refusedEnrolments(state, vm.uid)));
  }
  if (actual !== undefined && actual.reason !== null) {
    return progress(actual.phase === "ready" ? "working" : actual.phase, actual.reason);
  }
  return progress("working", `starts at ${run.host}${after}`);
}

/** What keeps a running VM from its disks: a server that is away or full stops whoever reads or writes there. */
function diskTroubles(state: ControllerState, run: Run): readonly string[] {
  return run.disks.flatMap(({ volume }) => {
    const actual = actualOf(actualVolume, state, storageManagerOf(state), `volume/${volume}`);
    if (actual?.available !== false || actual.reason === null) return [];
    return [`its disk ${state.elements.get(volume)?.path ?? volume}: ${actual.reason}`];
  });
}

const sentences = (...reasons: readonly (string | null)[]): string | null =>
  reasons.filter((reason) => reason !== null).join("; ") || null;

/** What a link's VM says: the link is ready with it, unless the incarnation that runs was started without the link. */
function linkState(
  state: ControllerState,
  record: ElementRecord,
  element: VirtualInterfaceElement | VolumeConnectionElement,
): Progress {
  const vmRecord = recordAt(state, element.vm);
  const run = vmRecord === undefined ? null : (state.vms.get(vmRecord.uid)?.run ?? null);
  const upgrade = vmRecord === undefined ? null : upgradeState(state, vmRecord.uid);
  if (upgrade !== null && bootLink(state, element.vm)?.path === element.path) return upgrade;
  if (run !== null && run.stage !== "stopping") {
    const included = run.interfaces.includes(record.uid) || run.disks.some((disk) => disk.connection === record.uid);
    if (!included) return progress("waiting", `takes effect when ${element.vm} starts next`);
  }
  if (vmRecord?.phase === "ready") return progress("ready");
  return progress(vmRecord?.phase === "working" ? "working" : "waiting", `waits for ${element.vm}`);
}

function interfaceState(state: ControllerState, record: ElementRecord, element: VirtualInterfaceElement): Progress {
  if (record.allocation === null) {
    const choice = chooseAddress(state, record.uid, element);
    return progress("waiting", typeof choice === "string" ? "gets its address" : choice.reason);
  }
  const link = linkState(state, record, element);
  const name = actualOf(actualName, state, dnsManager, `name/${record.uid}`);
  // A name that could not be made harms nobody but its user: it is said, and holds nothing up.
  if (name?.phase === "failed") return { phase: link.phase, reason: `its name ${record.name}: ${name.reason}` };
  return link;
}

function connectionState(state: ControllerState, record: ElementRecord, element: VolumeConnectionElement): Progress {
  const vmRecord = recordAt(state, element.vm);
  const run = vmRecord === undefined ? null : (state.vms.get(vmRecord.uid)?.run ?? null);
  const actual = run === null ? undefined : connectionOf(state, record.uid, run);
  const why = whyNotConnected(state, element, actual);
  if (why !== null) return progress("waiting", why.reason);
  if (run?.stage === "connecting" && actual !== undefined && actual.phase !== "ready") return actual;
  return linkState(state, record, element);
}

/** A host that has lost its store says nothing by its silence, nor does another machine under its name: somebody has to look. */
function stopping({ host, unsure }: Run, after: string): Progress {
  const then = `then \`cells orphans release host.${host}\`${after}`;
  if (unsure === "lost")
    return progress("waiting", `host ${host} has lost its store and may run it still: look there, ${then}`);
  if (unsure === "replaced")
    return progress(
      "waiting",
      `another machine has the name ${host} by now, and the one before may run it still: make sure that its power is off, ${then}`,
    );
  return progress("working", `stops at ${host}${after}`);
}
