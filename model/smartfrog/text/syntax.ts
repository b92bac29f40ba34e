import type { Position } from "../../diagnostics/diagnostic.ts";
import type { NumberValue } from "./tokens.ts";

/** The syntax tree of SmartFrog text: immutable, so that one tree can be instantiated many times. */
export type Scalar =
  | { readonly kind: "null" }
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "string"; readonly value: string }
  | ({ readonly kind: "number" } & NumberValue)
  /** Upper-case hexadecimal digits. */
  | { readonly kind: "bytes"; readonly value: string };

export type ReferencePart =
  | { readonly kind: "ROOT" }
  | { readonly kind: "PARENT" }
  | { readonly kind: "THIS" }
  | { readonly kind: "ATTRIB" | "HERE"; readonly name: string }
  /** What only a running system of HP's could answer. It can stand in what is left lazy, and beside a default. */
  | { readonly kind: "PROCESS" }
  | { readonly kind: ForeignPart; readonly name: string };

export type ForeignPart = "HOST" | "PROPERTY" | "IPROPERTY" | "ENVPROPERTY" | "IENVPROPERTY" | "CONSTANT";

export interface Reference {
  readonly parts: readonly ReferencePart[];
  readonly position: Position;
}

export type Operator =
  | "!"
  | "+"
  | "-"
  | "*"
  | "/"
  | "%"
  | "=="
  | "!="
  | ">="
  | "<="
  | "<"
  | ">"
  | "++"
  | "<>"
  | "&&"
  | "||"
  | "->"
  | "x|";

export type Expression =
  | { readonly kind: "scalar"; readonly scalar: Scalar; readonly position: Position }
  | {
      readonly kind: "component";
      readonly prototypes: readonly Prototype[];
      /** Of `extends DATA …`: the component is not to be deployed. */
      readonly data: boolean;
      readonly position: Position;
    }
  /** A function (APPLY) or an assertion (ASSERT) with its parameters. */
  | {
      readonly kind: "apply";
      readonly form: "APPLY" | "ASSERT";
      readonly when: "eager" | "LAZY" | "DATA";
      readonly prototypes: readonly Prototype[];
      readonly position: Position;
    }
  | {
      readonly kind: "reference";
      readonly reference: Reference;
      /** A lazy or data reference is left as it stands. */
      readonly when: "eager" | "LAZY" | "DATA";
      /** Of `OPTIONAL(default)`: what it is when there is nothing to refer to. */
      readonly otherwise: Expression | null;
      readonly position: Position;
    }
  | {
      readonly kind: "vector";
      readonly items: readonly Expression[];
      readonly literal: boolean;
      readonly position: Position;
    }
  | {
      readonly kind: "operation";
      readonly operator: Operator;
      readonly operands: readonly Expression[];
      readonly position: Position;
    }
  | {
      readonly kind: "choice";
      readonly cases: readonly { readonly condition: Expression; readonly value: Expression }[];
      /** Of IF; a SWITCH without a fitting case is an error. */
      readonly otherwise: Expression | null;
      readonly position: Position;
    }
  | { readonly kind: "tbd"; readonly position: Position };

/** One part of `extends A, {…}, B {…}`. */
export type Prototype =
  | { readonly kind: "reference"; readonly reference: Reference }
  | { readonly kind: "block"; readonly attributes: readonly AttributeSyntax[] };

export interface AttributeSyntax {
  /** More than one part is a placement; null is `--`, a name of its own. */
  readonly name: readonly string[] | null;
  /** Of `a:b:--`: it is placed into what the name says, under a name of its own. */
  readonly unique?: true;
  readonly namePosition: Position;
  readonly tags: readonly string[];
  readonly value: Expression;
}

/** A reference as it is written, for messages. */
export function referenceText(reference: Reference): string {
  return reference.parts
    .map((part, index) => {
      if (!("name" in part)) return part.kind;
      const usual = index === 0 ? "ATTRIB" : "HERE";
      return part.kind === usual ? part.name : `${part.kind} ${part.name}`;
    })
    .join(":");
}
