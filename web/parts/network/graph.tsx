import { useMemo, useRef, useState } from "react";
import { type Ghost, missingSays, missingSigns } from "../../state/cell/graph/consents.ts";
import {
  type Edge,
  folded,
  type Graph,
  type Node,
  otherCells,
  outside,
  volumes,
} from "../../state/cell/graph/graph.ts";
import { edgeNames, endsOf } from "../../state/cell/graph/in-words.ts";
import { type Layout, nothingPlaced, type Place, placed } from "../../state/cell/graph/layout.ts";
import type { CountersKnown } from "../../state/known.ts";

const [columnPx, rowPx, widthPx, heightPx, edgePx, labelPx] = [350, 64, 180, 36, 16, 150] as const;
const middle = ({ column, row }: Place): readonly [number, number] => [
  edgePx + column * columnPx + widthPx / 2,
  edgePx + row * rowPx + heightPx / 2,
];

interface GraphProps {
  readonly graph: Graph;
  readonly ghosts: readonly Ghost[];
  readonly counters: CountersKnown | null;
  /** Nodes that were picked: where from, and where to. */
  readonly picked: readonly string[];
  readonly onPick: (node: string) => void;
  /** Path of a rule, a link or a grant. */
  readonly chosen: string | null;
  readonly onChoose: (path: string | null) => void;
}
/** What is in a cell and what leads where. All of it stands in the lists below as well. */
export function NetworkGraph({ graph, ghosts, counters, picked, onPick, chosen, onChoose }: GraphProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const before = useRef<Layout>(nothingPlaced);
  const shown = useMemo(() => folded(graph, open), [graph, open]);
  const layout = useMemo(() => {
    before.current = placed(before.current, shown);
    return before.current;
  }, [shown]);
  const rows = Math.max(0, ...[...layout.places.values()].map(({ row }) => row)) + 1;
  const columns = Math.max(0, ...layout.columns.values()) + 1;
  const [width, height] = [2 * edgePx + columns * columnPx, 2 * edgePx + rows * rowPx];
  const press = (node: Node): void => {
    if (node.kind === "folded") setOpen(new Set([...open, node.id]));
    else if (node.kind === "VM") onPick(node.id);
  };
  return (
    <section className="graph" aria-label="Graph of the cell">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
        <title>Who may talk to whom</title>
        {shown.edges.map((edge) => (
          <Line
            key={edge.path}
            edge={edge}
            from={layout.places.get(edge.from)}
            to={layout.places.get(edge.to)}
            packets={counters?.rules.get(edge.path)?.packets ?? null}
            isChosen={chosen === edge.path}
            onChoose={() => onChoose(chosen === edge.path ? null : edge.path)}
          />
        ))}
        {shown.nodes.map((node) => (
          <Box
            key={node.id}
            node={node}
            place={layout.places.get(node.id)}
            ghost={ghosts.find(({ id }) => id === node.id) ?? null}
            isPicked={picked.includes(node.id)}
            onPress={() => press(node)}
          />
        ))}
      </svg>
    </section>
  );
}

interface LineProps {
  readonly edge: Edge;
  readonly from: Place | undefined;
  readonly to: Place | undefined;
  readonly packets: number | null;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}
function Line({ edge, from, to, packets, isChosen, onChoose }: LineProps) {
  if (from === undefined || to === undefined) return null;
  const [[x1, y1], [x2, y2]] = [middle(from), middle(to)];
  // Between machines one above the other it goes round the side.
  const bend = from.column === to.column ? (widthPx + labelPx) / 2 : 0;
  const [x, y] = [(x1 + x2) / 2 + bend, (y1 + y2) / 2];
  const counted = packets === null ? "" : `, ${packets} packets`;
  const drawn = `edge ${edge.kind}${isChosen ? " chosen" : ""}`;
  return (
    <>
      <path className={drawn} d={`M${x1} ${y1} Q${x + bend} ${y} ${x2} ${y2}`} />
      <foreignObject x={x - labelPx / 2} y={y - 14} width={labelPx} height={28}>
        <button
          type="button"
          className={drawn}
          aria-pressed={isChosen}
          aria-label={`${edgeNames[edge.kind]} ${edge.path}: ${edge.says}, ${endsOf(edge)}${counted}`}
          onClick={onChoose}
        >
          {edge.isOneWay ? "→ " : "↔ "}
          {packets === null ? edge.says : `${packets} · ${edge.says}`}
        </button>
      </foreignObject>
    </>
  );
}

interface BoxProps {
  readonly node: Node;
  readonly place: Place | undefined;
  /** Of another cell. */
  readonly ghost: Ghost | null;
  readonly isPicked: boolean;
  readonly onPress: () => void;
}
const longest = 22;
const foldedNames: Readonly<Record<string, string>> = {
  [outside]: "ends outside",
  [otherCells]: "other cells",
  [volumes]: "volumes",
};
function Box({ node, place, ghost, isPicked, onPress }: BoxProps) {
  if (place === undefined) return null;
  const [x, y] = middle(place);
  const { id, kind, machines, lane } = node;
  const what = foldedNames[lane] ?? "machines";
  const own = kind === "cell" ? id.slice("//".length) : kind === "outside" ? id : id.split("/").slice(1).join("/");
  const name = kind === "folded" ? `${machines} ${what}` : own;
  const text = name.length > longest ? `…${name.slice(1 - longest)}` : name;
  const isButton = kind === "VM" || kind === "folded";
  return (
    <foreignObject x={x - widthPx / 2} y={y - heightPx / 2} width={widthPx} height={heightPx}>
      {isButton ? (
        <button
          type="button"
          className={`node${isPicked ? " chosen" : ""}`}
          title={id}
          aria-pressed={kind === "VM" ? isPicked : undefined}
          aria-label={kind === "VM" ? `Machine ${id}` : `Show ${machines} ${what} of ${id}`}
          onClick={onPress}
        >
          {text}
        </button>
      ) : (
        <span className={`node ${kind}`} title={id}>
          {ghost !== null && `${missingSigns[ghost.missing]} `}
          {text}
          {ghost !== null && <span className="hidden">: {missingSays[ghost.missing]}</span>}
        </span>
      )}
    </foreignObject>
  );
}
