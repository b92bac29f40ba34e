/** Edit distance (insert, delete, substitute, swap of neighbours), given up above `most`. */
function distance(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return most + 1;
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min(
        (last[column - 1] ?? 0) + (same ? 0 : 1),
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
        best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? most + 1;
}

/** The known name that an author most likely meant by `name`, or undefined if none is near enough to be helpful. */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  const most = name.length <= 3 ? 1 : name.length <= 8 ? 2 : 3;
  const wanted = name.slice(0, 100).toLowerCase();
  let best: string | undefined;
  let bestDistance = most + 1;
  for (const candidate of known) {
    if (candidate === name) continue;
    const found = distance(wanted, candidate.toLowerCase(), most);
    if (found < bestDistance) {
      best = candidate;
      bestDistance = found;
    }
  }
  return best;
}

/** "Did you mean …?" as a hint to spread into a diagnostic, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): { readonly hint?: string } {
  const closest = closestName(name, known);
  return closest === undefined ? {} : { hint: `Did you mean \`${closest}\`?` };
}
