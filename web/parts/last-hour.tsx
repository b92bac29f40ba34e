import { useEffect, useState } from "react";
import type { History } from "../../model/contract/operator/numbers/history.ts";
import { ask } from "../data/api.ts";
import { goneOn } from "../state/hosts/history.ts";
import { statusIn } from "../state/known.ts";
import { Failed } from "./act.tsx";
import { Command, Waiting } from "./bits.tsx";
import { Curve } from "./curve.tsx";
import { useAsked, useKnown } from "./use-known.ts";

/** How many machines of each cell ran, as it goes on. Nothing is asked before somebody wants to see it. */
export function LastHour() {
  const [isOpen, setOpen] = useState(false);
  return (
    <section aria-labelledby="hour">
      <h2 id="hour">The last hour</h2>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Running machines of each cell</summary>
        {isOpen && <Curves />}
      </details>
    </section>
  );
}

function Curves() {
  const status = statusIn(useKnown().followed);
  const { value, failed } = useAsked("history", async () => (await ask("readHistory", "GET", "/history")).value);
  const [history, setHistory] = useState<History | null>(null);
  useEffect(() => setHistory(value), [value]);
  useEffect(() => {
    if (status !== null) setHistory((before) => (before === null ? null : goneOn(before, status, Date.now())));
  }, [status]);
  if (history === null) return failed === null ? <Waiting what="the gateway's memory" /> : <Failed why={failed} />;
  const cells = Object.entries(history.running).sort(([one], [other]) => (one < other ? -1 : 1));
  return (
    <>
      {cells.length === 0 && (
        <p className="hint">The gateway has only just begun: in 10 s there is something to see.</p>
      )}
      <ul className="lines">
        {cells.map(([cell, series]) => (
          <li key={cell}>
            <Curve of={cell} series={series} span={history} />
          </li>
        ))}
      </ul>
      <Command text="cells history" />
    </>
  );
}
