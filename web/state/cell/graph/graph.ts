import { leadsTo } from "../../../../model/contract/follow/leads-to.ts";
import { type Typed, typedIn } from "../../../../model/contract/follow/rows.ts";
import { isObject, type Json, type JsonObject } from "../../../../model/json/json.ts";

/**
 * What is in a cell, and who may talk to whom, by its model: machines, subnets, volumes and the other cells that it names are nodes; rules, links
 * and grants are edges. Pure.
 */
export interface Node {
  /** Path of the element; of another cell `//domain`; of what else stands outside of the cell, as the rule or the grant names it. */
  readonly id: string;
  readonly kind: "VM" | "Subnet" | "Volume" | "cell" | "outside" | "folded";
  /** Path of the subnet that it stands in; `volumes`, `otherCells` or `outside` of what stands in none, "" for a machine in none. */
  readonly lane: string;
  /** Of those that are folded, how many; of others than machines they are none. */
  readonly machines: number;
}
export interface Edge {
  /** Path of the element that says so. */
  readonly path: string;
  readonly kind: "rule" | "link" | "grant";
  readonly from: string;
  readonly to: string;
  /** What of another cell is meant, by its path there; null: the edge leads to none. */
  readonly there: string | null;
  /** `tcp, to port 8080`. */
  readonly says: string;
  /** Only the first may open a connection; links and grants have one direction always. */
  readonly isOneWay: boolean;
}
export interface Graph {
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
  /** By path of an interface, its machine. */
  readonly machineOf: ReadonlyMap<string, string>;
}
export const [outside, otherCells, volumes] = ["outside", "cells", "volumes"] as const;

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
/** Another cell and what of it a reference names, the whole cell where it names nothing; null: it leads to none. */
const abroad = (target: string): { readonly id: string; readonly there: string } | null => {
  const [, domain, there = ""] = /^\/\/([^/]+)(?:\/(.*))?$/.exec(target) ?? [];
  return domain === undefined ? null : { id: `//${domain}`, there };
};

export function graphOf(document: Json): Graph {
  if (!isObject(document)) return { nodes: [], edges: [], machineOf: new Map() };
  const elements = typedIn(document);
  const of = (...types: readonly string[]) => elements.filter(({ type }) => types.includes(type));
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
  for (const { path } of of("Volume", "VolumeCopy"))
    nodes.set(path, { id: path, kind: "Volume", lane: volumes, machines: 0 });
  const endOf: EndOf = (target) => {
    if (target === null) return null;
    const other = abroad(target);
    const id = other?.id ?? machineOf.get(target) ?? target;
    const [kind, lane] = other === null ? (["outside", outside] as const) : (["cell", otherCells] as const);
    if (!nodes.has(id)) nodes.set(id, { id, kind, lane, machines: 0 });
    return { id, there: other?.there ?? null };
  };
  const edges = [
    ...of("NetworkRule").flatMap((rule) => ruleOf(rule, endOf)),
    ...elements.flatMap((element) => linkOf(document, element, endOf)),
    ...of("VolumeGrant").flatMap((grant) => grantOf(document, grant, endOf)),
  ];
  // Where a machine stands says already in which subnet it is.
  const isDrawn = ({ from, to, kind }: Edge): boolean => kind !== "link" || laneOf.get(from) !== to;
  return { nodes: [...nodes.values()], edges: edges.filter(isDrawn), machineOf };
}

type EndOf = (target: string | null) => { readonly id: string; readonly there: string | null } | null;
function ruleOf({ path, written }: Typed, endOf: EndOf): readonly Edge[] {
  const [from, to] = [endOf(targetOf(written["x.address1"], path)), endOf(targetOf(written["x.address2"], path))];
  if (from === null || to === null) return [];
  const there = from.there ?? to.there;
  const isOneWay = written["x.direction"] === "1to2";
  return [{ path, kind: "rule", from: from.id, to: to.id, there, says: saysOf(written), isOneWay }];
}

/** By type, which attribute is the end that it leads from (of a copy itself) and which the one that it leads to, and what that makes of it. */
const links: Readonly<Record<string, { readonly from: string | null; readonly to: string; readonly says: string }>> = {
  VirtualInterface: { from: "x.vm", to: "x.subnet", says: "card" },
  VolumeConnection: { from: "x.vm", to: "x.volume", says: "disk" },
  VolumeCopy: { from: null, to: "x.image", says: "copy" },
};
function linkOf(document: JsonObject, element: Typed, endOf: EndOf): readonly Edge[] {
  const link = Object.hasOwn(links, element.type) ? links[element.type] : undefined;
  if (link === undefined) return [];
  const from = link.from === null ? element.path : leadsTo(document, element, link.from);
  const to = endOf(leadsTo(document, element, link.to));
  if (from === null || to === null) return [];
  const { id, there } = to;
  return [{ path: element.path, kind: "link", from, to: id, there, says: link.says, isOneWay: true }];
}

function grantOf(document: JsonObject, grant: Typed, endOf: EndOf): readonly Edge[] {
  const { path, written } = grant;
  const volume = leadsTo(document, grant, "x.volume");
  const holder = (["x.account", "x.domain"] as const).flatMap((name) =>
    typeof written[name] === "string" ? [`${name.slice(2)} ${written[name]}`] : [],
  );
  const to = endOf(leadsTo(document, grant, "x.vm") ?? targetOf(written["x.cell"], path) ?? holder[0] ?? null);
  if (volume === null || to === null) return [];
  const says = written["x.grant"] === "connect" ? "may connect" : "may copy";
  return [{ path, kind: "grant", from: volume, to: to.id, there: to.there, says, isOneWay: true }];
}

/** The same without volumes, and what leads to and from them. */
export function withoutVolumes(graph: Graph): Graph {
  const nodes = graph.nodes.filter(({ kind }) => kind !== "Volume");
  const left = new Set(nodes.map(({ id }) => id));
  return { ...graph, nodes, edges: graph.edges.filter(({ from, to }) => left.has(from) && left.has(to)) };
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

const isFoldable = ({ kind }: Node): boolean => kind !== "Subnet" && kind !== "folded";
/**
 * Machines of one subnet and one component as one node each, so volumes of one component, all other cells, and all ends outside of the cell, the
 * largest such groups first, until few enough are left.
 *
 * @param open groups that somebody wants to see
 */
export function folded(graph: Graph, open: ReadonlySet<string>, most: number = mostNodes): Graph {
  const groups = Map.groupBy(graph.nodes.filter(isFoldable), ({ id, lane, kind }) =>
    foldedId(lane, kind === "VM" || kind === "Volume" ? parentOf(id) : ""),
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
