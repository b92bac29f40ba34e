import { type Consent, type Ghost, missingSays } from "../../state/cell/graph/consents.ts";
import type { Edge, Graph } from "../../state/cell/graph/graph.ts";
import { edgeNames, endsOf } from "../../state/cell/graph/in-words.ts";
import { commandOf } from "../../state/command.ts";
import type { Element } from "../../state/known.ts";
import { Command, Link, Phase } from "../bits.tsx";

/** Other cells that this one names: what for, and whose consent is missing. */
export function OtherCells({ ghosts }: { ghosts: readonly Ghost[] }) {
  if (ghosts.length === 0) return null;
  return (
    <section aria-labelledby="other-cells">
      <h2 id="other-cells">Other cells</h2>
      <ul className="cards">
        {ghosts.map(({ id, cell, missing, consents }) => (
          <li key={id} className="card">
            <strong>{id.slice("//".length)}</strong>: {missingSays[missing]}
            {cell !== null && (
              <>
                {" "}
                · <Link to={{ page: "network", cell }}>its network</Link>
              </>
            )}
            <ul className="lines">
              {consents.map((consent) => (
                <Consented key={consent.edge.path} consent={consent} />
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}
const Consented = ({ consent: { edge, missing, reason, remedy } }: { consent: Consent }) => (
  <li>
    {edgeNames[edge.kind]} <code>{edge.path}</code> {edge.says}, {endsOf(edge)}: {missingSays[missing]}
    {reason !== null && <span className="reason">{reason}</span>}
    {remedy !== null && <span className="reason">What would do: {remedy}.</span>}
    {missing !== "none" && missing !== "granted" && <Command text={commandOf("cells why", edge.path)} />}
  </li>
);

/** Links and grants, each with its state: what the picture shows, as a list. */
export function Edges({ graph, elements }: { graph: Graph; elements: readonly Element[] }) {
  const states = new Map(elements.map(({ path, state }) => [path, state]));
  return (
    <>
      {(["link", "grant"] as const).map((kind) => {
        const edges = graph.edges.filter((edge) => edge.kind === kind);
        return edges.length === 0 ? null : (
          <section key={kind} aria-labelledby={`${kind}s`}>
            <h2 id={`${kind}s`}>{edgeNames[kind]}s</h2>
            <ul className="lines">
              {edges.map((edge) => (
                <Line key={edge.path} edge={edge} state={states.get(edge.path) ?? null} />
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}
const Line = ({ edge, state }: { edge: Edge; state: Element["state"] | null }) => (
  <li>
    <code>{edge.path}</code> {state !== null && <Phase phase={state.phase} />}{" "}
    <span className="hint">
      {edge.says}, {endsOf(edge)}
    </span>
    {state?.reason != null && <span className="reason">{state.reason}</span>}
  </li>
);
