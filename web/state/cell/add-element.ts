import { isObject, type Json } from "../../../model/json/json.ts";
import { fail, ok, type Result } from "../../../model/result.ts";

/**
 * One element more in the text of a cell: everything else of it stays as it was written, with its comments. The attributes stand in a component
 * of their own at the end of the cell's.
 */
export interface NewElement {
  readonly name: string;
  /** Type of the schema. */
  readonly type: string;
  readonly attributes: { readonly [name: string]: string | number | boolean };
}

/**
 * @param main its ending says which language it is: SmartFrog, or JSON
 * @param component of the cell, as its document names it
 * @returns the whole text; a sentence where it is in another language, or the cell's component was not found
 */
export function addElement(text: string, main: string, component: string, element: NewElement): Result<string, string> {
  if (main.endsWith(".json")) return addToJson(text, component, element);
  if (!main.endsWith(".sf")) return fail(`${main} is neither SmartFrog nor JSON: write the element into it by hand`);
  const end = endOf(text, component);
  if (end === null)
    return fail(`no component \`${component} extends … { … }\` stands at the outermost level of ${main}`);
  const lineStart = text.lastIndexOf("\n", end) + 1;
  const own = text.slice(lineStart, end);
  const [before, indent] = /^\s*$/.test(own)
    ? [text.slice(0, lineStart), own]
    : [`${text.slice(0, end).trimEnd()}\n`, ""];
  const inner = `${indent}  `;
  const attributes = Object.entries(element.attributes).map(([name, value]) => ` ${name} ${JSON.stringify(value)};`);
  const line = `${inner}${element.name} extends ${element.type} {${attributes.join("")} }\n`;
  return ok(`${before}${line}${indent}${text.slice(end)}`);
}

/** Several, each by a name that stands nowhere in the text yet. @param what that has the name: "the machine" */
export function addElements(
  text: string,
  main: string,
  component: string,
  elements: readonly NewElement[],
  what: string,
): Result<string, string> {
  let now = text;
  for (const element of elements) {
    if (!/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(element.name))
      return fail("a name begins with a letter and has letters, digits, - and _, 63 at most");
    const taken = new RegExp(`(?<![\\w.-])${element.name}(?![\\w.-])`);
    if (taken.test(now)) return fail(`${element.name} stands in the text already: give ${what} another name`);
    const added = addElement(now, main, component, element);
    if (!added.ok) return added;
    now = added.value;
  }
  return ok(now);
}

function addToJson(text: string, component: string, { name, type, attributes }: NewElement): Result<string, string> {
  let document: Json;
  try {
    document = JSON.parse(text) as Json;
  } catch (error) {
    return fail(`the text is no JSON: ${(error as Error).message}`);
  }
  const cell = isObject(document) ? document[component] : undefined;
  if (!isObject(document) || !isObject(cell)) return fail(`the text has no component "${component}"`);
  if (Object.hasOwn(cell, name)) return fail(`${component} has a ${name} already`);
  const element = { "x.type": type, ...attributes };
  return ok(`${JSON.stringify({ ...document, [component]: { ...cell, [name]: element } }, null, 2)}\n`);
}

/** Where the closing brace of the outermost component of this name stands; null: there is none. */
function endOf(text: string, component: string): number | null {
  const named = new RegExp(`^${component.replace(/[.*+?^$(){}|[\]\\]/g, "\\$&")}\\s+extends\\b`);
  let [depth, isOurs] = [0, false];
  for (let at = 0; at < text.length; at += 1) {
    const skipped = pastTextAt(text, at);
    if (skipped > at) {
      at = skipped - 1;
      continue;
    }
    const sign = text[at];
    if (sign === "{") depth += 1;
    else if (sign === "}") {
      depth -= 1;
      if (depth === 0 && isOurs) return at;
    } else if (depth === 0 && /[\s;}]|^$/.test(text[at - 1] ?? "") && named.test(text.slice(at, at + 400)))
      isOurs = true;
  }
  return null;
}
/** Behind the comment or text that begins here; the same place where none does. */
function pastTextAt(text: string, at: number): number {
  const until = (end: string, from: number): number => {
    const found = text.indexOf(end, from);
    return found < 0 ? text.length : found + end.length;
  };
  if (text.startsWith("//", at)) return until("\n", at);
  if (text.startsWith("/*", at)) return until("*/", at + 2);
  if (text.startsWith("##", at)) return until("#", at + 2);
  if (text[at] !== '"') return at;
  let end = at + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return Math.min(end + 1, text.length);
}
