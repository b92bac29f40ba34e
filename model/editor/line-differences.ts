/**
 * What differs between two texts, line by line, by Myers' greedy algorithm (An O(ND) Difference Algorithm and Its Variations, 1986): as few lines as can
 * be are taken out and put in. Texts that have more than `mostEdits` in between are shown as one replaced by the other, since the time and room that it
 * takes grow with the square of that.
 */
const mostEdits = 1000;
/** Lines around a difference that are shown with it. */
const around = 3;

type Sign = " " | "-" | "+";
interface Line {
  readonly sign: Sign;
  readonly text: string;
}

/** The lines of both, each once: in both, in the first alone (`-`), in the second alone (`+`). */
export function lineDifferences(from: string, to: string): readonly Line[] {
  const [left, right] = [linesOf(from), linesOf(to)];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head += 1;
  let tail = 0;
  const most = Math.min(left.length, right.length) - head;
  while (tail < most && left[left.length - 1 - tail] === right[right.length - 1 - tail]) tail += 1;
  const same = (text: string): Line => ({ sign: " ", text });
  return [
    ...left.slice(0, head).map(same),
    ...between(left.slice(head, left.length - tail), right.slice(head, right.length - tail)),
    ...left.slice(left.length - tail).map(same),
  ];
}
/** A last line without an end is another one than with it. */
const noEnd = "\n\\ No newline at end of file";
function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  else lines.push(`${lines.pop()}${noEnd}`);
  return lines;
}

function between(left: readonly string[], right: readonly string[]): readonly Line[] {
  const trace = traced(left, right);
  if (trace === null)
    return [...left.map((text): Line => ({ sign: "-", text })), ...right.map((text): Line => ({ sign: "+", text }))];
  const lines: Line[] = [];
  let [x, y] = [left.length, right.length];
  for (let edits = trace.length - 1; edits > 0; edits -= 1) {
    const before = trace[edits - 1] ?? new Int32Array();
    const k = x - y;
    const isInsert = isDown(before, k, edits);
    const fromK = isInsert ? k + 1 : k - 1;
    const fromX = before[fromK + edits - 1] ?? 0;
    for (; x > (isInsert ? fromX : fromX + 1); x -= 1, y -= 1) lines.push({ sign: " ", text: left[x - 1] ?? "" });
    if (isInsert) lines.push({ sign: "+", text: right[y - 1] ?? "" });
    else lines.push({ sign: "-", text: left[x - 1] ?? "" });
    [x, y] = [fromX, fromX - fromK];
  }
  for (; x > 0; x -= 1) lines.push({ sign: " ", text: left[x - 1] ?? "" });
  return lines.toReversed();
}

/** By the number of edits, how far each diagonal comes with them: entry `k + edits`. Null: there are too many. */
function traced(left: readonly string[], right: readonly string[]): readonly Int32Array[] | null {
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= mostEdits; edits += 1) {
    const reached = new Int32Array(2 * edits + 1);
    const before = trace[edits - 1] ?? new Int32Array();
    for (let k = -edits; k <= edits; k += 2) {
      let x = 0;
      if (edits > 0) x = isDown(before, k, edits) ? (before[k + edits] ?? 0) : (before[k + edits - 2] ?? 0) + 1;
      while (x < left.length && x - k < right.length && x - k >= 0 && left[x] === right[x - k]) x += 1;
      reached[k + edits] = x;
      if (x >= left.length && x - k >= right.length) return [...trace, reached];
    }
    trace.push(reached);
  }
  return null;
}
/** Does the diagonal go on from the one above it, by a line of the second text, and not by one that leaves the first? */
const isDown = (before: Int32Array, k: number, edits: number): boolean =>
  k === -edits || (k !== edits && (before[k + edits - 2] ?? 0) < (before[k + edits] ?? 0));

/** The differences in the unified format, with the names of both; none: the texts are the same. */
export function unifiedDifferences(
  from: { readonly name: string; readonly text: string },
  to: { readonly name: string; readonly text: string },
): readonly string[] {
  const lines = lineDifferences(from.text, to.text);
  const changed = lines.flatMap(({ sign }, at) => (sign === " " ? [] : [at]));
  if (changed.length === 0) return [];
  const shown = [`--- ${from.name}`, `+++ ${to.name}`];
  for (let first = 0; first < changed.length; ) {
    let last = first;
    while (last + 1 < changed.length && (changed[last + 1] ?? 0) - (changed[last] ?? 0) <= 2 * around) last += 1;
    const begin = Math.max(0, (changed[first] ?? 0) - around);
    const end = Math.min(lines.length, (changed[last] ?? 0) + around + 1);
    const part = lines.slice(begin, end);
    const count = (of: readonly Line[], without: Sign): number => of.filter(({ sign }) => sign !== without).length;
    const range = (without: Sign): string => {
      const [before, own] = [count(lines.slice(0, begin), without), count(part, without)];
      return `${own === 0 ? before : before + 1},${own}`;
    };
    shown.push(
      `@@ -${range("+")} +${range("-")} @@`,
      ...part.flatMap(({ sign, text }) => `${sign}${text}`.split("\n")),
    );
    first = last + 1;
  }
  return shown;
}
