import fc from "fast-check";
import type { Json, JsonObject } from "../../model/json/json.ts";

/** Good documents, spoiled ones and no documents at all, for tests that send everything. */
const deep = (levels: number): Json => {
  let value: Json = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
};
const odd: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  2 ** 48,
  2 ** 48 + 1,
  2 ** 53 - 1,
  2 ** 53,
  1e308,
  "",
  "x",
  "../../etc",
  "\ud800",
  "constructor",
  "0.0.0.0",
  "host.h1",
  "x".repeat(100_000),
  [],
  {},
  [null],
  JSON.parse('{"__proto__": {"a": 1}, "constructor": 1, "toString": null}') as Json,
  Array.from({ length: 2000 }, (_, index) => index),
  deep(1500),
];

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** All places in a value, as the steps that lead there. */
const placesIn = (value: Json): readonly (readonly string[])[] => [
  [],
  ...(typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([step, inner]) => placesIn(inner as Json).map((place) => [step, ...place]))
    : []),
];
/** The value with what `change` makes of one place; `undefined` takes it away. */
function changed(value: Json, place: readonly string[], change: (found: Json) => Json | undefined): Json | undefined {
  const [step, ...further] = place;
  if (step === undefined) return change(value);
  if (Array.isArray(value)) {
    const items: readonly Json[] = value;
    return items.flatMap((item, index) => {
      if (String(index) !== step) return [item];
      const inner = changed(item, further, change);
      return inner === undefined ? [] : [inner];
    });
  }
  if (!isObject(value)) return value;
  const inner = changed(value[step] ?? null, further, change);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) =>
      name !== step ? [[name, item]] : inner === undefined ? [] : [[name, inner]],
    ),
  );
}

const enormous = (found: Json): Json => {
  if (typeof found === "string") return found.repeat(10_000);
  if (typeof found === "number") return found * 1e12;
  if (Array.isArray(found)) return Array.from({ length: 3000 }, () => (found as readonly Json[])[0] ?? null);
  if (!isObject(found)) return found;
  return Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`field${index}`, 1]));
};

/** How a document is to be spoiled: as numbers, so that what failed can be printed however large it was. */
export interface Spoiling {
  readonly how: "not" | "null" | "without" | "replaced" | "nested" | "enormous" | "more" | "another" | "anything";
  /** Which place of the document, and which odd value. */
  readonly place: number;
  readonly odd: number;
  readonly anything: Json;
}
export const spoilings: fc.Arbitrary<Spoiling> = fc.record({
  how: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom("without" as const, "nested" as const, "enormous" as const) },
    { weight: 4, arbitrary: fc.constant("replaced" as const) },
    { weight: 2, arbitrary: fc.constantFrom("another" as const, "anything" as const, "more" as const) },
    { weight: 2, arbitrary: fc.constantFrom("not" as const, "null" as const) },
  ),
  place: fc.nat(500),
  odd: fc.nat(odd.length - 1),
  anything: fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>,
});

export function spoil(good: Json, { how, place, odd: which, anything }: Spoiling): Json {
  const places = placesIn(good);
  const at = places[place % places.length] ?? [];
  const strange = odd[which] ?? null;
  const changes: { readonly [Way in Exclude<Spoiling["how"], "not" | "null" | "another" | "anything">]: Change } = {
    without: () => undefined,
    replaced: () => strange,
    nested: (found) => [found],
    enormous,
    more: (found) => (isObject(found) ? { ...found, later: { by: "the next" } } : found),
  };
  if (how === "not") return good;
  if (how === "null") return null;
  if (how === "another") return strange;
  if (how === "anything") return anything;
  return changed(good, at, changes[how]) ?? null;
}
type Change = (found: Json) => Json | undefined;
