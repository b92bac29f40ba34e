import type { Cell } from "../../../model/cell/cell.ts";
import { type ElementPath, elementPath } from "../../../model/cell/identifiers.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { type ControllerState, recordAt } from "../state.ts";
import { bootLink, bootLinkIn, serviceVms } from "./boot-disks.ts";
import { isOwnVmElement } from "./service-data.ts";

/**
 * Refuses changes of the VM that this very controller runs in (decision 42). A change of what a VM starts with needs a new
 * incarnation, and while this VM is down there is no controller to start one. The exception is another boot volume, which the
 * host tries by itself and goes back from if it fails (`upgrade.ts`). Other changes are refused rather than taken into the
 * model, where they would never come true.
 */
export function ownVmRefusals(state: ControllerState, cell: Cell, plan: Plan): readonly Diagnostic[] {
  if (state.options.root === undefined) return [];
  return serviceVms(state).flatMap((element) => {
    const { path } = element;
    const uid = recordAt(state, path)?.uid;
    const begun = uid !== undefined && (state.vms.get(uid)?.incarnation ?? 0) > 0;
    if (!begun || !isOwnVmElement(state, element)) return [];
    const step = plan.steps.find((each) => each.path === path || each.movedFrom === path);
    if (step?.action !== "restart" && step?.action !== "replace") return [];
    const boot: ReadonlySet<string | undefined> = new Set([
      bootLink(state, path)?.path,
      bootLinkIn(cell, elementPath(step.path))?.path,
    ]);
    const others = step.causes.filter(({ attribute }) => !boot.has(attribute)).map(({ attribute }) => attribute);
    return others.length === 0 && step.action === "restart" ? [] : [refusal(step.path, others)];
  });
}

function refusal(path: ElementPath, attributes: readonly string[]): Diagnostic {
  const what = attributes.length === 0 ? "it" : attributes.map((name) => `\`${name}\``).join(", ");
  return {
    code: "cell/own-vm",
    message: `the root controller itself runs in \`${path}\`, and for another ${what} that VM would have to be started anew: nobody would be there to do it`,
    hint: "Leave everything of this VM as it is, except the image of its boot volume, with which its host starts it again. Further roles go into another service VM; its size is chosen when an installation is made.",
    path,
  };
}
