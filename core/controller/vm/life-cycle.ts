import { type Cause, said } from "../../../model/cause/cause.ts";
import { sentence } from "../../../model/cause/sentence.ts";
import { displayShare } from "../../../model/cell/attributes/display-memory.ts";
import type { VmElement } from "../../../model/cell/cell.ts";
import { type HostName, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import { actualVm } from "../../documents/readers/host.ts";
import { actualConnection } from "../../documents/readers/storage.ts";
import type { ActualConnection, ActualPlacement, ActualVm, Attachment } from "../../documents/vocabulary.ts";
import { log } from "../../outbox.ts";
import { hasEnded } from "../../presence/group/deaths.ts";
import type { Work } from "../changes/work.ts";
import { isHeldAt, straysOf, withoutStrays } from "../histories/fork.ts";
import { askFirst, settleUnheard, waitsForOwnVm, whyUnheard } from "../histories/put-back.ts";
import { whyNoInstance } from "../network/instances.ts";
import type { Ran, Run, VmEnd, VmRecord } from "../records.ts";
import { isOwnVm } from "../services/service-data.ts";
import {
  actualOf,
  type ControllerState,
  confirmedGone,
  elementOf,
  isHeldBack,
  isOff,
  saveVm,
  storageManagerOf,
} from "../state.ts";
import { imageAsked, wishesOf } from "./places/offering.ts";
import { givenBy, placementOf } from "./places/placement.ts";
import { restOf, withRun } from "./places/rested.ts";
import { overOf } from "./protected.ts";
import { requirementsOf } from "./requirements.ts";
import { retryDelayMs, stableMs } from "./retry-delay.ts";
import { chargeStart, settleStarts, takeStart } from "./start-limit.ts";

/**
 * The life of a VM, one incarnation after another. A run is advanced by what peers say and by what the model wants, and
 * each stage is durable before what it asks for leaves, so a crash between any two steps finds it where it was.
 *
 *   (none) → placing → connecting → running → stopping → (none)
 *
 * A stage goes back to nothing at once while no host was told of it; later only the host's word ends it, since the
 * volumes and the place of an incarnation that may still run must not be given away.
 */
/** The VM's element if the model wants it to run, and its account is not disabled. */
export function wantedOn(state: ControllerState, uid: Uid): VmElement | null {
  if (isOff(state)) return null;
  const record = state.elements.get(uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  return element?.type === "VM" && element.desiredState === "on" ? element : null;
}

/** What the host says of this incarnation. */
export function actualVmOf(state: ControllerState, uid: Uid, run: Run): ActualVm | undefined {
  if (run.host === null) return undefined;
  const actual = actualOf(actualVm, state, hostPeer(run.host), `vm/${uid}`);
  return actual?.incarnation === run.incarnation ? actual : undefined;
}

export function connectionOf(state: ControllerState, connection: Uid, run: Run): ActualConnection | undefined {
  const actual = actualOf(actualConnection, state, storageManagerOf(state), `connection/${connection}`);
  return actual?.incarnation === run.incarnation ? actual : undefined;
}
export function attachmentOf(state: ControllerState, connection: Uid, run: Run): Attachment | null {
  const actual = connectionOf(state, connection, run);
  return actual?.phase === "ready" ? actual.attachment : null;
}

/** Advances every VM as far as it goes now. */
export function* advanceVms(state: ControllerState): Work {
  settleUnheard(state);
  serveQueue(state);
  yield* state.pass.slices(() =>
    state.pass.each("vms", state.vms, (_vm, uid) => {
      // A run has four stages: no VM can move on more often than that without news from outside.
      for (let moves = 0; moves < 5; moves += 1) {
        const before = state.vms.get(uid);
        if (before !== undefined && !isHeldAt(state, before.run?.host ?? null)) advance(state, before);
        if (state.vms.get(uid) === before) break;
      }
    }),
  );
  settleStarts(state);
}

/** Those that wait for a start of the cell's rate have theirs before anybody who comes later. */
function serveQueue(state: ControllerState): void {
  for (const uid of state.starts.queue) {
    const vm = state.vms.get(uid);
    const run = vm === undefined ? null : nextRun(state, vm);
    // One that cannot start any more, or not now, waits for something else.
    if (run !== null && !takeStart(state)) return;
    state.starts.queue.delete(uid);
    if (vm !== undefined && run !== null) saveVm(state, withRun(vm, run));
  }
}

function advance(state: ControllerState, vm: VmRecord): void {
  if (vm.strays !== undefined && straysOf(state, vm).length === 0) {
    saveVm(state, withoutStrays(vm));
    return;
  }
  if (vm.run === null) advanceIdle(state, vm);
  else stages[vm.run.stage](state, vm, vm.run);
}

/** One function per stage. */
const stages: Readonly<Record<Run["stage"], (state: ControllerState, vm: VmRecord, run: Run) => void>> = {
  placing: advancePlacing,
  connecting: advanceConnecting,
  running: advanceRunning,
  stopping: advanceStopping,
};

function advanceIdle(state: ControllerState, vm: VmRecord): void {
  const element = wantedOn(state, vm.uid);
  if (element === null) {
    // Switched off by hand: the next start owes nothing to earlier failures.
    if (vm.failure !== null || vm.failures > 0) saveVm(state, { ...vm, failure: null, failures: 0, again: false });
    wake(state, vm.uid);
    state.starts.queue.delete(vm.uid);
    return;
  }
  if (state.starts.queue.has(vm.uid)) return;
  const run = nextRun(state, vm);
  if (run === null) return;
  if (state.elements.get(vm.uid)?.reserving === true) chargeStart(state);
  else if (state.starts.queue.size > 0 || !takeStart(state)) {
    state.starts.queue.add(vm.uid);
    return;
  }
  saveVm(state, withRun(vm, run));
}

/** The incarnation that may start now; null: there is none, it is not wanted or has to wait for something. */
function nextRun(state: ControllerState, vm: VmRecord): Run | null {
  const element = vm.run === null ? wantedOn(state, vm.uid) : null;
  if (element === null || (vm.failure !== null && !vm.again) || state.resting.has(vm.uid)) return null;
  if (vm.strays !== undefined) return null;
  const record = state.elements.get(vm.uid);
  if (record !== undefined && isHeldBack(state, record)) return null;
  if (waitsForOwnVm(state, vm.uid) || whyUnheard(state, vm) !== null) return null;
  const { disks, interfaces, missing } = requirementsOf(state, element);
  const wishes = wishesOf(state, element);
  if (missing.length > 0 || wishes === null) return null;
  const incarnation = Math.max(vm.incarnation, vm.above ?? 0) + 1;
  const { memoryMiB, cpus } = element;
  const resources = { memoryMiB, cpus, ...wishes };
  const isRestart = vm.failure !== null && vm.lastEnd?.how === "host died";
  return {
    incarnation,
    stage: "placing",
    host: null,
    handedOver: false,
    ...resources,
    disks,
    interfaces,
    ...(isRestart ? { restart: true as const } : {}),
    ...imageAsked(state, element),
  };
}

function advancePlacing(state: ControllerState, vm: VmRecord, run: Run): void {
  const element = wantedOn(state, vm.uid);
  if (element === null) {
    saveVm(state, { ...vm, run: null });
    return;
  }
  if (vm.strays !== undefined) return;
  const placed: Partial<ActualPlacement> = placementOf(state, vm.uid, run) ?? {};
  const { host = null, boot, terms } = placed;
  if (host === null || state.elements.get(vm.uid)?.reserving === true) return;
  // One that its host starts again by itself, in whatever boot, has not ended with any.
  const isBound = boot !== undefined && !isOwnVm(state, vm.uid);
  const said = { ...(isBound ? { boot } : {}), ...(terms === undefined ? {} : { terms }) };
  saveVm(state, {
    ...vm,
    run: { ...run, stage: "connecting", host, ...said, ...givenBy(placed, run, displayShare(element)) },
  });
}

function advanceConnecting(state: ControllerState, vm: VmRecord, run: Run): void {
  if (wantedOn(state, vm.uid) === null) {
    saveVm(state, { ...vm, run: null });
    return;
  }
  if (vm.strays !== undefined) return;
  // The Placer may not have heard of it when it chose: another place is asked for, and this host comes last.
  if (isPlaceOver(state, run)) {
    placeEnded(state, vm, run, true, hostOff(run));
    return;
  }
  const waits = whyNoInstance(state, vm.uid, run).length > 0;
  if (run.disks.some((disk) => attachmentOf(state, disk.connection, run) === null)) {
    askFirst(state, vm, run);
    return;
  }
  if (waits) return;
  const { endedAt: _endedAt, keptDisks: _keptDisks, ...rest } = vm;
  const ran = run.host === null ? vm.ran : ranWith(vm, run.incarnation, run.host);
  saveVm(state, {
    ...rest,
    ...(ran === undefined ? {} : { ran }),
    run: { ...run, stage: "running", handedOver: true },
  });
}
/** One that runs, and as many before as a host keeps of a VM. */
const mostRan = 4;
const ranWith = ({ ran = [] }: VmRecord, incarnation: number, host: HostName): readonly Ran[] =>
  [{ incarnation, host }, ...ran.filter((each) => each.incarnation !== incarnation)].slice(0, mostRan);

function advanceRunning(state: ControllerState, vm: VmRecord, run: Run): void {
  const element = wantedOn(state, vm.uid);
  if (element === null) {
    stopRun(state, vm.uid);
    return;
  }
  const why = isPlaceOver(state, run) ? hostOff(run) : whyOver(state, vm.uid, run);
  if (why !== null) {
    placeEnded(state, vm, run, element.restartOnFailure, why);
    return;
  }
  const actual = actualVmOf(state, vm.uid, run);
  if (actual === undefined) return;
  if (actual.power === "on") {
    if (isSilent(state, element, run, actual)) {
      // It is no longer desired, so its host stops it; only then the next incarnation starts.
      const failure = actual.reason ?? "did not answer its liveness probes";
      endRun(state, vm, run, { how: "silent", reason: failure }, { failure, again: true, avoid: vm.avoid ?? [] });
    } else noteRunning(state, vm, run, actual);
    return;
  }
  if (actual.ended === null && actual.phase !== "failed") return;
  if (actual.ended === "stopped") {
    // Its host was switched off, and nothing has failed: it comes back as it was.
    state.runningSince.delete(vm.uid);
    const lastEnd: VmEnd = { incarnation: run.incarnation, how: "stopped", reason: actual.reason };
    saveVm(state, { ...vm, lastEnd, run: { ...run, stage: "stopping" } });
    return;
  }
  // A VM that never started is tried again in any case; one that ended only where the model asks for it.
  const again = actual.ended === null || element.restartOnFailure;
  // A host that could not start it (no memory left, a full disk) is asked again only if no other one can hold it.
  const refused = actual.ended === null && run.host !== null ? [run.host] : [];
  const avoid = [...new Set([...(vm.avoid ?? []), ...refused])];
  const { ended, reason } = actual;
  endRun(
    state,
    vm,
    run,
    { how: ended ?? "not started", reason },
    { failure: sentence(endCause(actual)), again, avoid },
  );
}

/**
 * The power of the host was known to be off after the boot for which this incarnation was placed. A host starts nothing
 * that was placed for another boot than its present one, so nothing of the incarnation runs now, nor ever will.
 */
export const isPlaceOver = (state: ControllerState, { host, boot }: Run): boolean =>
  host !== null && boot !== undefined && hasEnded(state.deaths, host, boot);

const hostOff = ({ host }: Run): string => `the power of its host ${host} is known to be off`;

/** What the HA Manager has made sure of, a sentence. */
function whyOver(state: ControllerState, vm: Uid, run: Run): string | null {
  const over = overOf(state, vm, run);
  if (over === null) return null;
  if (over.by === "recreatable")
    return `its host ${run.host} is lost, nothing could end what may run there, and all that it writes to was made anew`;
  return over.by === "stopped"
    ? `its host ${run.host} is lost, and it was seen that it had ended`
    : `its host ${run.host} is lost, and it was fenced there: it can write nothing any more`;
}

function placeEnded(state: ControllerState, vm: VmRecord, run: Run, again: boolean, reason: string): void {
  const avoid = [...new Set([...(vm.avoid ?? []), ...(run.host === null ? [] : [run.host])])];
  endRun(state, vm, run, { how: "host died", reason }, { failure: reason, again, avoid });
}

/** An incarnation ends that nobody asked to end. */
function endRun(
  state: ControllerState,
  vm: VmRecord,
  run: Run,
  end: { readonly how: VmEnd["how"]; readonly reason: string | null },
  what: Pick<VmRecord, "failure" | "again" | "avoid">,
): void {
  const since = state.runningSince.get(vm.uid);
  state.runningSince.delete(vm.uid);
  const stable = since !== undefined && state.now.ms - since >= stableMs;
  const failures = (stable ? 0 : vm.failures) + 1;
  const lastEnd: VmEnd = { incarnation: run.incarnation, ...end };
  saveVm(state, { ...vm, ...what, failures, lastEnd, run: { ...run, stage: "stopping" } });
}

/**
 * Does a VM run that should be stopped because it does not answer? Only the word of a host that is in step counts: what a
 * host said before it was lost is no news of its VMs. Without `x.restartOnFailure` it is left as it is, for a look at it.
 */
function isSilent(state: ControllerState, element: VmElement, run: Run, actual: ActualVm): boolean {
  if (actual.health !== "silent" || element.liveness === undefined || !element.restartOnFailure) return false;
  return run.host !== null && state.reachable.get(hostPeer(run.host)) === true;
}

function noteRunning(state: ControllerState, vm: VmRecord, run: Run, actual: ActualVm): void {
  // One that is asked whether it lives is well only once it has answered.
  const isWell = actual.health === undefined || actual.health === "answering";
  if (isWell && !state.runningSince.has(vm.uid)) state.runningSince.set(vm.uid, state.now.ms);
  const reboots = actual.reboots ?? 0;
  const hasRebooted = reboots > (run.reboots ?? 0);
  if (hasRebooted) {
    const path = state.elements.get(vm.uid)?.path ?? null;
    log(state.outbox, "vm/rebooted", { path, type: "VM", uid: vm.uid, incarnation: run.incarnation, reboots });
  }
  const isNews = hasRebooted || isFound(state, vm.uid, run);
  if (vm.failure === null && !isNews) return;
  const now = isFound(state, vm.uid, run) ? found(run) : run;
  saveVm(state, { ...vm, failure: null, again: false, avoid: [], run: hasRebooted ? { ...now, reboots } : now });
}

const endCause = ({ ended, reason }: ActualVm): Cause => ({
  kind: "ended",
  how: ended ?? "not started",
  detail: reason,
});

/** What ended the last incarnation, if it ended by itself. */
export function lastEndOf({ options }: ControllerState, { failure, lastEnd }: VmRecord): readonly Cause[] {
  if (failure === null) return [];
  // An earlier version kept the sentence alone.
  return lastEnd === undefined
    ? said(options.self, failure)
    : [{ kind: "ended", how: lastEnd.how, detail: lastEnd.reason }];
}

function advanceStopping(state: ControllerState, vm: VmRecord, run: Run): void {
  if (isFound(state, vm.uid, run)) {
    saveVm(state, { ...vm, run: found(run) });
    return;
  }
  if (!isConfirmedStopped(state, vm.uid, run)) return;
  state.runningSince.delete(vm.uid);
  const rest = restOf(state, vm.uid, run, wantedOn(state, vm.uid) !== null);
  saveVm(state, { ...withEndAt(vm, run), ...freedOf(run), ...rest, run: null });
  if (vm.failure !== null && vm.again) delayRetry(state, vm.uid, vm.failures);
}

const freedOf = ({ forced, host, incarnation }: Run): Pick<VmRecord, "freed"> =>
  forced === true && host !== null ? { freed: { host, incarnation } } : {};

/** Where it has ended nobody has to be asked again before the next incarnation takes its disks. */
const withEndAt = (vm: VmRecord, { host }: Run): VmRecord =>
  vm.endedAt === undefined || host === null ? vm : { ...vm, endedAt: [...new Set([...vm.endedAt, host])].sort() };

/** A host that had lost its store has the machine: when it says nothing of it any more, there is none. */
const isFound = (state: ControllerState, uid: Uid, run: Run): boolean =>
  run.unsure === "lost" &&
  run.host !== null &&
  state.reachable.get(hostPeer(run.host)) === true &&
  actualVmOf(state, uid, run)?.power === "on";
const found = ({ unsure: _unsure, ...run }: Run): Run => run;

/**
 * The host says that this incarnation ended, or is in step and holds nothing of it any more, or certainly died; or the HA
 * Manager has made sure that it can write nothing; or the operator frees it of its host.
 */
function isConfirmedStopped(state: ControllerState, uid: Uid, run: Run): boolean {
  if (run.host === null || !run.handedOver || isPlaceOver(state, run) || overOf(state, uid, run) !== null) return true;
  if (run.forced === true) return true;
  const peer = hostPeer(run.host);
  // Another machine by now: what the former one does it cannot know.
  if (run.unsure === "replaced") return false;
  const actual = actualVmOf(state, uid, run);
  if (actual?.power === "off" && (actual.ended !== null || actual.phase === "failed")) return true;
  // One that has lost its store may run what it has no document of.
  return run.unsure === undefined && confirmedGone(state, peer, `vm/${uid}`);
}

/** Waits before the next incarnation, longer after each failure. */
export function delayRetry(state: ControllerState, uid: Uid, failures: number): void {
  const afterMs = retryDelayMs(failures);
  if (afterMs === 0) return;
  state.resting.add(uid);
  state.outbox.effects.push({ kind: "timer", name: `${retryTimer}${uid}`, afterMs });
}
export const retryTimer = "retry/";

function wake(state: ControllerState, uid: Uid): void {
  if (state.resting.delete(uid)) {
    state.outbox.effects.push({ kind: "timer", name: `${retryTimer}${uid}`, afterMs: null });
  }
}

/** Ends the present incarnation on request; where the model wants the VM to run, the next one follows at once. */
export function stopRun(state: ControllerState, uid: Uid): void {
  const vm = state.vms.get(uid);
  if (vm === undefined) return;
  const settled = { ...vm, failure: null, failures: 0, again: false };
  wake(state, uid);
  if (vm.run === null) saveVm(state, settled);
  else if (!vm.run.handedOver) saveVm(state, { ...settled, run: null });
  else if (vm.run.stage !== "stopping") saveVm(state, { ...settled, run: { ...vm.run, stage: "stopping" } });
}
