import { type FormEvent, useState } from "react";
import type { ConnectionAnswer } from "../../model/api.ts";
import { ask } from "../data/api.ts";
import { loadText } from "../data/text.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Phase, Waiting } from "../parts/bits.tsx";
import { CellChoice } from "../parts/cell-choice.tsx";
import { nameOf, type PageProps } from "../parts/page-props.ts";
import { go, useKnown } from "../parts/use-known.ts";
import { addElement } from "../state/cell/add-element.ts";
import { draftOf, keepDraft } from "../state/cell/drafts.ts";
import { type Ends, nextName, queryOf, ruleBetween } from "../state/cell/network.ts";
import { commandOf } from "../state/command.ts";
import { elementsIn, whyNoElements } from "../state/known.ts";

/** Who may talk to whom? */
export function Network({ cell, who }: PageProps) {
  return (
    <>
      <h1>Network</h1>
      <CellChoice page="network" cell={cell} />
      {cell !== null && <OfCell key={cell} cell={cell} who={nameOf(who)} />}
    </>
  );
}

function OfCell({ cell, who }: { cell: string; who: string }) {
  const { followed } = useKnown();
  if (!followed.topics.has(`cell:${cell}`)) {
    const why = whyNoElements(followed, cell);
    return why === null ? <Waiting what={`the controller of ${cell}`} /> : <p className="notice">{why}</p>;
  }
  const elements = elementsIn(followed).filter((each) => each.cell === cell);
  const of = (...types: readonly string[]) => elements.filter(({ type }) => types.includes(type));
  return (
    <>
      <WouldPass cell={cell} who={who} ends={of("VM").map(({ path }) => path)} />
      <section aria-labelledby="rules">
        <h2 id="rules">Rules</h2>
        <ul className="lines">
          {of("NetworkRule").map(({ path, state: { phase, reason } }) => (
            <li key={path}>
              <code>{path}</code> <Phase phase={phase} />
              {reason !== null && <span className="reason">{reason}</span>}
            </li>
          ))}
          {of("NetworkRule").length === 0 && <li>There is none: nothing passes but what one asked for comes back.</li>}
        </ul>
      </section>
      <section aria-labelledby="addresses">
        <h2 id="addresses">Addresses</h2>
        <ul className="lines">
          {of("Subnet", "VirtualInterface", "ExternalAddress").map(({ path, type, state }) => (
            <li key={path}>
              <code>{path}</code> <span className="hint">{type}</span> <Phase phase={state.phase} />{" "}
              {state.cidr ?? state.address ?? ""}
              {state.reason !== null && <span className="reason">{state.reason}</span>}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function WouldPass({ cell, who, ends }: { cell: string; who: string; ends: readonly string[] }) {
  const [answer, setAnswer] = useState<{ readonly ends: Ends; readonly said: ConnectionAnswer } | null>(null);
  const [protocol, setProtocol] = useState<Ends["protocol"]>("tcp");
  const { busy, failed, run } = useDoing();
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name) ?? "");
    const port = protocol === "icmp" ? null : Number(text("port"));
    const asked: Ends = { from: text("from"), to: text("to"), protocol, port };
    setAnswer(null);
    void run(async () => {
      const path = `/cells/${encodeURIComponent(cell)}/why?${queryOf(asked)}`;
      setAnswer({ ends: asked, said: (await ask("explain", "GET", path)).value as unknown as ConnectionAnswer });
    });
  };
  return (
    <section aria-labelledby="would">
      <h2 id="would">Would it pass?</h2>
      <form className="filters" onSubmit={send}>
        <Machine name="from" label="From" ends={ends} />
        <Machine name="to" label="To" ends={ends} />
        <label>
          Protocol
          <select value={protocol} onChange={(event) => setProtocol(event.target.value as Ends["protocol"])}>
            {["tcp", "udp", "icmp"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        {protocol !== "icmp" && (
          <label>
            Port
            <input name="port" type="number" min={1} max={65535} required />
          </label>
        )}
        <button type="submit" disabled={busy}>
          Ask
        </button>
      </form>
      <Failed why={failed} />
      {answer !== null && <Answer cell={cell} who={who} ends={answer.ends} said={answer.said} />}
    </section>
  );
}
const Machine = ({ name, label, ends }: { name: string; label: string; ends: readonly string[] }) => (
  <label>
    {label}
    <select name={name} required defaultValue="">
      <option value="">choose a machine</option>
      {ends.map((path) => (
        <option key={path}>{path}</option>
      ))}
    </select>
  </label>
);

function Answer({ cell, who, ends, said }: { cell: string; who: string; ends: Ends; said: ConnectionAnswer }) {
  const { busy, failed, run } = useDoing();
  const { from, to, protocol, port } = ends;
  /** The rule is written into the cell's text, which is planned and applied like every other change of it. */
  const offer = () =>
    run(async () => {
      const loaded = draftOf(sessionStorage, who, cell) ?? (await loadText(cell));
      const component = from.split("/")[0] ?? cell;
      const element = { name: nextName(ends, loaded.text), ...ruleBetween(ends) };
      const added = addElement(loaded.text, loaded.main, component, element);
      if (!added.ok) throw new Error(added.error);
      keepDraft(sessionStorage, who, cell, { text: added.value, main: loaded.main, version: loaded.version });
      go({ page: "specification", cell });
    });
  const words = `${protocol}${port === null ? "" : ` to port ${port}`} from ${from} to ${to}`;
  const command = commandOf("cells why --from", from);
  return (
    <div className="card" role="status">
      <strong>
        {words} {said.allowed ? "passes." : "does not pass."}
      </strong>
      <p>{said.verdict}</p>
      <ol className="lines">
        {said.checks.map(({ where, check, passes, detail }) => (
          <li key={`${where} ${check}`}>
            <span aria-hidden="true">{passes ? "✓" : "✕"}</span> {where}: {check} {passes ? "lets it pass" : "stops it"}
            <span className="reason">{detail}</span>
          </li>
        ))}
      </ol>
      {!said.allowed && (
        <div className="buttons">
          <button type="button" disabled={busy} onClick={() => void offer()}>
            Write a rule that lets it pass
          </button>
          <span className="hint">
            It is written into the specification of {cell}; nothing changes before you apply it.
          </span>
        </div>
      )}
      <Failed why={failed} />
      <Command text={command === null ? null : commandOf(`${command} --to`, to)} />
    </div>
  );
}
