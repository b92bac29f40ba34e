import { type PlacementSettings, placementSettingNames } from "../../cell/attributes/placement-settings.ts";
import type { Cell } from "../../cell/cell.ts";
import type { ReportFault } from "../fault.ts";

/** The operator alone speaks to the Placers about all cells. */
const rootName = "root";

/** The settings that a cell writes; null: none. Each is within its bounds by the schema. */
export function placementSettingsOf(read: (attribute: string) => number | undefined): PlacementSettings | null {
  const written = placementSettingNames.flatMap((name): readonly (readonly [string, number])[] => {
    const value = read(`x.placement.${name}`);
    return value === undefined ? [] : [[name, value]];
  });
  return written.length === 0 ? null : Object.freeze(Object.fromEntries(written));
}

export function checkPlacementSettings({ placement, name, path }: Cell, fault: ReportFault): void {
  if (placement === undefined || name === rootName) return;
  fault("cell/placement", `\`${name}\` sets how VMs of all cells are placed, which is the root cell's alone`, path, {
    attribute: `x.placement.${Object.keys(placement)[0]}`,
    hint: "Leave `x.placement` out beside the cell, and put it into the root cell's specification. What one VM wants of its host stands in the VM's own `x.placement`.",
  });
}
