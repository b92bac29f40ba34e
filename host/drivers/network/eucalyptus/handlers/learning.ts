import type { HeardTap } from "../learn/learn.ts";
import type { LocalPlan } from "../plan/plan.ts";
import type { Devices } from "./devices.ts";

/* Taps whose words about their addresses count. Pure. */

type Wanted = Pick<LocalPlan, "learns" | "taps">;
type Links = Pick<Devices, "links">;

/** As far as they are there, by their indices. */
export const listeners = ({ learns, taps }: Wanted, { links }: Links): readonly number[] =>
  learns ? taps.flatMap(({ name }) => links.get(name)?.index ?? []) : [];
export function isLearningDue(plan: Wanted, devices: Links, heard: readonly HeardTap[]): boolean {
  const working = new Set(heard.filter(({ works }) => works).map(({ device }) => device));
  const wanted = listeners(plan, devices);
  return wanted.length !== heard.length || wanted.some((device) => !working.has(device));
}
/** By the name of a tap. */
export function saidOf(
  { taps }: Wanted,
  { links }: Links,
  heard: readonly HeardTap[],
): ReadonlyMap<string, NonNullable<HeardTap["heard"]>> {
  const byDevice = new Map(heard.map((each) => [each.device, each.heard]));
  return new Map(
    taps.flatMap(({ name }) => {
      const said = byDevice.get(links.get(name)?.index ?? 0) ?? null;
      return said === null ? [] : [[name, said] as const];
    }),
  );
}
