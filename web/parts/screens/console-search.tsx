import type { IBufferLine, Terminal } from "@xterm/xterm";
import { type FormEvent, type RefObject, useRef, useState } from "react";
import { type Cell, findAll, olderThan } from "../../state/screens/find.ts";

function cellsOf(line: IBufferLine | undefined): readonly Cell[] {
  const cells: Cell[] = [];
  for (let column = 0; column < (line?.length ?? 0); column += 1) {
    const cell = line?.getCell(column);
    const columns = cell?.getWidth() ?? 0;
    // The second half of a wide letter has none.
    if (cell !== undefined && columns > 0) cells.push({ text: cell.getChars() || " ", column, columns });
  }
  return cells;
}

/** Looks for words in what a console has said, as far as this terminal keeps it: each time the next older row. */
export function ConsoleSearch({ terminal }: { terminal: RefObject<Terminal | null> }) {
  const [said, say] = useState("");
  const last = useRef<{ readonly text: string; readonly row: number } | null>(null);
  const look = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const { current } = terminal;
    if (current === null) return;
    const text = String(new FormData(event.currentTarget).get("text") ?? "");
    const { active } = current.buffer;
    const found = findAll(
      {
        rows: active.length,
        textAt: (row) => active.getLine(row)?.translateToString(true) ?? "",
        cellsAt: (row) => cellsOf(active.getLine(row)),
      },
      text,
    );
    const shown = olderThan(found, last.current?.text === text ? last.current.row : null);
    last.current = shown === null ? null : { text, row: shown.row };
    if (shown === null) {
      current.clearSelection();
      say("Nothing that is kept here has it.");
      return;
    }
    current.select(shown.column, shown.row, shown.columns);
    current.scrollToLine(Math.max(0, shown.row - Math.floor(current.rows / 2)));
    say(`${found.indexOf(shown) + 1} of ${found.length} lines: ${active.getLine(shown.row)?.translateToString(true)}`);
  };
  return (
    <form className="filters" onSubmit={look}>
      <label>
        Search what it said
        <input name="text" type="search" maxLength={80} required spellCheck={false} autoComplete="off" />
      </label>
      <button type="submit">Find older</button>
      <span className="hint" role="status">
        {said}
      </span>
    </form>
  );
}
