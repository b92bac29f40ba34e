import type { InstallationStatus } from "../../model/api.ts";
import type { HostSubject, QueueSubject, WorkSubject } from "../../model/contract/actions/subjects.ts";
import type { HaAnswer, HaItem } from "../../model/contract/operator/ha.ts";
import type { KnownHa } from "./known.ts";

/** What the HA Manager works on, in words, and as the table of actions takes it. */
export interface Step {
  readonly name: string;
  readonly is: "over" | "now" | "ahead";
}
/** The steps of the paper, for what is being done of that type. */
const ways: Readonly<Record<string, readonly string[]>> = {
  HA: ["Scheduled", "Investigating", "Fencing", "Restarting", "Done"],
  Stop: ["Scheduled", "Investigating", "Fencing", "Done"],
  Destroy: ["Scheduled", "Investigating", "Fencing", "Done"],
  Migration: ["Scheduled", "Migrating", "Stopping", "Restarting", "Done"],
  CheckStop: ["Scheduled", "Stopping", "Done"],
  ForceStop: ["Scheduled", "Fencing", "Done"],
};
export function stepsOf({ type, step }: Pick<HaItem, "type" | "step">): readonly Step[] {
  const known = ways[type] ?? ["Scheduled", "Done"];
  // It ended otherwise, or is at a step that a later version has.
  const way = known.includes(step) ? known : [...known.filter((each) => each !== "Done"), step];
  const at = way.indexOf(step);
  const isEnded = step === "Done" || step === "Cancelled" || step === "Error";
  return way.flatMap((name, index): readonly Step[] => {
    if (index < at)
      return known.includes(step) ? [{ name, is: "over" }] : name === "Scheduled" ? [{ name, is: "over" }] : [];
    return [{ name, is: index === at ? (isEnded ? "over" : "now") : "ahead" }];
  });
}

/** A sign beside the word: what is not known looks like neither of the others. */
export const answerSigns: Readonly<Record<HaAnswer["says"], string>> = { Running: "▶", Stopped: "■", Unknown: "?" };

export const workOf = ({ path, type, step, held }: HaItem): WorkSubject => ({
  path,
  type,
  step,
  isHeld: held !== null,
});
export const queueOf = ({ storm }: KnownHa): QueueSubject => ({
  paused: storm === null ? null : storm.asked === true ? "asked" : "storm",
});
type Host = InstallationStatus["hosts"][number];
export const hostOf = ({ host, administration = undefined, presence }: Host): HostSubject => ({
  host,
  administration: administration ?? "enabled",
  presence: presence?.powerIsOff === true ? "off" : (presence?.state ?? "unknown"),
});
/** As commands and requests name a VM: its cell's whole name first. */
export const namedVm = ({ cell, path }: Pick<HaItem, "cell" | "path">): string =>
  [cell, ...path.split("/").slice(1)].join("/");

export const isOver = ({ step }: Pick<HaItem, "step">): boolean =>
  step === "Done" || step === "Cancelled" || step === "Error";
