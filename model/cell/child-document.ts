import { isObject, type Json, type JsonObject } from "../json/json.ts";
import type { CellControllerElement, Openness } from "./cell.ts";

/**
 * The document of a child cell from its `x.cell`: that is a component of type Cell, which then stands there under its name or
 * `otherwise`, or a whole document with one. Null if it is neither.
 */
export function childDocument(json: Json, otherwise: string): JsonObject | null {
  if (!isObject(json)) return null;
  if (json["x.type"] !== "Cell") return json;
  const own = json["x.name"];
  return { [typeof own === "string" ? own : otherwise]: json };
}

/** The component of type Cell in a document, with its name there; null if there is none. */
function cellIn(document: JsonObject): { readonly name: string; readonly component: JsonObject } | null {
  for (const [name, component] of Object.entries(document))
    if (isObject(component) && component["x.type"] === "Cell") return { name, component };
  return null;
}

/** A DNS label, in lower case. */
export const isLabel = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);

/** What a CellController makes: the child's name, a DNS label, and its first document, which says the same name. */
export interface NamedChild {
  readonly label: string;
  readonly document: JsonObject;
}
/**
 * @param name the element's `x.name`; the cell's own name counts without one
 * @param otherwise the last part of the element's path, for a cell that says no name either
 */
export function namedChild(json: Json, name: string | undefined, otherwise: string): NamedChild | null {
  const document = childDocument(json, name ?? otherwise);
  const found = document === null ? null : cellIn(document);
  if (document === null || found === null) return null;
  const own = found.component["x.name"];
  const label = name ?? (typeof own === "string" ? own : found.name);
  if (!isLabel(label)) return null;
  return { label, document: { ...document, [found.name]: { ...found.component, "x.name": label } } };
}

/** As its element says it; null: it makes no cell. */
export const childOfElement = ({ cell, name, path }: CellControllerElement): NamedChild | null =>
  namedChild(cell, name, path.split("/").at(-1) ?? path);

/** What a child's first document says of itself that is open without a rule, or is not. A word that means nothing is none. */
export function saidByChild({ document }: NamedChild): Openness {
  const component = cellIn(document)?.component ?? {};
  const connects = component["x.policy.subnetConnectivity"];
  const [internet, broadcast] = [component["x.policy.internet"], component["x.policy.broadcast"]];
  return {
    ...(typeof connects === "boolean" ? { subnetConnectivity: connects } : {}),
    ...(internet === "none" || internet === "out" ? { internet } : {}),
    ...(broadcast === "off" || broadcast === "on" ? { broadcast } : {}),
  };
}
