import { cellsIn } from "../state/known.ts";
import type { PageName } from "../state/place.ts";
import { go, useKnown } from "./use-known.ts";

/** Which cell a page is about, as its address says. */
export function CellChoice({ page, cell }: { page: PageName; cell: string | null }) {
  const cells = (cellsIn(useKnown().followed) ?? []).map((each) => each.cell);
  const all = cell === null || cells.includes(cell) ? cells : [...cells, cell];
  return (
    <div className="filters">
      <label>
        Cell
        <select value={cell ?? ""} onChange={(event) => go({ page, cell: event.target.value || null })}>
          <option value="">choose one</option>
          {all.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
    </div>
  );
}
