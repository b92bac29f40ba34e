import type { Span } from "../../../model/editor/sources/source.ts";

/** A text in YAML as JSON, in which what is written at the cursor stands at `offset`. */
export interface YamlAsJson {
  readonly json: string;
  readonly offset: number;
  /** It is the name of an attribute or of an element that is being written. */
  readonly isName: boolean;
  /** Where in the YAML something stands that is to be replaced in the JSON. */
  readonly replaced: (span: Span) => Span;
}
// Of blanks in a row all are taken or none (`(?! )`): a text that somebody else wrote may have thousands of them.
const line = /^( *)(?:"([^"\\]*)"|'([^'\\]*)'|([A-Za-z_][\w.+@~-]*)) *:(?: +(?! )(.*))?$/;
const nameBegun = /^( *)["']?([\w.+@~-]*)$/;
const valueBegun = /^( *)(?:"([^"\\]*)"|'([^'\\]*)'|([A-Za-z_][\w.+@~-]*)) *: +(?! )(?:(["'])([^"'\\]*)|([^"'\\#]*))$/;

/**
 * Only what components are written in is read: names with values or with what is further in. Lists, aliases and texts over several lines are
 * passed over, and nothing is offered inside of them.
 * @returns null where nothing can be said of the cursor's place
 */
export function yamlAsJson(text: string, offset: number): YamlAsJson | null {
  const lines = text.split("\n");
  const before = text.slice(0, offset).split("\n");
  const row = before.length - 1;
  const written = before[row] ?? "";
  const value = valueBegun.exec(written);
  const name = value === null ? nameBegun.exec(written) : null;
  if (name === null && value === null) return null;
  const column = (value ?? name)?.[1]?.length ?? 0;
  const rest = /^[\w.+@~/<>:-]*/.exec((lines[row] ?? "").slice(written.length))?.[0] ?? "";
  const json = new Writer();
  for (const [at, each] of lines.entries()) {
    if (at === row) {
      json.at(column);
      json.mark(name === null ? markOfValue(value) : { before: `"${name[2] ?? ""}`, after: '"' });
      continue;
    }
    const [, blanks = "", quoted, single, bare = "", of = ""] = line.exec(each.trimEnd()) ?? [];
    const key = quoted ?? single ?? bare;
    if (key === "") continue;
    json.at(blanks.length);
    const remark = of.search(/(?<=^| )#/);
    const said = remark < 0 ? of : of.slice(0, remark).trimEnd();
    const further = said === "" && isFurtherIn(lines, at, blanks.length, row, column);
    json.entry(key, further ? null : writtenOf(said));
  }
  const done = json.end();
  if (done === null) return null;
  const inText = value?.[5] !== undefined;
  const own = name === null ? (value?.[7] ?? "").length : written.length - column;
  const fixed = {
    start: offset - own,
    end: offset + rest.length + (quoteBehind(lines[row], written, rest, name) ? 1 : 0),
  };
  const shift = offset - done.offset;
  return {
    json: done.json,
    offset: done.offset,
    isName: name !== null,
    replaced: inText ? ({ start, end }) => ({ start: start + shift, end: end + shift }) : () => fixed,
  };
}
/** A name in quotes is replaced with both of them. */
const quoteBehind = (whole = "", written: string, rest: string, name: RegExpExecArray | null): boolean =>
  name !== null && /^ *["']/.test(written) && /^["']/.test(whole.slice(written.length + rest.length));

function markOfValue(value: RegExpExecArray | null): { readonly before: string; readonly after: string } {
  const [, , quoted, single, bare = "", quote, inner = ""] = value ?? [];
  const key = `${JSON.stringify(quoted ?? single ?? bare)}: `;
  return quote === undefined ? { before: key, after: "" } : { before: `${key}"${inner}`, after: '"' };
}
const writtenOf = (said: string): string => {
  if (/^(?:-?\d+|true|false)$/.test(said)) return said;
  const inner = /^"([^"\\]*)"$/.exec(said)?.[1] ?? /^'([^'\\]*)'$/.exec(said)?.[1] ?? said;
  return said === "" ? "null" : JSON.stringify(inner);
};
/** What comes next stands further in: it is a component. */
function isFurtherIn(lines: readonly string[], at: number, column: number, row: number, ofCursor: number): boolean {
  for (let next = at + 1; next < lines.length; next += 1) {
    if (next === row) return ofCursor > column;
    const each = lines[next] ?? "";
    if (!/^\s*(?:#|$)/.test(each)) return each.length - each.trimStart().length > column;
  }
  return false;
}

/** Writes components as they are entered and left. */
class Writer {
  #json = "{";
  #mark: number | null = null;
  #isFirst = true;
  /** How far in each open component's name stands. */
  readonly #open: number[] = [];

  at(column: number): void {
    while (column <= (this.#open.at(-1) ?? -1)) {
      this.#open.pop();
      this.#json += "}";
      this.#isFirst = false;
    }
    this.#column = column;
  }
  #column = 0;
  #next(): void {
    this.#json += this.#isFirst ? "" : ",";
    this.#isFirst = false;
  }
  /** @param value null: a component, which is entered */
  entry(name: string, value: string | null): void {
    this.#next();
    this.#json += `${JSON.stringify(name)}:${value ?? "{"}`;
    if (value !== null) return;
    this.#open.push(this.#column);
    this.#isFirst = true;
  }
  mark({ before, after }: { readonly before: string; readonly after: string }): void {
    this.#next();
    this.#json += before;
    this.#mark = this.#json.length;
    this.#json += after;
  }
  end(): { readonly json: string; readonly offset: number } | null {
    this.at(0);
    for (const _ of this.#open) this.#json += "}";
    return this.#mark === null ? null : { json: `${this.#json}}`, offset: this.#mark };
  }
}
