import type { Span } from "./sources/source.ts";

/** One thing that could stand at the cursor. */
export interface Completion {
  readonly label: string;
  readonly kind: "attribute" | "value" | "type" | "component" | "file" | "keyword";
  readonly replace: Span;
  readonly insert: string;
  /** The same with places to fill in, in the snippet syntax of the language server protocol. */
  readonly snippet?: string;
  /** What the letters already written are compared with, if not the label. */
  readonly filter?: string;
  /** One line. */
  readonly detail?: string;
  /** Markdown. */
  readonly docs?: string;
  /** Those with a lower one come first. */
  readonly rank: number;
}
