import type { Position } from "../../diagnostics/diagnostic.ts";

export type NumberType = "int" | "long" | "float" | "double";

/** Longs are exact over all of their 64 bits, so they are no JavaScript numbers. */
export type NumberValue =
  | {
      readonly type: Exclude<NumberType, "long">;
      readonly value: number;
      /** Of a float that was written with its suffix or worked out: it has 32 bits, and is shown with as many digits. */
      readonly single?: true;
    }
  | { readonly type: "long"; readonly value: bigint };

/** A piece of SmartFrog text. `text` is the source for words and symbols, the meaning (escapes done) for strings. */
export interface Token {
  readonly kind: "word" | "string" | "number" | "bytes" | "symbol" | "include" | "end";
  readonly text: string;
  readonly position: Position;
  readonly number: NumberValue | undefined;
}
