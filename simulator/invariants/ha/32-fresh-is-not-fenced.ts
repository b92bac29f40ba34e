import { hostName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Invariant } from "../invariant.ts";
import { isHaManager, named } from "./said-over.ts";

/**
 * HA asks further before it fences: what runs at a host that the HA Manager hears is not fenced, whoever was declared dead, nor
 * what runs where a storage server that it hears has beats of, as far as the operator has these asked. The premise is a fence that begins.
 */
const lateMs = 9000;
/** For news of a beat to arrive, and for a beat to be late on its way. */
const slackMs = 5000;
/** A machine that writes so steadily is seen at whichever moment its servers look. */
const steadyMs = 1800;
export const freshIsNotFenced: Invariant = {
  number: 32,
  title: "what is heard to run is not fenced",
  watch: ({ kernel, truth, installation }, verdict) => {
    /** When the HA Manager was last in step with a host, and went out of it. */
    const inStep = new Set<string>();
    /** By host and server, since when its beats come without a pause, and the last one. */
    const beats = new Map<string, Map<string, { sinceMs: number; lastMs: number }>>();
    /** By incarnation, since when its writes land without a pause, where, and the last one. */
    const writes = new Map<string, { sinceMs: number; lastMs: number; agent: string }>();
    /** When each server's agent began, and how long each has been in step. */
    const begun = new Map<string, number>();
    const stepSince = new Map<string, number>();
    truth.watchers.push({
      landed: ({ volume, epoch, vm, incarnation }) => {
        const { nowMs } = kernel.clock;
        const at = [...truth.exports].find((each) => each.volume === volume && each.epoch === epoch);
        if (at === undefined) return;
        const name = `${vm}.${incarnation} agent.${at.server}`;
        const before = writes.get(name);
        const sinceMs = before === undefined || nowMs - before.lastMs > steadyMs ? nowMs : before.sinceMs;
        writes.set(name, { sinceMs, lastMs: nowMs, agent: `agent.${at.server}` });
      },
    });
    const isAsked = watchAsked(kernel);
    kernel.watchers.push({
      stepped: (who, input) => {
        if (input.kind !== "desired" || input.key !== "beat" || input.value === null) return;
        const { nowMs } = kernel.clock;
        const by = beats.get(input.from) ?? new Map<string, { sinceMs: number; lastMs: number }>();
        beats.set(input.from, by);
        const before = by.get(who);
        const sinceMs = before === undefined || nowMs - before.lastMs >= lateMs ? nowMs : before.sinceMs;
        by.set(who, { sinceMs, lastMs: nowMs });
      },
      began: (who) => {
        for (const by of beats.values()) by.delete(who);
        begun.set(who, kernel.clock.nowMs);
      },
      log: (who, event, fields) => {
        if (!isHaManager(who)) return;
        if (event === "process/crashed") for (const name of inStep) if (name.startsWith(`${who} `)) inStep.delete(name);
        if (event === "peer/reachable") {
          inStep.add(`${who} ${fields.peer}`);
          stepSince.set(`${who} ${fields.peer}`, kernel.clock.nowMs);
        }
        if (event === "peer/unreachable") inStep.delete(`${who} ${fields.peer}`);
        if (event !== "ha/step" || fields.step !== "Fencing") return;
        const [{ vm, incarnation, host }, { nowMs }] = [fields, kernel.clock];
        const running = [...truth.machines].find((each) => each.vm === vm && each.incarnation === incarnation);
        // Its manager has to run for long enough to have said what is there.
        const manages = installation.managers.get(hostName(String(host)))?.state != null;
        const isHeard = inStep.has(`${who} host.${host}`) && manages && running !== undefined;
        const isBeating = [...(beats.get(`host.${host}`) ?? [])].some(
          ([agent, beat]) => inStep.has(`${who} ${agent}`) && isSteady(beat, nowMs),
        );
        const isWriting = [...writes].some(
          ([name, { sinceMs, lastMs, agent }]) =>
            name.startsWith(`${vm}.${incarnation} `) &&
            inStep.has(`${who} ${agent}`) &&
            nowMs - (stepSince.get(`${who} ${agent}`) ?? nowMs) > 2 * slackMs &&
            nowMs - (begun.get(agent) ?? 0) > 2 * slackMs &&
            nowMs - sinceMs > 2 * slackMs &&
            nowMs - lastMs < steadyMs,
        );
        verdict.check(
          !isWriting || running === undefined || !isAsked(who, "export"),
          () => `${vm}.${incarnation} is fenced, and a storage server serves its requests`,
        );
        verdict.check(
          !isBeating ||
            running === undefined ||
            !isAsked(who, "heartbeat") ||
            kernel.clock.nowMs - running.startedMs < lateMs,
          () => `${vm}.${incarnation} is fenced, and a storage server hears ${host}`,
        );
        verdict.check(
          !isHeard || !isAsked(who, "host-manager") || kernel.clock.nowMs - running.startedMs < 2000,
          () => `${vm}.${incarnation} is fenced, and ${host} says that it runs`,
        );
      },
    });
    return undefined;
  },
};

const isSteady = ({ sinceMs, lastMs }: { readonly sinceMs: number; readonly lastMs: number }, nowMs: number): boolean =>
  nowMs - sinceMs > slackMs && nowMs - lastMs < lateMs - slackMs;

/** Whether a manager asks an investigator, by what the operator has told it last. */
function watchAsked(kernel: Kernel): (who: string, investigator: string) => boolean {
  const told = new Map<string, Json>();
  kernel.watchers.push({
    stepped: (who, input) => {
      if (input.kind === "desired" && input.key === "settings" && isHaManager(who)) told.set(who, input.value);
    },
  });
  return (who, investigator) => {
    const names = named(named(told.get(who) ?? null, "settings"), "investigators");
    return !Array.isArray(names) || names.includes(investigator);
  };
}
