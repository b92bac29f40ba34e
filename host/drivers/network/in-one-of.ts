/** What is in one of two lists and not in the other: first what only the first one has. */
export function inOneOf<T>(one: Iterable<T>, other: Iterable<T>): readonly T[] {
  if (one === other) return [];
  const [first, second] = [new Set(one), new Set(other)];
  return [...[...first].filter((each) => !second.has(each)), ...[...second].filter((each) => !first.has(each))];
}
