import { isObject, type Json, type JsonObject } from "../../../json/json.ts";
import type { OfferingElement } from "../../cell.ts";
import { type ImplicitMode, implicitModes } from "../dedication/implicit.ts";
import { readTags } from "../dedication/marks.ts";

/*
 * What the operator offers by a name (`Offering` of the root cell), as those hear it who check and place VMs. A VM of an offering
 * (`x.placement.offering`) writes its own memory and processors, so that its text alone says what it costs, and may have no more than the
 * offering; where it stands, and beside whom, it has of the offering.
 */
export interface KnownOffering {
  readonly name: string;
  readonly memoryMiB: number;
  readonly cpus: number;
  /** Least speed of a processor; absent: any. */
  readonly cpuSpeedMHz?: number;
  readonly tags?: readonly string[];
  /** Absent: it asks for none. */
  readonly dedication?: ImplicitMode;
}
/** In one cloud. */
export const mostOfferings = 256;

export function knownOffering(element: OfferingElement): KnownOffering {
  const { path, memoryMiB, cpus, cpuSpeedMHz, tags = [], planner, mode = "Strict" } = element;
  const dedication = implicitModes.find((each) => each === mode.toLowerCase());
  return {
    name: path.slice(path.lastIndexOf("/") + 1),
    memoryMiB,
    cpus,
    ...(cpuSpeedMHz === 0 ? {} : { cpuSpeedMHz }),
    ...(tags.length === 0 ? {} : { tags }),
    ...(planner === "FirstFitPlanner" || dedication === undefined ? {} : { dedication }),
  };
}

/** `x.placement.offering`; null: it asks for none. */
export function offeringOf(placement: Json): string | null {
  const name = isObject(placement) ? placement.offering : undefined;
  return typeof name === "string" ? name : null;
}

interface Wishes {
  readonly cpuSpeedMHz: number;
  readonly placement: JsonObject;
}
/** What a VM asks of its host, with what its offering asks for: of two wishes for the same the stricter one. */
export function withOffering(
  { cpuSpeedMHz, placement }: Wishes,
  { cpuSpeedMHz: speed = 0, tags = [], dedication }: KnownOffering,
): Wishes {
  const own = placement.tags === undefined ? [] : (readTags(placement.tags) ?? []);
  const all = [...new Set([...own, ...tags])];
  const isStrict = placement.dedication === "strict" || dedication === "strict";
  const mode = isStrict ? "strict" : (dedication ?? placement.dedication);
  return {
    cpuSpeedMHz: Math.max(cpuSpeedMHz, speed),
    placement: {
      ...placement,
      ...(all.length === 0 ? {} : { tags: all }),
      ...(mode === undefined ? {} : { dedication: mode }),
    },
  };
}

/** Of what VMs may be that stand in a pool. Absent: of whatever they like. */
export interface PoolAllows {
  /** Names of offerings. */
  readonly offerings?: readonly string[];
  /** What a VM boots from: names of images, or volumes of other cells as `//cell.cells.internal/path`. */
  readonly images?: readonly string[];
}
/** In each of the two lists. */
export const mostAllowed = 64;

/** Why a VM is none that the pool takes; null: it is. */
export function whyNotAllowed(
  { offerings, images }: PoolAllows,
  { offering, image }: { readonly offering: string | null; readonly image: string | null },
): { readonly why: string; readonly lifts: string } | null {
  if (offerings !== undefined && (offering === null || !offerings.includes(offering)))
    return {
      why: `its pool takes ${onlyOf("offering", offerings)}, and the VM is of ${offering ?? "none"}`,
      lifts:
        offerings.length === 0
          ? "the owner of the pool names offerings in its `x.offerings`"
          : `write \`x.placement.offering "${offerings[0]}"\` at the VM, or its owner names others in \`x.offerings\` of the pool`,
    };
  if (images !== undefined && (image === null || !images.includes(image)))
    return {
      why: `its pool takes ${onlyOf("image", images)}, and the VM boots from ${image ?? "none"}`,
      lifts: "have it boot from one of those, or the owner of the pool names others in its `x.images`",
    };
  return null;
}
const mostNamed = 8;
const onlyOf = (what: string, names: readonly string[]): string => {
  if (names.length === 0) return `VMs of no ${what}`;
  const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : "";
  return `only VMs of the ${what}${names.length === 1 ? "" : "s"} ${names.slice(0, mostNamed).join(", ")}${more}`;
};
