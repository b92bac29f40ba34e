import { useEffect, useMemo, useRef, useState } from "react";
import { Link, Phase, Waiting } from "../parts/bits.tsx";
import { ChosenMachine } from "../parts/machine/chosen.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { go, useAsker, useKnown } from "../parts/use-known.ts";
import { cellsIn, elementsIn, phaseSigns, statusIn, whyNoElements } from "../state/known.ts";
import { type Column, firstView, type Machine, machinesOf, sortedBy, viewed, windowOf } from "../state/machines.ts";

const rowPx = 56;
const names: Readonly<Record<Column, string>> = {
  path: "Machine",
  phase: "State",
  host: "Host",
  load: "CPU",
  memoryMiB: "Memory",
};

/** Where is it, and how is it? */
export function Machines({ cell, left, who }: PageProps) {
  const asker = useAsker(who);
  const { followed } = useKnown();
  const [view, setView] = useState({ ...firstView, cell });
  const [chosen, setChosen] = useState<string | null>(null);
  useEffect(() => setView((before) => ({ ...before, cell })), [cell]);
  const status = statusIn(followed);
  const all = useMemo(() => machinesOf(elementsIn(followed), status), [followed]);
  const rows = useMemo(() => viewed(all, view), [all, view]);
  const machine = all.find(({ path }) => path === chosen);
  const cells = cellsIn(followed)?.map((each) => each.cell) ?? [];
  const isKnown = [...followed.topics.keys()].some((topic) => topic.startsWith("cell:"));
  const why = whyNoElements(followed, cell);
  return (
    <>
      <h1>Machines</h1>
      <search className="filters">
        <label>
          <span>
            Search <kbd>/</kbd>
          </span>
          <input
            type="search"
            id="search"
            value={view.text}
            maxLength={200}
            placeholder="name, host or reason"
            onChange={(event) => setView({ ...view, text: event.target.value })}
          />
        </label>
        <label>
          State
          <select value={view.phase} onChange={(event) => setView({ ...view, phase: event.target.value })}>
            <option value="">any</option>
            {Object.keys(phaseSigns).map((phase) => (
              <option key={phase}>{phase}</option>
            ))}
          </select>
        </label>
        <label>
          Cell
          <select value={cell ?? ""} onChange={(event) => go({ page: "machines", cell: event.target.value || null })}>
            <option value="">all</option>
            {cells.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </search>
      <p className="hint" role="status">
        {rows.length === all.length ? `${all.length} machines` : `${rows.length} of ${all.length} machines`}
      </p>
      {cell === null && left.length > 0 && <Left cells={left} />}
      {isKnown ? (
        <List
          rows={rows}
          view={view}
          onSort={(by) => setView(sortedBy(view, by))}
          chosen={chosen}
          onChoose={setChosen}
        />
      ) : why === null ? (
        <Waiting what="the cells' controllers" />
      ) : (
        <p className="notice">{why}</p>
      )}
      {machine !== undefined && <ChosenMachine machine={machine} asker={asker} />}
    </>
  );
}

const mostNamed = 20;
function Left({ cells }: { cells: readonly string[] }) {
  return (
    <p className="notice">
      Machines of {cells.length} more {cells.length === 1 ? "cell" : "cells"} are not in this list, which follows a few
      cells at once. Choose one to see its machines:{" "}
      {cells.slice(0, mostNamed).map((each) => (
        <span key={each} className="count">
          <Link to={{ page: "machines", cell: each }}>{each}</Link>
        </span>
      ))}
      {cells.length > mostNamed && `and ${cells.length - mostNamed} more, in the list of cells above.`}
    </p>
  );
}

interface ListProps {
  readonly rows: readonly Machine[];
  readonly view: { readonly by: Column; readonly descending: boolean };
  readonly onSort: (by: Column) => void;
  readonly chosen: string | null;
  readonly onChoose: (path: string | null) => void;
}
/** Of a long list only those rows are in the page that can be seen. */
function List({ rows, view, onSort, chosen, onChoose }: ListProps) {
  const box = useRef<HTMLElement>(null);
  const [at, setAt] = useState({ topPx: 0, heightPx: 600 });
  useEffect(() => {
    const { current } = box;
    if (current === null) return;
    const look = (): void => setAt({ topPx: current.scrollTop, heightPx: current.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(current);
    current.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener("scroll", look);
    };
  }, []);
  const { first, last } = windowOf(rows.length, { ...at, rowPx });
  return (
    <section className="list" ref={box} aria-label="Machines">
      <table aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {(Object.keys(names) as Column[]).map((column) => (
              <th
                key={column}
                className={`column-${column}`}
                aria-sort={view.by === column ? (view.descending ? "descending" : "ascending") : "none"}
              >
                <button type="button" className="quiet" onClick={() => onSort(column)}>
                  {names[column]}
                  <span aria-hidden="true">{view.by === column ? (view.descending ? " ▼" : " ▲") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Gap rows={first} />
          {rows.slice(first, last).map((machine, index) => (
            <Row
              key={`${machine.cell} ${machine.path}`}
              machine={machine}
              number={first + index + 2}
              isChosen={chosen === machine.path}
              onChoose={onChoose}
            />
          ))}
          <Gap rows={rows.length - last} />
        </tbody>
      </table>
      {rows.length === 0 && <p className="hint">No machine is like that.</p>}
    </section>
  );
}
const Gap = ({ rows }: { rows: number }) =>
  rows === 0 ? null : (
    <tr>
      <td colSpan={5} className="gap">
        <svg width="1" height={rows * rowPx} aria-hidden="true" />
      </td>
    </tr>
  );

interface RowProps {
  readonly machine: Machine;
  readonly number: number;
  readonly isChosen: boolean;
  readonly onChoose: (path: string | null) => void;
}
function Row({ machine: { path, phase, reason, host, load, memoryMiB }, number, isChosen, onChoose }: RowProps) {
  return (
    <tr aria-rowindex={number}>
      <th scope="row" className="column-path">
        <button
          type="button"
          className="quiet"
          aria-expanded={isChosen}
          onClick={() => onChoose(isChosen ? null : path)}
        >
          {path}
        </button>
      </th>
      <td className="column-phase">
        <Phase phase={phase} />
        {reason !== null && (
          <span className="reason" title={reason}>
            {reason}
          </span>
        )}
      </td>
      <td className="column-host">{host ?? "—"}</td>
      <td className="column-load">{load === null ? "—" : load.toFixed(2)}</td>
      <td className="column-memoryMiB">{memoryMiB === null ? "—" : `${memoryMiB} MiB`}</td>
    </tr>
  );
}
