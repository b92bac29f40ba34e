import { type BundleView, type Declaration, type Member, pathIn, type Step, TreeNode } from "./sources/bundle-tree.ts";
import {
  includedFile,
  type SourceAttribute,
  type SourceBlock,
  type SourceString,
  type Span,
} from "./sources/source.ts";

/** A place in one of the texts. */
export interface Location extends Span {
  readonly file: string;
}

/** A name as it is written somewhere, with what it stands for there. */
export interface Occurrence extends Location {
  readonly member: Member;
  /** Written in quotes, which belong to the span. */
  readonly quoted: boolean;
}

/** Components and attributes that are looked into: a bundle is read whole, but not without end. */
const mostAttributes = 500_000;

/** Where the path in a reference string begins; null if the string is none, or is written with escapes. */
export function pathOf({
  value,
  plain,
  inner,
}: SourceString): { readonly path: string; readonly start: number } | null {
  const path = plain ? pathIn(value) : null;
  return path === null ? null : { path, start: inner.start + value.indexOf("ref:") + "ref:".length };
}

/**
 * Every place of a bundle's texts where an attribute's name stands in a reference or placement, as often as a template
 * that holds it is used. Null if the bundle is too large for that.
 */
export function occurrencesIn({
  tree,
}: BundleView): { readonly all: readonly Occurrence[]; readonly nodes: readonly TreeNode[] } | null {
  const all: Occurrence[] = [];
  const nodes: TreeNode[] = [];
  const open: TreeNode[] = [tree.root];
  let looked = 0;
  for (let node = open.pop(); node; node = open.pop()) {
    nodes.push(node);
    looked += 1 + node.members.size;
    if (looked > mostAttributes || !tree.whole) return null;
    const scope = node;
    for (const attribute of attributesOf(scope)) {
      valueOccurrences(scope, attribute, all);
      const hidden = hiddenComponent(scope, attribute);
      if (hidden) open.push(hidden);
    }
    for (const child of scope.children) open.push(child);
  }
  return { all, nodes };
}

/** What a component has from its templates, and all that is written in its own blocks. */
function attributesOf(node: TreeNode): Iterable<SourceAttribute> {
  const found = new Set<SourceAttribute>();
  for (const { attribute } of node.members.values()) found.add(attribute);
  if (node.source instanceof TreeNode) return found;
  const add = (block: SourceBlock, file: string, including: readonly string[]): void => {
    for (const entry of block.entries) {
      if (entry.kind === "attribute") found.add(entry);
      else {
        const target = includedFile(file, entry.path.value);
        const included = target === null ? undefined : node.tree.files.get(target);
        if (included && !including.includes(included.name))
          add(included.top, included.name, [...including, included.name]);
      }
    }
  };
  for (const part of node.source.parts) if (part.kind === "block") add(part.block, node.file, []);
  return found;
}

/** A component that is written here and overridden further on, or placed elsewhere: it is read all the same. */
function hiddenComponent(node: TreeNode, attribute: SourceAttribute): TreeNode | null {
  const name = attribute.name.at(-1)?.text ?? "";
  if (!attribute.component || attribute.name.length === 0) return null;
  if (attribute.name.length === 1 && node.members.get(name)?.attribute === attribute) return null;
  return node.tree.inside(node, [attribute]);
}

function valueOccurrences(node: TreeNode, attribute: SourceAttribute, into: Occurrence[]): void {
  const { tree } = node;
  const { file } = attribute;
  const add = (steps: readonly Step[], quoted: (step: Step) => boolean): void => {
    for (const step of steps)
      if (step.member) into.push({ file, start: step.start, end: step.end, member: step.member, quoted: quoted(step) });
  };
  for (const reference of attribute.references)
    add(tree.reference(node, reference).steps, (step) =>
      reference.steps.some((each) => each.start === step.start && each.quoted),
    );
  for (const string of attribute.strings) {
    const found = pathOf(string);
    if (found) add(tree.path(node, found.path, found.start).steps, () => false);
  }
  const [name] = attribute.name;
  // A template's own templates were found where it was written.
  if (attribute.component && name && node.members.get(name.text)?.from == null) {
    const child = tree.inside(node, [attribute]);
    for (const part of attribute.component.parts)
      if (part.kind === "reference" && child) add(tree.prototype(child, part.reference).steps, () => false);
  }
  if (attribute.name.length > 1) placementOccurrences(node, attribute, into);
}

function placementOccurrences(node: TreeNode, attribute: SourceAttribute, into: Occurrence[]): void {
  for (const [index, { text, start, end, quoted }] of attribute.name.entries()) {
    const owner = index === 0 ? node.enclosing(text) : node.tree.placed(node, attribute, index);
    const member = owner?.members.get(text);
    if (member) into.push({ file: attribute.file, start, end, member, quoted });
  }
}

const keyOf = ({ attribute, name }: Declaration): string => `${attribute.file} ${name.start}`;

/**
 * Which places write the same attribute: what overrides a template's attribute is the same as that, in each component
 * that is made from the template.
 */
export class Families {
  readonly #leader = new Map<string, string>();

  constructor(nodes: readonly TreeNode[]) {
    for (const node of nodes)
      for (const { declarations } of node.members.values()) {
        const [first, ...others] = declarations;
        if (first) for (const other of others) this.#join(keyOf(first), keyOf(other));
      }
  }
  #find(key: string): string {
    let at = key;
    for (let next = this.#leader.get(at); next !== undefined; next = this.#leader.get(at)) at = next;
    return at;
  }
  #join(a: string, b: string): void {
    const [left, right] = [this.#find(a), this.#find(b)];
    if (left !== right) this.#leader.set(right, left);
  }
  /** Equal for members that are the same attribute. */
  of({ declarations }: Member): string {
    const [first] = declarations;
    return first ? this.#find(keyOf(first)) : "";
  }
}
