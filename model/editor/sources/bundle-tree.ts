import type { Bundle } from "../../cell/cell.ts";
import { standardPrototypes } from "../../cell/schema.ts";
import { limits } from "../../limits.ts";
import { reparsed } from "../reparse.ts";
import { jsonSource } from "./json-source.ts";
import { smartFrogSource } from "./smartfrog-source.ts";
import {
  attributesIn,
  includedFile,
  type Name,
  type Place,
  type SourceAttribute,
  type SourceBlock,
  type SourceComponent,
  type SourceFile,
  type SourceReference,
} from "./source.ts";

/*
 * What the texts of a bundle mean together, as far as an editor asks: which names a component has, its own and those of
 * its templates, and what a name at some place stands for. It follows the type and place phases over source trees, looks
 * only at what is asked for, and remembers every place where a name of the same attribute was written, which the phases
 * need not. Values are not worked out here.
 */

/** One place where the name of an attribute is written. */
export interface Declaration {
  readonly attribute: SourceAttribute;
  readonly name: Name;
}

/** An attribute of a component. */
export interface Member {
  readonly name: string;
  /** What is in force: the last one written. */
  readonly attribute: SourceAttribute;
  /** Every place that writes this attribute, those that are overridden included, the one in force last. */
  readonly declarations: readonly Declaration[];
  /** The component that it was inherited from. */
  readonly from: TreeNode | null;
}

/** Levels of links that are followed from one to the next. */
const mostLinks = 50;
/** Components that are made of one bundle's texts. */
const mostComponents = 250_000;
/** Templates that are made from one another. */
const mostTemplates = 300;

/** A component of the document that the texts make, or of one of its templates. */
export class TreeNode {
  readonly tree: BundleTree;
  readonly parent: TreeNode | null;
  readonly name: string;
  readonly depth: number;
  /** What was written, or what this is a copy of. */
  readonly source: SourceComponent | TreeNode;
  readonly file: string;
  #members: Map<string, Member> | null = null;
  #prototype: string | null = null;
  /** Attributes of its block that belong elsewhere, and those of its templates, which are placed for each copy again. */
  readonly #placements: SourceAttribute[] = [];
  readonly #children = new Map<string, TreeNode>();

  constructor(tree: BundleTree, parent: TreeNode | null, at: Pick<TreeNode, "name" | "source" | "file">) {
    this.tree = tree;
    this.parent = parent;
    this.name = at.name;
    this.source = at.source;
    this.file = at.file;
    this.depth = parent ? parent.depth + 1 : 0;
  }

