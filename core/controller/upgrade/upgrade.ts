import { type Cause, type CauseOf, said } from "../../../model/cause/cause.ts";
import { sentence } from "../../../model/cause/sentence.ts";
import type { VmElement } from "../../../model/cell/cell.ts";
import { type ElementPath, elementPath, hostPeer, type Uid } from "../../../model/cell/identifiers.ts";
import type { PlanStep } from "../../../model/plan/plan-types.ts";
import { actualVolume } from "../../documents/readers/storage.ts";
import type { ActualVm } from "../../documents/vocabulary.ts";
import { log } from "../../outbox.ts";
import { because, standing } from "../changes/standing.ts";
import type { Run, RunDisk, Standing, Upgrade, VmRecord } from "../records.ts";
import { bootLink, serviceVms, targetOf } from "../services/boot-disks.ts";
import { isOwnVmElement, isService, servicesOf } from "../services/service-data.ts";
import { actualOf, type ControllerState, elementOf, recordAt, saveVm, storageManagerOf } from "../state.ts";
import { actualVmOf, lastEndOf, stopRun, wantedOn } from "../vm/life-cycle.ts";
import { placementOf } from "../vm/places/placement.ts";
import { trialTimeoutMs } from "../vm/trial-timeout.ts";

/**
 * How a new service image goes in (decision 34): one service VM at a time, each with its old boot volume kept until the
 * new one has proved itself, and back to that by itself when it does not.
 *
 * A model with another image makes new boot volumes at once, and takes nothing from what runs: a service VM whose boot
 * volume is another one by the model has a record of the one that it runs from (`VmRecord.upgrade`), and every incarnation
 * starts from that until its turn has come. Its turn is a *trial*: the next incarnation starts from the new one. It has
 * proved itself when it answers, and whoever of its roles is heard here is in step, without a pause for `provedAfterMs`;
 * then the record goes, and with it the old volume. If it ends by itself `mostEnds` times, or has not come up in
 * `trialTimeoutMs` (`vm/trial-timeout.ts`), the next incarnation starts from the old one, and no other trial begins while the model wants what was
 * refused. Everything that decides is in records; times alone are counted anew after a start.
 *
 * The VM of the root controller is tried by its host, since nobody else is there while it starts: the same incarnation gets
 * the new disk beside the others (`Run.spare`), its host starts it with that one and goes back unless the controller in it
 * takes the disk over. A disk that the host may still choose stays leased until the host has said that it is settled.
 */
export const provedAfterMs = 15_000;
/** More than one: a machine may end for reasons of its host's. */
export const mostEnds = 2;
export const upgradeTimer = "upgrade";

const pathOf = (state: ControllerState, vm: Uid): string => state.elements.get(vm)?.path ?? vm;

/** Boot volumes of service VMs: whatever was written there comes with the image, and nothing is lost with them. */
export function serviceBootVolumes(state: ControllerState): readonly ElementPath[] {
  const { cell } = state;
  if (cell === null) return [];
  return serviceVms(state).flatMap(({ path }) => {
    const volume = bootLink(state, path)?.volume;
    return volume !== undefined && cell.elements.get(volume)?.type === "VolumeCopy" ? [volume] : [];
  });
}

/** What a plan's restarts are upgrades of, in the order in which they are tried. */
export function upgradedBy(state: ControllerState, steps: readonly PlanStep[]): readonly ElementPath[] {
  const found = new Map(steps.map((step) => [step.path, step]));
  return inOrder(
    state,
    serviceVms(state).filter(({ path }) => {
      const step = found.get(path);
      return step !== undefined && isUpgrade(state, step);
    }),
  ).map(({ path }) => path);
}

/** Is another boot volume all that the VM would be started again for? Asked with the model before the change. */
function isUpgrade(state: ControllerState, { path, action, causes }: PlanStep): boolean {
  const link = bootLink(state, path)?.path;
  return action === "restart" && causes.length > 0 && causes.every(({ attribute }) => attribute === link);
}

