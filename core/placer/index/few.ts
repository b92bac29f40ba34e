/*
 * What a key of a map has, where nearly every key has one alone: of hundreds of thousands a Set of one entry would take more than the entry itself.
 */
export type Few<T extends string | object> = T | ReadonlySet<T>;

/** All of a key, in the order in which they were put there. */
export const allOf = <T extends string | object>(few: Few<T> | undefined): Iterable<T> =>
  few === undefined ? [] : isMany(few) ? few : [few];

export function putInto<Key, T extends string | object>(map: Map<Key, Few<T>>, key: Key, item: T): void {
  const before = map.get(key);
  if (before === undefined) map.set(key, item);
  else if (isMany(before)) (before as Set<T>).add(item);
  else if (before !== item) map.set(key, new Set([before, item]));
}
/** What was not there leaves nothing. */
export function takeFrom<Key, T extends string | object>(map: Map<Key, Few<T>>, key: Key, item: T): void {
  const before = map.get(key);
  if (before === item) map.delete(key);
  else if (before !== undefined && isMany(before)) {
    (before as Set<T>).delete(item);
    const [first] = before;
    if (before.size === 1 && first !== undefined) map.set(key, first);
  }
}
const isMany = <T extends string | object>(few: Few<T>): few is ReadonlySet<T> => few instanceof Set;
