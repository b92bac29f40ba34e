import type { Uid } from "../../../model/cell/identifiers.ts";

/*
 * What a key of a map has, where nearly every key has one alone: of hundreds of thousands a Set of one entry would take more than the entry itself.
 */
export type Few<T extends string | object> = T | ReadonlySet<T>;

/** All of a key, in the order in which they were put there. */
export const allOf = <T extends string | object>(few: Few<T> | undefined): Iterable<T> =>
  few === undefined ? [] : isMany(few) ? few : [few];

/** What is known of VMs in one regard, as a map has it. */
export type ByVm<Value> = Pick<
  Map<Uid, Value>,
  "get" | "has" | "delete" | "size" | "keys" | "values" | typeof Symbol.iterator
> & { set(vm: Uid, value: Value): unknown };

interface Keyed<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
  delete(key: Key): boolean;
}
export function putInto<Key, T extends string | object>(map: Keyed<Key, Few<T>>, key: Key, item: T): void {
  const before = map.get(key);
  if (before === undefined) map.set(key, item);
  else if (isMany(before)) (before as Set<T>).add(item);
  else if (before !== item) map.set(key, new Set([before, item]));
}
/** What was not there leaves nothing. */
export function takeFrom<Key, T extends string | object>(map: Keyed<Key, Few<T>>, key: Key, item: T): void {
  const before = map.get(key);
  if (before === item) map.delete(key);
  else if (before !== undefined && isMany(before)) {
    (before as Set<T>).delete(item);
    const [first] = before;
    if (before.size === 1 && first !== undefined) map.set(key, first);
  }
}
const isMany = <T extends string | object>(few: Few<T>): few is ReadonlySet<T> => few instanceof Set;
