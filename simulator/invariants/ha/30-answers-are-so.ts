import type { HostName, Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";
import { isHaManager } from "./said-over.ts";

/**
 * What an investigator sees is no older than 9 s; who saw it may be cut off, and counts as heard for some 10 s more; and news takes its time on a network
 * that is slow.
 */
const windowMs = 24_000;
/** Evidence of the host, and of nothing that runs there. */
const ofHost: readonly string[] = ["heartbeat", "neighbours"];

interface Said {
  readonly by: string;
  readonly state: string;
}
const listOf = (value: Json | undefined): readonly Said[] => (Array.isArray(value) ? (value as unknown as Said[]) : []);

/**
 * What investigators answer is looked at in the records of the queue, as they are written, beside what physically runs. *Stopped* is said of nothing that runs there, then or
 * later; *Running* of what ran a moment ago, or by evidence of its host, of whose host had power a moment ago. The premise is such an answer.
 */
export const answersAreSo: Invariant = {
  number: 30,
  title: "Stopped is said only of what does not run, and Running only of what ran a moment ago",
  watch: ({ kernel, truth }, verdict) => {
    const ranMs = new Map<string, number>();
    const hadPowerMs = new Map<string, number>();
    const stopped = new Map<string, string>();
    const at = (vm: unknown, incarnation: unknown, host: unknown): string => `${vm}.${incarnation} at ${host}`;
    truth.watchers.push({
      machineStarted: ({ vm, incarnation, host }) => {
        const by = stopped.get(at(vm, incarnation, host));
        if (by !== undefined)
          verdict.violate(`${at(vm, incarnation, host)} starts, and ${by} had said that it has stopped`);
      },
      machineEnded: ({ vm, incarnation, host }) => ranMs.set(at(vm, incarnation, host), kernel.clock.nowMs),
    });
    const look = (item: { readonly [name: string]: Json }): void => {
      const [vm, host] = [item.vm as Uid, item.host as HostName];
      const name = at(vm, item.incarnation, host);
      const machine = truth.machineAt(host, vm);
      const runs = machine !== undefined && machine.incarnation === item.incarnation;
      const { nowMs } = kernel.clock;
      for (const { by, state } of listOf(item.answers)) {
        if (state === "Stopped") {
          stopped.set(name, by);
          verdict.check(!runs, () => `${by} says that ${name} has stopped, and it runs`);
        }
        if (state !== "Running") continue;
        const isOfHost = ofHost.includes(by);
        const lastMs = isOfHost
          ? kernel.network.isUp(host)
            ? nowMs
            : (hadPowerMs.get(host) ?? Number.NEGATIVE_INFINITY)
          : runs
            ? nowMs
            : (ranMs.get(name) ?? Number.NEGATIVE_INFINITY);
        verdict.check(
          nowMs - lastMs <= windowMs,
          () =>
            `${by} says that ${name} runs, and ${isOfHost ? "its host had power" : "it ran"} ${Math.round(nowMs - lastMs)} ms ago`,
        );
      }
    };
    kernel.watchers.push({
      stepped: (who, input, effects) => {
        // A person's word is noted in the item as it was asked for last.
        if (!isHaManager(who) || input.kind === "request" || input.kind === "start") return;
        for (const effect of effects) {
          if (effect.kind !== "write" || !effect.key.startsWith("item/") || effect.value === null) continue;
          const item = effect.value as unknown as { readonly [name: string]: Json };
          if (item.step === "Investigating" || item.step === "Fencing") look(item);
        }
      },
      log: (who, event) => {
        if (event === "power-off") hadPowerMs.set(who, kernel.clock.nowMs);
      },
    });
    return undefined;
  },
};
