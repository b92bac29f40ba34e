import { bootAllowanceMs, type DesiredLiveness } from "../../core/documents/guest.ts";
import type { Uid } from "../../model/cell/identifiers.ts";

/**
 * Which VM to probe when, and what an answer or its absence means (paper, V). Pure: the executor of probes brings the time
 * and the answers, and carries out what is said here.
 *
 * A VM is judged by what it did before. One that has answered is silent after `failures` probes in a row without an answer.
 * One that never answered may still be booting, so it has a generous allowance; a guest that resets itself has it again,
 * but only once per answer, or one that resets in circles would never be found out. Nothing is held against a VM for the
 * time in which its CPUs were stopped by a disk's error, nor for the first seconds of a Host Manager's life, in which
 * probes may be lost for reasons of our own.
 */
export interface ProbeTarget {
  readonly vm: Uid;
  readonly incarnation: number;
  /** An interface of the VM: it is asked as if by the gateway of that one's subnet. */
  readonly interface: Uid;
  readonly liveness: DesiredLiveness;
  /** As it is published; survives a Host Manager. */
  readonly health: "starting" | "answering" | "silent";
  /** Resets of this incarnation's guest: an answer to a probe from before the last one says nothing. */
  readonly reboots: number;
  /** Its CPUs are stopped. */
  readonly stalled: boolean;
}
export interface Probe {
  readonly vm: Uid;
  readonly incarnation: number;
  readonly reboots: number;
  readonly interface: Uid;
  readonly protocol: "icmp" | "udp";
  readonly port: number | null;
  readonly timeoutMs: number;
}
/** `answered` null: it could not be sent, which says nothing about the VM. */
export interface ProbeResult {
  readonly probe: Probe;
  readonly answered: boolean | null;
}
export interface HealthChange {
  readonly vm: Uid;
  readonly incarnation: number;
  /** What was asked. */
  readonly asked: Pick<Probe, "interface" | "protocol" | "port">;
  readonly health: "answering" | "silent";
  /** A sentence; null for one that answers. */
  readonly reason: string | null;
}

/** After its start a Host Manager holds nothing against a VM for this long. */
export const restartGraceMs = 10_000;
/** A VM that has not answered yet is asked at least this often, so that its first answer is soon known. */
const startingIntervalMs = 1000;
/** An answer may take as long as the interval, within these bounds. */
const shortestTimeoutMs = 1000;
const longestTimeoutMs = 5000;
/** Probes under way at once on a host; when more are due, VMs are asked less often, and nothing is held against them. */
export const mostProbes = 64;

interface Watch {
  target: ProbeTarget;
  /** When it is asked next. */
  dueMs: number;
  /** The probe under way. */
  asked: Probe | null;
  misses: number;
  /** A VM that has not answered by then is silent. */
  allowedUntilMs: number;
}
export interface Liveness {
  readonly startedMs: number;
  readonly watches: Map<Uid, Watch>;
}
export const createLiveness = (nowMs: number): Liveness => ({ startedMs: nowMs, watches: new Map() });

/** Replaces the whole of what is to be probed. */
export const setTargets = (liveness: Liveness, targets: readonly ProbeTarget[], nowMs: number): void => {
  const named = new Set(targets.map(({ vm }) => vm));
  for (const vm of liveness.watches.keys()) if (!named.has(vm)) liveness.watches.delete(vm);
  for (const target of targets) {
    const watch = liveness.watches.get(target.vm);
    if (watch === undefined || watch.target.incarnation !== target.incarnation) {
      liveness.watches.set(target.vm, {
        target,
        dueMs: nowMs + spread(target),
        asked: null,
        misses: 0,
        allowedUntilMs: nowMs + bootAllowanceMs,
      });
      continue;
    }
    const before = watch.target;
    watch.target = target;
    if (target.health === "starting" && before.health !== "starting") watch.allowedUntilMs = nowMs + bootAllowanceMs;
    if (target.reboots !== before.reboots || target.stalled || target.health !== before.health) watch.misses = 0;
    // Its time stood still, that of its allowance too.
    if (before.stalled && !target.stalled && target.health === "starting")
      watch.allowedUntilMs = nowMs + bootAllowanceMs;
    watch.dueMs = Math.min(watch.dueMs, nowMs + intervalOf(target));
  }
};

