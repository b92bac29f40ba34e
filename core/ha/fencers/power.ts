import { isReadOff } from "../power/power-state.ts";
import type { Fencer } from "./fencer.ts";

/**
 * Fences by the power of the host: its management controller was asked to cut it, or somebody else did, and was then *read* as off, in
 * the boot for which the incarnation was placed. What a controller answers to the order is nothing.
 */
export const powerFencer: Fencer = {
  name: "power",
  judge: ({ host, boot, sinceMs }, { power }) => {
    const { registered, said, boots, isElsewhere } = power;
    if (isElsewhere) return { isFenced: false, sentence: `the first HA Manager was asked for the power of ${host}` };
    if (!registered.has(host))
      return { isFenced: false, sentence: `no management controller of ${host} is registered` };
    if (isReadOff(power, host, boot, sinceMs))
      return { isFenced: true, sentence: `the power of ${host} was read as off in that boot` };
    if (!boots.has(host))
      return { isFenced: false, sentence: `${host} never said in which boot it is, so no end of one is asked after` };
    return { isFenced: false, sentence: said.get(host)?.sentence ?? "its management controller has not answered yet" };
  },
};
