import type { Position } from "../diagnostics/diagnostic.ts";
import type { Expression, Prototype, Scalar } from "./text/syntax.ts";

/** A component while a document is being resolved. Its attributes keep the order in which their names came first. */
export interface Component {
  readonly kind: "component";
  readonly parent: Component | null;
  readonly name: string;
  readonly position: Position;
  /** Of `extends DATA`. */
  readonly data: boolean;
  /** What the function phase makes of a component that has an attribute `phase.function`. */
  role: "plain" | "APPLY" | "ASSERT";
  readonly prototypes: readonly Prototype[];
  readonly attributes: Map<string, Attribute>;
  /**
   * A template of nothing but plain values that this component begins as, with its `own` attributes behind or instead;
   * null: nothing is known but the attributes. What only asks for these two need not have the template's copied.
   */
  readonly template: Component | null;
  readonly own: ReadonlyMap<string, Attribute>;
  /** Attributes that are to be put elsewhere in the tree once all types are known. */
  readonly placements: Placement[];
  /**
   * `shaped`: all supertypes are merged, so its names are known. `complete`: so are those of everything inside it, so it
   * can be copied. The two states between are for finding cycles.
   */
  state: "new" | "shaping" | "shaped" | "completing" | "complete";
}

export interface Attribute {
  readonly namePosition: Position;
  readonly position: Position;
  readonly tags: readonly string[];
  /** A component, or a value that the link phase finds out. */
  readonly content: Component | Exclude<Expression, { kind: "component" }>;
  link: { state: "open" | "busy" | "failed" } | { state: "done"; value: Value };
}

export interface Placement {
  readonly name: readonly string[];
  readonly namePosition: Position;
  readonly tags: readonly string[];
  readonly value: Expression;
  /** Of a component: what is copied to where it belongs. Its types are those that are seen from where it was written. */
  readonly made: Component | null;
}

/** What a tag keeps from being linked: a reference or an expression that the attribute was given. */
export const isLeftUnlinked = ({ tags, content }: Attribute): boolean =>
  tags.includes("sfIgnoreLink") && content.kind !== "component" && content.kind !== "scalar";

/** What an attribute is after the link phase. A component may be shared: a link to it is the component itself. */
export type Value =
  | Component
  | Scalar
  | { readonly kind: "vector"; readonly items: readonly Value[] }
  /** A lazy or data reference as it was written, or one that depends on a lazy one. */
  | { readonly kind: "lazy"; readonly text: string; readonly when: Unresolved; readonly form: Lazy["form"] }
  /** What is left of an assertion that was wanted only once: nothing. */
  | { readonly kind: "nothing" };
/** `sfIgnoreLink` is the tag of an attribute that keeps its reference as it was written. */
export type Unresolved = "LAZY" | "DATA" | "sfIgnoreLink";
type Lazy = { readonly form: "reference" | "APPLY" | "ASSERT" };
