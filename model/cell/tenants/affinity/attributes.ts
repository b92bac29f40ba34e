import { groupKinds } from "./affinity.ts";

/** A part of the one table (`model/cell/schema.ts`). */
export const affinityGroupAttributes = {
  "x.kind": {
    kind: { kind: "choice", values: groupKinds },
    required: true,
    effect: "change",
    docs: "How its VMs stand: at one host or at different ones, and whether that is a condition or, non-strict, a wish.",
  },
} as const;
