import { useState } from "react";
import { askText } from "../data/api.ts";
import { mark } from "../data/store.ts";
import { Failed } from "../parts/act.tsx";
import { Command, clock, Link, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { go, useAsked, useKnown } from "../parts/use-known.ts";
import { eventsIn, type Happened, mostShown, withWords } from "../state/cell/timeline.ts";
import { commandOf } from "../state/command.ts";
import { cellsIn } from "../state/known.ts";

const spans: Readonly<Record<string, number>> = { "10 minutes": 10, "an hour": 60, "a day": 24 * 60 };

/** What happened, because of what? */
export function Timeline({ cell, who }: PageProps) {
  const cells = (cellsIn(useKnown().followed) ?? []).map((each) => each.cell);
  const isOperator = who.kind === "operator";
  const [words, setWords] = useState("");
  const [span, setSpan] = useState("an hour");
  const { value, failed, again } = useAsked(`${cell} ${span}`, async () => {
    // All services are the operator's to hear; a cell tells of itself.
    if (cell === null && !isOperator) return null;
    const since = new Date(Date.now() - (spans[span] ?? 60) * 60_000).toISOString();
    const query = new URLSearchParams({ since, ...(isOperator && cell !== null ? { cell } : {}) });
    const text = isOperator
      ? await askText("followServices", `/events?${query}`)
      : await askText("followCell", `/cells/${encodeURIComponent(cell ?? "")}/events?${query}`);
    return { events: eventsIn(text), at: clock(new Date()), of: cell };
  });
  const isOld = value !== null && value.of !== cell;
  const found = withWords(value?.events ?? [], words);
  const shown = found.slice(0, mostShown);
  return (
    <>
      <h1>Time line</h1>
      <search className="filters">
        <label>
          <span>
            Search <kbd>/</kbd>
          </span>
          <input
            type="search"
            id="search"
            value={words}
            maxLength={200}
            placeholder="words of what happened, and to whom"
            onChange={(event) => setWords(event.target.value)}
          />
        </label>
        <label>
          Cell
          <select value={cell ?? ""} onChange={(event) => go({ page: "timeline", cell: event.target.value || null })}>
            <option value="">{isOperator ? "all, and all services" : "choose one"}</option>
            {cells.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label>
          Of the last
          <select value={span} onChange={(event) => setSpan(event.target.value)}>
            {Object.keys(spans).map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => void again()}>
          Look again
        </button>
        <Command
          text={cell === null ? "cells events" : commandOf(isOperator ? "cells events --cell" : "cells events", cell)}
        />
      </search>
      <Failed why={failed} />
      {value === null || isOld ? (
        failed === null && (cell !== null || isOperator) && <Waiting what="those who tell what happened" />
      ) : (
        <>
          <p role="status">
            {found.length > shown.length ? `The newest ${shown.length} of ${found.length}` : found.length} events, as of{" "}
            {value.at}.
          </p>
          <Marked />
          <ol className="lines">
            {shown.map((each) => (
              <Event key={`${each.service} ${each.id}`} happened={each} />
            ))}
          </ol>
        </>
      )}
      {cell === null && !isOperator && <p className="hint">Choose a cell: each tells what happened in it.</p>}
    </>
  );
}

/** A moment is picked here and marked in every plot, wherever it is shown. */
function Marked() {
  const { markedMs } = useKnown();
  return (
    <p className="hint">
      {markedMs === null ? (
        "Press a time to have that moment marked in every plot of the last hour."
      ) : (
        <>
          <span className="marked">{clock(new Date(markedMs))}</span> is marked in every plot of the last hour: of{" "}
          <Link to={{ page: "overview" }}>cells</Link>, and of each of the{" "}
          <Link to={{ page: "machines" }}>machines</Link>.{" "}
          <button type="button" className="quiet" onClick={() => mark(null)}>
            Take the mark away
          </button>
        </>
      )}
    </p>
  );
}

function Event({ happened: { time, what, about, says, service } }: { happened: Happened }) {
  const { markedMs } = useKnown();
  return (
    <li>
      <button
        type="button"
        className="quiet"
        aria-pressed={markedMs === Date.parse(time)}
        title="Mark this moment in every plot"
        onClick={() => mark(markedMs === Date.parse(time) ? null : Date.parse(time))}
      >
        <time dateTime={time}>{clock(new Date(time))}</time>
      </button>{" "}
      <strong>{what}</strong>{" "}
      <span className="reason">
        {about}
        {says === "" ? "" : ` (${says})`}
        {service === null ? "" : `, says ${service}`}
      </span>
    </li>
  );
}