  get path(): readonly string[] {
    return this.parent ? [...this.parent.path, this.name] : [];
  }
  /** Attributes by name, in the order in which their names came first. */
  get members(): ReadonlyMap<string, Member> {
    if (this.#members) return this.#members;
    const members = new Map<string, Member>();
    this.#members = members;
    if (this.source instanceof TreeNode) this.#inherit(this.source, members);
    else
      for (const part of this.source.parts) {
        if (part.kind === "block") this.#add(part.block, { file: this.file, open: [], into: members });
        else this.#extend(part.reference, members);
      }
    for (const attribute of this.#placements) this.#place(attribute);
    return this.#members;
  }
  /** `VM` and the like; a name that is no type as it is written; null if it has none. */
  get type(): string | null {
    const written = this.members.get("x.type")?.attribute;
    if (written?.sole === "string") return written.strings[0]?.value ?? null;
    return this.#prototype;
  }

  child(name: string): TreeNode | null {
    const known = this.#children.get(name);
    if (known) return known;
    const member = this.members.get(name);
    if (!member?.attribute.component || this.depth > limits.nesting) return null;
    const source = member.from ? member.from.child(name) : member.attribute.component;
    if (source === null || !this.tree.grow()) return null;
    const child = new TreeNode(this.tree, this, { name, source, file: member.attribute.file });
    this.#children.set(name, child);
    return child;
  }
  get children(): readonly TreeNode[] {
    return [...this.members.keys()].flatMap((name) => this.child(name) ?? []);
  }
  /** The closest component from here outwards that has an attribute of that name. */
  enclosing(name: string): TreeNode | null {
    for (let at: TreeNode | null = this; at; at = at.parent) if (at.members.has(name)) return at;
    return null;
  }
  /** An attribute that a placement elsewhere puts here. */
  put(attribute: SourceAttribute, name: Name): void {
    const members = new Map(this.members);
    set(members, name.text, { attribute, name });
    this.#members = members;
    this.#children.delete(name.text);
  }

  #extend(reference: SourceReference, into: Map<string, Member>): void {
    const [only, ...more] = reference.steps;
    const { target } = this.tree.prototype(this, reference);
    if (target) this.tree.deeper(() => this.#inherit(target, into));
    else if (only && more.length === 0 && standardPrototypes.includes(only.text)) this.#prototype = only.text;
  }
  #inherit(from: TreeNode, into: Map<string, Member>): void {
    for (const [name, member] of from.members) {
      const before = into.get(name)?.declarations ?? [];
      into.set(name, { ...member, from, declarations: merged(before, member.declarations) });
    }
    this.#placements.push(...from.#placements);
    this.#prototype = from.#prototype ?? this.#prototype;
  }
  #add(block: SourceBlock, to: Adding): void {
    for (const entry of block.entries) {
      if (entry.kind === "include") {
        const target = includedFile(to.file, entry.path.value);
        const included = target === null ? undefined : this.tree.files.get(target);
        if (included && !to.open.includes(included.name) && to.open.length < limits.includeDepth)
          this.#add(included.top, { ...to, file: included.name, open: [...to.open, included.name] });
      } else if (entry.name.length > 1) this.#placements.push(entry);
      else {
        const [name] = entry.name;
        if (name) set(to.into, name.text, { attribute: entry, name });
      }
    }
  }
  #place(attribute: SourceAttribute): void {
    const name = attribute.name.at(-1);
    const target = this.tree.placed(this, attribute, attribute.name.length - 1);
    if (target && name) target.put(attribute, name);
  }
}

interface Adding {
  readonly file: string;
  /** Files that are being included here. */
  readonly open: readonly string[];
  readonly into: Map<string, Member>;
}

const merged = (before: readonly Declaration[], more: readonly Declaration[]): readonly Declaration[] =>
  before.length === 0 || before === more ? more : [...before.filter((each) => !more.includes(each)), ...more];

function set(into: Map<string, Member>, name: string, { attribute, name: written }: Declaration): void {
  const before = into.get(name)?.declarations ?? [];
  into.set(name, { name, attribute, declarations: [...before, { attribute, name: written }], from: null });
}

/** What one step of a reference leads to: a component, or an attribute of one. */
export interface Step {
  readonly start: number;
  readonly end: number;
  readonly member: Member | null;
  /** The component that the member belongs to. */
  readonly owner: TreeNode | null;
  /** The component that is there. */
  readonly node: TreeNode | null;
}
export interface Followed {
  readonly steps: readonly Step[];
  /** The component at the end, if there is one. */
  readonly target: TreeNode | null;
}

export class BundleTree {
  readonly main: string;
  readonly files: ReadonlyMap<string, SourceFile>;
  readonly root: TreeNode;

  #components = 0;
  /** Whether one more component may be made; of templates that double there is no end. */
  grow(): boolean {
    return ++this.#components <= mostComponents;
  }
  get whole(): boolean {
    return this.#components <= mostComponents;
  }

