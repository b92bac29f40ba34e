import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Invariant } from "../invariant.ts";
import { incarnationOf, isHaManager, named } from "./said-over.ts";

/** From each step, those that may follow. */
const follows: Readonly<Record<string, readonly string[]>> = {
  Scheduled: ["Investigating", "Migrating", "Stopping", "Cancelled"],
  Investigating: ["Fencing", "Restarting", "Stopping", "Done", "Cancelled"],
  Fencing: ["Restarting", "Cancelled"],
  Restarting: ["Done"],
  Migrating: ["Done", "Cancelled"],
  Stopping: ["Done", "Cancelled"],
};
/**
 * The HA Manager's work goes by the table, and nothing leaves it before it is on its disk: not the news of a step, nor a fence that is asked for, nor the
 * word that an incarnation is over, nor an order to a power. What is read there is the simulated disk itself, at the moment at which something leaves or arrives.
 */
export const durableFirst: Invariant = {
  number: 34,
  title: "steps of HA follow the table, and are durable before anybody hears of them",
  watch: ({ kernel, installation }, verdict) => {
    /** By manager and incarnation, the step that it was at last; null: it was lost with what was not durable, or ended. */
    const at = new Map<string, string>();
    const { written, gone, asked } = watchWrites(kernel);
    const stored = (who: string, key: string): Json =>
      installation.processes.get(peerName(who))?.disk.read(`own/${key}`) ?? null;
    const isGone = (who: string, key: string): boolean => gone.get(who)?.has(key) === true;
    const stepOnDisk = (who: string, vm: unknown, incarnation: unknown): string | null => {
      for (const kind of ["item", "work"]) {
        const key = `${kind}/${vm}/${incarnation}`;
        const step = named(stored(who, key), "step");
        if (step !== null) return String(step);
      }
      return null;
    };
    /** What is on the disk was written then, or later. */
    const isThere = (name: string, step: string, there: string): boolean => {
      const steps = written.get(name) ?? [];
      return steps.lastIndexOf(there) >= steps.lastIndexOf(step);
    };
    const isLetGo = (who: string, vm: unknown, incarnation: unknown): boolean =>
      isGone(who, `item/${vm}/${incarnation}`) || isGone(who, `work/${vm}/${incarnation}`);
    kernel.watchers.push({
      log: (who, event, { vm, incarnation, step, host, boot }) => {
        if (!isHaManager(who)) return;
        const name = `${who} ${incarnationOf({ vm, incarnation })}`;
        if (event === "process/crashed" || event === "store/taken")
          for (const key of at.keys()) if (key.startsWith(`${who} `)) at.delete(key);
        if (event === "ha/scheduled" || event === "ha/step") {
          const to = event === "ha/scheduled" ? "Scheduled" : String(step);
          const before = at.get(name);
          at.set(name, to);
          if (to === "Error") return;
          const isAllowed = event === "ha/scheduled" || before === undefined || (follows[before] ?? []).includes(to);
          verdict.check(isAllowed, () => `the item of ${name} went from ${before} to ${to}`);
          const there = stepOnDisk(who, vm, incarnation);
          verdict.check(
            there === null ? isLetGo(who, vm, incarnation) : isThere(name, to, there),
            () => `${name} is said to be at ${to}, and is durable at ${there ?? "nothing"}`,
          );
        }
        if (event === "ha/over") {
          const there = named(stored(who, `over/${vm}`), "incarnation");
          verdict.check(
            there === incarnation || isGone(who, `over/${vm}`),
            () => `${name} is said to be over, and durable is that of incarnation ${there}`,
          );
        }
        if (event === "ha/power-off") {
          const there = named(stored(who, `order/${host}`), "boot");
          verdict.check(
            there === boot || isGone(who, `order/${host}`),
            () => `the power of ${host} is ordered to be cut in boot ${boot}, and durable is one of boot ${there}`,
          );
        }
      },
      frame: (from, _to, frame) => {
        if (!isHaManager(from) || frame.frame !== "desire" || !frame.key.startsWith("fence/") || frame.value === null)
          return;
        const [vm, incarnation] = [named(frame.value, "vm"), named(frame.value, "incarnation")];
        if (!asked.has(`${from} ${frame.key}.${incarnation}`)) return;
        const step = stepOnDisk(from, vm, incarnation);
        const name = `${from} ${incarnationOf({ vm, incarnation })}`;
        verdict.check(
          step === null ? isLetGo(from, vm, incarnation) : isThere(name, "Fencing", step),
          () => `${from} asks for a fence of ${vm}.${incarnation}, whose item is durable at ${step ?? "nothing"}`,
        );
      },
    });
    return undefined;
  },
};

/** What managers write and ask for, durable or not. */
function watchWrites(kernel: Kernel) {
  /** By manager and incarnation, the steps that were ever written. */
  const written = new Map<string, string[]>();
  /** By manager, records that it has let go since. */
  const gone = new Map<string, Set<string>>();
  /** Fences that it asks for by itself: what somebody else has it say is no matter of this. */
  const asked = new Set<string>();
  kernel.watchers.push({
    stepped: (who, _input, effects) => {
      if (!isHaManager(who)) return;
      const keys = gone.get(who) ?? new Set<string>();
      gone.set(who, keys);
      for (const effect of effects) {
        if (effect.kind === "desire" && effect.key.startsWith("fence/") && effect.value !== null)
          asked.add(`${who} ${effect.key}.${named(effect.value, "incarnation")}`);
        if (effect.kind !== "write") continue;
        if (effect.value === null) keys.add(effect.key);
        else keys.delete(effect.key);
        const [kind, vm, incarnation] = effect.key.split("/");
        const step = named(effect.value, "step");
        if ((kind !== "item" && kind !== "work") || step === null) continue;
        const name = `${who} ${incarnationOf({ vm, incarnation })}`;
        const steps = written.get(name) ?? [];
        if (steps.at(-1) !== step) steps.push(String(step));
        written.set(name, steps);
      }
    },
  });
  return { written, gone, asked };
}
