import type { HeardTap, WatchedTap } from "../learn/learn.ts";
import type { LocalPlan } from "../plan/plan.ts";
import type { Devices } from "./devices.ts";

/* Taps at which a program is, and whose words about their addresses count. Pure. */

type Wanted = Pick<LocalPlan, "learns" | "holds" | "taps">;
type Links = Pick<Devices, "links">;

const nobody = "00:00:00:00:00:00";
/** As far as they are there. */
export const watchedTaps = ({ learns, holds, taps }: Wanted, { links }: Links): readonly WatchedTap[] =>
  learns || holds
    ? taps.flatMap(({ name, mac = nobody }) => {
        const device = links.get(name)?.index;
        return device === undefined ? [] : [{ device, mac: mac.toLowerCase(), holds }];
      })
    : [];
export function isLearningDue(plan: Wanted, devices: Links, heard: readonly HeardTap[]): boolean {
  const working = new Map(heard.filter(({ works }) => works).map((tap) => [tap.device, tap]));
  const wanted = watchedTaps(plan, devices);
  return (
    wanted.length !== heard.length ||
    wanted.some(({ device, mac, holds }) => {
      const tap = working.get(device);
      return tap?.mac !== mac || tap.holds !== holds;
    })
  );
}
/** Addresses by the name of a tap. */
export function saidOf({ taps }: Wanted, { links }: Links, heard: readonly HeardTap[]): ReadonlyMap<string, number> {
  const byDevice = new Map(heard.map((each) => [each.device, each.heard]));
  return new Map(
    taps.flatMap(({ name }) => {
      const said = byDevice.get(links.get(name)?.index ?? 0) ?? null;
      return said === null ? [] : [[name, said] as const];
    }),
  );
}
