import { type HaSettingName, haSettings } from "../../model/cell/ha-settings.ts";
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
  /** Items that wait are looked at this often, whatever is heard. */
  readonly lookMs: number;
  /** Items that have ended are kept this long, for whoever asks, and for who counts them. */
  readonly keptMs: number;
  /** A VM that was started elsewhere so often within this time is held. */
  readonly restarts: number;
  readonly withinMs: number;
  /** A power that was ordered to be cut, and is not read as off, is ordered to be cut again after this. */
  readonly restartRetryMs: number;
}
export function settingsFrom(written: ManagerSettings): Settings {
  const numberOf = (name: Exclude<HaSettingName, "spareHosts">): number => written[name] ?? haSettings[name].preset;
  return {
    lookMs: numberOf("syncInterval") * 1000,
    keptMs: numberOf("timeBetweenCleanup") * 1000,
    restarts: numberOf("maxRetries"),
    restartRetryMs: numberOf("restartRetryInterval") * 1000,
    withinMs: numberOf("timeBetweenFailures") * 1000,
  };
}
