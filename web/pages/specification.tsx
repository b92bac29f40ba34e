import { useEffect, useId, useState } from "react";
import { bundleMediaType, type Changed } from "../../model/api.ts";
import { ask, askOnce, type Refused } from "../data/api.ts";
import { loadText, type Text } from "../data/text.ts";
import { Command, Link, Phase, Waiting } from "../parts/bits.tsx";
import { CellForms } from "../parts/cell-forms.tsx";
import { EditorText } from "../parts/editor-text.tsx";
import { MachineForm } from "../parts/machine/form.tsx";
import { nameOf, type PageProps } from "../parts/page-props.ts";
import { Fault, Losses, OpenedShown, PlanShown, refusedBy } from "../parts/plan.tsx";
import { go, useKnown } from "../parts/use-known.ts";
import { draftOf, dropDraft, keepDraft } from "../state/cell/drafts.ts";
import { addMachine } from "../state/cell/machine.ts";
import { isHeardOf, linesOf } from "../state/cell/plan.ts";
import { commandOf } from "../state/command.ts";
import { cellsIn, elementsIn } from "../state/known.ts";

const draftNote = "This is what you had written and not applied, against the version that is named above.";

interface Planned {
  readonly changed: Changed;
  readonly text: string;
}

/** What would this change do? */
export function Specification({ cell, who }: PageProps) {
  const cells = cellsIn(useKnown().followed);
  return (
    <>
      <h1>Specification</h1>
      <Choice cells={(cells ?? []).map((each) => each.cell)} cell={cell} />
      {cell !== null && <Editor key={cell} cell={cell} who={nameOf(who)} />}
    </>
  );
}

function Choice({ cells, cell }: { cells: readonly string[]; cell: string | null }) {
  const [name, setName] = useState("");
  const right = /^[a-z][a-z0-9-]{0,52}$/.test(name);
  return (
    <div className="filters">
      <label>
        Cell
        <select
          value={cell ?? ""}
          onChange={(event) => go({ page: "specification", cell: event.target.value || null })}
        >
          <option value="">choose one</option>
          {[...new Set([...cells, ...(cell === null ? [] : [cell])])].map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (right) go({ page: "specification", cell: name });
        }}
      >
        <label>
          or a new one
          <input
            value={name}
            maxLength={53}
            spellCheck={false}
            placeholder="its name"
            aria-describedby="name-rule"
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <button type="submit" disabled={!right}>
          Begin
        </button>
        <span id="name-rule" className="hint">
          {name !== "" && !right ? "small letters, digits and -, the first a letter, at most 53" : ""}
        </span>
      </form>
    </div>
  );
}

/** A text, what it would do, and what has become of it. */
function useEditor(cell: string, who: string) {
  const [loaded, setLoaded] = useState<Text | null>(null);
  const [text, setText_] = useState("");
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [applied, setApplied] = useState<Changed | null>(null);
  const [said, setSaid] = useState<Refused | null>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const [allowed, setAllowed] = useState<readonly string[]>([]);

  /** @param draft what was written before, and has not been applied */
  const begin = async (draft = draftOf(sessionStorage, who, cell)): Promise<void> => {
    try {
      const found = await loadText(cell);
      const isDraft = draft !== null && draft.text !== found.text;
      if (!isDraft) dropDraft(sessionStorage, who, cell);
      setLoaded(isDraft ? { ...draft, note: draftNote } : found);
      setText_(isDraft ? draft.text : found.text);
      setPlanned(null);
      setSaid(null);
    } catch (error) {
      setSaid(refusedBy(error));
    }
  };
  useEffect(() => void begin(), [cell]);
  const setText = (written: string): void => {
    setText_(written);
    if (loaded !== null) {
      const { main, version } = loaded;
      keepDraft(sessionStorage, who, cell, { text: written, main, version });
    }
  };

  const send = async (dryRun: boolean): Promise<void> => {
    if (loaded === null) return;
    setBusy(dryRun ? "the plan" : "the controller");
    setSaid(null);
    setPlanned(null);
    setApplied(null);
    const query = new URLSearchParams(dryRun ? { dryRun: "true" } : allowed.map((path) => ["allowDestroy", path]));
    const main = nameFor(loaded.main, text);
    try {
      const change = dryRun ? ask<"putModel"> : askOnce<"putModel">;
      const { value, version } = await change("putModel", "PUT", `/cells/${encodeURIComponent(cell)}/model?${query}`, {
        body: JSON.stringify({ main, files: { [main]: text } }),
        type: bundleMediaType,
        headers: { "if-match": `"${loaded.version}"` },
      });
      if (dryRun) {
        // What was allowed was said of what an earlier text would do.
        setAllowed([]);
        setPlanned({ changed: value, text });
      } else {
        setApplied(value);
        setAllowed([]);
        dropDraft(sessionStorage, who, cell);
        setLoaded({ text, main, version: version ?? value.version, note: null });
      }
    } catch (error) {
      setSaid(refusedBy(error));
    }
    setBusy(null);
  };
  return { loaded, text, setText, planned, applied, said, busy, allowed, setAllowed, begin, send };
}
type Editing = ReturnType<typeof useEditor>;

