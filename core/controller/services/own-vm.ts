import type { Cell } from "../../../model/cell/cell.ts";
import { type ElementPath, elementPath } from "../../../model/cell/identifiers.ts";
import type { Diagnostic } from "../../../model/diagnostics/diagnostic.ts";
import type { Plan } from "../../../model/plan/plan-types.ts";
import { type ControllerState, recordAt } from "../state.ts";
import { bootLink, bootLinkIn, serviceVms } from "./boot-disks.ts";
import { isOwnVmElement } from "./service-data.ts";

/**
 * What of the VM that this very controller runs in cannot change (decision 42). Whatever a VM is started with changes by its
 * next incarnation; of this VM nobody would be there to start one, and what its host can try by itself, and go back from, is
 * another boot volume (upgrade.ts). To take another size or other roles into the model and leave them out would be a
 * promise that nobody keeps.
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