/** The VM of the cell's own controller comes last. */
const inOrder = (state: ControllerState, vms: readonly VmElement[]): readonly VmElement[] => [
  ...vms.filter((element) => !isOwnVmElement(state, element)),
  ...vms.filter((element) => isOwnVmElement(state, element)),
];

/** What of a change is an upgrade. Taken before the model changes; used after it has. */
export interface UpgradeNotes {
  /** By VM, what it boots from. */
  readonly before: ReadonlyMap<Uid, RunDisk>;
  /** VMs that are not to be stopped for the change. */
  readonly spared: ReadonlySet<ElementPath>;
}
export function notesForUpgrade(state: ControllerState, steps: readonly PlanStep[]): UpgradeNotes {
  const vms = serviceVms(state);
  const before = vms.flatMap(({ path }): [Uid, RunDisk][] => {
    const [record, disk] = [recordAt(state, path), targetOf(state, path)];
    return record === undefined || disk === undefined ? [] : [[record.uid, disk]];
  });
  const own = vms.filter((element) => isOwnVmElement(state, element)).map(({ path }) => path);
  // Nobody would start the own controller's VM again if it were stopped from here.
  return { before: new Map(before), spared: new Set([...upgradedBy(state, steps), ...own]) };
}

/** Part of the transaction that takes a new model: from now on nothing starts from a volume that is not its turn. */
export function beginUpgrades(state: ControllerState, { before }: UpgradeNotes): void {
  for (const [uid, from] of before) {
    const [vm, record] = [state.vms.get(uid), state.elements.get(uid)];
    if (vm === undefined || record === undefined || record.deleting || vm.incarnation === 0) continue;
    const target = targetOf(state, record.path);
    if (target === undefined || target.connection === from.connection) continue;
    const { refused: _another, ...known } = vm.upgrade ?? { from };
    saveVm(state, { ...vm, upgrade: known });
  }
}

interface Pending {
  readonly vm: VmRecord & { readonly upgrade: Upgrade };
  readonly element: VmElement;
  readonly target: RunDisk;
  readonly own: boolean;
}

function pendingUpgrades(state: ControllerState): readonly Pending[] {
  return inOrder(state, serviceVms(state)).flatMap((element) => {
    const uid = state.uids.get(element.path);
    const vm = uid === undefined ? undefined : state.vms.get(uid);
    const target = targetOf(state, element.path);
    if (vm?.upgrade === undefined || target === undefined) return [];
    return [{ vm: { ...vm, upgrade: vm.upgrade }, element, target, own: isOwnVmElement(state, element) }];
  });
}

/** Takes the upgrade as far as it goes now. True: VMs may have something to do for it. */
export function advanceUpgrades(state: ControllerState): boolean {
  // Until a child has heard its life, it does not know whether its VMs are services, and must forget nothing of them.
  const isUnknown = state.options.root === undefined && state.life === null;
  if (isUnknown || state.indexes.upgrades.size === 0) return false;
  const before = new Map(state.vms);
  const isUpgrading = (): boolean => [...state.vms.values()].some(({ upgrade }) => upgrade !== undefined);
  const upgrading = isUpgrading();
  for (const vm of before.values()) releaseSpare(state, vm);
  for (const vm of [...state.vms.values()]) forgetGone(state, vm);
  for (const pending of pendingUpgrades(state)) settle(state, pending);
  const trying = pendingUpgrades(state).find(({ vm }) => vm.upgrade.trying !== undefined);
  if (trying === undefined) stopClock(state);
  else judge(state, trying);
  // Whoever has just proved itself makes room for the next one.
  const pending = pendingUpgrades(state);
  if (!pending.some(({ vm }) => vm.upgrade.trying !== undefined || vm.upgrade.refused !== undefined)) {
    const next = pending.find((each) => obstacle(state, each) === null);
    if (next !== undefined) tryNext(state, next);
  }
  if (upgrading && !isUpgrading())
    log(state.outbox, "upgrade/complete", { path: state.cell?.path ?? state.options.cell });
  return [...state.vms.values()].some((vm) => before.get(vm.uid) !== vm);
}

