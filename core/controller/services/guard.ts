import type { CauseOf } from "../../../model/cause/cause.ts";
import type { ActualLife } from "../../documents/cells.ts";
import { serviceNumber } from "../../documents/service-roles.ts";
import { type ControllerState, haManagerOf, isChild } from "../state.ts";

/* What is known of the HA Manager that looks after the cell. How another one comes in its place: `cells/guard.ts`. */

/**
 * A child whose store was lost does not know whom it has, before it has heard how its life is. Until then the Storage Manager goes by what was
 * said before.
 */
export const isGuardKnown = (state: ControllerState): boolean =>
  !isChild(state) || state.life !== null || state.model.version > 0;

/** Nobody looks after the cell's VMs; null: somebody does, as far as the Cell Manager knows. */
export function whyUnguarded(state: ControllerState): CauseOf<"unguarded"> | null {
  if (state.life?.unguarded !== true) return null;
  const service = haManagerOf(state);
  return { kind: "unguarded", service, number: serviceNumber(service), cell: state.options.cell };
}

/** As the Cell Manager is told it: what was made of the cell, it knows. */
export const guardSaid = ({ guard }: ControllerState): Pick<ActualLife, "guard" | "guardMoves"> =>
  guard === null
    ? {}
    : {
        guard: serviceNumber(guard.haManager),
        ...(guard.moves === undefined ? {} : { guardMoves: guard.moves }),
      };