  #depth = 0;
  /** A template of a template: beyond a chain of so many there is no telling, and no stack. */
  deeper(inherit: () => void): void {
    if (this.#depth >= mostTemplates) return;
    this.#depth++;
    try {
      inherit();
    } finally {
      this.#depth--;
    }
  }

  constructor(main: string, files: ReadonlyMap<string, SourceFile>) {
    this.main = main;
    this.files = files;
    const top = files.get(main)?.top;
    const source: SourceComponent = { parts: top ? [{ kind: "block", block: top }] : [], start: 0, end: 0 };
    this.root = new TreeNode(this, null, { name: "", source, file: main });
    // What is placed is there before anybody looks at the place.
    for (const file of files.values())
      for (const chain of file.placing ? placingIn(file.top) : [])
        for (const top of this.tops(file.name)) void this.inside(top, chain)?.members;
  }

  /** The component that the first `count` names of a placement lead to. */
  placed(node: TreeNode, { name }: SourceAttribute, count: number): TreeNode | null {
    const [first, ...rest] = name.slice(0, count);
    if (!first) return node;
    let target = node.enclosing(first.text)?.child(first.text) ?? null;
    for (const { text } of rest) target = target?.child(text) ?? null;
    return target;
  }

  /** What a name behind `extends` means, seen from around the component. */
  prototype(component: TreeNode, reference: SourceReference): Followed {
    return this.#walk(component.parent ?? component, reference, () => null);
  }
  /** What a reference in a value of the component leads to; links on the way are followed. */
  reference(holder: TreeNode, reference: SourceReference, links = 0): Followed {
    return this.#walk(holder, reference, (owner, member) => this.value(owner, member, links + 1));
  }

  /** The component that an attribute is or links to. */
  value(owner: TreeNode, member: Member, links = 0): TreeNode | null {
    const { attribute, name } = member;
    if (attribute.component) return owner.child(name);
    if (links > mostLinks) return null;
    const [reference] = attribute.references;
    if (attribute.sole === "reference" && reference) return this.reference(owner, reference, links).target;
    const [text] = attribute.strings;
    const path = attribute.sole === "string" && text ? pathIn(text.value) : null;
    return path === null ? null : this.path(owner, path, 0, links).target;
  }

  #walk(
    from: TreeNode,
    { steps }: SourceReference,
    link: (owner: TreeNode, member: Member) => TreeNode | null,
  ): Followed {
    let node: TreeNode | null = from;
    const found: Step[] = [];
    for (const [index, { kind, text, start, end }] of steps.entries()) {
      const at: TreeNode | null = node;
      let [owner, member]: [TreeNode | null, Member | null] = [null, null];
      if (kind === "ROOT") node = this.root;
      else if (kind === "PARENT") node = at?.parent ?? null;
      else if (kind === "foreign") node = null;
      else if (kind !== "THIS") {
        owner = kind === "HERE" ? at : (at?.enclosing(text) ?? null);
        member = owner?.members.get(text) ?? null;
        node =
          owner && member ? (owner.child(text) ?? (member.attribute.component ? null : link(owner, member))) : null;
      }
      found.push({ start, end, member, owner, node });
      if (node === null && index < steps.length - 1) return { steps: found, target: null };
    }
    return { steps: found, target: node };
  }

  /** What a path of `<ref:…>` leads to from the component that holds it; `start` is where the path begins in its text. */
  path(holder: TreeNode, path: string, start: number, links = 0): Followed {
    if (path.startsWith("//")) return { steps: [], target: null };
    let node: TreeNode | null = path.startsWith("/") ? this.root : holder;
    const steps: Step[] = [];
    for (const { 0: part, index } of path.matchAll(/[^/]+/g)) {
      const place = { start: start + index, end: start + index + part.length };
      const at: TreeNode | null = node;
      if (at === null) return { steps, target: null };
      if (part === "." || part === "..") {
        node = part === "." ? at : at.parent;
        steps.push({ ...place, member: null, owner: null, node });
        continue;
      }
      const member = at.members.get(part) ?? null;
      node = member && this.value(at, member, links + 1);
      steps.push({ ...place, member, owner: member ? at : null, node });
      if (!member) return { steps, target: null };
    }
    return { steps, target: node };
  }

  /** Components that hold what stands at a place: more than one if its file is included in several. */
  holders(place: Place): readonly TreeNode[] {
    return this.tops(place.file.name).flatMap((top) => this.inside(top, place.chain) ?? []);
  }

