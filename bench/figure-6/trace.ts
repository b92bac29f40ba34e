import type { ServiceEvent } from "../../model/api.ts";
import { median } from "../measure.ts";

/** Everything on a host stops at this moment, and nothing of it can tell: whoever cuts its power has to say so. */
export interface PowerCut {
  readonly host: string;
  readonly atMs: number;
}
/** From a VM's first answer to a liveness probe until its machine ended or fell silent. Milliseconds since 1970. */
export interface Spell {
  /** Path of the VM. */
  readonly vm: string;
  readonly host: string;
  readonly fromMs: number;
  /** Null: it answers still. */
  readonly toMs: number | null;
}

const hostOf = ({ service }: ServiceEvent): string | null => /^host\.(.+)$/.exec(service)?.[1] ?? null;
export const cellOf = (vm: string): string => vm.split("/")[0] ?? "";

/** What an event of a host says of a VM: it answers from now on, or does no longer; null: neither. */
function answersBy({ event, fields }: ServiceEvent): boolean | null {
  if (event === "machine/health") return fields.what === "answering";
  // A stage is told when it begins: `running` comes before the first answer, the others after the last.
  return event === "machine/stage" && fields.stage !== "running" ? false : null;
}

/**
 * When which VM answered, from the time line of the hosts. What a host says of a machine that it has no longer (it comes
 * back, and finds it ended) does not concern the VM's next machine on another host.
 */
export function spellsOf(events: readonly ServiceEvent[], cuts: readonly PowerCut[]): readonly Spell[] {
  const over: Spell[] = [];
  const open = new Map<string, Spell>();
  const end = (spell: Spell, toMs: number): void => {
    open.delete(spell.vm);
    over.push({ ...spell, toMs });
  };
  const left = cuts.toSorted((a, b) => a.atMs - b.atMs);
  const cutUntil = (ms: number): void => {
    for (let [cut] = left; cut !== undefined && cut.atMs <= ms; [cut] = left) {
      left.shift();
      for (const spell of [...open.values()]) if (spell.host === cut.host) end(spell, cut.atMs);
    }
  };
  const byTime = events.map((event) => ({ event, atMs: Date.parse(event.time) })).sort((a, b) => a.atMs - b.atMs);
  for (const { event, atMs } of byTime) {
    cutUntil(atMs);
    const host = hostOf(event);
    const answers = answersBy(event);
    if (host === null || event.path === null || answers === null) continue;
    const spell = open.get(event.path);
    if (answers) {
      if (spell?.host === host) continue;
      if (spell !== undefined) end(spell, atMs);
      open.set(event.path, { vm: event.path, host, fromMs: atMs, toMs: null });
    } else if (spell?.host === host) end(spell, atMs);
  }
  cutUntil(Number.POSITIVE_INFINITY);
  return [...over, ...open.values()].sort((a, b) => a.fromMs - b.fromMs);
}

export const answersAt = ({ fromMs, toMs }: Spell, ms: number): boolean => fromMs <= ms && (toMs === null || ms < toMs);

/** Seconds since the start, and for each cell how many VMs are wanted and how many answer. */
export interface Sample {
  readonly second: number;
  readonly answering: readonly number[];
  readonly wanted: readonly number[];
}
/** Moments, in milliseconds since 1970, from which on a cell is to have one VM more each. */
export type Submissions = readonly number[];

export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}
/** One sample a second. `submissions` has a line for each cell, in the same order. */
export function samplesOf(
  spells: readonly Spell[],
  cells: readonly string[],
  submissions: readonly Submissions[],
  { startMs, endMs }: Span,
): readonly Sample[] {
  return Array.from({ length: Math.floor((endMs - startMs) / 1000) + 1 }, (_, second) => {
    const atMs = startMs + second * 1000;
    const now = spells.filter((spell) => answersAt(spell, atMs));
    return {
      second,
      answering: cells.map((cell) => new Set(now.filter(({ vm }) => cellOf(vm) === cell).map(({ vm }) => vm)).size),
      wanted: cells.map((_name, index) => (submissions[index] ?? []).filter((ms) => ms <= atMs).length),
    };
  });
}

/** How long after its submission each VM of a cell answered first, in milliseconds; null: it never did. */
export const delaysOf = (
  spells: readonly Spell[],
  vms: readonly string[],
  due: Submissions,
): readonly (number | null)[] =>
  vms.map((vm, index) => {
    const first = spells.find((spell) => spell.vm === vm);
    const dueMs = due[index];
    return first === undefined || dueMs === undefined ? null : first.fromMs - dueMs;
  });

/**
 * How far a cell leaves its own line, as a part of the time between two of its VMs: 1 is a VM that comes when the next one
 * should. The line has the pace of the submissions and lies at the median delay of the VMs that answered before the fault.
 * Null where there is no VM to say it.
 */
export function largestDeviation(
  delays: readonly (number | null)[],
  due: Submissions,
  faultMs: number,
  intervalMs: number,
): { readonly before: number | null; readonly after: number | null } {
  const vms = delays.map((delay, index) => ({
    delay,
    cameMs: (due[index] ?? 0) + (delay ?? Number.POSITIVE_INFINITY),
  }));
  const early = vms.flatMap(({ delay, cameMs }) => (delay !== null && cameMs <= faultMs ? [delay] : []));
  const late = vms.filter(({ cameMs }) => cameMs > faultMs).map(({ delay }) => delay ?? Number.POSITIVE_INFINITY);
  if (early.length === 0) return { before: null, after: null };
  const line = median(early);
  const furthest = (all: readonly number[]): number | null =>
    all.length === 0 ? null : Math.max(...all.map((delay) => Math.abs(delay - line))) / intervalMs;
  return { before: furthest(early), after: furthest(late) };
}

/** A VM that a fault took, and when and where it answered again. */
export interface Failure {
  readonly vm: string;
  readonly host: string;
  readonly lostMs: number;
  readonly back: { readonly atMs: number; readonly host: string } | null;
}
/** Every spell that ended between the two moments, with the VM's next one. */
export const failuresBetween = (spells: readonly Spell[], fromMs: number, untilMs: number): readonly Failure[] =>
  spells.flatMap(({ vm, host, toMs }) => {
    if (toMs === null || toMs < fromMs || toMs > untilMs) return [];
    const next = spells.find((spell) => spell.vm === vm && spell.fromMs >= toMs);
    return [{ vm, host, lostMs: toMs, back: next === undefined ? null : { atMs: next.fromMs, host: next.host } }];
  });
