import type { Cell } from "../cell/cell.ts";
import { elementPath } from "../cell/identifiers.ts";
import { type BundleView, TreeNode } from "./sources/bundle-tree.ts";
import type { SourceBlock, SourceFile } from "./sources/source.ts";
import type { Edit } from "./text-edit.ts";

/**
 * The edits that say, in texts in which elements have new paths already, which path each had: `x.movedFrom` in its own
 * block where it has one to itself, else placed there from the closest component that has. An element inside one that
 * moved goes along. A cell whose component is renamed keeps its name.
 *
 * An element that says `x.movedFrom` already is in the middle of a move, since that is to be removed once it is done: it
 * runs where that says, and so its `x.movedFrom` is left, or taken away if it is there again. With `replaced`, it is taken
 * to run under its former path in `before`.
 */
export function keptElements(
  { tree }: BundleView,
  before: Cell,
  after: Cell,
  moved: readonly (readonly [from: string, to: string])[],
  pending: "left" | "replaced",
): readonly Edit[] {
  const to = new Set(moved.map(([, path]) => path));
  const outermost = moved.filter(([, path]) => !prefixes(path).some((outer) => to.has(outer)));
  const writer = new Writer(tree.files);
  for (const [from, path] of outermost) {
    const node = at(tree.root, path);
    if (!node) continue;
    const old = before.elements.get(elementPath(from))?.movedFrom;
    if (old === undefined) writer.write(node, from);
    else if (pending === "replaced") writer.replace(node, from);
    else if (old === path) writer.remove(node);
  }
  const cell = at(tree.root, after.path);
  if (cell && before.name !== after.name && !cell.members.has("x.name")) writer.put(cell, [], "x.name", before.name);
  return writer.edits;
}

function prefixes(path: string): readonly string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

function at(root: TreeNode, path: string): TreeNode | null {
  let node: TreeNode | null = root;
  for (const part of path.split("/")) node = node?.child(part) ?? null;
  return node;
}

class Writer {
  readonly edits: Edit[] = [];
  readonly #files: ReadonlyMap<string, SourceFile>;

  constructor(files: ReadonlyMap<string, SourceFile>) {
    this.#files = files;
  }

  write(node: TreeNode, from: string): void {
    const names: string[] = [];
    // Outwards to where the text belongs to this one component and no other that is made from it.
    let holder: TreeNode | null = node;
    for (; holder?.parent && holder.source instanceof TreeNode; holder = holder.parent) names.unshift(holder.name);
    if (holder?.parent) this.put(holder, names, "x.movedFrom", from);
  }

  replace(node: TreeNode, from: string): void {
    const attribute = node.members.get("x.movedFrom")?.attribute;
    const [string] = attribute?.strings ?? [];
    if (attribute && string) this.edits.push({ file: attribute.file, ...string.inner, text: from });
  }
  remove(node: TreeNode): void {
    const attribute = node.members.get("x.movedFrom")?.attribute;
    if (attribute) this.edits.push({ file: attribute.file, start: attribute.start, end: attribute.end, text: "" });
  }

  /** Writes an attribute into a component that is written out, or through it into one inside. */
  put(holder: TreeNode, inside: readonly string[], name: string, value: string): void {
    const source = holder.source instanceof TreeNode ? null : holder.source;
    const file = this.#files.get(holder.file);
    if (!source || !file) return;
    const text = [...inside, name].join(":");
    const written =
      file.language === "json" ? `"${name}": ${JSON.stringify(value)}` : `${text} ${JSON.stringify(value)};`;
    const part = source.parts.findLast(({ kind }) => kind === "block");
    if (part?.kind === "block") {
      const last = this.edits.findIndex((edit) => edit.file === file.name && edit.start === part.block.start + 1);
      const before = this.edits[last];
      const lead = leadOf(file, part.block);
      const comma = file.language === "json" && part.block.entries.length > 0 ? "," : "";
      if (before) this.edits[last] = { ...before, text: `${before.text}${lead}${written}${comma}` };
      else
        this.edits.push({
          file: file.name,
          start: part.block.start + 1,
          end: part.block.start + 1,
          text: `${lead}${written}${comma}`,
        });
    } else this.edits.push({ file: file.name, start: source.end, end: source.end, text: ` { ${written} }` });
  }
}

/** What stands between the brace and the first attribute: a line break and its indentation, or a space. */
function leadOf({ text }: SourceFile, { start, entries }: SourceBlock): string {
  const [first] = entries;
  const between = first ? text.slice(start + 1, first.start) : "";
  const newline = between.lastIndexOf("\n");
  if (newline < 0) return " ";
  return `${text[start + 1 + newline - 1] === "\r" ? "\r\n" : "\n"}${/^[ \t]*/.exec(between.slice(newline + 1))?.[0] ?? ""}`;
}
