import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import type { ConnectionAnswer } from "../../model/api.ts";
import { ask } from "../data/api.ts";
import { loadText } from "../data/text.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Phase, Waiting } from "../parts/bits.tsx";
import { CellChoice } from "../parts/cell-choice.tsx";
import { Edges, OtherCells } from "../parts/network/beyond.tsx";
import { ChosenEdge, Packets } from "../parts/network/edge.tsx";
import { NetworkGraph } from "../parts/network/graph.tsx";
import { nameOf, type PageProps } from "../parts/page-props.ts";
import { go, useAsked, useKnown } from "../parts/use-known.ts";
import { addElement } from "../state/cell/add-element.ts";
import { draftOf, keepDraft } from "../state/cell/drafts.ts";
import { ghostsOf } from "../state/cell/graph/consents.ts";
import { graphOf, mostNodes, withoutVolumes } from "../state/cell/graph/graph.ts";
import { type Ends, nextName, queryOf, ruleBetween } from "../state/cell/network.ts";
import { commandOf } from "../state/command.ts";
import { cellsIn, countersIn, type Element, elementsIn, whyNoElements } from "../state/known.ts";

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
  const [picked, setPicked] = useState<readonly string[]>([]);
  const [chosen, setChosen] = useState<string | null>(null);
  const [volumes, setVolumes] = useState<boolean | null>(null);
  const version = cellsIn(followed)?.find((each) => each.cell === cell)?.version ?? null;
  const model = useAsked(`${cell} ${version}`, async () => {
    const path = `/cells/${encodeURIComponent(cell)}/model`;
    return version === null ? null : (await ask("readModel", "GET", path)).value;
  });
  const graph = useMemo(() => (model.value === null ? null : graphOf(model.value)), [model.value]);
  const hasVolumes = graph?.nodes.some(({ kind }) => kind === "Volume") === true;
  // Of very many nodes machines and rules come first.
  const isShown = volumes ?? (graph === null || graph.nodes.length <= mostNodes);
  const drawn = useMemo(() => (graph === null || isShown ? graph : withoutVolumes(graph)), [graph, isShown]);
  const counters = countersIn(followed, cell);
  if (!followed.topics.has(`cell:${cell}`)) {
    const why = whyNoElements(followed, cell);
    return why === null ? <Waiting what={`the controller of ${cell}`} /> : <p className="notice">{why}</p>;
  }
  const elements = elementsIn(followed).filter((each) => each.cell === cell);
  const of = (...types: readonly string[]) => elements.filter(({ type }) => types.includes(type));
  const stateOf = (path: string) => elements.find((each) => each.path === path)?.state ?? null;
  const machines = of("VM").map(({ path }) => path);
  const pick = (node: string): void =>
    setPicked(picked.includes(node) ? picked.filter((each) => each !== node) : [...picked, node].slice(-2));
  const edge = graph?.edges.find(({ path }) => path === chosen);
  const known = cellsIn(followed)?.map((each) => each.cell) ?? [];
  const ghosts = graph === null ? [] : ghostsOf(graph, elements, known);
  return (
    <>
      {hasVolumes && (
        <label>
          <input type="checkbox" checked={isShown} onChange={(event) => setVolumes(event.target.checked)} /> with
          volumes
        </label>
      )}
      {drawn !== null && (
        <NetworkGraph
          graph={drawn}
          ghosts={ghosts}
          counters={counters}
          picked={picked}
          onPick={pick}
          chosen={chosen}
          onChoose={setChosen}
        />
      )}
      <Failed why={model.failed} />
      {edge !== undefined && graph !== null && (
        <ChosenEdge edge={edge} graph={graph} state={stateOf(edge.path)} counters={counters} />
      )}
      <OtherCells ghosts={ghosts} />
      <WouldPass cell={cell} who={who} ends={machines} picked={picked} onPick={setPicked} />
      <section aria-labelledby="rules">
        <h2 id="rules">Rules</h2>
        <ul className="lines">
          {of("NetworkRule").map((rule) => (
            <State key={rule.path} element={rule}>
              <Packets counted={counters?.rules.get(rule.path)} />
            </State>
          ))}
          {of("NetworkRule").length === 0 && <li>There is none: nothing passes but what one asked for comes back.</li>}
        </ul>
      </section>
      {graph !== null && <Edges graph={graph} elements={elements} />}
      <section aria-labelledby="addresses">
        <h2 id="addresses">Addresses</h2>
        <ul className="lines">
          {of("Subnet", "VirtualInterface", "ExternalAddress").map((element) => (
            <State key={element.path} element={element}>
              <span className="hint">{element.type}</span> {element.state.cidr ?? element.state.address ?? ""}
            </State>
          ))}
        </ul>
      </section>
    </>
  );
}
const State = ({ element: { path, state }, children }: { element: Element; children: ReactNode }) => (
  <li>
    <code>{path}</code> <Phase phase={state.phase} /> {children}
    {state.reason !== null && <span className="reason">{state.reason}</span>}
  </li>
);

interface WouldPassProps {
  readonly cell: string;
  readonly who: string;
  readonly ends: readonly string[];
  /** Where from, and where to. */
  readonly picked: readonly string[];
  readonly onPick: (picked: readonly string[]) => void;
}
function WouldPass({ cell, who, ends, picked, onPick }: WouldPassProps) {
  const [source = "", target = ""] = picked;
  const [answer, setAnswer] = useState<{ readonly ends: Ends; readonly said: ConnectionAnswer } | null>(null);
  const [protocol, setProtocol] = useState<Ends["protocol"]>("tcp");
  const { busy, failed, run } = useDoing();
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name) ?? "");
    const port = protocol === "icmp" ? null : Number(text("port"));
    const asked: Ends = { from: source, to: target, protocol, port };
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
        <Machine label="From" ends={ends} value={source} onChange={(value) => onPick([value, target])} />
        <Machine label="To" ends={ends} value={target} onChange={(value) => onPick([source, value])} />
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
interface MachineProps {
  readonly label: string;
  readonly ends: readonly string[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}
const Machine = ({ label, ends, value, onChange }: MachineProps) => (
  <label>
    {label}
    <select required value={value} onChange={(event) => onChange(event.target.value)}>
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
