import type { ActualTrial, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import type { TrialRecord, VmRecord } from "../vm-record.ts";

/**
 * A new boot disk for the VM that its host starts again by itself (decision 34). While the VM of the root controller
 * starts there is nobody but its host who could say that it does not come up, so its host tries: it starts the machine with
 * the disk on trial in place of the old one, and goes back for good when that has ended `mostStarts` times, or when whoever
 * runs in it has not taken the new disk over in time. Taking it over (the document without the trial, with the new disk
 * among `disks`) is the proof: it says that the controller runs, can write its store, and is heard.
 */

/** A machine may end once for reasons that are not the disk's. */
export const mostStarts = 2;
export const trialTimer = "trial/";

const has = ({ disks }: DesiredVm, connection: Uid): boolean => disks.some((disk) => disk.connection === connection);
const known = (record: VmRecord | undefined, connection: Uid): TrialRecord | undefined =>
  record?.trial?.connection === connection ? record.trial : undefined;

/** What a machine that starts now is started from: with the disk on trial, unless that was refused. */
export function startedFrom(desired: DesiredVm, record: VmRecord | undefined): DesiredVm {
  const { trial } = desired;
  if (trial === undefined || desired.restart !== "host") return desired;
  if (typeof known(record, trial.disk.connection)?.refused === "string") return desired;
  const disks = desired.disks.map((disk) => (disk.connection === trial.replaces ? trial.disk : disk));
  return { ...desired, disks };
}

/** Does it run from other disks than it should, so that it must be started again? */
export const runsOtherwise = (desired: DesiredVm, record: VmRecord): boolean =>
  desired.restart === "host" &&
  record.stage !== "ended" &&
  record.vm.incarnation === desired.incarnation &&
  startedFrom(desired, record).disks.some(({ connection }) => !has(record.vm, connection));

/** The record of a start, which goes on counting where the one before it was. */
export function withTrial(starting: VmRecord, before: VmRecord | undefined): VmRecord {
  const { trial } = starting.vm;
  if (trial === undefined) return starting;
  const { connection } = trial.disk;
  const { starts, refused } = known(before, connection) ?? { starts: 0, refused: null };
  return { ...starting, trial: { connection, starts: starts + (has(starting.vm, connection) ? 1 : 0), refused } };
}

/** The disk on trial that its machine was started with, and that is not decided yet. */
const onTrial = (record: VmRecord): TrialRecord | null =>
  record.trial?.refused === null && has(record.vm, record.trial.connection) ? record.trial : null;

/** The record of a machine that has ended: the trial may be over with that. */
export function withEnd(record: VmRecord): VmRecord {
  const trial = record.stage === "ended" ? onTrial(record) : null;
  if (trial === null || trial.starts < mostStarts) return record;
  const why = record.reason ?? record.silence ?? "it was stopped";
  return { ...record, trial: { ...trial, refused: `its machine ended ${mostStarts} times: ${why}` } };
}

/** Its time is over; null: there is nothing to decide any more. */
export function withDeadline(record: VmRecord, desired: DesiredVm | undefined): VmRecord | null {
  const trial = onTrial(record);
  const wanted = desired?.trial;
  if (trial === null || record.stage === "ended" || wanted?.disk.connection !== trial.connection) return null;
  const how =
    record.health === "answering"
      ? "it answered its probes, but the controller in it did not take it over"
      : "it did not answer its liveness probes";
  return { ...record, trial: { ...trial, refused: `within ${wanted.withinMs / 1000} s ${how}` } };
}

/** Timer and log of a start with a disk on trial. */
export function trialBegins(record: VmRecord): readonly Effect[] {
  const trial = record.stage === "starting" ? onTrial(record) : null;
  return trial === null ? [] : [...trialRuns(record), trialLog(record, `start ${trial.starts} with it`)];
}
/** Counted anew after the Host Manager's own restart. */
export function trialRuns(record: VmRecord): readonly Effect[] {
  const within = record.vm.trial?.withinMs;
  if (within === undefined || record.stage === "ended" || onTrial(record) === null) return [];
  return [{ kind: "timer", name: `${trialTimer}${record.vm.uid}`, afterMs: within }];
}

export function trialLog(record: VmRecord, what: string): Effect {
  const { uid: vm, path, incarnation, trial, disks } = record.vm;
  const volume = (trial?.disk ?? disks[0])?.path ?? null;
  return { kind: "log", event: "machine/trial", fields: { vm, path, incarnation, volume, what } };
}

/** What its controller is told, until the machine runs from what is desired and nothing is on trial. */
export function trialState(desired: DesiredVm | undefined, record: VmRecord | undefined): ActualTrial | null {
  if (desired?.restart !== "host") return null;
  const running = record === undefined || record.stage === "ended" ? undefined : record;
  if (desired.trial !== undefined) {
    const { connection } = desired.trial.disk;
    const boots = running !== undefined && has(running.vm, connection);
    return { connection, boots, refused: known(record, connection)?.refused ?? null };
  }
  if (running === undefined || !runsOtherwise(desired, running)) return null;
  const other = running.vm.disks.find(({ connection }) => !has(desired, connection));
  return other === undefined ? null : { connection: other.connection, boots: true, refused: null };
}
