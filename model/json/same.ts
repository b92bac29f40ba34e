import type { Json, JsonObject } from "./json.ts";

/** Equal as data: the order of an object's names means nothing. */
export function sameJson(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item: Json, index) => sameJson(item, right[index]));
  }
  const [one, other] = [left as JsonObject, right as JsonObject];
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]));
}
