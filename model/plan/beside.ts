import { printable } from "../diagnostics/render-diagnostic.ts";

/** What somebody should know of a change beside its plan, a group of lines for each matter; the command line and the page say the same. */
interface Beside {
  readonly upgraded?: readonly string[];
  readonly networkMode?: string;
  readonly unchecked?: readonly string[];
}
export const besideLines = (changed: Beside): readonly (readonly string[])[] =>
  [upgradeLines(changed), modeLines(changed), uncheckedLines(changed)].filter((lines) => lines.length > 0);

/** Restarts that happen later, one after another. */
const upgradeLines = ({ upgraded = [] }: Beside): readonly string[] =>
  upgraded.length === 0
    ? []
    : [
        "Upgrade: these VMs of services are started again one at a time, each with its old boot volume kept until the new one",
        `has proved itself: ${upgraded.map(printable).join(", ")}.`,
        "One that does not come up goes back by itself, and nothing more is upgraded then.",
      ];

/** What no rule says, and holds all the same. */
const modeLines = ({ networkMode }: Beside): readonly string[] =>
  networkMode === undefined
    ? []
    : [`Networks by the mode ${networkMode}: members of one subnet always reach one another, whatever rules say.`];

/** Says against what the plan could not be checked. */
const uncheckedLines = ({ unchecked = [] }: Beside): readonly string[] =>
  unchecked.length === 0
    ? []
    : [
        `Not checked, because the installation does not know all of it now: ${unchecked.join(", ")}.`,
        "What could never be had is refused when this is applied.",
      ];
