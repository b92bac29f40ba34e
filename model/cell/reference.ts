import { closestName, mostNames } from "../diagnostics/closest-name.ts";
import { isIncomplete, isUnknown } from "../diagnostics/unknown.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { limits } from "../limits.ts";

/** What a reference leads to. */
export type Target =
  | { readonly kind: "component"; readonly path: readonly string[]; readonly component: JsonObject }
  | { readonly kind: "value"; readonly value: Json }
  /** What could not be worked out, which has been told. */
  | { readonly kind: "unknown" }
  | { readonly kind: "foreign"; readonly domain: string; readonly path: string }
  | { readonly kind: "fault"; readonly code: string; readonly message: string; readonly hint?: string };

/** The part behind `ref:` of `<ref:…>` or `ref:…`; null if the text is no reference. */
export function referenceIn(text: string): string | null {
  if (text.startsWith("<ref:")) return text.endsWith(">") ? text.slice(5, -1) : null;
  return /^ref:\S*$/.test(text) ? text.slice(4) : null;
}
/** A text that was surely meant as a reference but is none, such as `<ref:/a` without its `>`. */
export const isBrokenReference = (text: string): boolean => /^<\s*ref:/i.test(text) && referenceIn(text) === null;

const fault = (code: string, message: string, hint?: string): Target => ({
  kind: "fault",
  code,
  message,
  ...(hint === undefined ? {} : { hint }),
});

/**
 * Follows a reference that stands in an attribute of the component at path `holder` of the document: `/a/b` from the
 * document, `../b` from that component, `//domain/a` into another cell. An attribute that is a reference itself is
 * followed further.
 */
export function follow(document: JsonObject, holder: readonly string[], reference: string): Target {
  return new Follower(document).follow(holder, reference);
}

/** What is known of the references that stand in a document, which is frozen: it never changes. */
interface Remembered {
  /** What references in the middle of a chain lead to. */
  readonly targets: Map<string, Target>;
  /** Numbers of the components that references stand in: the path of one may be long. */
  readonly numbers: Map<Json | undefined, number>;
  /** Of the path that was last asked for: the references of one element stand in the same component. */
  last: { readonly path: readonly string[]; readonly along: readonly (Json | undefined)[] };
}
const remembered = new WeakMap<JsonObject, Remembered>();
function remember(document: JsonObject): Remembered {
  const known = remembered.get(document);
  if (known) return known;
  const fresh: Remembered = { targets: new Map(), numbers: new Map(), last: { path: [], along: [document] } };
  remembered.set(document, fresh);
  return fresh;
}

const nothingInside = "A value has nothing inside: end the reference at it, or refer to a component.";

class Follower {
  readonly #document: JsonObject;
  readonly #remembered: Remembered;
  readonly #open = new Set<string>();

  constructor(document: JsonObject) {
    this.#document = document;
    this.#remembered = remember(document);
  }

