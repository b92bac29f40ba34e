import { isGivenUp, watchHa } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/** This long before the end nothing may be written any more. */
const restMs = 3000;

/**
 * Minutes of a storage server are counted at rest as well, and so are beats of hosts; and a controller whose store was lost notes a
 * minute after it has heard everybody that it has.
 */
const isMark = (key: string): boolean => key === "mark" || key.startsWith("mark/") || key === "beat" || key === "lost";

/**
 * At rest nothing is written, however often it is looked at again; and a machine is stopped on request only where its user
 * gave a reason: another wish, a guest that does not answer, a host that could not have it.
 */
export const reconciled: Invariant = {
  number: 19,
  title: "reconciling twice changes nothing, and a stale view deletes nothing",
  watch: ({ kernel, truth, users, installation }, verdict) => {
    let writes: { readonly atMs: number; readonly what: string }[] = [];
    let steps: number[] = [];
    const said = watchHa(kernel);
    /** So many are kept until those that are too old are sought out. */
    let most = 20_000;
    kernel.watchers.push({
      stepped: (who, _input, effects) => {
        const { nowMs } = kernel.clock;
        steps.push(nowMs);
        for (const effect of effects)
          if ((effect.kind === "write" || effect.kind === "desire") && !isMark(effect.key))
            writes.push({ atMs: nowMs, what: `${who}: ${effect.kind} ${effect.key}` });
        if (steps.length < most) return;
        writes = writes.filter(({ atMs }) => atMs > nowMs - restMs);
        steps = steps.filter((atMs) => atMs > nowMs - restMs);
        most = 2 * steps.length + 20_000;
      },
    });
    truth.watchers.push({
      machineEnded: (machine, how) => {
        const { name, vm, host } = machine;
        // A controller that does not know it any more, and an operator who therefore ended its document.
        const isEnded = isGivenUp(said, machine);
        if (how !== "stopped" || installation.endedByHand.has(vm) || isEnded) return;
        const cell = installation.cells[Number(/^cell(\d+)-/.exec(vm)?.[1]) - 1] ?? "";
        const texts = users.submitted.get(cell) ?? [];
        const isStill = texts.length === 1 && users.wishes.get(cell)?.text !== null;
        if (!isStill || texts[0]?.machines.find((each) => each.name === name)?.live !== false) return;
        verdict.violate(`${name} was stopped at ${host}, and nobody has ever asked for that`);
      },
    });
    return () => {
      const since = kernel.clock.nowMs - restMs;
      const late = writes.filter(({ atMs }) => atMs > since);
      for (const atMs of steps) if (atMs > since) verdict.check(true, () => "");
      if (late.length > 0) verdict.violate(`at rest there was written ${late.map(({ what }) => what).join(", ")}`);
    };
  },
};
