import { smallestVm } from "../../../model/cell/schema.ts";
import type { KnownOffering } from "../../../model/cell/tenants/pools/offerings.ts";
import { isObject, type Json, type JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";

/*
 * The smallest change of what a VM asks for with which it would have a place. All that it asks for is taken apart: each wish of `x.placement`, or each of
 * several that one names, its memory, processors and speed. Where nothing is left of all that and still no host takes it, no change of the VM helps.
 * Else changes are given up one after the other as long as it finds a place without them: what then is left is a set of which none can be spared,
 * and of memory, processors and speed no more is taken than has to be. One change alone is tried before several together.
 *
 * What its offering asks for it cannot take back but with the offering.
 *
 * Rejected: to read it off the refusals. A host says the first rule that keeps the VM away, and behind that there may be others.
 */
export type Change =
  | { readonly kind: "memory" | "cpus" | "speed"; readonly to: number }
  /** Of `x.placement`; `item`: of several alone. */
  | { readonly kind: "without"; readonly wish: string; readonly item?: string }
  | { readonly kind: "preferred" }
  /** Without its offering, and what that asks for. */
  | { readonly kind: "offering" };

const amounts = {
  memory: { field: "memoryMiB", least: smallestVm.memoryMiB, attribute: "x.memory" },
  cpus: { field: "cpus", least: smallestVm.cpus, attribute: "x.cpus" },
  speed: { field: "cpuSpeedMHz", least: 0, attribute: "x.cpuSpeed" },
} as const;
type Amount = keyof typeof amounts;
const isAmount = (change: Change): change is Extract<Change, { readonly kind: Amount }> =>
  Object.hasOwn(amounts, change.kind);

/** Wishes that are heeded. */
const wishes = [
  "host",
  "zone",
  "pod",
  "cluster",
  "tags",
  "properties",
  "groups",
  "dedication",
  "pool",
  "apartFrom",
] as const;
/** Of one that names several so many are looked at each apart. */
const mostItems = 8;

/**
 * The request with some changes made.
 * @param offering that it names
 */
export function changed(
  request: DesiredPlacement,
  changes: readonly Change[],
  offering?: KnownOffering,
): DesiredPlacement {
  let made = request;
  let placement: JsonObject = isObject(request.placement) ? request.placement : {};
  const speed = changes.some(({ kind }) => kind === "offering") ? 0 : (offering?.cpuSpeedMHz ?? 0);
  for (const change of changes) {
    if (change.kind === "speed") made = { ...made, cpuSpeedMHz: Math.max(change.to, speed) };
    else if (isAmount(change)) made = { ...made, [amounts[change.kind].field]: change.to };
    else if (change.kind === "preferred") placement = { ...placement, dedication: "preferred" };
    else if (change.kind === "offering") {
      placement = withoutOffering(placement, offering);
      if (made.cpuSpeedMHz <= (offering?.cpuSpeedMHz ?? 0)) made = { ...made, cpuSpeedMHz: 0 };
    } else placement = without(placement, change);
  }
  return { ...made, placement };
}
function without(placement: JsonObject, { wish, item }: Extract<Change, { readonly kind: "without" }>): JsonObject {
  const { [wish]: value = null, ...rest } = placement;
  if (item === undefined) return rest;
  const left: Json = Array.isArray(value)
    ? value.filter((each) => each !== item)
    : isObject(value)
      ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== item))
      : null;
  return left === null ? rest : { ...rest, [wish]: left };
}

/** What it asks for as well as its offering does is taken for the offering's. */
function withoutOffering(
  { offering: _name, ...placement }: JsonObject,
  { tags = [], dedication }: Pick<KnownOffering, "tags" | "dedication"> = {},
): JsonObject {
  const { dedication: _mode, ...rest } = placement;
  const others = dedication === undefined ? placement : rest;
  return tags.reduce((left: JsonObject, item) => without(left, { kind: "without", wish: "tags", item }), others);
}

