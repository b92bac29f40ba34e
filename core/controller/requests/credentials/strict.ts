import type { Cell, Element } from "../../../../model/cell/cell.ts";
import { strictRight } from "../../../../model/contract/tenancy/verbs.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { Plan } from "../../../../model/plan/plan-types.ts";
import { isObject } from "../../../outbox.ts";

/*
 * The right to have hosts alone. A VM that asks for that takes a whole host of everybody's, whatever its own size, and so whoever may change a cell may
 * not ask for it by that alone (decision 158). What asks for it already goes on, whoever changes something else of it.
 */

/** Rights that whoever asks has not, of those that depend on what he changes. */
export type Lacks = readonly string[];

/** Why who lacks that right must not make this change; null: it asks for no host alone that was not asked for before. */
export function whyNotStrict(
  lacks: Lacks | undefined,
  { before, after, plan }: { readonly before: Cell | null; readonly after: Cell | null; readonly plan: Plan },
): string | null {
  if (lacks?.includes(strictRight) !== true || after === null) return null;
  const moved = new Map(
    plan.steps.flatMap(({ path, movedFrom }) => (movedFrom === undefined ? [] : [[path, movedFrom]])),
  );
  const anew = [...after.elements.values()].flatMap((element) => {
    const former = before?.elements.get(moved.get(element.path) ?? element.path);
    const had = former === undefined ? [] : strictIn(former);
    return strictIn(element)
      .filter((within) => !had.includes(within))
      .map((within) => `${element.path}${within}`);
  });
  if (anew.length === 0) return null;
  const named =
    anew.slice(0, mostNamed).join(", ") + (anew.length > mostNamed ? ` and ${anew.length - mostNamed} more` : "");
  return `${named} would have a host alone (\`x.placement.dedication "strict"\`), and that needs the right ${strictRight}: an administrator of the account can give it; "preferred" needs none`;
}
const mostNamed = 5;

/** Where in an element a VM asks for a host alone: "" for itself, and below a child cell that is given its first model, its path there. */
function strictIn(element: Element): readonly string[] {
  if (element.type === "VM") return element.placement.dedication === "strict" ? [""] : [];
  return element.type === "CellController" ? [...strictBelow(element.cell as Json, "")] : [];
}
function* strictBelow(json: Json | undefined, at: string): Generator<string> {
  if (!isObject(json)) return;
  if (json["x.placement.dedication"] === "strict") yield at;
  for (const [name, value] of Object.entries(json)) yield* strictBelow(value, `${at}/${name}`);
}
