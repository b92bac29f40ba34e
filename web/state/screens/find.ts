/** A place in what a console has said, as the terminal has it: a wide letter has two columns. */
export interface Found {
  readonly row: number;
  readonly column: number;
  readonly columns: number;
}
/** One letter of a row, with what is written over it. */
export interface Cell {
  readonly text: string;
  readonly column: number;
  readonly columns: number;
}

/** What a terminal keeps: so many rows, the oldest first. */
export interface Kept {
  readonly rows: number;
  textAt(row: number): string;
  cellsAt(row: number): readonly Cell[];
}

/** All rows that have the text, large and small letters alike, the newest first; of each its first place. */
export function findAll({ rows, textAt, cellsAt }: Kept, text: string): readonly Found[] {
  const wanted = text.toLowerCase();
  if (wanted === "") return [];
  const found: Found[] = [];
  for (let row = rows - 1; row >= 0; row -= 1) {
    if (!textAt(row).toLowerCase().includes(wanted)) continue;
    const place = placeIn(cellsAt(row), wanted);
    if (place !== null) found.push({ row, ...place });
  }
  return found;
}
/** A small letter may be longer than its large one, so each letter is made small by itself. */
function placeIn(cells: readonly Cell[], wanted: string): Omit<Found, "row"> | null {
  let text = "";
  const ofLetter: Cell[] = [];
  for (const cell of cells) {
    const small = cell.text.toLowerCase();
    text += small;
    for (let at = 0; at < small.length; at += 1) ofLetter.push(cell);
  }
  const at = text.indexOf(wanted);
  const [first, last] = [ofLetter[at], ofLetter[at + wanted.length - 1]];
  if (at < 0 || first === undefined || last === undefined) return null;
  return { column: first.column, columns: last.column + last.columns - first.column };
}
/** The next older one, and after the oldest the newest again; null: there is none. */
export const olderThan = (found: readonly Found[], row: number | null): Found | null =>
  found.find((each) => row === null || each.row < row) ?? found[0] ?? null;