/** Whether the host may still choose between two disks, or has settled on one. */
function releaseSpare(state: ControllerState, vm: VmRecord): void {
  const { run } = vm;
  if (run?.spare === undefined || vm.upgrade?.trying !== undefined) return;
  const actual = actualVmOf(state, vm.uid, run);
  if (run.stage === "running" && (actual === undefined || actual.trial !== undefined)) return;
  const { spare: _released, ...rest } = run;
  saveVm(state, { ...vm, run: rest });
}

/** A VM that is no service any more, or has no boot volume by the model, keeps none. */
function forgetGone(state: ControllerState, { uid, upgrade }: VmRecord): void {
  if (upgrade === undefined) return;
  const record = state.elements.get(uid);
  const element = record === undefined ? undefined : elementOf(state, record);
  const stands = element?.type === "VM" && isService(state, element.data);
  if (record === undefined || record.deleting || (stands && targetOf(state, record.path) !== undefined)) return;
  endUpgrade(state, uid, undefined);
}

function endUpgrade(state: ControllerState, uid: Uid, upgrade: Upgrade | undefined): void {
  const vm = state.vms.get(uid);
  if (vm === undefined) return;
  const { upgrade: _before, ...rest } = vm;
  saveVm(state, upgrade === undefined ? rest : { ...rest, upgrade });
}

/** What the model wants may have changed meanwhile: a trial of anything else is given up, and the former again is no upgrade. */
function settle(state: ControllerState, { vm, target, own }: Pending): void {
  const { from, trying } = vm.upgrade;
  if (trying !== undefined && trying !== target.connection) {
    endUpgrade(state, vm.uid, { from });
    if (!own && vm.run?.disks.some(({ connection }) => connection === trying)) stopRun(state, vm.uid);
  } else if (own && trying !== undefined && vm.run?.spare === undefined) {
    // Another incarnation, which has begun with the one that is proved.
    endUpgrade(state, vm.uid, { from });
  }
  if (from.connection === target.connection) endUpgrade(state, vm.uid, undefined);
}

/** Why a VM's trial cannot begin now; null: it can. */
function obstacle(state: ControllerState, { vm, element, target, own }: Pending): Cause | null {
  if (wantedOn(state, vm.uid) === null) return awaits(element, "on");
  const moving = serviceVms(state).find(({ path }) => isMoving(state, path));
  if (moving !== undefined) return awaits(moving, "settled");
  const manager = storageManagerOf(state);
  const volume = actualOf(actualVolume, state, manager, `volume/${target.volume}`);
  if (volume?.phase !== "ready") {
    const path = elementPath(pathOf(state, target.volume));
    return { kind: "waits-for", element: path, ...because(said(manager, volume?.reason)) };
  }
  const before = own
    ? pendingUpgrades(state).find((each) => !each.own && wantedOn(state, each.vm.uid) !== null)
    : undefined;
  if (before !== undefined) return { kind: "upgrade-comes-last", vm: before.element.path };
  if (own && (vm.run?.stage !== "running" || vm.run.spare !== undefined)) return awaits(element, "itself");
  if (!rolesOf(state, element).some((name) => name.startsWith("presence."))) return null;
  const other = serviceVms(state).find(
    (each) =>
      each.path !== element.path &&
      rolesOf(state, each).some((name) => name.startsWith("presence.")) &&
      !isWell(state, each),
  );
  return other === undefined ? null : awaits(other, "well");
}
const awaits = ({ path: vm }: VmElement, until: CauseOf<"upgrade-awaits">["until"]): Cause => ({
  kind: "upgrade-awaits",
  vm,
  until,
});

/** Between two incarnations, unless it only waits for room. */
function isMoving(state: ControllerState, path: ElementPath): boolean {
  const uid = state.uids.get(path);
  const run = uid === undefined ? undefined : state.vms.get(uid)?.run;
  if (uid === undefined || run == null || run.stage === "running") return false;
  return run.stage !== "placing" || placementOf(state, uid, run) === undefined;
}

