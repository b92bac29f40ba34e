import type { Invariant } from "../invariant.ts";

/** A VM that is said to be ready in an incarnation has been seen running in it. */
export const doneIsSeen: Invariant = {
  number: 8,
  title: "done implies seen running at the new incarnation",
  watch: ({ kernel, truth }, verdict) => {
    const started = new Set<string>();
    const stages = new Map<string, { readonly stage: string; readonly incarnation: number }>();
    truth.watchers.push({ machineStarted: ({ vm, incarnation }) => void started.add(`${vm}.${incarnation}`) });
    kernel.watchers.push({
      log: (who, event, fields) => {
        if (!who.startsWith("controller.")) return;
        if (event === "vm/stage") {
          const { vm, stage, incarnation } = fields;
          stages.set(String(vm), { stage: String(stage), incarnation: Number(incarnation) });
          return;
        }
        if (event !== "element/state" || fields.type !== "VM" || fields.phase !== "ready") return;
        const known = stages.get(String(fields.uid));
        if (known?.stage !== "running") return;
        verdict.check(
          started.has(`${fields.uid}.${known.incarnation}`),
          () => `${fields.path} is said to be ready in incarnation ${known.incarnation}, which never started`,
        );
      },
    });
    return undefined;
  },
};
