import type { Invariant } from "../invariant.ts";
import { fieldsOf, isHaManager, named } from "./said-over.ts";

/**
 * What a controller is told to be over is one that it had asked to be looked after, at that host; and of exactly that incarnation there is what the word says: a Storage Manager's
 * that nothing of it can write any more, a machine that does not run, or volumes that may be lost. Read off the frames that arrive; the premise is such a word.
 */
export const overIsWhatWasFenced: Invariant = {
  number: 33,
  title: "over is exactly the fenced incarnation",
  watch: ({ kernel, truth }, verdict) => {
    /** By manager, VM, incarnation and host, as controllers protect them; of these, the ones that may lose what they write. */
    const placed = new Set<string>();
    const lossy = new Set<string>();
    /** By manager, VM and incarnation, fences that are complete. */
    const complete = new Set<string>();
    /** What managers say by themselves: what somebody else has them say is no matter of this. */
    const said = new Set<string>();
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        if (!isHaManager(who)) return;
        for (const effect of effects)
          if (effect.kind === "publish" && effect.key.includes("/over/"))
            said.add(`${who} ${effect.key} ${named(effect.value, "incarnation")}`);
      },
      frame: (from, to, frame) => {
        if ((frame.frame !== "desire" && frame.frame !== "actual") || frame.value === null) return;
        const { key, value } = frame;
        const { vm, incarnation, host, by, recreatable, complete: isComplete } = fieldsOf(value);
        if (isHaManager(to) && frame.frame === "desire" && key.startsWith("protected/")) {
          placed.add(`${from} ${to} ${vm}.${incarnation} ${host}`);
          if (recreatable === true) lossy.add(`${to} ${vm}.${incarnation}`);
        }
        if (isHaManager(to) && frame.frame === "actual" && key.startsWith(`${to}/fence/`) && isComplete === true)
          complete.add(`${to} ${key.slice(`${to}/fence/`.length)}.${incarnation}`);
        if (!isHaManager(from) || frame.frame !== "actual" || !key.startsWith(`${to}/over/`)) return;
        if (!said.has(`${from} ${key} ${incarnation}`)) return;
        const name = `${vm}.${incarnation}`;
        verdict.check(
          key === `${to}/over/${vm}` && placed.has(`${to} ${from} ${name} ${host}`),
          () => `${from} says to ${to} by ${key} that ${name} is over at ${host}, where it never was`,
        );
        const runs = [...truth.machines].some(
          (machine) => machine.vm === vm && machine.incarnation === incarnation && machine.host === host,
        );
        const isSo =
          by === "storage"
            ? complete.has(`${from} ${name}`)
            : by === "recreatable"
              ? lossy.has(`${from} ${name}`)
              : !runs;
        verdict.check(
          isSo,
          () => `${from} says that ${name} is over at ${host} by ${by}, and of that one it is not so`,
        );
      },
    });
    return undefined;
  },
};
