import { type FormEvent, useMemo, useState } from "react";
import type { ConnectionAnswer } from "../../model/api.ts";
import type { RuleCounted } from "../../model/contract/operator/numbers/counters.ts";
import { ask } from "../data/api.ts";
import { loadText } from "../data/text.ts";
import { Failed, useDoing } from "../parts/act.tsx";
import { Command, Phase, Waiting } from "../parts/bits.tsx";
import { CellChoice } from "../parts/cell-choice.tsx";
import { NetworkGraph } from "../parts/graph.tsx";
import { nameOf, type PageProps } from "../parts/page-props.ts";
import { go, useAsked, useKnown } from "../parts/use-known.ts";
import { addElement } from "../state/cell/add-element.ts";
import { draftOf, keepDraft } from "../state/cell/drafts.ts";
import { type Edge, type Graph, graphOf } from "../state/cell/graph/graph.ts";
import { type Ends, nextName, queryOf, ruleBetween } from "../state/cell/network.ts";
import { commandOf } from "../state/command.ts";
import { type CountersKnown, cellsIn, countersIn, elementsIn, whyNoElements } from "../state/known.ts";

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
  const version = cellsIn(followed)?.find((each) => each.cell === cell)?.version ?? null;
  const model = useAsked(`${cell} ${version}`, async () => {
    const path = `/cells/${encodeURIComponent(cell)}/model`;
    return version === null ? null : (await ask("readModel", "GET", path)).value;
  });
  const graph = useMemo(() => (model.value === null ? null : graphOf(model.value)), [model.value]);
  const counters = countersIn(followed, cell);
  if (!followed.topics.has(`cell:${cell}`)) {
    const why = whyNoElements(followed, cell);
    return why === null ? <Waiting what={`the controller of ${cell}`} /> : <p className="notice">{why}</p>;
  }
  const elements = elementsIn(followed).filter((each) => each.cell === cell);
  const of = (...types: readonly string[]) => elements.filter(({ type }) => types.includes(type));
  const machines = of("VM").map(({ path }) => path);
  const pick = (node: string): void =>
    setPicked(picked.includes(node) ? picked.filter((each) => each !== node) : [...picked, node].slice(-2));
  const edge = graph?.edges.find(({ rule }) => rule === chosen);
  return (
    <>
      {graph !== null && (
        <NetworkGraph
          graph={graph}
          counters={counters}
          picked={picked}
          onPick={pick}
          chosen={chosen}
          onChoose={setChosen}
        />
      )}
      <Failed why={model.failed} />
      {edge !== undefined && graph !== null && <ChosenRule edge={edge} graph={graph} counters={counters} />}
      <WouldPass cell={cell} who={who} ends={machines} picked={picked} onPick={setPicked} />
      <section aria-labelledby="rules">
        <h2 id="rules">Rules</h2>
        <ul className="lines">
          {of("NetworkRule").map(({ path, state: { phase, reason } }) => (
            <li key={path}>
              <code>{path}</code> <Phase phase={phase} /> <Packets counted={counters?.rules.get(path)} />
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

/** Of one rule: packets at both ends together, and what its ends' interfaces have dropped, whatever for. */
function ChosenRule({ edge, graph, counters }: { edge: Edge; graph: Graph; counters: CountersKnown | null }) {
  const { rule, from, to, says } = edge;
  const cards = [...graph.machineOf].flatMap(([card, machine]) => (machine === from || machine === to ? [card] : []));
  const dropped = cards.flatMap((card) => {
    const drops = Object.entries(counters?.interfaces.get(card)?.drops ?? {});
    return drops.length === 0 ? [] : [{ card, drops: drops.map(([reason, count]) => `${count} ${reason}`).join(", ") }];
  });
  return (
    <section className="card" aria-label={`Rule ${rule}`}>
      <strong>{rule}</strong>: {says}, from {from} to {to} <Packets counted={counters?.rules.get(rule)} />
      {counters === null && <Waiting what="what hosts count" />}
      {counters !== null && counters.missing > 0 && (
        <p className="notice">
          {counters.missing === 1 ? "One host does" : `${counters.missing} hosts do`} not say what they count
          {counters.silent.length > 0 && `: ${counters.silent.join(", ")}`}.
        </p>
      )}
      {dropped.map(({ card, drops }) => (
        <p key={card} className="hint">
          {card} has dropped: {drops}
        </p>
      ))}
      <Command text={commandOf("cells why", rule)} />
    </section>
  );
}
/** A rule counts where a packet leaves and where it arrives. */
const Packets = ({ counted }: { counted: RuleCounted | undefined }) =>
  counted === undefined ? null : (
    <span className="hint">
      {counted.packets} packets, {counted.bytes} bytes
    </span>
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
