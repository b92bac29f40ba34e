/** A place in what a console has said. */
export interface Found {
  readonly row: number;
  readonly column: number;
}

/** What a terminal keeps: so many rows, the oldest first. */
export interface Kept {
  readonly rows: number;
  textAt(row: number): string;
}

/** All rows that have the text, large and small letters alike, the newest first; of each its first place. */
export function findAll({ rows, textAt }: Kept, text: string): readonly Found[] {
  const wanted = text.toLowerCase();
  if (wanted === "") return [];
  const found: Found[] = [];
  for (let row = rows - 1; row >= 0; row -= 1) {
    const column = textAt(row).toLowerCase().indexOf(wanted);
    if (column >= 0) found.push({ row, column });
  }
  return found;
}
/** The next older one, and after the oldest the newest again; null: there is none. */
export const olderThan = (found: readonly Found[], row: number | null): Found | null =>
  found.find((each) => row === null || each.row < row) ?? found[0] ?? null;
