import type { Cell, VolumeGrantElement } from "../../../model/cell/cell.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { cellDomain } from "../network/names.ts";
import type { ControllerState } from "../state.ts";
import { holdsIn, isOver } from "./holds.ts";

/** Holds that are refused: those for a copy that can never be, and changes that go against one (`holds.ts`). */

/**
 * What would destroy a volume that is held, or leave it without its grant. Whoever wants that takes the hold back first, in a
 * change of its own.
 */
export function holdRefusals(state: ControllerState, plan: Plan): readonly Diagnostic[] {
  const holds = holdsIn(state.cell);
  if (holds.size === 0) return [];
  const steps = new Map(plan.steps.map((step) => [step.movedFrom ?? step.path, step]));
  return [...holds].flatMap(([volume, grants]) => {
    const step = steps.get(volume);
    return grants.flatMap((grant): readonly Diagnostic[] => {
      const stays = steps.get(grant.path)?.action !== "delete";
      const isDestroyed = step?.action === "replace" || (step?.action === "delete" && stays);
      if (!isDestroyed || isOver(state, grant)) return [];
      return [
        {
          code: "cell/held",
          path: step.path,
          message: `\`${step.path}\` is held by \`${grant.path}\` until its copy \`${grant.hold}\` is made, and would be ${step.action === "replace" ? "made anew" : "left without it"}`,
          hint: `Wait for the copy, or take \`x.hold\` of \`${grant.path}\` away first, in a change of its own.`,
        },
      ];
    });
  });
}

/**
 * Holds of a new model for copies that can never be: they would keep their volumes for ever. What the model had before is left as it
 * is, and given up by name. That a cell of this cloud does not exist yet, or will never make it, nobody can know here.
 */
export function holdFaults(state: ControllerState, cell: Cell, plan: Plan): readonly Diagnostic[] {
  const holds = [...holdsIn(cell).values()].flat();
  if (holds.length === 0) return [];
  const same = new Set(plan.steps.flatMap(({ path, action }) => (action === "none" ? [path] : [])));
  const volumes = new Map<string, VolumeGrantElement>();
  const faults: Diagnostic[] = [];
  const fault = ({ path, position }: VolumeGrantElement, message: string, hint: string): void =>
    void faults.push({
      code: "cell/grant",
      path,
      message,
      hint,
      ...(position === undefined ? {} : { position }),
    });
  for (const grant of holds) {
    const { path, to, hold = "" } = grant;
    if (to.kind !== "cell") continue;
    const copy = `//${to.domain}/${hold}`;
    const first = volumes.get(copy) ?? grant;
    volumes.set(copy, first);
    if (same.has(path)) continue;
    const former = formerHeldFor(state, copy);
    if (!isPath(hold))
      fault(
        grant,
        `\`${path}\` holds its volume for \`${hold}\`, which is no element's path`,
        'Write the copy\'s whole path in that cell, its component first, such as `x.hold "primary/volumes/a1"`; or remove `x.hold`.',
      );
    else if (!to.domain.endsWith(`.${state.options.domain}`) || to.domain === cellDomain(state))
      fault(
        grant,
        to.domain === cellDomain(state)
          ? `\`${path}\` holds its volume for a copy in this cell itself, which goes with it`
          : `\`${path}\` holds its volume for a copy in \`${to.domain}\`, and the cells of this cloud are below \`${state.options.domain}\``,
        `Name the other cell that the copy stands in, such as \`x.cell "<ref://primary.${state.options.domain}/>"\`; or remove \`x.hold\`.`,
      );
    else if (first.volume !== grant.volume)
      fault(
        grant,
        `\`${path}\` holds \`${grant.volume}\` for \`${hold}\`, for which \`${first.path}\` holds \`${first.volume}\`: a copy has one origin`,
        "Let each hold name a copy of its own in `x.hold`.",
      );
    else if (former !== null)
      fault(
        grant,
        `\`${path}\` holds its volume for \`${hold}\`, for which a former \`${former}\` is held that has left the model`,
        `Name another copy in \`x.hold\`, or wait until that one is made, or give the former volume up: \`cells delete ${former} --drop-held\`.`,
      );
  }
  return faults;
}

const isPath = (path: string): boolean => {
  const names = path.split("/");
  return names.length > 1 && names.every((name) => name !== "" && !name.startsWith("x.") && !name.startsWith("$"));
};

/** Path of a volume that has left the model and stays for this copy. */
function formerHeldFor(state: ControllerState, copy: string): string | null {
  for (const uid of state.indexes.held.keys()) {
    const { path = null, held = [] } = state.elements.get(uid) ?? {};
    if (held.some(({ to, hold }) => "domain" in to && `//${to.domain}/${hold}` === copy)) return path;
  }
  return null;
}
