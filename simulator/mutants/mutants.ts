import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isBinaryExpression,
  isConditionalExpression,
  isPrefixUnaryExpression,
  isStringLiteralLikeNode,
  isTemplateExpression,
} from "typescript/unstable/ast/is";
import { withSources } from "./sources.ts";

/** A text in which one operator is another. */
export interface Mutant {
  /** Below the folder that was read. */
  readonly file: string;
  /** Of the operator; from 1. */
  readonly line: number;
  readonly column: number;
  /** The expression before and after, each on one line. */
  readonly before: string;
  readonly after: string;
  /** Which of several that read the same in this file; the first is 1. */
  readonly nth: number;
  /** Where the expression begins and ends in the file's text. */
  readonly from: number;
  readonly to: number;
  /** What a condition that is a comparison chooses from; null: it is none. */
  readonly choice: readonly string[] | null;
  /** The whole text of the file with it. */
  readonly text: string;
}

/**
 * What each operator becomes: that which is most easily written in its place. `??` has none, since nearly every one here stands
 * before a value that no other code can tell from the first.
 */
const others: ReadonlyMap<SyntaxKind, string> = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, "!=="],
  [SyntaxKind.ExclamationEqualsEqualsToken, "==="],
  [SyntaxKind.LessThanToken, "<="],
  [SyntaxKind.LessThanEqualsToken, "<"],
  [SyntaxKind.GreaterThanToken, ">="],
  [SyntaxKind.GreaterThanEqualsToken, ">"],
  [SyntaxKind.AmpersandAmpersandToken, "||"],
  [SyntaxKind.BarBarToken, "&&"],
  [SyntaxKind.PlusToken, "-"],
  [SyntaxKind.MinusToken, "+"],
  [SyntaxKind.AsteriskToken, "/"],
  [SyntaxKind.SlashToken, "*"],
  [SyntaxKind.PercentToken, "*"],
  [SyntaxKind.PlusEqualsToken, "-="],
  [SyntaxKind.MinusEqualsToken, "+="],
]);

/** What is put together with a text is one. */
const isText = (node: Node): boolean =>
  isStringLiteralLikeNode(node) ||
  isTemplateExpression(node) ||
  (isBinaryExpression(node) && (isText(node.left) || isText(node.right)));

/** From where to where a node's operator is replaced, and by what; null: it has none that is. */
function changeOf(node: Node, source: SourceFile): { from: number; to: number; by: string; at: number } | null {
  const whole = { from: node.getStart(source), to: node.end };
  const of = (part: Node): string => part.getText(source);
  if (isBinaryExpression(node)) {
    const { left, operatorToken, right } = node;
    const other = others.get(operatorToken.kind);
    // Of texts there is no difference.
    if (other === undefined || isText(left) || isText(right)) return null;
    const at = operatorToken.getStart(source);
    const by = `${of(left)} ${other} ${of(right)}`;
    // An assignment stands where no parentheses need to be, and all else binds as it did.
    return { ...whole, by: other.endsWith("=") && other.length === 2 && /^[+-]/.test(other) ? by : `(${by})`, at };
  }
  if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken)
    return { ...whole, by: `(${of(node.operand)})`, at: whole.from };
  if (isConditionalExpression(node)) {
    const by = `((${of(node.condition)}) ? ${of(node.whenFalse)} : ${of(node.whenTrue)})`;
    return { ...whole, by, at: node.questionToken.getStart(source) };
  }
  return null;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ");

const choiceOf = (node: Node, source: SourceFile): readonly string[] | null => {
  const above = node.parent;
  if (above === undefined || !isConditionalExpression(above) || above.condition !== node) return null;
  return [above.whenTrue, above.whenFalse].map((part) => oneLine(part.getText(source)));
};

/** All of one text, in the order of their operators. */
function mutantsOf(file: string, source: SourceFile): readonly Mutant[] {
  const found: (Mutant & { readonly at: number })[] = [];
  const starts = source.getLineStarts();
  const visit = (node: Node): void => {
    const change = changeOf(node, source);
    if (change !== null) {
      const { from, to, by, at } = change;
      const line = starts.findLastIndex((start) => start <= at);
      const text = source.text.slice(0, from) + by + source.text.slice(to);
      const before = oneLine(source.text.slice(from, to));
      const place = { file, line: line + 1, column: at - (starts[line] ?? 0) + 1, from, to };
      found.push({ ...place, before, after: oneLine(by), nth: 1, choice: choiceOf(node, source), text, at });
    }
    node.forEachChild(visit);
  };
  visit(source);
  const counts = new Map<string, number>();
  return found
    .sort((a, b) => a.at - b.at)
    .map(({ at: _, ...mutant }) => {
      const what = `${mutant.before}\n${mutant.after}`;
      const nth = (counts.get(what) ?? 0) + 1;
      counts.set(what, nth);
      return { ...mutant, nth };
    });
}

/** Of files below `root`, in their order. */
export const mutantsIn = (root: string, files: readonly string[]): readonly Mutant[] =>
  withSources(root, files, (source, file) => mutantsOf(file, source)).flat();
