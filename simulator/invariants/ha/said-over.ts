import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { MachineTruth, Truth } from "../../world/truth.ts";

/** What the HA Manager has said, by its log; that it was right is checked by 31. */
export interface SaidByHa {
  readonly fencing: ReadonlySet<string>;
  readonly over: ReadonlySet<string>;
  /** Of these, those that may go on: their volumes were to be given up. */
  readonly recreatable: ReadonlySet<string>;
  /** Ended by their own host, since nobody heard it. */
  readonly isolated: ReadonlySet<string>;
  /** Stopped by its controller to go elsewhere; that somebody asked for that, and that there was room, is checked by 41. */
  readonly moved: ReadonlySet<string>;
  /** Freed of its host by an operator, though nobody has seen that it ended. */
  readonly forced: ReadonlySet<string>;
}
/** Of what is no object there are none. */
export const fieldsOf = (value: Json): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
export const named = (value: Json, name: string): Json => fieldsOf(value)[name] ?? null;

/** One of several. */
export const isHaManager = (who: string): boolean => /^ha-manager(?:\.\d+)?$/.test(who);
type Incarnation = { readonly vm: unknown; readonly incarnation: unknown };
export const incarnationOf = ({ vm, incarnation }: Incarnation): string => `${vm}.${incarnation}`;

/** It was given up, ended by its own host, or sent away; it runs elsewhere, or will. */
export const isGivenUp = ({ over, isolated, moved, forced }: SaidByHa, machine: Incarnation): boolean =>
  [over, isolated, moved, forced].some((ended) => ended.has(incarnationOf(machine)));

/** The HA Manager has it fenced, or knows that it is over; or an operator has said so. */
export const isHaMatter = ({ fencing, over, forced }: SaidByHa, machine: Incarnation): boolean =>
  [fencing, over, forced].some((each) => each.has(incarnationOf(machine)));

export const watchHa = (kernel: Kernel): SaidByHa => {
  const fencing = new Set<string>();
  const over = new Set<string>();
  const recreatable = new Set<string>();
  const isolated = new Set<string>();
  const moved = new Set<string>();
  const forced = new Set<string>();
  /** Words that something is over, as managers want them said; they count once somebody hears them. */
  const meant = new Set<string>();
  kernel.watchers.push({
    // Also of a step whose process crashes behind its commit.
    stepped: (who, _input, effects) => {
      for (const effect of effects) {
        if (isHaManager(who) && effect.kind === "publish" && effect.key.includes("/over/"))
          meant.add(`${who} ${effect.key} ${named(effect.value, "incarnation")}`);
        if (isHaManager(who) && effect.kind === "log" && effect.event === "ha/step" && effect.fields.step === "Fencing")
          fencing.add(incarnationOf({ vm: effect.fields.vm, incarnation: effect.fields.incarnation }));
        const ended =
          effect.kind !== "log" ? undefined : { "vm/moves": moved, "vm/forced": forced }[effect.event as string];
        if (effect.kind !== "log" || ended === undefined) continue;
        ended.add(incarnationOf({ vm: effect.fields.vm, incarnation: effect.fields.incarnation }));
      }
    },
    frame: (from, _to, frame) => {
      if (frame.frame !== "actual" || !frame.key.includes("/over/") || frame.value === null) return;
      const [vm, incarnation] = [named(frame.value, "vm"), named(frame.value, "incarnation")];
      if (!meant.has(`${from} ${frame.key} ${incarnation}`)) return;
      over.add(incarnationOf({ vm, incarnation }));
      if (named(frame.value, "by") === "recreatable") recreatable.add(incarnationOf({ vm, incarnation }));
    },
    log: (who, event, { vm, incarnation, by }) => {
      if (event === "host/isolated") isolated.add(incarnationOf({ vm, incarnation }));
      if (!isHaManager(who)) return;
      if (event === "ha/over") over.add(incarnationOf({ vm, incarnation }));
      if (event === "ha/over" && by === "recreatable") recreatable.add(incarnationOf({ vm, incarnation }));
    },
  });
  return { fencing, over, recreatable, isolated, moved, forced };
};

/** VMs that their hosts start again by themselves: the root controller's. Read off what hosts are told to run. */
export const watchOwn = (kernel: Kernel): ReadonlySet<string> => {
  const own = new Set<string>();
  kernel.watchers.push({
    frame: (_from, to, frame) => {
      if (frame.frame !== "desire" || !frame.key.startsWith("vm/") || !to.startsWith("host.")) return;
      if (named(frame.value, "restart") === "host") own.add(frame.key.slice("vm/".length));
    },
  });
  return own;
};

/** HA Managers that have paused since many hosts were lost at once, until somebody has looked. What a crash took with it was not said. */
export const watchPauses = (kernel: Kernel): ReadonlySet<string> => {
  const paused = new Set<string>();
  /** Of these, those that have it on their disks. */
  const durable = new Set<string>();
  kernel.watchers.push({
    stepped: (who, _input, effects) => {
      for (const effect of effects) {
        if (effect.kind !== "log" || !isHaManager(who)) continue;
        if (effect.event === "ha/paused") paused.add(who);
        if (effect.event === "ha/released" && effect.fields.vm === null)
          for (const each of [paused, durable]) each.delete(who);
      }
    },
    log: (who, event) => {
      if (event === "ha/paused") durable.add(who);
      if (event === "store/taken") durable.delete(who);
      if ((event === "process/crashed" || event === "store/taken") && !durable.has(who)) paused.delete(who);
    },
  });
  return paused;
};

/** An export of one of its writable disks takes writes, or has some that have not landed. */
export const canWrite = (truth: Truth, { disks }: MachineTruth): boolean =>
  disks.some(({ attachment: { layers } }) => {
    const [layer] = layers;
    return layer?.writable === true && [...truth.exports].some(({ exportName }) => exportName === layer.exportName);
  });

/** It was said to be over, or freed by an operator, and what goes on of it writes to nothing, or to nothing that counts: 31 looks at who has its volumes. */
export const isHarmless = ({ over, recreatable, forced }: SaidByHa, truth: Truth, machine: MachineTruth): boolean =>
  [over, forced].some((each) => each.has(incarnationOf(machine))) &&
  (recreatable.has(incarnationOf(machine)) || !canWrite(truth, machine));