/** All that could be taken from a request, what is dearest to whoever asks first. */
function all(request: DesiredPlacement, offering: KnownOffering | undefined): readonly Change[] {
  const placement: JsonObject = isObject(request.placement) ? request.placement : {};
  const left = (Object.keys(amounts) as readonly Amount[]).flatMap((kind): readonly Change[] => {
    const { field, least } = amounts[kind];
    const others = (kind === "speed" ? offering?.cpuSpeedMHz : undefined) ?? least;
    return request[field] > others ? [{ kind, to: least }] : [];
  });
  const wished = wishes.flatMap((wish): readonly Change[] => {
    const value = placement[wish];
    if (value === undefined) return [];
    const items = Array.isArray(value)
      ? value.filter((each) => typeof each === "string")
      : wish === "properties" && isObject(value)
        ? Object.keys(value)
        : [];
    if (wish === "tags" && offering?.tags !== undefined)
      return items.flatMap((item) => (offering.tags?.includes(item) ? [] : [{ kind: "without", wish, item }]));
    if (wish === "dedication" && offering?.dedication !== undefined)
      return value === "strict" && offering.dedication === "preferred" ? [{ kind: "preferred" }] : [];
    if (items.length > 1 && items.length <= mostItems) return items.map((item) => ({ kind: "without", wish, item }));
    return [{ kind: "without", wish }];
  });
  return [...wished, ...(offering === undefined ? [] : [{ kind: "offering" } as const]), ...left];
}

/**
 * @param places whether such a request would have a place now
 * @param offering that it names; undefined: none, or none that is known
 * @returns none of which can be spared; null: no change of what it asks for gives it one
 */
export function smallestChange(
  request: DesiredPlacement,
  places: (request: DesiredPlacement) => boolean,
  offering?: KnownOffering,
): readonly Change[] | null {
  const works = (changes: readonly Change[]): boolean => places(changed(request, changes, offering));
  const possible = all(request, offering);
  const least = (changes: readonly Change[]): readonly Change[] =>
    changes.reduce<readonly Change[]>((made, change) => {
      if (!isAmount(change)) return made;
      const others = made.filter((each) => each !== change);
      // At `low` it finds a place, at `high` it does not.
      let [low, high] = [change.to, request[amounts[change.kind].field]];
      while (high - low > 1) {
        const middle = Math.floor((low + high) / 2);
        if (works([...others, { kind: change.kind, to: middle }])) low = middle;
        else high = middle;
      }
      return made.map((each) => (each === change ? { kind: change.kind, to: low } : each));
    }, changes);
  const isStrict =
    isObject(request.placement) && request.placement.dedication === "strict" && offering?.dedication !== "strict";
  if (isStrict && works([{ kind: "preferred" }])) return [{ kind: "preferred" }];
  const single = possible
    .filter((change) => works([change]))
    .flatMap((change) => least([change]))
    .sort((one, other) => costOf(one, request) - costOf(other, request));
  if (single[0] !== undefined) return [single[0]];
  if (!works(possible)) return null;
  let needed = possible;
  // Who asks for tags and for dedicated hosts finds others than who asks for tags alone: what could not be spared may be once something else was.
  for (let before = needed.length + 1; needed.length < before; ) {
    before = needed.length;
    for (const change of needed) {
      const spared = needed.filter((each) => each !== change);
      if (works(spared)) needed = spared;
    }
  }
  return least(needed);
}
/** How much of what is asked for is lost: of an amount its share; of several things one costs less than all. */
function costOf(change: Change, request: DesiredPlacement): number {
  if (isAmount(change)) return 1 - change.to / request[amounts[change.kind].field];
  return change.kind === "offering" || (change.kind === "without" && change.item === undefined) ? 1 : 0.5;
}

/** As a person reads what to do; without the name of a host but one that the VM asks for itself. */
export function changeText(changes: readonly Change[]): string {
  const each = changes.map((change) => {
    if (isAmount(change)) return `write \`${amounts[change.kind].attribute} ${change.to}\``;
    if (change.kind === "offering") return "leave out `x.placement.offering`";
    if (change.kind === "preferred") return 'write `x.placement.dedication "preferred"`';
    return change.item === undefined
      ? `leave out \`x.placement.${change.wish}\``
      : `take ${JSON.stringify(change.item)} out of \`x.placement.${change.wish}\``;
  });
  return each.join(" and ");
}
