import { follow, referenceIn } from "../../cell/reference.ts";
import type { JsonObject } from "../../json/json.ts";
import type { Typed } from "./rows.ts";

/**
 * Where a reference of an element leads: the path of a component of the same document, or `//domain/path` of another cell.
 * @returns null: to none, or the attribute is no reference
 */
export function leadsTo(
  document: JsonObject,
  { path, written }: Pick<Typed, "path" | "written">,
  attribute: string,
): string | null {
  const text = written[attribute];
  const reference = typeof text === "string" ? referenceIn(text) : null;
  if (reference === null) return null;
  const target = follow(document, path.split("/"), reference);
  if (target.kind === "component") return target.path.join("/");
  return target.kind === "foreign" ? `//${target.domain}/${target.path}` : null;
}
