import { hasEnded } from "../../presence/group/deaths.ts";
import { isReadOff } from "../power/power-state.ts";
import { type Investigator, ofTime, unknown } from "./investigator.ts";

/**
 * The power of the host: what the Presence group was told for certain of a boot (decision 36). It never says *Running*: a
 * machine that has power may run anything, or nothing.
 */
export const power: Investigator = {
  name: "power",
  ask: ({ host, boot, sinceMs }, { deaths, power: known }) => {
    if (boot === undefined) return unknown(`it is not known in which boot of ${host} it runs`);
    if (isReadOff(known, host, boot, sinceMs))
      return {
        state: "Stopped",
        sentence: `the management controller of ${host} was read as off in that boot`,
        ...ofTime(known.readOffMs.get(host)),
      };
    return hasEnded(deaths, host, boot)
      ? { state: "Stopped", sentence: `the power of ${host} was off after the boot in which it ran` }
      : unknown(`nobody has said that the power of ${host} is off`);
  },
};