/** The probes to send now; each is answered by `takeResult`. */
export const dueProbes = (liveness: Liveness, nowMs: number): readonly Probe[] => {
  const watches = [...liveness.watches.values()];
  const free = mostProbes - watches.filter(({ asked }) => asked !== null).length;
  const due = watches
    .filter(({ asked, dueMs, target }) => asked === null && dueMs <= nowMs && !target.stalled)
    .sort((a, b) => a.dueMs - b.dueMs)
    .slice(0, Math.max(0, free));
  return due.map((watch) => {
    const { vm, incarnation, reboots, interface: uid, liveness: desire } = watch.target;
    const timeoutMs = Math.min(longestTimeoutMs, Math.max(shortestTimeoutMs, desire.intervalMs));
    watch.asked = { vm, incarnation, reboots, interface: uid, protocol: desire.protocol, port: desire.port, timeoutMs };
    watch.dueMs = nowMs + intervalOf(watch.target);
    return watch.asked;
  });
};

/** One that was sent before something else was to be asked says nothing of that. */
const isOf = (probe: Probe, { interface: uid, liveness }: ProbeTarget): boolean =>
  probe.interface === uid && probe.protocol === liveness.protocol && probe.port === liveness.port;

/** What the outcome of a probe changes; null: nothing. */
export const takeResult = (
  liveness: Liveness,
  { probe, answered }: ProbeResult,
  nowMs: number,
): HealthChange | null => {
  const watch = liveness.watches.get(probe.vm);
  if (watch === undefined || watch.asked !== probe) return null;
  watch.asked = null;
  const { target } = watch;
  if (answered === null || target.reboots !== probe.reboots || !isOf(probe, target)) return null;
  const change = (health: HealthChange["health"], reason: string | null): HealthChange | null => {
    if (target.health === health) return null;
    watch.target = { ...target, health };
    const { interface: uid, protocol, port } = probe;
    return {
      vm: target.vm,
      incarnation: target.incarnation,
      asked: { interface: uid, protocol, port },
      health,
      reason,
    };
  };
  if (answered) {
    watch.misses = 0;
    return change("answering", null);
  }
  if (target.stalled || nowMs - liveness.startedMs < restartGraceMs) return null;
  watch.misses += 1;
  const kind = target.liveness.protocol === "icmp" ? "ICMP" : `UDP (port ${target.liveness.port})`;
  if (target.health === "starting") {
    const minutes = bootAllowanceMs / 60_000;
    return nowMs < watch.allowedUntilMs
      ? null
      : change("silent", `answered no ${kind} probe in the ${minutes} minutes since its start`);
  }
  const { failures } = target.liveness;
  return watch.misses < failures
    ? null
    : change("silent", `did not answer ${failures} ${kind} ${failures === 1 ? "probe" : "probes in a row"}`);
};

/** Milliseconds until `dueProbes` may have something; null: nothing is to be probed, or answers are awaited. */
export const nextDueMs = (liveness: Liveness, nowMs: number): number | null => {
  const times = [...liveness.watches.values()]
    .filter(({ asked, target }) => asked === null && !target.stalled)
    .map(({ dueMs }) => Math.max(0, dueMs - nowMs));
  return times.length === 0 ? null : Math.min(...times);
};

const intervalOf = ({ health, liveness }: ProbeTarget): number =>
  health === "starting" ? Math.min(startingIntervalMs, liveness.intervalMs) : liveness.intervalMs;

/** VMs are first asked at different moments of their interval, and stay apart: FNV-1a over the identity. */
const spread = (target: ProbeTarget): number => {
  let hash = 0x811c9dc5;
  for (const character of target.vm) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193) >>> 0;
  return hash % intervalOf(target);
};