  /** From the component that holds a file's text inwards. */
  inside(top: TreeNode, chain: readonly SourceAttribute[]): TreeNode | null {
    let node: TreeNode | null = top;
    for (const attribute of chain) {
      const owner: TreeNode | null = node && this.placed(node, attribute, attribute.name.length - 1);
      const name = attribute.name.at(-1)?.text ?? "";
      if (!owner || !attribute.component) return null;
      const source = attribute.component;
      // What is overridden later is written here all the same.
      const inForce: TreeNode | null = owner.members.get(name)?.attribute === attribute ? owner.child(name) : null;
      node = inForce ?? new TreeNode(this, owner, { name, source, file: attribute.file });
    }
    return node;
  }

  /** Components whose attributes the text of a file is. */
  tops(file: string, open: readonly string[] = []): readonly TreeNode[] {
    if (file === this.main) return [this.root];
    if (open.includes(file)) return [];
    return [...this.files.values()].flatMap((by) =>
      (by.text.includes("#include") ? includesIn(by.top) : []).flatMap(({ path, chain }) =>
        includedFile(by.name, path) === file
          ? this.tops(by.name, [...open, file]).flatMap((top) => this.inside(top, chain) ?? [])
          : [],
      ),
    );
  }
}

const placing = new WeakMap<SourceBlock, readonly (readonly SourceAttribute[])[]>();
/** The attributes around each component that has something to place. */
function placingIn(top: SourceBlock): readonly (readonly SourceAttribute[])[] {
  const known = placing.get(top);
  if (known) return known;
  const found: (readonly SourceAttribute[])[] = [];
  for (const { attribute, around } of attributesIn(top)) if (attribute.name.length > 1) found.push(around);
  placing.set(top, found);
  return found;
}

interface Inclusion {
  readonly path: string;
  readonly chain: readonly SourceAttribute[];
}
const inclusions = new WeakMap<SourceBlock, readonly Inclusion[]>();
/** All `#include` of a text, with the attributes around each. */
function includesIn(top: SourceBlock): readonly Inclusion[] {
  const known = inclusions.get(top);
  if (known) return known;
  const found: Inclusion[] = [];
  const visit = (block: SourceBlock, chain: readonly SourceAttribute[]): void => {
    for (const entry of block.entries) {
      if (entry.kind === "include") found.push({ path: entry.path.value, chain });
      else
        for (const part of entry.component?.parts ?? [])
          if (part.kind === "block") visit(part.block, [...chain, entry]);
    }
  };
  visit(top, []);
  inclusions.set(top, found);
  return found;
}

/** A component and all inside it, the outer ones first, up to a number of attributes that all of them have. */
export function* nodesOf(root: TreeNode, most: number): Generator<TreeNode> {
  const open = [root];
  let looked = 0;
  for (const node of open) {
    if (looked >= most) return;
    yield node;
    looked += 1 + node.members.size;
    if (looked < most) for (const child of node.children) open.push(child);
  }
}

/** The path of `<ref:…>` or `ref:…`, also while its end is missing; null if the text is no reference. */
export function pathIn(text: string): string | null {
  const begun = /^(?:<\s*ref:|ref:)/.exec(text)?.[0];
  return begun === undefined ? null : text.slice(begun.length).replace(/>$/, "");
}

/** The texts of a bundle with the trees made of them. */
export interface BundleView {
  readonly bundle: Bundle;
  readonly tree: BundleTree;
}

/** Reads the texts of a bundle. Those that are the same in `previous` are not read again. */
export function viewBundle(bundle: Bundle, previous?: BundleView): BundleView {
  const files = new Map<string, SourceFile>();
  for (const [name, text] of Object.entries(bundle.files)) {
    const known = previous?.tree.files.get(name);
    if (known?.text === text) files.set(name, known);
    else if (name.endsWith(".json")) files.set(name, jsonSource(name, text));
    else if (name.endsWith(".sf")) files.set(name, (known && reparsed(known, text)) ?? smartFrogSource(name, text));
  }
  return { bundle, tree: new BundleTree(bundle.main, files) };
}
