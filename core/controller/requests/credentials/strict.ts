import type { Cell, Element } from "../../../../model/cell/cell.ts";
import { childDocument } from "../../../../model/cell/child-document.ts";
import { follow, referenceIn } from "../../../../model/cell/reference.ts";
import type { KnownOffering } from "../../../../model/cell/tenants/pools/offerings.ts";
import { strictRight } from "../../../../model/contract/tenancy/verbs.ts";
import { isObject, type Json, type JsonObject } from "../../../../model/json/json.ts";
import type { Plan } from "../../../../model/plan/plan-types.ts";

/*
 * The right to have hosts alone. A VM that asks for that takes a whole host of everybody's, whatever its own size, and so whoever may change a cell may
 * not ask for it by that alone (decision 158). What asks for it already goes on, whoever changes something else of it.
 */

/** Rights that whoever asks has not, of those that depend on what he changes. */
export type Lacks = readonly string[];

/** Why who lacks that right must not make this change; null: it asks for no host alone that was not asked for before. */
export function whyNotStrict(
  lacks: Lacks | undefined,
  {
    before,
    after,
    plan,
    offerings = [],
  }: {
    readonly before: Cell | null;
    readonly after: Cell | null;
    readonly plan: Plan;
    /** That are known. Of one that is not, nobody knows that it asks for no host alone. */
    readonly offerings?: readonly KnownOffering[];
  },
): string | null {
  if (lacks?.includes(strictRight) !== true || after === null) return null;
  const shared = new Set(offerings.flatMap(({ name, dedication }) => (dedication === "strict" ? [] : [name])));
  const alone = new Set(offerings.flatMap(({ name, dedication }) => (dedication === "strict" ? [name] : [])));
  const moved = new Map(
    plan.steps.flatMap(({ path, movedFrom }) => (movedFrom === undefined ? [] : [[path, movedFrom]])),
  );
  const anew = [...after.elements.values()].flatMap((element) => {
    const former = before?.elements.get(moved.get(element.path) ?? element.path);
    const had = former === undefined ? [] : strictIn(former, shared);
    // An offering of which nothing is known has given nothing yet: who names it goes on naming it, and asks for nothing else by that.
    const isHad = ({ within, by }: Asks): boolean =>
      had.some((each) => each.within === within && (each.by === by || each.by === null || alone.has(each.by)));
    return strictIn(element, shared)
      .filter((asks) => !isHad(asks))
      .map(({ within }) => `${element.path}${within}`);
  });
  if (anew.length === 0) return null;
  const named =
    anew.slice(0, mostNamed).join(", ") + (anew.length > mostNamed ? ` and ${anew.length - mostNamed} more` : "");
  return `${named} would have a host alone (\`x.placement.dedication "strict"\`, or an offering that is), and that needs the right ${strictRight}: an administrator of the account can give it; "preferred" needs none`;
}
const mostNamed = 5;

interface Asks {
  /** "" for a VM itself, and below a child cell that is given its first model, its path there. */
  readonly within: string;
  /** Name of an offering; null: its own word. */
  readonly by: string | null;
}
/** Where in an element a VM asks for a host alone. */
function strictIn(element: Element, shared: ReadonlySet<string>): readonly Asks[] {
  if (element.type === "VM") {
    const { dedication, offering } = element.placement;
    return isStrict(dedication, offering, shared) ? [{ within: "", by: byWhat(dedication, offering) }] : [];
  }
  return element.type === "CellController" ? [...strictInCell(element.cell, nameIn(element.path), shared)] : [];
}
/** @param shared names of offerings that ask for no host alone */
const isStrict = (dedication: Json | undefined, offering: Json | undefined, shared: ReadonlySet<string>): boolean =>
  dedication === "strict" || (typeof offering === "string" && !shared.has(offering));
const byWhat = (dedication: Json | undefined, offering: Json | undefined): string | null =>
  dedication !== "strict" && typeof offering === "string" ? offering : null;
const nameIn = (path: string): string => path.split("/").at(-1) ?? path;
function* strictInCell(json: Json | undefined, name: string, shared: ReadonlySet<string>): Generator<Asks> {
  const document = json === undefined ? null : childDocument(json, name);
  if (document !== null) yield* strictBelow(document, [], document, shared);
}
/** The first model goes to the child as it was written, so that what is meant may stand elsewhere in it (`<ref:…>`). */
function* strictBelow(
  document: JsonObject,
  at: readonly string[],
  json: JsonObject,
  shared: ReadonlySet<string>,
): Generator<Asks> {
  const said = (name: string): Json | undefined => meant(document, at, json[name]);
  const here = ["", ...at].join("/");
  const [dedication, offering] = [said("x.placement.dedication"), said("x.placement.offering")];
  if (isStrict(dedication, offering, shared)) yield { within: here, by: byWhat(dedication, offering) };
  for (const [name, value] of Object.entries(json)) {
    if (name === "x.cell")
      for (const { within, by } of strictInCell(value, at.at(-1) ?? name, shared))
        yield { within: `${here}${within}`, by };
    else if (isObject(value)) yield* strictBelow(document, [...at, name], value, shared);
  }
}
function meant(document: JsonObject, at: readonly string[], json: Json | undefined): Json | undefined {
  const reference = typeof json === "string" ? referenceIn(json) : null;
  if (reference === null) return json;
  const target = follow(document, at, reference);
  return target.kind === "value" ? target.value : undefined;
}
