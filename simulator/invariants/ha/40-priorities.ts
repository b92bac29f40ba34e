import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Invariant } from "../invariant.ts";
import { fieldsOf, isHaManager } from "./said-over.ts";

/** The root cell's come first. */
const rankOf = ({ cell, priority }: JsonObject): number =>
  cell === "root" ? Number.POSITIVE_INFINITY : typeof priority === "number" ? priority : 0;
/** It has wishes of its own, by which another host may suit it, or none. */
const isPlain = (
  { placement, avoid, cpuSpeedMHz, memoryMiB, cpus, moveTo, image }: JsonObject,
  other: JsonObject,
): boolean =>
  JSON.stringify([placement, cpuSpeedMHz, memoryMiB, cpus, moveTo, image]) ===
    JSON.stringify([other.placement, other.cpuSpeedMHz, other.memoryMiB, other.cpus, other.moveTo, other.image]) &&
  JSON.stringify(avoid) === JSON.stringify(other.avoid);

/**
 * Of the VMs of one lost host the ones of higher priority are fenced first, as far as both could be in one step; and of those that wait for a place after such a loss, and
 * ask for the same, none has one before one of its cell that has a higher priority. The premise is two of different rank.
 */
export const priorities: Invariant = {
  number: 40,
  title: "of one loss no lower priority comes first while both could",
  watch: ({ kernel }, verdict) => {
    /** By manager or Placer, and VM: what its controller says of it. */
    const said = new Map<string, Map<string, JsonObject>>();
    const note = (who: string, vm: string, value: Json): void => {
      const of = said.get(who) ?? new Map<string, JsonObject>();
      said.set(who, of);
      if (value === null) of.delete(vm);
      else of.set(vm, fieldsOf(value));
    };
    const placed = new Map<string, Set<string>>();
    kernel.watchers.push({
      log: (who, event) => {
        if (event === "process/crashed" || event === "store/taken") {
          said.delete(who);
          if (event === "store/taken") placed.delete(who);
        }
      },
      stepped: (who, input, effects) => {
        const [isManager, isPlacer] = [isHaManager(who), /^placer(\.\d+)?$/.test(who)];
        if (!isManager && !isPlacer) return;
        const prefix = isManager ? "protected/" : "placement/";
        if (input.kind === "desired" && input.key.startsWith(prefix))
          note(who, input.key.slice(prefix.length), input.value);
        const of = said.get(who) ?? new Map<string, JsonObject>();
        const logs = effects.flatMap((effect) => (effect.kind === "log" ? [effect] : []));
        if (isManager) {
          const fenced = logs.filter(({ event, fields }) => event === "ha/step" && fields.step === "Fencing");
          fenced.forEach(({ fields }, at) => {
            const own = rankOf(of.get(String(fields.vm)) ?? {});
            for (const { fields: later } of fenced.slice(at + 1)) {
              const other = of.get(String(later.vm));
              if (later.host !== fields.host || other === undefined || rankOf(other) === own) continue;
              verdict.check(
                rankOf(other) < own,
                () => `of ${fields.host} ${fields.path} is fenced before ${later.path}, which has a higher priority`,
              );
            }
          });
          return;
        }
        const there = placed.get(who) ?? new Set<string>();
        placed.set(who, there);
        for (const { event, fields } of logs) {
          if (event !== "placement/reserved") continue;
          const key = `${fields.vm}.${fields.incarnation}`;
          const isNew = !there.has(key);
          there.add(key);
          const own = of.get(String(fields.vm)) ?? {};
          if (!isNew || own.restart !== true || own.at !== undefined) continue;
          for (const [vm, other] of of) {
            const waits = other.restart === true && other.at === undefined && !there.has(`${vm}.${other.incarnation}`);
            if (!waits || other.cell !== own.cell || rankOf(other) === rankOf(own) || !isPlain(own, other)) continue;
            verdict.check(
              rankOf(other) < rankOf(own),
              () =>
                `${fields.path} has a place before ${other.path}, which waits for one as well and has a higher priority`,
            );
          }
        }
      },
    });
    return undefined;
  },
};
