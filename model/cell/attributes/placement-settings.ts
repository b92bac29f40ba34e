import type { HaSetting } from "./ha-settings.ts";

/** Settings of the Placers, `x.placement.*` of the root cell: the operator's word for all cells. */
export const placementSettings = {
  lastHostS: {
    preset: 3600,
    least: 0,
    most: 86_400,
    unit: "s",
    docs: "So long a VM that was stopped, and not deleted, still counts at its last host for its affinity groups and for implicit dedication, without taking room there; 0: not at all. It is about stops from then on",
  },
  systemHosts: {
    preset: 1,
    least: 0,
    most: 16,
    docs: "So many hosts are left to the cloud's own VMs: no VM with `x.placement.dedication \"strict\"` makes one of the last its account's alone, and none of the last goes into a flavour. What stands there already stays. Not written, it is none where no more than 4 hosts are open to all VMs",
  },
} as const satisfies Readonly<Record<string, HaSetting>>;
export type PlacementSettingName = keyof typeof placementSettings;
export const placementSettingNames = Object.keys(placementSettings) as readonly PlacementSettingName[];
/** What is written; the rest is as preset. */
export type PlacementSettings = { readonly [name in PlacementSettingName]?: number };
