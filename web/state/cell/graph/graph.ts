import { typedIn } from "../../../../model/contract/follow/rows.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";

/** Who may talk to whom in a cell, by its model: machines and subnets are nodes, rules are edges. Pure. */
export interface Node {
  /** Path of the element; of what stands outside of the cell, as the rule names it. */
  readonly id: string;
  readonly kind: "VM" | "Subnet" | "outside" | "folded";
  /** Path of the subnet that it stands in; "outside", or "" for a machine in none. */
  readonly lane: string;
  /** Of those that are folded, how many; of ends outside they are no machines. */
  readonly machines: number;
}
export interface Edge {
  /** Path of the rule. */
  readonly rule: string;
  readonly from: string;
  readonly to: string;
  /** `tcp, to port 8080`. */
  readonly says: string;
  /** Only the first may open a connection. */
  readonly isOneWay: boolean;
}
export interface Graph {
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
  /** By path of an interface, its machine. */
  readonly machineOf: ReadonlyMap<string, string>;
}
export const outside = "outside";

/** Where a reference leads that stands in an element: `<ref:/shop/web>`, `<ref:../web>`; what is none stays as it is. */
export function targetOf(value: Json | undefined, path: string): string | null {
  if (typeof value !== "string") return null;
  const [, reference] = /^<ref:(.*)>$/.exec(value) ?? [];
  if (reference === undefined || reference.startsWith("//")) return reference ?? value;
  const parts = reference.startsWith("/") ? [] : path.split("/");
  for (const part of reference.split("/"))
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  return parts.join("/");
}

export function graphOf(document: Json): Graph {
  const elements = typedIn(document);
  const of = (type: string) => elements.filter((each) => each.type === type);
  const machineOf = new Map<string, string>();
  const laneOf = new Map<string, string>();
  for (const { path, written } of of("VirtualInterface")) {
    const [machine, subnet] = [targetOf(written["x.vm"], path), targetOf(written["x.subnet"], path)];
    if (machine === null) continue;
    machineOf.set(path, machine);
    if (subnet !== null && !laneOf.has(machine)) laneOf.set(machine, subnet);
  }
  const nodes = new Map<string, Node>();
  for (const { path } of of("Subnet")) nodes.set(path, { id: path, kind: "Subnet", lane: path, machines: 0 });
  for (const { path } of of("VM")) nodes.set(path, { id: path, kind: "VM", lane: laneOf.get(path) ?? "", machines: 1 });
  const endOf = (value: Json | undefined, path: string): string | null => {
    const target = targetOf(value, path);
    if (target === null) return null;
    const id = machineOf.get(target) ?? target;
    if (!nodes.has(id)) nodes.set(id, { id, kind: "outside", lane: outside, machines: 0 });
    return id;
  };
  const edges = of("NetworkRule").flatMap(({ path, written }): readonly Edge[] => {
    const [from, to] = [endOf(written["x.address1"], path), endOf(written["x.address2"], path)];
    if (from === null || to === null) return [];
    return [{ rule: path, from, to, says: saysOf(written), isOneWay: written["x.direction"] === "1to2" }];
  });
  return { nodes: [...nodes.values()], edges, machineOf };
}

function saysOf({ "x.protocol": protocol = "any", "x.port1": first, "x.port2": second }: JsonObject): string {
  const ports = [
    ...(first === undefined ? [] : [`from port ${String(first)}`]),
    ...(second === undefined ? [] : [`to port ${String(second)}`]),
  ];
  return [protocol === "any" ? "anything" : String(protocol), ...ports].join(", ");
}

/** So many nodes are drawn at most, as far as there is anything to fold. */
export const mostNodes = 150;
const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const foldedId = (lane: string, parent: string): string => `${parent}/* in ${lane}`;

/**
 * Machines of one subnet and one component as one node each, and all ends outside of the cell as one, the largest such groups first, until few
 * enough are left.
 *
 * @param open groups that somebody wants to see
 */
export function folded(graph: Graph, open: ReadonlySet<string>, most: number = mostNodes): Graph {
  const groups = Map.groupBy(
    graph.nodes.filter(({ kind }) => kind === "VM" || kind === "outside"),
    ({ id, lane, kind }) => foldedId(lane, kind === "VM" ? parentOf(id) : ""),
  );
  let left = graph.nodes.length;
  const into = new Map<string, string>();
  const made: Node[] = [];
  for (const [id, all] of [...groups].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1))) {
    if (left <= most || all.length < 2) break;
    if (open.has(id)) continue;
    for (const node of all) into.set(node.id, id);
    made.push({ id, kind: "folded", lane: all[0]?.lane ?? "", machines: all.length });
    left -= all.length - 1;
  }
  if (into.size === 0) return graph;
  const edges = graph.edges.map((edge) => ({
    ...edge,
    from: into.get(edge.from) ?? edge.from,
    to: into.get(edge.to) ?? edge.to,
  }));
  return { ...graph, edges, nodes: [...graph.nodes.filter(({ id }) => !into.has(id)), ...made] };
}
