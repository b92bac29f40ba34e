import {
  type HaSettingName,
  haSettings,
  type InvestigatorName,
  investigatorNames,
} from "../../model/cell/attributes/ha-settings.ts";
import type { ManagerSettings } from "../documents/ha.ts";

/** What no operator sets, in milliseconds. */
export const fixed = {
  /** Somebody says so long that a VM runs whose host is declared dead, before `x.ha.isolated` decides. */
  isolatedMs: 300_000,
  /** A fence that works takes seconds; one that takes so long waits for something. */
  fenceMs: 60_000,
} as const;

/** As the operator has written it, else as preset; times in milliseconds. Events do not wait for them: they bound polls and tries. */
export interface Settings {
  /** Items that wait are looked at this often, whatever is heard; what hosts list is compared in full this often. */
  readonly lookMs: number;
  readonly compareMs: number;
  /** Other neighbours are asked after this, as long as something says *Running*. */
  readonly askAnewMs: number;
  /** A VM that its host does not stop for so long is told to a person; for one that it does not start it is `restartRetryMs`. */
  readonly stopRetryMs: number;
  /** Orders to management controllers that are carried out at once. */
  readonly workers: number;
  /** Items that have ended are kept this long, for whoever asks, and for who counts them. */
  readonly keptMs: number;
  /** A VM that was started elsewhere so often within this time is held. */
  readonly restarts: number;
  readonly withinMs: number;
  /** A power that was ordered to be cut, and is not read as off, is ordered to be cut again after this. */
  readonly restartRetryMs: number;
  /** Who is asked, in this order. */
  readonly investigators: readonly InvestigatorName[];
}
export function settingsFrom(written: ManagerSettings): Settings {
  const numberOf = (name: Exclude<HaSettingName, "spareHosts">): number => written[name] ?? haSettings[name].preset;
  return {
    lookMs: numberOf("timeToSleep") * 1000,
    compareMs: numberOf("syncInterval") * 1000,
    askAnewMs: numberOf("investigateRetryInterval") * 1000,
    stopRetryMs: numberOf("stopRetryInterval") * 1000,
    workers: numberOf("haWorkers"),
    keptMs: numberOf("timeBetweenCleanup") * 1000,
    restarts: numberOf("maxRetries"),
    restartRetryMs: numberOf("restartRetryInterval") * 1000,
    investigators: written.investigators ?? investigatorNames,
    withinMs: numberOf("timeBetweenFailures") * 1000,
  };
}
