import { type Cursor, cursorAt } from "./cursor.ts";
import { Families, type Location, occurrencesIn, pathOf } from "./occurrences.ts";
import { type BundleView, type Member, nodesOf, type Step, TreeNode } from "./sources/bundle-tree.ts";
import { includedFile, type Span } from "./sources/source.ts";

/** What the name at a cursor stands for. */
export interface Found {
  /** The part of the text that names it. */
  readonly span: Span;
  readonly member: Member | null;
  /** The component that has the member. */
  readonly owner: TreeNode | null;
  readonly node: TreeNode | null;
  /** Behind `extends`. */
  readonly prototype: boolean;
}

/** Components and attributes that are looked at for a use of a template. */
const mostNodes = 100_000;
const mostCopies = 20;

/** What the name, or the part of a reference, at the cursor stands for. Null if nothing there has a meaning. */
export function foundAt(cursor: Cursor): Found | null {
  for (const holder of cursor.holders) {
    const found = foundIn(cursor, holder);
    if (found?.member || found?.node) return found;
  }
  // What leads nowhere in a template may lead somewhere from where the template is used.
  for (const holder of cursor.holders)
    for (const copy of copiesOf(holder)) {
      const found = foundIn(cursor, copy);
      if (found?.member || found?.node) return found;
    }
  const [holder] = cursor.holders;
  return holder ? foundIn(cursor, holder) : null;
}

function foundIn(cursor: Cursor, holder: TreeNode): Found | null {
  const { writing, offset } = cursor;
  const { tree } = holder;
  const at = (steps: readonly Step[], prototype = false): Found | null => {
    const step = steps.find(({ start, end }) => start <= offset && offset <= end);
    return step ? { span: step, member: step.member, owner: step.owner, node: step.node, prototype } : null;
  };
  switch (writing.kind) {
    case "name": {
      const { attribute, name } = writing;
      if (!attribute || !name) return null;
      const index = attribute.name.indexOf(name);
      const owner =
        index === 0 && attribute.name.length > 1 ? holder.enclosing(name.text) : tree.placed(holder, attribute, index);
      const member = owner?.members.get(name.text) ?? null;
      const node = owner && member ? owner.child(name.text) : null;
      return { span: name, member, owner, node, prototype: false };
    }
    case "string": {
      const found = pathOf(writing.string);
      return found && at(tree.path(holder, found.path, found.start).steps);
    }
    case "reference":
      return writing.reference && at(tree.reference(holder, writing.reference).steps);
    case "prototype": {
      const { reference, attribute } = writing;
      const component = reference && tree.inside(holder, [attribute]);
      const [first] = reference?.steps ?? [];
      if (!component || !reference) return null;
      return (
        at(tree.prototype(component, reference).steps, true) ??
        (first ? { span: first, member: null, owner: null, node: null, prototype: true } : null)
      );
    }
    default:
      return null;
  }
}

/** Some of the components that were made from one. */
export function copiesOf(home: TreeNode): readonly TreeNode[] {
  const copies: TreeNode[] = [];
  for (const node of nodesOf(home.tree.root, mostNodes)) {
    if (node === home) continue;
    const made = madeFrom(node, home);
    if (made) copies.push(node);
    if (copies.length === mostCopies) break;
  }
  return copies;
}

function madeFrom(node: TreeNode, home: TreeNode): boolean {
  let at: TreeNode = node;
  while (at.source instanceof TreeNode) {
    if (at.source.source === home.source) return true;
    at = at.source;
  }
  return (
    !(home.source instanceof TreeNode) && [...node.members.values()].some(({ from }) => from?.source === home.source)
  );
}

/** Where what the name at an offset stands for was written; for an `#include`, the beginning of that file. */
export function definitionOf(view: BundleView, file: string, offset: number): readonly Location[] {
  const cursor = cursorAt(view, file, offset);
  if (!cursor) return [];
  const { writing } = cursor;
  if (writing.kind === "include") {
    const target = includedFile(file, writing.include.path.value);
    return target !== null && view.tree.files.has(target) ? [{ file: target, start: 0, end: 0 }] : [];
  }
  const found = foundAt(cursor);
  const declaration = found?.member?.declarations.at(-1);
  if (!found || !declaration) return [];
  const here: Location = { file: declaration.attribute.file, start: declaration.name.start, end: declaration.name.end };
  // At the name itself: what it overrides, or itself.
  const overridden = found.member?.declarations.at(-2);
  if (writing.kind !== "name" || !overridden || here.file !== file || here.start !== found.span.start) return [here];
  return [{ file: overridden.attribute.file, start: overridden.name.start, end: overridden.name.end }];
}

/** Every place that names the same attribute as the one at an offset, each once. */
export function referencesOf(
  view: BundleView,
  file: string,
  offset: number,
  { declarations }: { readonly declarations: boolean },
): readonly Location[] {
  const cursor = cursorAt(view, file, offset);
  const member = cursor && foundAt(cursor)?.member;
  if (!member) return [];
  const occurrences = occurrencesIn(view);
  if (!occurrences) return [];
  const families = new Families(occurrences.nodes);
  const family = families.of(member);
  const found = new Map<string, Location>();
  const add = ({ file: at, start, end }: Location): void => {
    found.set(`${at} ${start}`, { file: at, start, end });
  };
  for (const occurrence of occurrences.all) if (families.of(occurrence.member) === family) add(occurrence);
  for (const node of occurrences.nodes)
    for (const each of node.members.values()) {
      if (families.of(each) !== family) continue;
      for (const { attribute, name } of each.declarations) {
        if (declarations) add({ file: attribute.file, start: name.start, end: name.end });
        else found.delete(`${attribute.file} ${name.start}`);
      }
    }
  return [...found.values()].toSorted((a, b) => (a.file === b.file ? a.start - b.start : a.file < b.file ? -1 : 1));
}
