/** Edit distance (insert, delete, substitute, swap of neighbours), given up above `most`. */
function distance(from: string, to: string, most: number): number {
  if (Math.abs(from.length - to.length) > most) return most + 1;
  let [start, end] = [0, 0];
  const shorter = Math.min(from.length, to.length);
  while (start < shorter && from[start] === to[start]) start++;
  while (end < shorter - start && from[from.length - 1 - end] === to[to.length - 1 - end]) end++;
  return distanceOfDifferent(from.slice(start, from.length - end), to.slice(start, to.length - end), most);
}

/** The same of what is left between the parts in which both agree. */
function distanceOfDifferent(from: string, to: string, most: number): number {
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
    if (Math.min(...current) > most) return most + 1;
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? most + 1;
}

/** Names that are looked at: a hint is worth no more. */
export const mostNames = 2_000;

/** What names have in common because of their kind and not of what they mean, as the `x.` of attributes. */
const headOf = (name: string): string => /^(?:[^./:]*[./:])*/.exec(name)?.[0] ?? "";

/** In common: more than half of their letters from `from` on, or half and the first of them. */
const haveMuch = (name: string, other: string, from: number, different: number): boolean => {
  const length = Math.max(name.length, other.length) - from;
  return 2 * different < length || (2 * different === length && name[from] === other[from]);
};

/**
 * The known name that an author most likely meant by `name`, or undefined if none is near enough to be helpful. What
 * both begin with because of their kind is not counted.
 */
export function closestName(name: string, known: Iterable<string>): string | undefined {
  const most = name.length <= 3 ? 1 : name.length <= 8 ? 2 : 3;
  const wanted = name.slice(0, 100).toLowerCase();
  const head = headOf(wanted);
  let best: string | undefined;
  let bestDistance = most + 1;
  let looked = 0;
  for (const candidate of known) {
    if (++looked > mostNames) break;
    if (candidate === name) continue;
    const other = candidate.toLowerCase();
    const found = distance(wanted, other, most);
    if (found < bestDistance && haveMuch(wanted, other, other.startsWith(head) ? head.length : 0, found)) {
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

/** What people write for true and false, in other languages and in YAML before 1.2; undefined: neither. */
export function truthMeant(word: string): boolean | undefined {
  if (/^(?:true|yes|on|y|1)$/i.test(word)) return true;
  return /^(?:false|no|off|n|0)$/i.test(word) ? false : undefined;
}
