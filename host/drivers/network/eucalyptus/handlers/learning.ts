import type { HeardTap, WatchedTap } from "../learn/learn.ts";
import type { LocalPlan } from "../plan/plan.ts";
import type { Devices } from "./devices.ts";

/* Taps at which a program is, and whose words about their addresses count. Pure. */

type Wanted = Pick<LocalPlan, "learns" | "holds" | "taps">;
type Links = Pick<Devices, "links">;

const nobody = "00:00:00:00:00:00";
/** The program has room for no more (MOST_TAPS of learn.c). */
export const mostTaps = 4096;
/** As far as they are there, and the program has room. */
export const watchedTaps = (plan: Wanted, links: Links): readonly WatchedTap[] =>
  tapsThere(plan, links)
    .slice(0, mostTaps)
    .map(({ tap }) => tap);
/** Names of those that are there and for which it has none. */
export const unwatchedTaps = (plan: Wanted, links: Links): readonly string[] =>
  tapsThere(plan, links)
    .slice(mostTaps)
    .map(({ name }) => name);
const tapsThere = (
  { learns, holds, taps }: Wanted,
  { links }: Links,
): readonly { readonly name: string; readonly tap: WatchedTap }[] =>
  learns || holds
    ? taps.flatMap(({ name, mac = nobody }) => {
        const device = links.get(name)?.index;
        return device === undefined ? [] : [{ name, tap: { device, mac: mac.toLowerCase(), holds } }];
      })
    : [];
export function isLearningDue(plan: Wanted, devices: Links, heard: readonly HeardTap[]): boolean {
  const working = new Map(heard.filter(({ works }) => works).map((tap) => [tap.device, tap]));
  const wanted = watchedTaps(plan, devices);
  // Those without room are asked for again with each pass: devices that go make some.
  return (
    wanted.length !== heard.length ||
    unwatchedTaps(plan, devices).length > 0 ||
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
