import type { HostState } from "../known.ts";
import { endsUnheard, heardMs, hearsMost } from "./beats.ts";

/** `feed`: it begins to count anew, and does so if it rested; `rest`: nothing here needs it; null: it counts on. */
export type WatchdogWord = "feed" | "rest" | null;

/** A machine whose watchdog was not fed for so long is reset: 3 s after its Host Manager was to end what writes. */
export const watchdogSeconds = 12;

/**
 * What is told to the watchdog of this machine, after every input (decision 125). It counts while VMs write here that others start elsewhere
 * when nobody hears this host, and it is fed by nothing but that somebody does. So where `beats.ts` ends them after 9 s it rests again, and
 * where that did not work, since their processes do not end or this one stands still, the machine is reset. It is no fence.
 */
export const settleWatchdog = (state: HostState): WatchdogWord => {
  const { beats, records } = state;
  const mayWrite = [...records.values()].some(
    // A process that was killed and is not confirmed gone may write on.
    ({ stage, ending, vm }) => (stage === "running" || ending === true) && endsUnheard(beats, vm),
  );
  // Nobody is told that this host is there, so nobody's silence says anything.
  if (!mayWrite || beats.sinceMs === null) {
    beats.fedMs = null;
    return "rest";
  }
  const heard = hearsMost(state) ? state.now : heardMs(beats);
  if (beats.fedMs !== null && heard <= beats.fedMs) return null;
  beats.fedMs = heard;
  return "feed";
};
