import type { VmElement } from "../../cell/cell.ts";
import { readNice } from "../../cell/tenants/wishes/nice.ts";
import { fills, spreadLevels } from "../../cell/tenants/wishes/standing.ts";
import { closestName } from "../../diagnostics/closest-name.ts";
import type { Json } from "../../json/json.ts";
import type { ReportFault } from "../fault.ts";

/** Wishes of a VM by which the best of several hosts is chosen, and none is refused. */
export function checkWishes({ path, placement, memoryMiB, cpus, start }: VmElement, fault: ReportFault): void {
  const wrong = (wish: string, message: string, hint: string): void =>
    fault("schema/value", `\`x.placement.${wish}\` ${message}`, path, { attribute: `x.placement.${wish}`, hint });
  const one = (wish: "fill" | "spreadOver", all: readonly string[], means: string): void => {
    const value: Json | undefined = placement[wish];
    if (value === undefined || all.some((each) => each === value)) return;
    const close = typeof value === "string" ? closestName(value.toLowerCase(), all) : undefined;
    const meant = close === undefined ? "" : `Did you mean "${close}"? `;
    wrong(wish, `is ${all.map((each) => `"${each}"`).join(" or ")}`, `${meant}${means}`);
  };
  one("fill", fills, '"pack" takes the fullest host that holds it, "spread" the emptiest.');
  one("spreadOver", spreadLevels, "VMs of one `x.placement.spread` then go to different ones of these.");
  if (placement.spreadOver !== undefined && placement.spread === undefined)
    wrong(
      "spreadOver",
      "says over what to spread, and nothing is spread",
      'Write `x.placement.spread "web";` as well.',
    );
  const niceWish = "nice";
  const wrongNice = (message: string, hint: string): void => wrong(niceWish, message, hint);
  const nice = readNice(placement.nice);
  if ("why" in nice) {
    const { name, why, right } = nice;
    const named = name === null ? "" : `has the wish \`${name}\`, which `;
    wrongNice(`${named}${why}`, right);
    return;
  }
  for (const { name, wants } of nice) {
    if (wants.kind !== "memory" && wants.kind !== "cpus") continue;
    const has = wants.kind === "memory" ? memoryMiB : cpus;
    if (wants.to <= has)
      wrongNice(
        `has the wish \`${name}\`, which asks for ${wants.kind} ${wants.to}, and the VM has ${has} anyhow`,
        `Write more than \`x.${wants.kind} ${has}\`, or leave the wish out.`,
      );
    else if (start === "resume")
      wrongNice(
        `has the wish \`${name}\`, which asks for more ${wants.kind}, and \`x.start "resume"\` goes on with as much as was saved`,
        'Leave the wish, or `x.start "resume"`, out.',
      );
  }
}
