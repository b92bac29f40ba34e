import type { RuleCounted } from "../../../model/contract/operator/numbers/counters.ts";
import type { Edge, Graph } from "../../state/cell/graph/graph.ts";
import { edgeNames, endsOf } from "../../state/cell/graph/in-words.ts";
import { commandOf } from "../../state/command.ts";
import type { CountersKnown, Element } from "../../state/known.ts";
import { Command, Phase, Waiting } from "../bits.tsx";

interface ChosenProps {
  readonly edge: Edge;
  readonly graph: Graph;
  readonly state: Element["state"] | null;
  readonly counters: CountersKnown | null;
}
/** Of one rule, link or grant: what is so of it, and of a rule what passed. */
export function ChosenEdge({ edge, graph, state, counters }: ChosenProps) {
  const { path, kind, says } = edge;
  return (
    <section className="card" aria-label={`${edgeNames[kind]} ${path}`}>
      <strong>{path}</strong>: {says}, {endsOf(edge)}{" "}
      {kind === "rule" && <Packets counted={counters?.rules.get(path)} />}
      {state !== null && <Phase phase={state.phase} />}
      {state?.reason != null && <span className="reason">{state.reason}</span>}
      {kind === "rule" && <Counted edge={edge} graph={graph} counters={counters} />}
      <Command text={commandOf("cells why", path)} />
    </section>
  );
}
/** What the interfaces of a rule's ends have dropped, whatever for, and which hosts do not say. */
function Counted({ edge: { from, to }, graph, counters }: Omit<ChosenProps, "state">) {
  const cards = [...graph.machineOf].flatMap(([card, machine]) => (machine === from || machine === to ? [card] : []));
  const dropped = cards.flatMap((card) => {
    const drops = Object.entries(counters?.interfaces.get(card)?.drops ?? {});
    return drops.length === 0 ? [] : [{ card, drops: drops.map(([reason, count]) => `${count} ${reason}`).join(", ") }];
  });
  return (
    <>
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
    </>
  );
}
/** A rule counts where a packet leaves and where it arrives. */
export const Packets = ({ counted }: { counted: RuleCounted | undefined }) =>
  counted === undefined ? null : (
    <span className="hint">
      {counted.packets} packets, {counted.bytes} bytes
    </span>
  );
