import { type Method, parametersIn, type Route } from "./route.ts";
import { type RouteName, routeNames, routeOf } from "./routes.ts";

/**
 * Finds the route of a path in as many steps as the path has parts. The table becomes a tree of the parts: what is written
 * out comes before a parameter, a parameter before one of several parts. Nothing is tried twice, so no part may be both written
 * out and a parameter; a test holds the table to that.
 */
interface Node {
  readonly literal: Map<string, Node>;
  parameter: Node | null;
  /** Of this many parts and all that follow, one at least. */
  readonly rest: Map<Method, RouteName>;
  readonly here: Map<Method, RouteName>;
}
const node = (): Node => ({ literal: new Map(), parameter: null, rest: new Map(), here: new Map() });

export interface Match {
  readonly name: RouteName;
  readonly route: Route;
  /** By name, decoded; of several parts, with `/` in between. */
  readonly parameters: Readonly<Record<string, string>>;
}

function treeOf(names: readonly RouteName[]): Node {
  const root = node();
  for (const name of names) {
    const { method, path } = routeOf(name);
    let at = root;
    let rest = false;
    for (const part of partsIn(path)) {
      if (part.endsWith("*}")) rest = true;
      else if (part.startsWith("{")) at = at.parameter ??= node();
      else {
        const next = at.literal.get(part) ?? node();
        at.literal.set(part, next);
        at = next;
      }
    }
    (rest ? at.rest : at.here).set(method, name);
  }
  return root;
}
const partsIn = (path: string): readonly string[] => path.split("/").filter((part) => part !== "");

const tree = treeOf(routeNames);

/** Parts of a path, decoded; empty ones do not count. Null: it cannot be decoded. The query is left out. */
export function partsOf(url: string): readonly string[] | null {
  const [path = ""] = url.split("?", 1);
  try {
    return partsIn(path).map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** @param parts of the path, decoded */
export function matchParts(method: string, parts: readonly string[]): Match | null {
  let at = tree;
  const values: string[] = [];
  for (const [index, part] of parts.entries()) {
    const next = at.literal.get(part) ?? at.parameter;
    if (next === null) {
      const name = at.rest.get(method as Method);
      return name === undefined ? null : matchOf(name, [...values, parts.slice(index).join("/")]);
    }
    if (next === at.parameter) values.push(part);
    at = next;
  }
  const name = at.here.get(method as Method);
  return name === undefined ? null : matchOf(name, values);
}
/** The same of a path or URL as it was sent. Null as well: it cannot be decoded. */
export function match(method: string, url: string): Match | null {
  const parts = partsOf(url);
  return parts === null ? null : matchParts(method, parts);
}

function matchOf(name: RouteName, values: readonly string[]): Match {
  const route = routeOf(name);
  const parameters = parametersIn(route.path).map(({ name }, index) => [name, values[index] ?? ""]);
  return { name, route, parameters: Object.fromEntries(parameters) as Readonly<Record<string, string>> };
}
