import type { AttributeSchema } from "../cell/attributes/kinds.ts";
import type { ElementType } from "../cell/cell.ts";
import { standardPrototypes } from "../cell/schema.ts";
import type { Completion } from "./completion.ts";
import { type Cursor, elementType, schemaFor } from "./cursor.ts";
import type { Member, TreeNode } from "./sources/bundle-tree.ts";
import { nodesOf, pathIn } from "./sources/bundle-tree.ts";
import { literalsOf } from "./sources/schema-text.ts";
import type { SourceAttribute, SourceString, Span } from "./sources/source.ts";

/** Components and attributes that are looked at for one completion, and references that are offered in full. */
const mostNodes = 100_000;
const mostReferences = 200;
/** Names of one component that are offered: more are sent only when further letters choose among them. */
const mostItems = 500;

/** Types of elements that an attribute may refer to; null if it takes no element. */
function wantedTypes(schema: AttributeSchema | undefined): readonly ElementType[] | null {
  if (schema?.kind.kind === "link") return schema.kind.to;
  return schema?.kind.kind === "end" ? ["Subnet", "VM", "VirtualInterface"] : null;
}

/** What could stand inside a string: the path of a reference, a value of the attribute, or a whole reference. */
export function inText(
  cursor: Cursor,
  holder: TreeNode,
  attribute: SourceAttribute,
  string: SourceString,
): readonly Completion[] {
  const { file, offset } = cursor;
  const schema = schemaFor(holder, attribute);
  const before = file.text.slice(string.inner.start, offset);
  const path = pathIn(before);
  if (path !== null) return pathCompletions(cursor, { holder, schema, string, path });
  const replace = string.inner;
  const literals = schema ? literalsOf(schema).filter((text) => text.startsWith('"')) : [];
  const types = attribute.name[0]?.text === "x.type" ? standardPrototypes : [];
  const values = [...literals.map((text) => text.slice(1, -1)), ...types].map(
    (text): Completion => ({ label: text, kind: "value", replace, insert: text, rank: 0 }),
  );
  const references = referenceTexts(holder, schema).map(
    (text): Completion => ({ label: text, kind: "component", replace, insert: text, rank: 1 }),
  );
  return [...values, ...references];
}

interface Path {
  readonly holder: TreeNode;
  readonly schema: AttributeSchema | undefined;
  readonly string: SourceString;
  /** Up to the cursor. */
  readonly path: string;
}

/** The next part of a path: elements of the right type, and what holds such. */
function pathCompletions(cursor: Cursor, { holder, schema, string, path }: Path): readonly Completion[] {
  const { offset, file, view } = cursor;
  if (path.startsWith("//")) return [];
  const slash = path.lastIndexOf("/");
  const base = path.slice(0, slash + 1);
  const partial = path.length - slash - 1;
  const rest = /^[^/>"\s]*/.exec(file.text.slice(offset, string.inner.end))?.[0].length ?? 0;
  const replace: Span = { start: offset - partial, end: offset + rest };
  const wanted = wantedTypes(schema);
  const items: Completion[] = [];
  const found = base === "" ? holder : view.tree.path(holder, base, 0).target;
  const budget = { left: mostNodes };
  const members = found?.members ?? new Map<string, Member>();
  // Of many, those whose letters have the written ones among them, as editors choose.
  const begun = members.size > mostItems ? path.slice(slash + 1) : "";
  const written = new RegExp([...begun].map((each) => each.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join(".*"), "is");
  for (const { name, attribute } of members.values()) {
    if (name.startsWith("x.") || !written.test(name)) continue;
    // There are more than anybody reads: the letters to come decide.
    if (items.length > mostItems) break;
    const child = found?.child(name) ?? null;
    const type = elementType(child);
    const fits = type !== null && type !== "Cell" && wanted?.includes(type);
    if (wanted && !fits && !(child && holds(child, wanted, budget))) continue;
    const detail = type ?? (attribute.component ? "group" : "value");
    items.push({
      label: name,
      kind: attribute.component ? "component" : "value",
      replace,
      insert: name,
      detail,
      rank: fits ? 0 : 1,
    });
  }
  if (found?.parent && /^(?:\.\.\/)*$/.test(base))
    items.push({ label: "..", kind: "keyword", replace, insert: "..", detail: "outwards", rank: 3 });
  if (base === "") {
    const whole = { start: replace.start, end: replace.end };
    for (const text of referenceTexts(holder, schema)) {
      const insert = text.slice(5, -1);
      items.push({ label: insert, kind: "component", replace: whole, insert, rank: 2 });
    }
  }
  return items;
}

/** Whether an element of one of the types stands somewhere inside. */
function holds(node: TreeNode, wanted: readonly ElementType[], budget: { left: number }): boolean {
  // Beyond the budget nothing is left out: too much is better offered than what is looked for is hidden.
  if (budget.left <= 0) return true;
  budget.left -= 1 + node.members.size;
  return node.children.some((child) => {
    const type = elementType(child);
    return (type !== null && type !== "Cell" && wanted.includes(type)) || holds(child, wanted, budget);
  });
}

/** `<ref:/…>` of every element that an attribute may refer to, those nearest to its component first. */
export function referenceTexts(holder: TreeNode, schema: AttributeSchema | undefined): readonly string[] {
  const wanted = wantedTypes(schema);
  if (!wanted) return [];
  const found: TreeNode[] = [];
  for (const node of nodesOf(holder.tree.root, mostNodes)) {
    const type = elementType(node);
    if (type !== null && type !== "Cell" && wanted.includes(type) && inCell(node)) found.push(node);
    if (found.length === mostReferences) break;
  }
  const here = holder.path;
  const shared = ({ path }: TreeNode): number => {
    let same = 0;
    while (same < here.length && here[same] === path[same]) same++;
    return same;
  };
  return found.toSorted((a, b) => shared(b) - shared(a)).map(({ path }) => `<ref:/${path.join("/")}>`);
}

function inCell(node: TreeNode): boolean {
  for (let at: TreeNode | null = node; at; at = at.parent) if (at.type === "Cell") return true;
  return false;
}
