import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Node, type SourceFile, SyntaxKind } from "typescript/unstable/ast";
import {
  isBinaryExpression,
  isCallExpression,
  isNewExpression,
  isStringLiteralLikeNode,
  isTemplateExpression,
} from "typescript/unstable/ast/is";
import { withSources } from "../../simulator/mutants/sources.ts";

/*
 * Every sentence that the sources give as a hint, read out of their trees: what a property or a variable `hint` is given, what
 * stands where a parameter `hint` is, and what functions named after it return.
 */
const root = join(import.meta.dirname, "../..");

export interface HintSentence {
  /** Where it stands: file and line. */
  readonly at: string;
  readonly text: string;
  /** What it is when it is said: whatever is filled in may be anything. */
  readonly says: RegExp;
}

const namedAs = (node: Node | undefined): string => {
  const { text, name } = (node ?? {}) as { readonly text?: string; readonly name?: Node };
  return text ?? (name === undefined ? "" : namedAs(name));
};
interface Named {
  readonly name?: Node;
  readonly initializer?: Node;
  readonly body?: Node;
  readonly parameters?: readonly Node[];
}

/** Of functions by their names: at which place `hint` is; -1: at none. */
type Places = Map<string, number>;
function placesIn(source: SourceFile, places: Places): Places {
  const visit = (node: Node): void => {
    const { parameters } = node as Named;
    if (parameters !== undefined) {
      const isNew = node.kind === SyntaxKind.Constructor;
      const own = namedAs((node as Named).name);
      const name = isNew || own === "" ? namedAs((node.parent as Named).name) : own;
      const at = parameters.findIndex((each) => namedAs((each as Named).name) === "hint");
      if (name !== "") places.set(name, Math.max(at, places.get(name) ?? -1));
    }
    node.forEachChild(visit);
  };
  visit(source);
  return places;
}

/** Parts of a text between what is filled in; null: it is none. Texts that are put together are one. */
function partsOf(node: Node): readonly string[] | null {
  if (isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
  if (isStringLiteralLikeNode(node)) return [node.text];
  if (!isBinaryExpression(node) || node.operatorToken.kind !== SyntaxKind.PlusToken) return null;
  const [left, right] = [partsOf(node.left), partsOf(node.right)];
  if (left === null || right === null) return null;
  return [...left.slice(0, -1), `${left.at(-1)}${right[0]}`, ...right.slice(1)];
}

/** What stands at the end of a sentence or before one begins with a space, or ends with one. */
function patternOf(parts: readonly string[]): RegExp {
  const pattern = parts.map((part) => part.replace(/[.*+?^$()|[\]\\{}]/g, "\\$&")).join("[^]*");
  return new RegExp(`${pattern.startsWith(" ") ? "" : "^"}${pattern}${pattern.endsWith(" ") ? "" : "$"}`);
}

function sentencesOf(source: SourceFile, file: string, everywhere: Places): readonly HintSentence[] {
  const found: HintSentence[] = [];
  const starts = source.getLineStarts();
  const here = placesIn(source, new Map());
  const take = (node: Node): void => {
    if (isCallExpression(node)) return;
    const parts = partsOf(node);
    if (parts === null) return void node.forEachChild(take);
    if (parts.join("").replace(/[^a-z]/g, "").length <= 5 || !/ /.test(parts.join(""))) return;
    const start = node.getStart(source);
    const line = starts.findLastIndex((each) => each <= start) + 1;
    found.push({ at: `${file}:${line}`, text: parts.join("…"), says: patternOf(parts) });
  };
  const visit = (node: Node): void => {
    const { name, initializer, body } = node as Named;
    if (namedAs(name) === "hint" && initializer !== undefined) take(initializer);
    if (body !== undefined && /^hint|Hint$/.test(namedAs(name))) take(body);
    if (initializer !== undefined && /[a-z]Hint$/.test(namedAs(name))) take(initializer);
    if (isCallExpression(node) || isNewExpression(node)) {
      const called = namedAs(node.expression);
      const isOfThis = /^this\./.test(node.expression.getText(source)) || isNewExpression(node);
      const at = here.get(called) ?? (isOfThis ? everywhere.get(called) : undefined) ?? -1;
      const given = at < 0 ? undefined : node.arguments?.[at];
      if (given !== undefined) take(given);
    }
    node.forEachChild(visit);
  };
  visit(source);
  return found;
}

/** Of the sources below these folders. */
export function hintSentences(folders: readonly string[]): readonly HintSentence[] {
  const files = folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
    )
    .filter((name) => name.endsWith(".ts") && !/\.(test|testing|fuzz)\.ts$/.test(name))
    .sort();
  const everywhere: Places = new Map();
  withSources(root, files, (source) => placesIn(source, everywhere));
  return withSources(root, files, (source, file) => sentencesOf(source, file, everywhere)).flat();
}
