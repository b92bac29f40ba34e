import { isObject, type Json } from "../../../json/json.ts";

/*
 * What is said of a host beside whose it is: where it stands, its tags and its properties; and what a VM asks for of these. All that it asks for
 * has to be so. Of a property that is a number at least that much is asked for, of one that is a text the same.
 */
export type Properties = { readonly [name: string]: string | number };
export interface Marks {
  /** By names from the zone down: "z1/p1/c1"; absent: in no place that has a name. */
  readonly cluster?: string;
  readonly tags?: readonly string[];
  readonly properties?: Properties;
}
/** Attributes of `x.placement` that ask for marks, in the order in which a host is looked at. */
export const markWishes = ["zone", "pod", "cluster", "tags", "properties"] as const;
export type MarkWish = (typeof markWishes)[number];
/** Of one host; and of one VM's wishes. */
export const mostMarks = 64;
/** Of one VM's wishes together with those of its offering. */
const mostAsked = 2 * mostMarks;
export const longestMark = 256;
/** Different ones of one kind, of all hosts. */
export const mostKnownMarks = 4096;

/** Null: it is none. */
export function readProperties(json: Json | undefined): Properties | null {
  if (!isObject(json)) return null;
  const all = Object.entries(json);
  const isRight = ([name, value]: [string, Json]): boolean =>
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name) &&
    ((typeof value === "string" && value.length > 0 && value.length <= longestMark) ||
      (typeof value === "number" && Number.isSafeInteger(value) && value >= 0));
  return all.length <= mostMarks && all.every(isRight) ? (json as unknown as Properties) : null;
}
export const propertiesForm = 'extends DATA { gpu "a100"; sriov 8; }';

/** `x.placement.tags`, one or several; null: it is no list of words, or of more than `most`. */
export function readTags(json: Json | undefined, most: number = mostMarks): readonly string[] | null {
  const all = Array.isArray(json) ? json : [json];
  const isRight = all.every((each) => typeof each === "string" && each.length > 0 && each.length <= longestMark);
  return isRight && all.length <= most ? (all as readonly string[]) : null;
}

/** Where something stands by names from the zone down: as much of a place as a wish names. */
const placeOf = { zone: 1, pod: 2, cluster: 3 } as const;
/** A pod or cluster is named alone ("p1") or from the zone down ("z1/p1"). */
function standsIn({ cluster }: Marks, level: keyof typeof placeOf, wish: string): boolean {
  const names = cluster?.split("/").slice(0, placeOf[level]);
  return names !== undefined && (names.join("/") === wish || names.at(-1) === wish);
}

/** The first wish of a VM that a host does not have, and what it is; null: it has all. What is malformed asks for nothing. */
export function missingMark(
  marks: Marks | undefined,
  placement: Json,
): { readonly wish: MarkWish; readonly of: string } | null {
  if (!isObject(placement)) return null;
  const own = marks ?? {};
  for (const level of ["zone", "pod", "cluster"] as const) {
    const wish = placement[level];
    if (typeof wish === "string" && !standsIn(own, level, wish)) return { wish: level, of: wish };
  }
  if (placement.tags !== undefined)
    for (const tag of readTags(placement.tags, mostAsked) ?? [])
      if (own.tags?.includes(tag) !== true) return { wish: "tags", of: tag };
  for (const [name, asked] of Object.entries(readProperties(placement.properties) ?? {})) {
    const has = own.properties?.[name];
    const isThere = typeof asked === "number" ? typeof has === "number" && has >= asked : has === asked;
    if (!isThere) return { wish: "properties", of: `${name} ${JSON.stringify(asked)}` };
  }
  return null;
}

/** Does it ask for tags? Whose a tagged host may be is stricter (`mayStandTagged`). */
export const asksForTags = (placement: Json): boolean =>
  isObject(placement) && placement.tags !== undefined && (readTags(placement.tags, mostAsked) ?? []).length > 0;

/**
 * Of a VM that asks for tags: implicit dedication takes its own hosts or empty ones alone; explicit dedicated ones; and one that asks for neither those
 * that are neither.
 */
export function mayStandTagged({
  isDedicated,
  isExplicit,
  isImplicit,
  standing,
}: {
  readonly isDedicated: boolean;
  readonly isExplicit: boolean;
  readonly isImplicit: boolean;
  readonly standing: "empty" | "own" | "strangers" | "mixed";
}): boolean {
  if (isImplicit) return standing === "own" || standing === "empty";
  return isExplicit || (!isDedicated && standing !== "own");
}
