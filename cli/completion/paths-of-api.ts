import { publishedPath, type Route } from "../../model/contract/route.ts";
import { routes } from "../../model/contract/routes.ts";
import type { Candidate, Kind } from "./candidates.ts";

/* What may stand as the path of `cells api`, by the table of routes: parts of a path, and what its query may have. */

/** Names of that kind may stand in this place; what goes before each, and what may come behind it. */
export interface Wanted {
  readonly kind: Kind;
  readonly before: string;
  /** Of the name, what is typed of it. */
  readonly typed: string;
  readonly behind: readonly string[];
}
export interface PathOffer {
  readonly candidates: readonly Candidate[];
  readonly wanted: readonly Wanted[];
}
const all: readonly Route[] = Object.values(routes);
export const methods = [...new Set(all.map(({ method }) => method))];

const parts = (path: string): readonly string[] => path.split("/").slice(1);
const parameter = (part: string): string | null => /^\{([^}*]+)\*?\}$/.exec(part)?.[1] ?? null;
const isOpen = (part: string | undefined): boolean => part?.endsWith("*}") === true;

/** What a part is the name of, as far as the cloud is asked for such names. */
const kindOf = (route: Route, name: string): Kind | null => {
  if (name === "cell") return "cell";
  if (name === "path" && route.path.startsWith("/cells/{cell}/model")) return "element";
  if (name === "host") return "host";
  return name === "name" && route.path.startsWith("/images/") ? "image" : null;
};

/** Whether the parts that were typed lead into the route. */
const leadsInto = (pattern: readonly string[], typed: readonly string[]): boolean =>
  typed.every((part, at) => {
    const own = pattern[at];
    if (own === undefined) return isOpen(pattern.at(-1)) && part !== "";
    return parameter(own) === null ? own === part : part !== "";
  });

/** @param typed begins with `/`, or is empty */
export function pathsOf(method: string, typed: string): PathOffer {
  const some = all.filter((route) => route.method === method.toUpperCase());
  if (typed.includes("?")) return { candidates: queriesOf(some, typed), wanted: [] };
  if (!typed.startsWith("/")) return typed === "" ? pathsOf(method, "/") : { candidates: [], wanted: [] };
  const begun = parts(typed).slice(0, -1);
  const before = typed.slice(0, typed.lastIndexOf("/") + 1);
  const last = typed.slice(before.length);
  const candidates = new Map<string, string>();
  const wanted = new Map<string, { readonly at: Omit<Wanted, "behind">; readonly behind: Set<string> }>();
  for (const route of some) {
    const pattern = parts(publishedPath(route));
    if (!leadsInto(pattern, begun)) continue;
    const at = Math.min(begun.length, pattern.length - 1);
    const part = pattern[at] ?? "";
    const name = parameter(part);
    const isLast = at === pattern.length - 1;
    const behind = isLast ? "" : "/";
    if (name === null) {
      if (at === begun.length && part.startsWith(last))
        candidates.set(`${before}${part}${behind}`, isLast ? route.doc : "");
      continue;
    }
    const kind = kindOf(route, name);
    if (kind === null) continue;
    // The rest of a path that is open is the name, slashes and all.
    const front = isOpen(part) ? `/${[...begun.slice(0, at), ""].join("/")}` : before;
    const own = { kind, before: front, typed: typed.slice(front.length) };
    const known = wanted.get(`${front} ${kind}`) ?? { at: own, behind: new Set<string>() };
    known.behind.add(behind);
    wanted.set(`${front} ${kind}`, known);
  }
  return {
    candidates: [...candidates].map(([value, what]) => ({ value, what })),
    wanted: [...wanted.values()].map(({ at, behind }) => ({ ...at, behind: [...behind].sort() })),
  };
}

function queriesOf(some: readonly Route[], typed: string): readonly Candidate[] {
  const [path = "", query = ""] = typed.split("?");
  const own = parts(path);
  const route = some.find((each) => {
    const pattern = parts(publishedPath(each));
    return leadsInto(pattern, own) && own.length >= pattern.length;
  });
  if (route === undefined) return [];
  const said = query.split("&");
  const last = said.at(-1) ?? "";
  const before = typed.slice(0, typed.length - last.length);
  const [name = "", value] = last.split("=");
  if (value === undefined) {
    const used = new Set(said.slice(0, -1).map((each) => each.split("=")[0]));
    return Object.entries(route.query).flatMap(([each, { doc, repeated }]) =>
      each.startsWith(name) && (repeated || !used.has(each)) ? [{ value: `${before}${each}=`, what: doc }] : [],
    );
  }
  const found = Object.hasOwn(route.query, name) ? route.query[name] : undefined;
  const { type, enum: choices } = found?.schema ?? {};
  const values = type === "boolean" ? ["true", "false"] : Array.isArray(choices) ? choices.map(String) : [];
  return values
    .filter((each) => each.startsWith(value))
    .map((each) => ({ value: `${before}${name}=${each}`, what: "" }));
}
