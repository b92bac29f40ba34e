import type { Element, VmElement } from "../../cell/cell.ts";
import { named } from "../../cell/tenants/dedication/dedication.ts";
import { type KnownOffering, offeringOf } from "../../cell/tenants/pools/offerings.ts";
import { niceOf } from "../../cell/tenants/wishes/nice.ts";
import { closestName } from "../../diagnostics/closest-name.ts";
import type { ReportFault } from "../fault.ts";

/** A VM names an offering that there is, and neither has nor may get more than that. */
export function checkOfferings(
  elements: readonly Element[],
  offerings: readonly KnownOffering[],
  fault: ReportFault,
): void {
  for (const element of elements) if (element.type === "VM") checkVm(element, offerings, fault);
}

function checkVm(vm: VmElement, offerings: readonly KnownOffering[], fault: ReportFault): void {
  const { path, placement, memoryMiB, cpus } = vm;
  const name = offeringOf(placement);
  if (name === null) return;
  const offering = offerings.find((each) => each.name === name);
  if (offering === undefined) {
    const there = offerings.map((each) => each.name);
    const close = closestName(name, there);
    const meant = close === undefined ? "" : `Did you mean \`${close}\`? `;
    const all = `${meant}There are ${named(there)}.`;
    fault("cell/offering", `There is no offering \`${name.slice(0, 100)}\``, path, {
      attribute: "x.placement.offering",
      hint: there.length === 0 ? "The operator offers none: leave it out." : all,
    });
    return;
  }
  for (const { attribute, has, most, unit } of [
    { attribute: "x.memory", has: memoryMiB, most: offering.memoryMiB, unit: "MiB" },
    { attribute: "x.cpus", has: cpus, most: offering.cpus, unit: "processors" },
  ])
    if (has > most)
      fault(
        "cell/offering",
        `\`${path}\` has ${has} ${unit}, and a VM of the offering \`${name}\` at most ${most}`,
        path,
        {
          attribute,
          hint: `Write \`${attribute} ${most}\` or less, or name another offering.`,
        },
      );
  for (const { name: wish, wants } of niceOf(placement)) {
    if (wants.kind !== "memory" && wants.kind !== "cpus") continue;
    const [most, unit] = wants.kind === "memory" ? [offering.memoryMiB, "MiB"] : [offering.cpus, "processors"];
    if (wants.to > most)
      fault(
        "cell/offering",
        `\`${path}\` would get ${wants.to} ${unit} by its wish \`${wish}\`, and a VM of the offering \`${name}\` has at most ${most}`,
        path,
        {
          attribute: "x.placement.nice",
          hint: `Leave that wish out, or have it name \`${wants.kind} ${most}\` or less, or name another offering.`,
        },
      );
  }
}
