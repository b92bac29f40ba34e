import { isObject, type Json } from "../../../json/json.ts";

/*
 * How a VM's host is chosen of those that are as good: whether it rather stands where most is free (`spread`) or least (`pack`), and over what VMs of one
 * `x.placement.spread` are spread. Over zones: in the zone in which the fewest of them are, and there at the host with the fewest.
 */
export const fills = ["spread", "pack"] as const;
export type Fill = (typeof fills)[number];
export const spreadLevels = ["host", "cluster", "pod", "zone"] as const;
export type SpreadLevel = (typeof spreadLevels)[number];

const wishOf = <T extends string>(placement: Json, wish: string, all: readonly T[], preset: T): T => {
  const written = isObject(placement) ? placement[wish] : undefined;
  return all.find((each) => each === written) ?? preset;
};
/** `x.placement.fill`; what is none counts as absent. */
export const fillOf = (placement: Json): Fill => wishOf(placement, "fill", fills, "spread");
/** `x.placement.spreadOver`; what is none counts as absent. */
export const spreadOverOf = (placement: Json): SpreadLevel => wishOf(placement, "spreadOver", spreadLevels, "host");

const depths: Readonly<Record<Exclude<SpreadLevel, "host">, number>> = { zone: 1, pod: 2, cluster: 3 };
/** The place of that level in which a host stands, by names from the zone down; hosts in no place that has a name are in one together. */
export const placeIn = (cluster: string | undefined, level: Exclude<SpreadLevel, "host">): string =>
  cluster?.split("/").slice(0, depths[level]).join("/") ?? "";
