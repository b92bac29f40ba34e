import type { Position } from "../diagnostic.ts";

export type NumberType = "int" | "long" | "float" | "double";

/** A piece of SmartFrog text. `text` is the source for words and symbols, the meaning (escapes done) for strings. */
export interface Token {
  readonly kind: "word" | "string" | "number" | "bytes" | "symbol" | "include" | "end";
  readonly text: string;
  readonly position: Position;
  readonly number: { readonly type: NumberType; readonly value: number } | undefined;
}
