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
    preset: 60,
    least: 5,
    most: 3600,
    unit: "s",
    docs: "How often all that hosts list is compared with all that is looked after, whatever is heard",
  },
  timeToSleep: {
    preset: 60,
    least: 1,
    most: 3600,
    unit: "s",
    docs: "How often work on lost VMs that waits is looked at again, whatever is heard",
  },
  investigateRetryInterval: {
    preset: 60,
    least: 10,
    most: 86_400,
    unit: "s",
    docs: "As long as a VM of a lost host is not fenced since something says that it runs, other machines are asked after this whether its host answers on the network, in place of those that got no answer",
  },
  stopRetryInterval: {
    preset: 600,
    least: 10,
    most: 86_400,
    unit: "s",
    docs: "A VM that its machine, which is heard, has not stopped after this is told to you (`stuck`)",
  },
  timeBetweenCleanup: {
    preset: 86_400,
    least: 3600,
    most: 2_592_000,
    unit: "s",
    docs: "How long `cells ha` shows work that has ended. It counts for `maxRetries`, so it is no shorter than `timeBetweenFailures`",
  },
  timeBetweenFailures: {
    preset: 3600,
    least: 60,
    most: 604_800,
    unit: "s",
    docs: "Within this time a VM is started elsewhere `maxRetries` times",
  },
  restartRetryInterval: {
    preset: 600,
    least: 10,
    most: 86_400,
    unit: "s",
    docs: "When the power of a lost host could not be cut, it is tried again after this; a VM that its machine, which is heard, has not started after this is told to you (`stuck`)",
  },
  haWorkers: {
    preset: 5,
    least: 1,
    most: 100,
    docs: "Of so many lost hosts at once the power is read or cut; fences at the storage do not wait for one another",
  },
  maxRetries: {
    preset: 5,
    least: 1,
    most: 100,
    docs: "So often a VM whose host is lost is started elsewhere by itself within `timeBetweenFailures`; then it waits for `cells ha release`",
  },
  spareHosts: {
    preset: 0,
    least: 0,
    most: 16,
    docs: "Room is kept for the VMs of so many hosts, the fullest: a new VM is placed only where these would still find memory and processors on the others. VMs whose host was lost, those that leave a host, and the cloud's own take it. `cells status` says whether there is enough",
  },
} as const satisfies Readonly<Record<string, HaSetting>>;
export type HaSettingName = keyof typeof haSettings;
export const haSettingNames = Object.keys(haSettings) as readonly HaSettingName[];
/** What says whether a VM of a lost host runs, in the preset order (`core/ha/investigators/`). */
export const investigatorNames = ["power", "host-manager", "heartbeat", "export", "neighbours", "vm"] as const;
export type InvestigatorName = (typeof investigatorNames)[number];
/** What is written; the rest is as preset. */
export type HaSettings = { readonly [name in HaSettingName]?: number } & {
  readonly investigators?: readonly InvestigatorName[];
};
