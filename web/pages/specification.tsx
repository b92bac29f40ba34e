import { type ReactNode, useEffect, useId, useState } from "react";
import { bundleMediaType, type Changed } from "../../model/api.ts";
import { ask, Refused } from "../data/api.ts";
import { Command, Link, Phase, Waiting } from "../parts/bits.tsx";
import { go, useKnown } from "../parts/use-known.ts";
import { commandOf } from "../state/command.ts";
import { draftOf, dropDraft, keepDraft } from "../state/drafts.ts";
import { cellsIn, elementsIn } from "../state/known.ts";
import { inShort, linesOf } from "../state/plan.ts";

/** A text as it was sent, with the version of the model that it is compared with. */
interface Text {
  readonly text: string;
  readonly main: string;
  /** Of the model; 0: the cell is new. */
  readonly version: number;
  /** What one should know of it, a sentence. */
  readonly note: string | null;
}
const draftNote = "This is what you had written and not applied, against the version that is named above.";
const emptyCell = (cell: string): string => `${cell} extends Cell {\n}\n`;

async function load(cell: string): Promise<Text> {
  const path = `/cells/${encodeURIComponent(cell)}`;
  const model = await ask("readModel", "GET", `${path}/model`).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  });
  if (model === null)
    return { text: emptyCell(cell), main: `${cell}.sf`, version: 0, note: "This cell has no model yet." };
  const version = model.version ?? 0;
  try {
    const { value } = await ask("readSource", "GET", `${path}/source`);
    const others = Object.keys(value.files).length - 1;
    if (others > 0) throw new Refused(404, { code: "several", message: `It was sent as ${others + 1} files.` });
    const since = value.since.length + value.unknown;
    const note =
      since === 0
        ? null
        : `${since === 1 ? "One change" : `${since} changes`} since then came in other ways and would be taken back by this text; the plan says which.`;
    return { text: value.files[value.main] ?? "", main: value.main, version, note };
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    const note = `The text that this was made from is not kept here, so the model is shown as JSON. ${error.message}`;
    return { text: `${JSON.stringify(model.value, null, 2)}\n`, main: `${cell}.json`, version, note };
  }
}

interface Planned {
  readonly changed: Changed;
  readonly text: string;
}

/** What would this change do? */
export function Specification({ cell, who }: { cell: string | null; who: string }) {
  const cells = cellsIn(useKnown().followed);
  return (
    <>
      <h1>Specification</h1>
      <Choice cells={(cells ?? []).map((each) => each.cell)} cell={cell} />
      {cell !== null && <Editor key={cell} cell={cell} who={who} />}
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
      const found = await load(cell);
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
      const { value, version } = await ask("putModel", "PUT", `/cells/${encodeURIComponent(cell)}/model?${query}`, {
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
        <textarea
          id={field}
          className="editor"
          value={text}
          spellCheck={false}
          rows={24}
          onChange={(event) => editing.setText(event.target.value)}
        />
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
      {lost.map(({ path }) => (
        <label key={path} className="danger">
          <input
            type="checkbox"
            checked={allowed.includes(path)}
            onChange={({ target: { checked } }) =>
              setAllowed(checked ? [...allowed, path] : allowed.filter((each) => each !== path))
            }
          />
          All data of {path} is lost
        </label>
      ))}
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
const refusedBy = (error: unknown): Refused =>
  error instanceof Refused ? error : new Refused(0, { code: "page", message: (error as Error).message });

/** What was refused: where, why, and what would be right. */
function Fault({ said, onReload }: { said: Refused; onReload?: (() => void) | undefined }) {
  const { diagnostics = [] } = said.refusal;
  return (
    <div className="wrong" role="alert">
      {diagnostics.length === 0 && <p>{said.message}</p>}
      <ul className="lines">
        {diagnostics.map(({ code, message, hint, position }) => (
          <li key={`${code} ${message} ${position?.line}`}>
            {position !== undefined && <strong>line {position.line}: </strong>}
            {message}
            {hint !== undefined && <span className="reason">{hint}</span>}
          </li>
        ))}
      </ul>
      {onReload !== undefined && (
        <p className="buttons">
          <button type="button" onClick={onReload}>
            Load the present text
          </button>
          <span className="hint">Yours is replaced by it: copy it first.</span>
        </p>
      )}
    </div>
  );
}

function PlanShown({ changed, children }: { changed: Changed; children?: ReactNode }) {
  const lines = linesOf(changed.plan);
  return (
    <>
      <p role="status">
        <strong>{inShort(changed.plan)}.</strong>
      </p>
      <ul className="plan">
        {lines.map(({ path, action, sign, says, causes, losesData }) => (
          <li key={`${path} ${action}`} className={`plan-${action}`}>
            <span aria-hidden="true" className="sign">
              {sign}
            </span>
            <span>
              <code>{path}</code> {says}
              {losesData && <strong className="danger"> Its data is lost.</strong>}
              {causes.map((cause) => (
                <span key={cause} className="reason">
                  {cause}
                </span>
              ))}
            </span>
          </li>
        ))}
      </ul>
      {(changed.foreseen ?? []).map(({ path, says }) => (
        <p key={path} className="hint">
          <code>{path}</code> {says}
        </p>
      ))}
      {children}
    </>
  );
}

/** What became of it, live. */
function Followed({ cell, changed }: { cell: string; changed: Changed }) {
  const elements = elementsIn(useKnown().followed).filter((each) => each.cell === cell);
  const open = elements.filter(({ state }) => state.phase !== "ready");
  return (
    <>
      <p role="status">
        <strong>Version {changed.version} is applied. </strong>
        {open.length === 0 ? "All of it is ready." : `${open.length} of ${elements.length} elements are on their way.`}
      </p>
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
