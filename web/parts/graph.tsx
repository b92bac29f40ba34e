import { useMemo, useRef, useState } from "react";
import { type Edge, folded, type Graph, type Node, outside } from "../state/cell/graph/graph.ts";
import { type Layout, nothingPlaced, type Place, placed } from "../state/cell/graph/layout.ts";
import type { CountersKnown } from "../state/known.ts";

const [columnPx, rowPx, widthPx, heightPx, edgePx, labelPx] = [350, 64, 180, 36, 16, 150] as const;
const middle = ({ column, row }: Place): readonly [number, number] => [
  edgePx + column * columnPx + widthPx / 2,
  edgePx + row * rowPx + heightPx / 2,
];

interface GraphProps {
  readonly graph: Graph;
  readonly counters: CountersKnown | null;
  /** Nodes that were picked: where from, and where to. */
  readonly picked: readonly string[];
  readonly onPick: (node: string) => void;
  /** A rule. */
  readonly chosen: string | null;
  readonly onChoose: (rule: string | null) => void;
}
/** A cell's subnets, machines and rules. All of it stands in the lists below as well. */
export function NetworkGraph({ graph, counters, picked, onPick, chosen, onChoose }: GraphProps) {
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
            key={edge.rule}
            edge={edge}
            from={layout.places.get(edge.from)}
            to={layout.places.get(edge.to)}
            packets={counters?.rules.get(edge.rule)?.packets ?? null}
            isChosen={chosen === edge.rule}
            onChoose={() => onChoose(chosen === edge.rule ? null : edge.rule)}
          />
        ))}
        {shown.nodes.map((node) => (
          <Box
            key={node.id}
            node={node}
            place={layout.places.get(node.id)}
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
  return (
    <>
      <path className={isChosen ? "edge chosen" : "edge"} d={`M${x1} ${y1} Q${x + bend} ${y} ${x2} ${y2}`} />
      <foreignObject x={x - labelPx / 2} y={y - 14} width={labelPx} height={28}>
        <button
          type="button"
          className={isChosen ? "edge chosen" : "edge"}
          aria-pressed={isChosen}
          aria-label={`Rule ${edge.rule}: ${edge.says}, from ${edge.from} to ${edge.to}${counted}`}
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
  readonly isPicked: boolean;
  readonly onPress: () => void;
}
const longest = 22;
function Box({ node, place, isPicked, onPress }: BoxProps) {
  if (place === undefined) return null;
  const [x, y] = middle(place);
  const { id, kind, machines, lane } = node;
  const what = lane === outside ? "ends outside" : "machines";
  const name =
    kind === "folded"
      ? `${machines} ${what}`
      : id
          .split("/")
          .slice(kind === "outside" ? 0 : 1)
          .join("/");
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
        <span className="node" title={id}>
          {text}
        </span>
      )}
    </foreignObject>
  );
}
