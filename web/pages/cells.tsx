import { useState } from "react";
import type { CellSummary, Changed } from "../../model/api.ts";
import { whyNot } from "../../model/contract/actions/actions.ts";
import { ask, askOnce, type Refused } from "../data/api.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Link, Phase, Waiting } from "../parts/bits.tsx";
import type { PageProps } from "../parts/page-props.ts";
import { Fault, refusedBy } from "../parts/plan.tsx";
import { useAsker, useKnown } from "../parts/use-known.ts";
import { linesOf } from "../state/cell/plan.ts";
import { commandOf } from "../state/command.ts";
import { cellsIn } from "../state/known.ts";
import { emptyForm, nameOfHarvested, newVolumeOf } from "../state/storage/volumes.ts";

/** What is there, and what would go with it? */
export function Cells({ who }: PageProps) {
  const cells = cellsIn(useKnown().followed);
  const asker = useAsker(who);
  return (
    <>
      <h1>Cells</h1>
      {cells === null ? (
        <Waiting what="the list of cells" />
      ) : (
        <p role="status">
          {cells.length} {cells.length === 1 ? "cell" : "cells"}.{" "}
          <Link to={{ page: "specification" }}>Write a new one</Link>
        </p>
      )}
      <ul className="cards">
        {(cells ?? []).map((summary) => (
          <Cell key={summary.cell} summary={summary} asker={asker} volumes={who.volumes === true} />
        ))}
      </ul>
    </>
  );
}

interface CellProps {
  readonly summary: CellSummary;
  readonly asker: ReturnType<typeof useAsker>;
  /** There are persistent ones. */
  readonly volumes: boolean;
}
function Cell({ summary, asker, volumes }: CellProps) {
  const { cell, phases, version, elements } = summary;
  const [isAsked, setAsked] = useState(false);
  const isHeard = phases.unreachable === undefined;
  const verdict = whyNot("deleteCell", asker, { cell, isHeard });
  return (
    <li className="card">
      <strong>{cell}</strong>
      <p>
        {Object.entries(phases).map(([phase, count]) => (
          <span key={phase} className="count">
            {phase === "unreachable" ? "" : count} <Phase phase={phase} />
          </span>
        ))}
        {elements === 0 && isHeard && "empty"}
      </p>
      <p className="hint">
        {isHeard ? `version ${version}` : "Its controller does not answer: what is there goes on."} ·{" "}
        <Link to={{ page: "machines", cell }}>machines</Link> ·{" "}
        <Link to={{ page: "specification", cell }}>specification</Link> ·{" "}
        <Link to={{ page: "versions", cell }}>versions</Link> · <Link to={{ page: "network", cell }}>network</Link>
      </p>
      {isAsked ? (
        <Deletion cell={cell} volumes={volumes} onLeave={() => setAsked(false)} />
      ) : (
        <div className="buttons">
          <button
            type="button"
            disabled={asker === null || verdict !== null}
            aria-label={`Delete ${cell}`}
            onClick={() => setAsked(true)}
          >
            Delete
          </button>
          {verdict !== null && <span className="hint">{verdict.why}</span>}
        </div>
      )}
    </li>
  );
}

/** What would go, what of it was said by the person, and the deletion itself. */
function useDeletion(cell: string) {
  const [planned, setPlanned] = useState<Changed | null>(null);
  const [said, setSaid] = useState<Refused | null>(null);
  const [allowed, setAllowed] = useState<readonly string[]>([]);
  const [isGoing, setGoing] = useState(false);
  const { busy, run } = useDoing();
  const send = (dryRun: boolean, version: number | null) =>
    run(async () => {
      setSaid(null);
      const query = new URLSearchParams([
        ["dryRun", String(dryRun)],
        ...(dryRun ? [] : allowed.map((path) => ["allowDestroy", path])),
      ]);
      try {
        const change = dryRun ? ask<"deleteModel"> : askOnce<"deleteModel">;
        const { value } = await change("deleteModel", "DELETE", `/cells/${encodeURIComponent(cell)}/model?${query}`, {
          headers: version === null ? {} : { "if-match": `"${version}"` },
        });
        if (dryRun) setPlanned(value);
        else setGoing(true);
      } catch (error) {
        setSaid(refusedBy(error));
      }
    });
  return { planned, said, allowed, setAllowed, isGoing, busy, send };
}

