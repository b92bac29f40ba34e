import type { Uid } from "../../../model/cell/identifiers.ts";
import { actualCell } from "../../documents/readers/cells.ts";
import { actualOf, type ControllerState, cellManager, confirmedGone } from "../state.ts";

/**
 * Nothing is left of a child that is to end, and its document is taken back. As long as the Cell Manager's silence proves nothing it
 * is asked about the end (`lastOfNone`), and its document is there.
 */
export function hasChildEnded(state: ControllerState, child: Uid): boolean {
  const key = `cell/${child}`;
  if (state.pass.isDesired(cellManager, key)) return false;
  if (actualOf(actualCell, state, cellManager, key)?.ended === true) return true;
  return confirmedGone(state, cellManager, key);
}