const rolesOf = (state: ControllerState, { data }: VmElement): readonly string[] => {
  const services = isService(state, data) ? servicesOf(state.options, data) : null;
  return services?.ok === true ? services.value.map(({ name }) => name) : [];
};

function tryNext(state: ControllerState, { vm, target, own }: Pending): void {
  const upgrade: Upgrade = { ...vm.upgrade, trying: target.connection };
  log(state.outbox, "upgrade/trying", { path: pathOf(state, vm.uid), volume: target.volume });
  if (own && vm.run !== null) {
    saveVm(state, { ...vm, upgrade, run: { ...vm.run, spare: target } });
    return;
  }
  saveVm(state, { ...vm, upgrade });
  // Earlier ends are no fault of what is tried now: this also begins to count anew.
  stopRun(state, vm.uid);
}

/** Does the VM that is being tried do well, or is it over? */
function judge(state: ControllerState, { vm, element, target, own }: Pending): void {
  const { run } = vm;
  const actual = run === null ? undefined : actualVmOf(state, vm.uid, run);
  const isHeard = run?.host != null && state.reachable.get(hostPeer(run.host)) === true;
  const bootsIt = own
    ? actual?.trial?.connection === target.connection && actual.trial.boots
    : run?.disks.some(({ connection }) => connection === target.connection) === true;
  const why = own ? refusedByHost(run, actual, target) : endedTooOften(state, vm);
  if (why.length > 0) {
    goBack(state, vm, target, { why, own });
    return;
  }
  const canAnswer = bootsIt && isHeard && (run?.stage === "running" || run?.stage === "connecting");
  const known = state.upgradeClock?.vm === vm.uid ? state.upgradeClock : null;
  const { ms } = state.now;
  const sinceMs = canAnswer ? (known?.sinceMs ?? ms) : null;
  const wellMs = canAnswer && run?.stage === "running" && isWell(state, element) ? (known?.wellMs ?? ms) : null;
  const isOver = !own && wellMs === null && sinceMs !== null && ms - sinceMs >= trialTimeoutMs;
  if (wellMs !== null && ms - wellMs >= provedAfterMs) prove(state, vm, target, own);
  else if (isOver) {
    const seconds = trialTimeoutMs / 1000;
    const late: Cause = { kind: "upgrade-timed-out", seconds, ...because(whyNotWell(state, vm, actual)) };
    goBack(state, vm, target, { why: [late], own });
  } else {
    const dueMs = wellMs !== null ? wellMs + provedAfterMs : sinceMs !== null ? sinceMs + trialTimeoutMs : null;
    if (dueMs !== (known?.dueMs ?? null)) setTimer(state, dueMs === null ? null : Math.max(1, dueMs - ms));
    state.upgradeClock = { vm: vm.uid, sinceMs, wellMs, dueMs };
  }
}

/** Timers may come a moment early. */
export function upgradeDue(state: ControllerState): void {
  if (state.upgradeClock !== null) state.upgradeClock = { ...state.upgradeClock, dueMs: null };
}

function setTimer(state: ControllerState, afterMs: number | null): void {
  state.outbox.effects.push({ kind: "timer", name: upgradeTimer, afterMs });
}

const refusedByHost = (run: Run | null, actual: ActualVm | undefined, target: RunDisk): readonly Cause[] =>
  run?.host != null && actual?.trial?.connection === target.connection
    ? said(hostPeer(run.host), actual.trial.refused)
    : [];

const endedTooOften = (state: ControllerState, vm: VmRecord): readonly Cause[] =>
  vm.failures >= mostEnds || !vm.again ? lastEndOf(state, vm) : [];

const whyNotWell = (state: ControllerState, vm: VmRecord, actual: ActualVm | undefined): readonly Cause[] =>
  actual?.reason != null && vm.run?.host != null
    ? said(hostPeer(vm.run.host), actual.reason)
    : (state.elements.get(vm.uid)?.causes ?? []);

