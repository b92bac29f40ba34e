import type { JsonObject } from "../../../model/json/json.ts";
import type { World } from "../world.testing.ts";

/** A change: a whole specification, and what may be destroyed by it. */
export interface Change {
  readonly json: JsonObject;
  readonly allowDestroy?: readonly string[];
}
/** A controller that is asked: of some cell, or of the root cell. */
export type Asked = Pick<World, "ask">;
export interface FollowedRefusal {
  /** An installation, and a cell that is accepted there. */
  readonly arise: () => Asked;
  /** What is refused with the hint. */
  readonly wrong: Change;
  /** What becomes of it in each way that the hint names; a step before it, where something else than the text has to be done. */
  readonly ways: readonly (Change & { before?(world: Asked): void })[];
}
