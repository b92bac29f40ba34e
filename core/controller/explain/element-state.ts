import { type Cause, said } from "../../../model/cause/cause.ts";
import type { Element, VirtualInterfaceElement, VmElement, VolumeConnectionElement } from "../../../model/cell/cell.ts";
import { type ElementPath, elementPath, type HostName, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { actualName, actualSubnet } from "../../documents/readers/network.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import { tenancy } from "../../documents/tenancy.ts";
import type { ActualVolume } from "../../documents/vocabulary.ts";
import { log, sameJson, toJson, tooLong } from "../../outbox.ts";
import { childState } from "../cells/children.ts";
import { accountIsOff, answerOf, asSaid, because, standing, target, told } from "../changes/standing.ts";
import { isHeldAt, whyHeld, whyStrays } from "../histories/fork.ts";
import { whyUnheard } from "../histories/put-back.ts";
import { chooseAddress, machinesIn, takenRange } from "../network/addresses.ts";
import {
  isInstanceKept,
  isOnMode,
  networkViewManager,
  whyGroupLags,
  whyNoElastic,
  whyNoInstance,
} from "../network/instances.ts";
import { isManagement } from "../network/management.ts";
import type { ElementRecord, Run, Standing, VmRecord } from "../records.ts";
import { whyForeign } from "../references/foreign.ts";
import { isInRules, whyNotInForce } from "../rules/rules-in-force.ts";
import { bootLink } from "../services/boot-disks.ts";
import { refusedEnrolments } from "../services/enrolments.ts";
import { whyUnguarded } from "../services/guard.ts";
import { poolHostState } from "../services/pools/asked.ts";
import { isTenantType, tenantState } from "../services/tenants.ts";
import {
  actualOf,
  addressManager,
  type ControllerState,
  cellManager,
  dnsManager,
  elementOf,
  isOff,
  placerOf,
  recordAt,
  saveElement,
  storageManagerOf,
} from "../state.ts";
import { leavingOf } from "../upgrade/moves.ts";
import { keptFor, upgradeState } from "../upgrade/upgrade.ts";
import { whyGivenBack, whyPlaceIsHeld } from "../vm/all-or-none.ts";
import { hostDied } from "../vm/host-died.ts";
import { actualVmOf, connectionOf, lastEndOf } from "../vm/life-cycle.ts";
import { noHost, placementOf } from "../vm/places/placement.ts";
import { requirementsOf } from "../vm/requirements.ts";
import { retryDelayMs } from "../vm/retry-delay.ts";
import { whyNoTurn } from "../vm/start-limit.ts";
import { whyNotGrown } from "../volumes/growth.ts";
import { whyHeldForCopy } from "../volumes/holds.ts";
import { grantState, whyNotAsked, whyNotConfirmed, whyNotServed } from "./confirmed.ts";

/** Works out every element's state; a change of phase or reason is durable and one event. */
export function updateStates(state: ControllerState): void {
  const work = (record: ElementRecord): void => update(state, record);
  // VMs first: the states of their links follow from theirs.
  state.pass.each("states of VMs", state.elements, work, { of: ({ type }) => type === "VM" });
  state.pass.each("states", state.elements, work, { of: ({ type }) => type !== "VM" });
}

function update(state: ControllerState, record: ElementRecord): void {
  const element = elementOf(state, record);
  if (element === undefined) setState(state, record, deletingState(state, record));
  else if (record.phase === null || isOwnNews(state, record) || isHeardOf(state, record))
    setState(state, record, stateOf(state, record, element));
}

/** A next incarnation is this controller's to begin, whoever was heard: what was so of the one before is over. */
function isOwnNews(state: ControllerState, { uid, phase }: ElementRecord): boolean {
  const stage = state.vms.get(uid)?.run?.stage;
  return phase === "ready" && (stage === "placing" || stage === "connecting");
}

/**
 * Have those spoken since the start on whom an element's state rests? Until then its last known state stays: that a
 * controller started again is no news about its cell.
 */
function isHeardOf(state: ControllerState, record: ElementRecord): boolean {
  const host = state.vms.get(record.uid)?.run?.host;
  const peers = [storageManagerOf(state), addressManager, dnsManager, placerOf(state)];
  if (record.type === "CellController" && state.options.cellManager === true) peers.push(cellManager);
  if (host) peers.push(hostPeer(host));
  if (isOnMode(state)) peers.push(networkViewManager);
  if (isTenantType(record.type)) peers.push(tenancy);
  if (isInRules(state, record) && state.derived.unheard.size > 0) return false;
  return peers.every((peer) => state.reachable.has(peer));
}

/** The one function that changes an element's state, and logs it. */
function setState(state: ControllerState, record: ElementRecord, { phase, causes }: Standing): void {
  if (record.phase === phase && sameJson(toJson(record.causes), toJson(causes))) return;
  const since = record.phase === phase ? record.since : state.now.wallMs;
  saveElement(state, { ...record, phase, causes, since });
  const { path, type, uid } = record;
  log(state.outbox, "element/state", { path, type, uid, phase, ...(toJson(told(causes)) as JsonObject) });
}

function deletingState(state: ControllerState, record: ElementRecord): Standing {
  return standing("deleting", ...whyStillThere(state, record));
}

/** What the end of an element waits for. */
function whyStillThere(state: ControllerState, record: ElementRecord): readonly Cause[] {
  if (record.type === "NetworkRule") {
    const why = whyNotInForce(state, record);
    return why === null ? [] : [{ kind: "removal-not-in-force", because: why.causes }];
  }
  const host = state.vms.get(record.uid)?.run?.host ?? null;
  if (host !== null && state.reachable.get(hostPeer(host)) === false) {
    return [hostDied(state, host) ?? { kind: "host-unreachable", host }];
  }
  if (isTenantType(record.type) && state.reachable.get(tenancy) !== true)
    return [{ kind: "service-unreachable", service: tenancy }];
  if (record.type === "CellController") {
    return said(cellManager, actualOf(actualCell, state, cellManager, `cell/${record.uid}`)?.reason);
  }
  if (record.type === "Volume" || record.type === "VolumeCopy") {
    const manager = storageManagerOf(state);
    const actual = actualOf(actualVolume, state, manager, `volume/${record.uid}`);
    const kept = keptFor(state, record.uid);
    if (kept !== null) return [{ kind: "upgrade-kept", vm: kept }];
    const held = whyHeldForCopy(state, record);
    if (held.length > 0) return held;
    return actual?.phase === "deleting" || actual?.available === false ? said(manager, actual.reason) : [];
  }
  return host === null ? [] : [{ kind: "stops", host }];
}

function stateOf(state: ControllerState, record: ElementRecord, element: Element): Standing {
  const back = whyGivenBack(state, record);
  if (back !== null) return standing("waiting", back);
  const foreign = whyForeign(state, record, element);
  if (foreign !== null) return standing("waiting", foreign);
  switch (element.type) {
    case "VM":
      return vmState(state, record, element);
    case "Volume":
    case "VolumeCopy": {
      const manager = storageManagerOf(state);
      const actual = actualOf(actualVolume, state, manager, `volume/${record.uid}`);
      if (actual?.phase !== "ready")
        return imageAwaited(element, actual) ?? roomAwaited(actual) ?? answerOf(state, manager, actual);
      const owes = whyNotGrown(state, record.uid, element, actual);
      return owes ?? asSaid(manager, { ...actual, reason: actual.smallerMiB === undefined ? actual.reason : null });
    }
    case "Subnet": {
      if (isManagement(state, record)) return standing("ready");
      if (isOnMode(state)) return whyGroupLags(state, record) ?? standing("ready");
      const actual = actualOf(actualSubnet, state, addressManager, `subnet/${record.uid}`);
      const taken = takenRange(state, record);
      if (taken !== null)
        return standing("failed", { kind: "range-taken", cidr: taken, vms: machinesIn(state, record.uid) });
      const lacks = actual?.phase === "ready" ? whyNotInForce(state, record) : null;
      return lacks ?? answerOf(state, addressManager, actual);
    }
    case "VirtualInterface":
      return interfaceState(state, record, element);
    case "VolumeConnection":
      return connectionState(state, record, element);
    case "NetworkRule":
      return whyNotInForce(state, record) ?? standing("ready");
    case "VolumeGrant":
      return grantState(state, record);
    case "CellController":
      return childState(state, record, element);
    case "Host":
    case "Zone":
    case "Pod":
    case "Cluster":
    case "Dedication":
    case "AffinityGroup":
    case "Offering":
    case "HostFlavor":
    case "Pool":
      return standing("ready");
    case "PoolHost":
      return poolHostState(state, record);
    case "Domain":
    case "Account":
    case "Role":
      return tenantState(state, record);
  }
}

/** Null: it waits for something else, or not at all. */
function roomAwaited(actual: ActualVolume | undefined): Standing | null {
  if (actual?.noRoom !== true || actual.reason === null) return null;
  return standing("waiting", { kind: "no-storage", sentence: actual.reason });
}

/** Null: it waits for something else, or not at all. */
function imageAwaited(element: Element, actual: ActualVolume | undefined): Standing | null {
  const image = element.type === "Volume" ? element.import : undefined;
  if (image === undefined || actual?.noImage !== true || actual.reason === null) return null;
  const damaged = actual.server === null ? {} : { damaged: true as const };
  return standing("waiting", { kind: "no-image", image, sentence: actual.reason, ...damaged });
}

function vmState(state: ControllerState, record: ElementRecord, element: VmElement): Standing {
  const vm = state.vms.get(record.uid);
  if (vm === undefined) throw new Error(`${record.path} has no record of its incarnations`);
  const elsewhere = whyStrays(state, vm) ?? whyUnheard(state, vm);
  if (elsewhere !== null && vm.run?.handedOver !== true && element.desiredState === "on")
    return standing("waiting", elsewhere);
  if (vm.run !== null) return runState(state, record, element, vm, vm.run);
  if (element.desiredState === "off") return standing("ready");
  if (isOff(state)) return standing("waiting", accountIsOff);
  const end = lastEndOf(state, vm);
  if (vm.failure !== null && !vm.again)
    return standing("failed", ...end, { kind: "not-restarted", target: target(state, record.path) });
  if (vm.failure !== null && state.resting.has(record.uid)) {
    const { failures } = vm;
    return standing("waiting", ...end, { kind: "backs-off", seconds: retryDelayMs(failures) / 1000, failures });
  }
  const { missing } = requirementsOf(state, element);
  if (missing.length > 0) return standing("waiting", ...missing);
  const turn = whyNoTurn(state, record.uid);
  return turn === null
    ? standing("waiting", { kind: "about-to-start" })
    : standing("waiting", turn, ...beforeThat(end));
}

/** What ended the last incarnation is worth reading until the next one runs. */
const beforeThat = (end: readonly Cause[]): readonly Cause[] =>
  end.length === 0 ? [] : [{ kind: "before", because: end }];

function runState(state: ControllerState, record: ElementRecord, element: VmElement, vm: VmRecord, run: Run): Standing {
  const before = beforeThat(lastEndOf(state, vm));
  if (run.stage === "placing") {
    const placement = placementOf(state, vm.uid, run);
    if (placement === undefined) return standing("working", { kind: "asks-for-host" }, ...before);
    if (placement.host === null) return standing("waiting", noHost(placement), ...before);
    return standing("waiting", whyPlaceIsHeld(state), ...before);
  }
  if (run.stage === "connecting") {
    if (isHeldAt(state, run.host)) return standing("waiting", whyHeld(state, run.host), ...before);
    const causes = run.disks.flatMap((disk): readonly Cause[] => {
      const connection = connectionOf(state, disk.connection, run);
      if (connection?.phase === "ready") return [];
      const why = said(storageManagerOf(state), connection?.reason);
      return [{ kind: "waits-for-lease", element: pathOf(state, disk.volume), ...because(why) }];
    });
    const all = [...causes, ...whyNoInstance(state, vm.uid, run)];
    return standing("working", ...(all.length > 0 ? all : [{ kind: "connects-volumes" } as const]), ...before);
  }
  const { host } = run;
  // Only what was handed over to a host is further than that.
  if (host === null) return standing("working", ...before);
  const peer = hostPeer(host);
  const alone = element.restartOnFailure ? whyUnguarded(state) : null;
  const unguarded: readonly Cause[] = alone === null ? [] : [alone];
  if (state.reachable.get(peer) === false) {
    const died = hostDied(state, host);
    if (died !== null) return standing("waiting", died, ...unguarded);
    if (state.lost.has(peer))
      return standing("waiting", { kind: "host-unreachable", host, unknown: true }, ...unguarded);
    return standing(record.phase ?? "working", { kind: "host-unreachable", host }, ...unguarded);
  }
  const actual = actualVmOf(state, vm.uid, run);
  if (isHeldAt(state, host) && (run.stage === "stopping" || actual?.power !== "on"))
    return standing("waiting", ...said(peer, actual?.reason), whyHeld(state, host));
  if (run.stage === "stopping") return stopping(run, host, before);
  const untold = tooLong(state.outbox, peer, `vm/${vm.uid}`);
  if (untold !== null) return standing("failed", untold);
  if (actual?.power === "on") {
    const isLeft = actual.health === "silent" && !element.restartOnFailure;
    const left: readonly Cause[] = isLeft ? [{ kind: "silent-left" }] : [];
    const phase = actual.phase === "deleting" ? "working" : actual.phase;
    const leaving = leavingOf(state, vm, run);
    const stays: readonly Cause[] = leaving !== null && "waits" in leaving ? [leaving.waits] : [];
    const more = [...diskTroubles(state, run), ...refusedEnrolments(state, vm.uid), ...stays, ...unguarded];
    const owes = phase === "ready" ? whyNotConfirmed(state, record, host, actual) : null;
    const unasked = actual.health === "starting" ? whyNotAsked(state, element, run) : null;
    if (unasked !== null) return standing(unasked.phase, ...unasked.causes, ...more);
    if (owes !== null) return standing(owes.phase, ...owes.causes, ...said(peer, actual.reason), ...more);
    return standing(phase, ...said(peer, actual.reason), ...left, ...more);
  }
  if (actual !== undefined && actual.reason !== null)
    return standing(actual.phase === "ready" ? "working" : actual.phase, ...said(peer, actual.reason));
  return standing("working", { kind: "starts", host }, ...before);
}

const pathOf = (state: ControllerState, element: Uid): ElementPath =>
  state.elements.get(element)?.path ?? elementPath(element);

/** What keeps a running VM from its disks: a server that is away or full stops whoever reads or writes there. */
function diskTroubles(state: ControllerState, run: Run): readonly Cause[] {
  const manager = storageManagerOf(state);
  return run.disks.flatMap(({ volume }): readonly Cause[] => {
    const actual = actualOf(actualVolume, state, manager, `volume/${volume}`);
    if (actual?.available !== false || actual.reason === null) return [];
    return [{ kind: "disk-unavailable", element: pathOf(state, volume), because: said(manager, actual.reason) }];
  });
}

/** What a link's VM says: the link is ready with it, unless the incarnation that runs was started without the link. */
function linkState(
  state: ControllerState,
  record: ElementRecord,
  element: VirtualInterfaceElement | VolumeConnectionElement,
): Standing {
  const vmRecord = recordAt(state, element.vm);
  const run = vmRecord === undefined ? null : (state.vms.get(vmRecord.uid)?.run ?? null);
  const upgrade = vmRecord === undefined ? null : upgradeState(state, vmRecord.uid);
  if (upgrade !== null && bootLink(state, element.vm)?.path === element.path) return upgrade;
  if (run !== null && run.stage !== "stopping") {
    const included = run.interfaces.includes(record.uid) || run.disks.some((disk) => disk.connection === record.uid);
    if (!included) return standing("waiting", { kind: "next-start", vm: element.vm });
  }
  if (vmRecord?.phase === "ready") return standing("ready");
  const phase = vmRecord?.phase === "working" ? "working" : "waiting";
  return standing(phase, { kind: "waits-for", element: element.vm });
}

function interfaceState(state: ControllerState, record: ElementRecord, element: VirtualInterfaceElement): Standing {
  if (record.allocation === null && isOnMode(state) && !isInstanceKept(state, element))
    return linkState(state, record, element);
  if (record.allocation === null) {
    const choice = chooseAddress(state, record.uid, element);
    return standing("waiting", typeof choice === "string" ? { kind: "address-asked" } : choice);
  }
  const link = linkState(state, record, element);
  const name = actualOf(actualName, state, dnsManager, `name/${record.uid}`);
  if (name?.phase !== "failed")
    return link.phase === "ready" ? (whyNoElastic(state, element) ?? whyNotServed(state, record, name) ?? link) : link;
  // A name that could not be made harms nobody but its user: it is said, and holds nothing up.
  const why = said(dnsManager, name.reason);
  return standing(link.phase, { kind: "name-failed", name: record.name ?? "", ...because(why) });
}

function connectionState(state: ControllerState, record: ElementRecord, element: VolumeConnectionElement): Standing {
  const vmRecord = recordAt(state, element.vm);
  const run = vmRecord === undefined ? null : (state.vms.get(vmRecord.uid)?.run ?? null);
  const actual = run === null ? undefined : connectionOf(state, record.uid, run);
  if (run?.stage === "connecting" && actual !== undefined && actual.phase !== "ready")
    return asSaid(storageManagerOf(state), actual);
  return linkState(state, record, element);
}

/** A host that has lost its store says nothing by its silence, nor does another machine under its name: somebody has to look. */
function stopping({ unsure }: Run, host: HostName, before: readonly Cause[]): Standing {
  if (unsure === "lost") return standing("waiting", { kind: "host-lost-store", host }, ...before);
  if (unsure === "replaced") return standing("waiting", { kind: "host-replaced", host }, ...before);
  return standing("working", { kind: "stops", host }, ...before);
}