/** All that would go is named before anything does; each volume with data is said by the person. */
function Deletion({ cell, volumes, onLeave }: { cell: string; volumes: boolean; onLeave: () => void }) {
  const { planned, said, allowed, setAllowed, isGoing, busy, send } = useDeletion(cell);
  const [kept, setKept] = useState<readonly { readonly path: string; readonly name: string }[]>([]);
  if (planned === null)
    return (
      <fieldset className="danger-box" aria-label={`Delete ${cell}?`}>
        <p>What would go with it is asked first; nothing is deleted by that.</p>
        {said !== null && <Fault said={said} />}
        <div className="buttons">
          <button type="button" disabled={busy} onClick={() => void send(true, null)}>
            What would go?
          </button>
          <button type="button" onClick={onLeave}>
            Leave it as it is
          </button>
          <Command text={commandOf("cells delete", cell)} />
        </div>
      </fieldset>
    );
  const lines = linesOf(planned.plan);
  const lost = lines.filter(({ losesData }) => losesData);
  const missing = lost.filter(({ path }) => !allowed.includes(path));
  if (isGoing) return <p role="status">{cell} is being deleted: it leaves this list once nothing of it is left.</p>;
  return (
    <fieldset className="danger-box" aria-label={`Delete ${cell}?`}>
      <p>
        <strong>
          {lines.length} {lines.length === 1 ? "element goes" : "elements go"} with {cell}
          {lost.length === 0 ? ", and no data." : `, and the data of ${lost.length}:`}
        </strong>
      </p>
      {lost.map(({ path }) => (
        <div key={path}>
          <label className="danger">
            <input
              type="checkbox"
              checked={allowed.includes(path)}
              onChange={({ target: { checked } }) =>
                setAllowed(checked ? [...allowed, path] : allowed.filter((each) => each !== path))
              }
            />
            All data of {path} is lost
          </label>
          {/* The grant that holds it changes the cell: what would go is asked anew. */}
          {volumes && (
            <Harvest
              path={path}
              onDone={async (name) => {
                setKept((before) => [...before, { path, name }]);
                await send(true, null);
              }}
            />
          )}
        </div>
      ))}
      {kept.map(({ path, name }) => (
        <p key={path} role="status">
          {path} goes on as the persistent volume {name}: <Link to={{ page: "storage" }}>Storage</Link>
        </p>
      ))}
      <AllThatGoes lines={lines} />
      {said !== null && <Fault said={said} />}
      <div className="buttons">
        <button
          type="button"
          className="main"
          disabled={busy || missing.length > 0}
          onClick={() => void send(false, planned.version)}
        >
          Delete {cell}
        </button>
        <button type="button" onClick={onLeave}>
          Leave it as it is
        </button>
        <span className="hint">{missing.length > 0 ? "Say first that the data may be lost." : ""}</span>
      </div>
    </fieldset>
  );
}

/** A volume outlives its cell as a persistent one: a copy, for which it is held until it is made. */
function Harvest({ path, onDone }: { path: string; onDone: (name: string) => Promise<void> }) {
  const { busy, failed, run } = useDoing();
  const name = nameOfHarvested(path);
  const keep = (): void =>
    void run(async () => {
      const body = JSON.stringify(newVolumeOf({ ...emptyForm, name, origin: "cell", of: path }));
      await askOnce("addVolume", "POST", "/volumes", { body });
      await onDone(name);
    });
  return (
    <p>
      <button type="button" disabled={busy} onClick={keep}>
        Keep {path} as the persistent volume {name}
      </button>
      <Failed why={failed} />
    </p>
  );
}

const AllThatGoes = ({ lines }: { lines: ReturnType<typeof linesOf> }) => (
  <details>
    <summary>All that goes</summary>
    <ul className="lines">
      {lines.map(({ path, says }) => (
        <li key={path}>
          <code>{path}</code> {says}
        </li>
      ))}
    </ul>
  </details>
);
