import { watchOwn } from "../ha/said-over.ts";
import type { Invariant } from "../invariant.ts";

/** Stages in their order. Steps may be missing, since a crash takes the line of the log, but none is ever taken back. */
const controllerStages = ["placing", "connecting", "running", "stopping", "none"];
const hostStages = ["starting", "running", "ended", "gone"];

export const legalTransitions: Invariant = {
  number: 10,
  title: "only legal state transitions",
  watch: ({ kernel }, verdict) => {
    const known = new Map<string, { readonly at: number; readonly incarnation: number }>();
    const byHost = watchOwn(kernel);
    kernel.watchers.push({
      log: (who, event, { vm, stage, incarnation, why }) => {
        // An older store knows earlier stages; after a disaster all controllers go on from such ones.
        if (event === "process/crashed" && why === "its store is lost")
          for (const key of known.keys()) if (key.startsWith(`${who} `)) known.delete(key);
        if (who === "history" && event === "disaster")
          for (const key of known.keys()) if (key.startsWith("controller.")) known.delete(key);
        const stages = event === "vm/stage" ? controllerStages : event === "machine/stage" ? hostStages : null;
        if (stages === null) return;
        const key = `${who} ${vm}`;
        const at = stages.indexOf(String(stage));
        const before = known.get(key);
        if (at === stages.length - 1 && event === "machine/stage") {
          known.delete(key);
          return;
        }
        known.set(key, { at, incarnation: Number(incarnation) });
        if (before === undefined) return;
        const isForward =
          before.incarnation < Number(incarnation) ||
          (before.incarnation === incarnation && (before.at <= at || byHost.has(String(vm))));
        verdict.check(
          at >= 0 && isForward,
          () => `${key} went from ${stages[before.at]} of ${before.incarnation} to ${stage} of ${incarnation}`,
        );
      },
    });
    return undefined;
  },
};
