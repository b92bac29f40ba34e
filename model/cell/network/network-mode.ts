import { type Mode, modes } from "./modes.ts";

/** Of a cell whose networks are made by Diverter. */
export const diverter = "DIVERTER";

/** Null: Diverter. */
export const cellModeOf = (text: string | undefined): Mode | null => modes.find((mode) => mode === text) ?? null;

/** A part of the one table (`model/cell/schema.ts`). */
export const networkModeAttribute = {
  kind: { kind: "choice", values: [diverter, ...modes] },
  default: diverter,
  effect: "replace",
  docs: "By which rules the child cell's networks are made, for good: Diverter's, or those of a mode of Eucalyptus, on hosts that offer it. There a `Subnet` is a security group, whose members always reach one another, and addresses come from the network configuration; of STATIC and SYSTEM, which isolate nothing, the child says `x.policy.isolation`.",
} as const;