/** It runs, answers, and those of its roles that are followed here are in step. */
export function isWell(state: ControllerState, element: VmElement): boolean {
  const uid = state.uids.get(element.path);
  const run = (uid === undefined ? undefined : state.vms.get(uid)?.run) ?? null;
  if (uid === undefined || run?.stage !== "running") return false;
  const actual = actualVmOf(state, uid, run);
  if (actual?.power !== "on" || actual.phase !== "ready") return false;
  if (actual.health !== undefined && actual.health !== "answering") return false;
  const followed: ReadonlySet<string> = new Set([...state.subscribed, ...state.deaths.members]);
  const said: ReadonlyMap<string, boolean> = state.reachable;
  return rolesOf(state, element).every((name) => !followed.has(name) || said.get(name) === true);
}

function prove(state: ControllerState, vm: Pending["vm"], target: RunDisk, own: boolean): void {
  stopClock(state);
  log(state.outbox, "upgrade/proved", { path: pathOf(state, vm.uid), volume: target.volume });
  const { upgrade, ...rest } = vm;
  const { run } = rest;
  if (!own || run === null) {
    saveVm(state, rest);
    return;
  }
  // The host has both until it has heard that it is this one.
  const { from } = upgrade;
  const disks = run.disks.map((disk) => (disk.connection === from.connection ? target : disk));
  saveVm(state, { ...rest, run: { ...run, disks, spare: from } });
}

function goBack(
  state: ControllerState,
  vm: Pending["vm"],
  { connection, volume }: RunDisk,
  { why, own }: { readonly why: readonly Cause[]; readonly own: boolean },
): void {
  stopClock(state);
  const reason = sentence(wentBack(state, vm.uid, volume, why));
  log(state.outbox, "upgrade/went-back", { path: pathOf(state, vm.uid), volume, reason });
  saveVm(state, { ...vm, upgrade: { from: vm.upgrade.from, refused: { connection, reason, because: why } } });
  // The own VM's host has gone back by itself.
  if (!own) stopRun(state, vm.uid);
}

function stopClock(state: ControllerState): void {
  if (state.upgradeClock === null) return;
  state.upgradeClock = null;
  setTimer(state, null);
}

const wentBack = (state: ControllerState, vm: Uid, volume: Uid, why: readonly Cause[]): Cause => ({
  kind: "upgrade-went-back",
  vm: elementPath(pathOf(state, vm)),
  volume: elementPath(pathOf(state, volume)),
  ...because(why),
});

/** How far the upgrade of a VM is, as the state of its boot connection; null: it has none. */
export function upgradeState(state: ControllerState, vm: Uid): Standing | null {
  if (state.vms.get(vm)?.upgrade === undefined) return null;
  const pending = pendingUpgrades(state);
  const own = pending.find((each) => each.vm.uid === vm);
  if (own === undefined) return null;
  const { refused, trying } = own.vm.upgrade;
  if (refused !== undefined) {
    // The previous version kept the sentence alone.
    const why: readonly Cause[] =
      refused.because === undefined
        ? said(state.options.self, refused.reason)
        : [wentBack(state, vm, own.target.volume, refused.because)];
    return standing("failed", ...why, { kind: "upgrade-over" });
  }
  if (trying !== undefined) return standing("working", { kind: "upgrade-tried", vm: own.element.path });
  const stopped = pending.find((each) => each.vm.upgrade.refused !== undefined);
  if (stopped !== undefined) return standing("waiting", { kind: "upgrade-stopped", vm: stopped.element.path });
  const now = pending.find((each) => each.vm.upgrade.trying !== undefined);
  if (now !== undefined) return standing("waiting", { kind: "upgrade-one-at-a-time", vm: now.element.path });
  return standing("waiting", obstacle(state, own) ?? { kind: "upgrade-next" });
}

/** Whose return a volume that has left the model is kept for; null: nobody's. */
export function keptFor(state: ControllerState, uid: Uid): ElementPath | null {
  for (const vm of state.indexes.upgrades.keys()) {
    const from = state.vms.get(vm)?.upgrade?.from;
    if (from?.volume === uid || from?.connection === uid) return state.elements.get(vm)?.path ?? null;
  }
  return null;
}