  /** The same for the same reference in the same component. */
  #key(holder: readonly string[], reference: string): string {
    if (reference.startsWith("/")) return reference;
    const { numbers } = this.#remembered;
    const component = this.#along(holder).at(-1);
    if (component === undefined) return `${holder.join("/")} ${reference}`;
    const number = numbers.get(component) ?? numbers.size;
    numbers.set(component, number);
    return `${number} ${reference}`;
  }
  /** The document and what stands at each part of a path. */
  #along(path: readonly string[]): readonly (Json | undefined)[] {
    const { last } = this.#remembered;
    if (last.path === path) return last.along;
    const found = along(this.#document, path);
    this.#remembered.last = { path, along: found };
    return found;
  }

  follow(holder: readonly string[], reference: string): Target {
    const shown = `<ref:${reference}>`;
    const key = this.#key(holder, reference);
    if (this.#open.has(key))
      return fault(
        "reference/circular",
        `\`${shown}\` leads back to itself`,
        "Give one attribute of the circle a value.",
      );
    if (this.#open.size >= limits.references)
      return fault(
        "limit/references",
        `More than ${limits.references} references follow one another from \`${shown}\``,
      );
    this.#open.add(key);
    try {
      if (reference.startsWith("//")) return foreign(reference);
      return this.#walk(reference.startsWith("/") ? [] : holder, reference);
    } finally {
      this.#open.delete(key);
    }
  }

  /** Remembers what references in the middle of a chain lead to: a long one may have many beginnings. */
  #further(holder: readonly string[], reference: string): Target {
    const { targets } = this.#remembered;
    const key = this.#key(holder, reference);
    const known = targets.get(key);
    if (known) return known;
    const target = this.follow(holder, reference);
    if (target.kind !== "fault") targets.set(key, target);
    return target;
  }

  #walk(from: readonly string[], reference: string): Target {
    const path = [...from];
    // What stands at each part of the path, the document first: a long path is not gone through again for each part.
    let holders = [...this.#along(from)];
    const parts = reference.split("/").filter((part) => part !== "" && part !== ".");
    for (const [index, part] of parts.entries()) {
      if (part === "..") {
        if (path.pop() === undefined)
          return fault(
            "reference/dangling",
            `\`<ref:${reference}>\` leads above the document`,
            "`..` is the parent of the component that holds the attribute.",
          );
        holders.pop();
        continue;
      }
      const holder = holders.at(-1);
      if (isUnknown(holder)) return { kind: "unknown" };
      if (!isObject(holder))
        return fault("reference/dangling", `\`<ref:${reference}>\` goes on behind a value`, nothingInside);
      const value = Object.hasOwn(holder, part) ? holder[part] : undefined;
      if (value === undefined)
        return isIncomplete(holder) ? { kind: "unknown" } : dangling(reference, part, path, holder);
      const further = typeof value === "string" ? referenceIn(value) : null;
      if (further === null) {
        path.push(part);
        holders.push(value);
        continue;
      }
      const target = this.#further([...path], further);
      if (index === parts.length - 1 || target.kind === "fault" || target.kind === "unknown") return target;
      if (target.kind !== "component")
        return fault(
          "reference/dangling",
          `\`<ref:${reference}>\` goes on behind the value \`${part}\``,
          nothingInside,
        );
      path.splice(0, path.length, ...target.path);
      holders = along(this.#document, path);
    }
    const found = holders.at(-1);
    if (isUnknown(found)) return { kind: "unknown" };
    if (isObject(found)) return { kind: "component", path, component: found };
    return { kind: "value", value: found ?? null };
  }
}

/** The document and what stands at each part of a path. */
function along(document: JsonObject, path: readonly string[]): (Json | undefined)[] {
  const found: (Json | undefined)[] = [document];
  let current: Json | undefined = document;
  for (const part of path) {
    current = isObject(current) && Object.hasOwn(current, part) ? current[part] : undefined;
    found.push(current);
  }
  return found;
}

/** Copies of one template all miss the same name in the same place: it is looked for once, and so are its names. */
interface Nearest {
  readonly names: readonly string[];
  readonly of: Map<string, string | undefined>;
}
const nearest = new WeakMap<JsonObject, Nearest>();
function closestIn(holder: JsonObject, part: string): string | undefined {
  const known = nearest.get(holder) ?? { names: Object.keys(holder).slice(0, mostNames), of: new Map() };
  nearest.set(holder, known);
  if (!known.of.has(part)) known.of.set(part, closestName(part, known.names));
  return known.of.get(part);
}

function dangling(reference: string, part: string, path: readonly string[], holder: JsonObject): Target {
  const where = path.length === 0 ? "the document" : `\`/${path.join("/")}\``;
  const closest = closestIn(holder, part);
  return fault(
    "reference/dangling",
    `\`<ref:${reference}>\` leads nowhere: there is no \`${part}\` in ${where}`,
    closest
      ? `Did you mean \`${closest}\`?`
      : "A path starts with `/` at the document, or with `..` at the parent of the component that holds the attribute.",
  );
}

function foreign(reference: string): Target {
  const match = /^\/\/([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?:\/(.*))?$/.exec(reference);
  if (!match?.[1])
    return fault(
      "reference/domain",
      `\`<ref:${reference}>\` names no cell`,
      "It reads `<ref://other.cells.example.com/a/b>`.",
    );
  return { kind: "foreign", domain: match[1].toLowerCase(), path: (match[2] ?? "").replace(/\/+$/, "") };
}