function Editor({ cell, who }: { cell: string; who: string }) {
  const editing = useEditor(cell, who);
  const { loaded, text, said, busy } = editing;
  const field = useId();
  if (loaded === null) return said === null ? <Waiting what={`the controller of ${cell}`} /> : <Fault said={said} />;
  const main = nameFor(loaded.main, text);
  return (
    <div className="beside">
      <section aria-labelledby={`${field}-title`}>
        <h2 id={`${field}-title`}>
          {main} <small>version {loaded.version}</small>
        </h2>
        {loaded.note !== null && (
          <p className="hint">
            {loaded.note}{" "}
            {loaded.note === draftNote && (
              <button type="button" className="quiet" onClick={() => void editing.begin(null)}>
                Throw it away
              </button>
            )}
          </p>
        )}
        <label htmlFor={field} className="hidden">
          Text of the specification
        </label>
        <EditorText id={field} main={main} text={text} onText={editing.setText} />
        <MachineForm
          cell={cell}
          onAdd={(wanted) => {
            const added = addMachine(text, main, cell, wanted);
            if (added.ok) editing.setText(added.value);
            return added.ok ? null : added.error;
          }}
        />
        <CellForms cell={cell} text={text} main={main} onText={editing.setText} />
        <p className="buttons">
          <button type="button" disabled={busy !== null} onClick={() => void editing.send(true)}>
            Plan
          </button>
          <Command text={commandOf("cells plan", main)} />
        </p>
      </section>
      <PlanSide cell={cell} editing={editing} />
    </div>
  );
}

function PlanSide({ cell, editing }: { cell: string; editing: Editing }) {
  const { planned, applied, said, busy } = editing;
  return (
    <section aria-label="Plan" aria-live="polite">
      <h2>Plan</h2>
      {busy !== null && <Waiting what={busy} />}
      {said !== null && (
        <Fault said={said} onReload={said.status === 412 ? () => void editing.begin(null) : undefined} />
      )}
      {planned === null && applied === null && said === null && busy === null && (
        <p className="hint">
          Plan says what would be made, changed and taken away. Nothing is done before you apply it.
        </p>
      )}
      {planned !== null && (
        <PlanShown changed={planned.changed}>
          <Apply planned={planned} editing={editing} />
        </PlanShown>
      )}
      {applied !== null && <Followed cell={cell} changed={applied} />}
    </section>
  );
}

function Apply({ planned, editing }: { planned: Planned; editing: Editing }) {
  const { text, allowed, setAllowed, busy, send } = editing;
  const isOld = planned.text !== text;
  const lost = linesOf(planned.changed.plan).filter(({ losesData }) => losesData);
  const missing = lost.filter(({ path }) => !allowed.includes(path));
  const why = isOld
    ? "The text has changed since: plan it again."
    : missing.length > 0
      ? "Say first that the data may be lost."
      : "";
  return (
    <>
      <Losses lost={lost} allowed={allowed} onAllow={setAllowed} />
      <p className="buttons">
        <button type="button" className="main" disabled={busy !== null || why !== ""} onClick={() => void send(false)}>
          Apply
        </button>
        <span className="hint">{why}</span>
      </p>
    </>
  );
}
/** JSON and SmartFrog can be told apart by how they begin; anything else stays as it was named. */
function nameFor(main: string, text: string): string {
  const [, stem = "model", kind] = /^(.+)\.(\w+)$/.exec(main) ?? [];
  return kind === "json" || kind === "sf" ? `${stem}.${text.trimStart().startsWith("{") ? "json" : "sf"}` : main;
}
/** What became of it, live. */
function Followed({ cell, changed }: { cell: string; changed: Changed }) {
  const { followed } = useKnown();
  const known = followed.topics.get(`cell:${cell}`)?.version ?? null;
  const elements = elementsIn(followed).filter((each) => each.cell === cell);
  const open = elements.filter(({ state }) => state.phase !== "ready");
  const waitedFor =
    open.length === 0 ? "All of it is ready." : `${open.length} of ${elements.length} elements are on their way.`;
  return (
    <>
      <p role="status">
        <strong>Version {changed.version} is applied. </strong>
        {isHeardOf(changed, known, elements) ? waitedFor : "What becomes of it is asked."}
      </p>
      <OpenedShown changed={changed} />
      <ul className="lines">
        {open.map(({ path, state }) => (
          <li key={path}>
            <code>{path}</code> <Phase phase={state.phase} />
            {state.reason !== null && <span className="reason">{state.reason}</span>}
          </li>
        ))}
      </ul>
      <p>
        <Link to={{ page: "machines", cell }}>Its machines</Link>
      </p>
    </>
  );
}
