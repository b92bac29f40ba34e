import type { Element, VmElement } from "../cell/cell.ts";
import { named } from "../cell/tenants/dedication/dedication.ts";
import { missingMark, readProperties, readTags } from "../cell/tenants/dedication/marks.ts";
import { closestName } from "../diagnostics/closest-name.ts";
import type { KnownMarks } from "./check-hosts.ts";
import type { ReportFault } from "./fault.ts";

/** A VM that asks for what no host is said to be could only wait: it is refused, as one that is too large for each. */
export function checkMarks(elements: readonly Element[], marks: KnownMarks, fault: ReportFault): void {
  for (const element of elements) if (element.type === "VM") checkVm(element, marks, fault);
}
function checkVm({ path, placement }: VmElement, { places, tags, properties }: KnownMarks, fault: ReportFault): void {
  const unknown = (what: string, wish: string, name: string, all: readonly string[]): void => {
    const there = [...new Set(all)].sort();
    const close = closestName(name, there);
    const meant = close === undefined ? "" : `Did you mean \`${close}\`? `;
    fault("cell/no-host", `There is no host with ${what} \`${name.slice(0, 100)}\``, path, {
      attribute: `x.placement.${wish}`,
      hint:
        there.length === 0
          ? "The operator has said none of any host: leave it out."
          : `${meant}There are ${named(there)}.`,
    });
  };
  for (const [at, level] of (["zone", "pod", "cluster"] as const).entries()) {
    const wish = placement[level];
    const isThere = places.some((cluster) => missingMark({ cluster }, { [level]: wish ?? null }) === null);
    const all = places.map((cluster) =>
      cluster
        .split("/")
        .slice(0, at + 1)
        .join("/"),
    );
    if (typeof wish === "string" && !isThere) unknown(`the ${level}`, level, wish, all);
  }
  for (const tag of placement.tags === undefined ? [] : (readTags(placement.tags) ?? []))
    if (!tags.includes(tag)) unknown("the tag", "tags", tag, tags);
  for (const name of Object.keys(readProperties(placement.properties) ?? {}))
    if (!properties.includes(name)) unknown("the property", "properties", name, properties);
}
