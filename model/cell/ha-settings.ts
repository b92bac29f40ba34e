/**
 * Settings of the HA Manager, `x.ha.*` of the root cell, by the names and presets of CloudStack's (`sync.interval` is `syncInterval`
 * here): whoever knows that one finds them. They bound how often something is looked at or tried, and how long it is kept; what is heard is acted upon at once. `spareHosts` is the Placers'.
 */
export interface HaSetting {
  readonly preset: number;
  readonly least: number;
  readonly most: number;
  readonly unit?: "s";
  readonly docs: string;
}
export const haSettings = {
  syncInterval: {
    ...{ preset: 60, least: 5, most: 3600, unit: "s" },
    docs: "How often work on lost VMs that waits is looked at again, whatever is heard",
  },
  timeBetweenCleanup: {
    ...{ preset: 86_400, least: 3600, most: 2_592_000, unit: "s" },
    docs: "How long `cells ha` shows work that has ended. It counts for `maxRetries`, so it is no shorter than `timeBetweenFailures`",
  },
  timeBetweenFailures: {
    ...{ preset: 3600, least: 60, most: 604_800, unit: "s" },
    docs: "Within this time a VM is started elsewhere `maxRetries` times",
  },
  restartRetryInterval: {
    ...{ preset: 600, least: 10, most: 86_400, unit: "s" },
    docs: "When the power of a lost host could not be cut, it is tried again after this",
  },
  maxRetries: {
    ...{ preset: 5, least: 1, most: 100 },
    docs: "So often a VM whose host is lost is started elsewhere by itself within `timeBetweenFailures`; then it waits for `cells ha release`",
  },
  spareHosts: {
    ...{ preset: 0, least: 0, most: 16 },
    docs: "Room is kept for the VMs of so many hosts, the fullest: a new VM is placed only where these would still find memory and processors on the others. VMs whose host was lost, those that leave a host, and the cloud's own take it. `cells status` says whether there is enough",
  },
} as const satisfies Readonly<Record<string, HaSetting>>;
export type HaSettingName = keyof typeof haSettings;
export const haSettingNames = Object.keys(haSettings) as readonly HaSettingName[];
/** What is written; the rest is as preset. */
export type HaSettings = { readonly [name in HaSettingName]?: number };
