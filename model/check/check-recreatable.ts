import type { Cell, VolumeCopyElement, VolumeElement } from "../cell/cell.ts";
import type { ElementPath } from "../cell/identifiers.ts";
import type { ReportFault } from "./fault.ts";

/** A new volume in the place of one takes what rests on it along, so nothing that may not be lost rests on one that may. */
export function checkRecreatable(cell: Cell, fault: ReportFault): void {
  const all = [...cell.elements.values()];
  const isSuch = (path: ElementPath): VolumeElement | VolumeCopyElement | null => {
    const volume = cell.elements.get(path);
    return (volume?.type === "Volume" || volume?.type === "VolumeCopy") && volume.recreatable ? volume : null;
  };
  const told = new Set<ElementPath>();
  const users = new Map<ElementPath, ElementPath>();
  for (const element of all) {
    if (element.type === "VolumeCopy") report(element.image, `\`${element.path}\` is a copy of it`);
    else if (element.type === "VolumeGrant") report(element.volume, `\`${element.path}\` lets others have it`);
    else if (element.type === "VolumeConnection") {
      const other = users.get(element.volume);
      if (other !== undefined && other !== element.vm)
        report(element.volume, `\`${other}\` and \`${element.vm}\` both have it`);
      users.set(element.volume, element.vm);
    } else if (element.type === "Volume" && element.access === "ro")
      report(element.path, 'with `x.access "ro"` nothing is ever written to it');
  }

  function report(path: ElementPath, why: string): void {
    if (told.has(path) || isSuch(path) === null) return;
    told.add(path);
    fault("cell/recreatable", `\`${path}\` cannot be made anew for one VM: ${why}`, path, {
      attribute: "x.recreatable",
      hint: "Leave `x.recreatable` out here; it is for a volume that one VM alone writes, and that nothing rests on.",
    });
  }
}
