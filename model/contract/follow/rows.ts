import type { CellSummary, ElementState, InstallationStatus } from "../../api.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";
import type { HaReport } from "../operator/ha.ts";
import type { CellCounters } from "../operator/numbers/counters.ts";
import type { Rows } from "./follow.ts";

/** The rows of topics, made of what other requests answer, and back. */

/** One element of a cell with its actual state, as `GET …?state=true` tells it. */
export interface ElementWithState {
  readonly path: string;
  readonly type: string;
  readonly state: ElementState;
}

/** What has a type in a document, in its order, as it stands there. `path` is where `document` stands, "" for a whole one. */
export function typedIn(document: Json, path = ""): readonly Typed[] {
  if (!isObject(document)) return [];
  const { "x.type": type } = document;
  const own = typeof type === "string" && path !== "" ? [{ path, type, written: document }] : [];
  const below = Object.entries(document).flatMap(([name, value]) =>
    name === "$state" || name.startsWith("x.") ? [] : typedIn(value, path === "" ? name : `${path}/${name}`),
  );
  return [...own, ...below];
}
export interface Typed {
  readonly path: string;
  readonly type: string;
  readonly written: JsonObject;
}

/** Elements in document order. `path` is where `document` stands, "" for a whole one. */
export const elementsOf = (document: Json, path: string): readonly ElementWithState[] =>
  typedIn(document, path).flatMap(({ path, type, written: { $state: state } }) =>
    isObject(state) && type !== "Cell" ? [{ path, type, state: state as unknown as ElementState }] : [],
  );
export const rowsOfCell = (document: Json): Rows =>
  Object.fromEntries(
    elementsOf(document, "").map(({ path, type, state }) => [path, { type, state: state as unknown as Json }]),
  );

export const rowsOfCells = (cells: readonly CellSummary[]): Rows =>
  Object.fromEntries(cells.map((summary) => [summary.cell, summary as unknown as Json]));

export function rowsOfStatus({ hosts, servers, services, ...installation }: InstallationStatus): Rows {
  return Object.fromEntries([
    ...hosts.map((host) => [`host/${host.host}`, host]),
    ...servers.map((server) => [`server/${server.server}`, server]),
    ...services.map((service) => [`service/${service.name}`, service]),
    ["installation", installation],
  ]) as Rows;
}
export function statusOfRows(rows: Rows): InstallationStatus {
  const all = (kind: string): never =>
    Object.entries(rows).flatMap(([key, row]) => (key.startsWith(`${kind}/`) ? [row] : [])) as never;
  const { installation = {} } = rows;
  return { ...(installation as object), hosts: all("host"), servers: all("server"), services: all("service") };
}

/** What it works on by VM and incarnation, alerts by what they are about. */
export function rowsOfHa({ items, alerts = [], protected: looked, storm }: HaReport): Rows {
  return Object.fromEntries([
    ["summary", { protected: looked, storm }],
    ...alerts.map((alert) => [`alert/${alert.kind}/${alert.subject}`, alert]),
    ...items.map((item) => [`item/${item.vm}/${item.incarnation}`, item]),
  ]) as Rows;
}

/** Rules, interfaces and machines by their kinds and paths, and who did not say (`summary`). */
export function rowsOfCounters({ rules, interfaces, machines, missing, silent }: CellCounters): Rows {
  const of = (kind: string, all: readonly { readonly path: string }[]) =>
    all.map((each) => [`${kind}/${each.path}`, each] as const);
  return Object.fromEntries([
    ["summary", { missing, ...(silent === undefined ? {} : { silent }) }],
    ...of("rule", rules),
    ...of("interface", interfaces),
    ...of("machine", machines),
  ]) as unknown as Rows;
}
