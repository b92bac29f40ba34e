import { type DesiredGuard, guardKey } from "../../documents/ha.ts";
import type { Desires } from "../changes/desires.ts";
import { addDesire, type ControllerState, haManager, haManagerOf, storageManagerOf } from "../state.ts";
import { nothingLeft } from "./life.ts";

/** Which HA Manager looks after the cell, said where its volumes' leases are, until nothing of it is left. */
export function desireGuard(state: ControllerState, desires: Desires): void {
  const [guard, { cell }] = [haManagerOf(state), state.options];
  if (!state.ha || guard === haManager || nothingLeft(state)) return;
  addDesire(desires, storageManagerOf(state), guardKey, { cell, haManager: guard } satisfies DesiredGuard);
}
