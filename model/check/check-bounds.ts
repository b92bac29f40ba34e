import type { Cell, Element, VmElement, VolumeCopyElement } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import { limits } from "../limits.ts";
import { dataExcess } from "./data-size.ts";
import type { ReportFault } from "./fault.ts";

/** What a host or a storage service must bear for one element. A model that was accepted before is read as it was. */
export function checkBounds(cell: Cell, fault: ReportFault): void {
  const elements = [...cell.elements.values()];
  checkLayers(elements, cell, fault);
  for (const element of elements) if (element.type === "VM") checkData(element, fault);
}

function checkData({ path, data }: VmElement, fault: ReportFault): void {
  const excess = data === undefined ? null : dataExcess(data);
  if (excess !== null)
    fault("limit/data", `\`x.data\` of \`${path}\` ${excess}`, path, {
      attribute: "x.data",
      hint: "Give the guest what it needs to start; let it fetch the rest, or put that on a volume.",
    });
}

/**
 * Copies of copies beyond the bound, each chain where it goes beyond it. What lies below an origin in another cell is not known
 * here; the Storage Manager counts it. A circle is told of elsewhere. Each copy is gone through once.
 */
function checkLayers(elements: readonly Element[], cell: Cell, fault: ReportFault): void {
  const layers = new Map<ElementPath, number>();
  for (const element of elements) {
    const way: VolumeCopyElement[] = [];
    let at: Element | undefined = element;
    for (; at?.type === "VolumeCopy" && !layers.has(at.path); at = cell.elements.get(at.image)) {
      // Until it is worked out: a circle ends here.
      layers.set(at.path, 0);
      way.push(at);
    }
    let below = at?.type === "VolumeCopy" ? (layers.get(at.path) ?? 0) : 1;
    for (const copy of way.reverse()) {
      below += 1;
      layers.set(copy.path, below);
      if (below !== limits.layers + 1) continue;
      const message = `\`${copy.path}\` is the ${below}th of volumes of which each is a copy of the one before, and ${limits.layers} are allowed`;
      const hint = "Let it be a copy of one of the first of them, or of a `Volume`.";
      fault("cell/copy-depth", message, copy.path, { attribute: "x.image", hint });
    }
  }
}
