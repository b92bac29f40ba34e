import type { Graph } from "./graph.ts";

/*
 * Where nodes stand: each subnet has a column, with itself on top and its machines below. Whoever stands somewhere stays there as long as he is in
 * that subnet, whatever comes and goes beside him; who comes takes the first place that is free. Rejected: a layout by the edges
 * (dagre, elk), which moves everything for one rule, so that a person has to look for what he saw a moment ago.
 */
export interface Layout {
  /** By lane. */
  readonly columns: ReadonlyMap<string, number>;
  readonly places: ReadonlyMap<string, Place>;
}
export interface Place {
  readonly lane: string;
  readonly column: number;
  readonly row: number;
}
export const nothingPlaced: Layout = { columns: new Map(), places: new Map() };

const firstFree = (taken: ReadonlySet<number>, from: number): number => {
  let at = from;
  while (taken.has(at)) at += 1;
  return at;
};

/** @param before what was shown until now */
export function placed(before: Layout, { nodes }: Pick<Graph, "nodes">): Layout {
  const lanes = new Set(nodes.map(({ lane }) => lane));
  const columns = new Map([...before.columns].filter(([lane]) => lanes.has(lane)));
  for (const lane of [...lanes].sort())
    if (!columns.has(lane)) columns.set(lane, firstFree(new Set(columns.values()), 0));
  const places = new Map<string, Place>();
  const rows = new Map<string, Set<number>>([...lanes].map((lane) => [lane, new Set<number>()]));
  const put = (id: string, lane: string, row: number): void => {
    places.set(id, { lane, column: columns.get(lane) ?? 0, row });
    rows.get(lane)?.add(row);
  };
  const coming: (typeof nodes)[number][] = [];
  for (const node of nodes) {
    const was = before.places.get(node.id);
    if (was?.lane === node.lane) put(node.id, node.lane, was.row);
    else coming.push(node);
  }
  const order = new Intl.Collator("en", { numeric: true });
  for (const { id, lane, kind } of coming.sort((one, other) => order.compare(one.id, other.id)))
    put(id, lane, kind === "Subnet" ? 0 : firstFree(rows.get(lane) ?? new Set(), 1));
  return { columns, places };
}
