import { type HostRule, isSameOwner } from "./dedication.ts";
import type { ImplicitMode, Neighbour } from "./implicit.ts";

/** What the root administrator is told when a VM crosses what is dedicated. Nothing of it is refused. */
export type CrossingAlert = "E1" | "E2" | "E3" | "I1" | "I2" | "I3";

/** Each as a person reads it before the VM goes. */
export const crossingSays: Readonly<Record<CrossingAlert, string>> = {
  E1: "it leaves a host that is dedicated for one that is everybody's",
  E2: "it goes to a host that is dedicated",
  E3: "it goes from one owner's host to another owner's",
  I1: "it asks to be alone with its account's strict machines, and others are there",
  I2: "it would rather be among its account's machines that ask for the same, and others are there",
  I3: "machines that ask to be among themselves are where it leaves or where it goes",
};

export interface Crossing {
  readonly account: string;
  readonly mode: ImplicitMode | null;
  readonly from: { readonly rule: HostRule | null; readonly there: readonly Neighbour[] };
  /** Without the VM itself, as `from`. */
  readonly to: { readonly rule: HostRule | null; readonly there: readonly Neighbour[] };
}

const isHeld = (there: readonly Neighbour[]): boolean => there.some(({ mode }) => mode !== null);

/** In the order of their names. */
export function alertsOf({ account, mode, from, to }: Crossing): readonly CrossingAlert[] {
  const alerts: CrossingAlert[] = [];
  if (from.rule !== null && to.rule === null) alerts.push("E1");
  if (from.rule === null && to.rule !== null) alerts.push("E2");
  if (from.rule !== null && to.rule !== null && !isSameOwner(from.rule.to, to.rule.to)) alerts.push("E3");
  const others = to.there.some((each) => each.account !== account);
  if (mode === "strict" && (others || to.there.some((each) => each.mode !== "strict"))) alerts.push("I1");
  if (mode === "preferred" && (others || to.there.some((each) => each.mode === null))) alerts.push("I2");
  if (mode === null && (isHeld(from.there) || isHeld(to.there))) alerts.push("I3");
  return alerts;
}
