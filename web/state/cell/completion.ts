import type { Completion } from "../../../model/editor/completion.ts";
import { completionsAt } from "../../../model/editor/completions.ts";
import { type BundleView, viewBundle } from "../../../model/editor/sources/bundle-tree.ts";
import { yamlAsJson } from "./yaml-as-json.ts";

/** One thing that could stand at the cursor of a text, as a list shows it. */
export interface Suggestion {
  readonly label: string;
  /** One line; "": nothing to say. */
  readonly detail: string;
  /** What it means, as plain text; "": nothing to say. */
  readonly docs: string;
  /** What of the text is replaced. */
  readonly start: number;
  readonly end: number;
  readonly insert: string;
  /** What of `insert` is chosen afterwards, for whoever writes on. */
  readonly chosen: readonly [number, number];
}
export interface Suggested {
  readonly all: readonly Suggestion[];
  /** Hand it over the next time: what has not changed is not read again. */
  readonly view: BundleView;
}
/** Nobody looks through more. */
const mostShown = 60;

/** What could stand at an offset; none where the language is not known here, or nothing fits what is written there. */
export function suggestionsAt(main: string, text: string, offset: number, previous?: BundleView): Suggested {
  const isYaml = /\.ya?ml$/.test(main);
  const yaml = isYaml ? yamlAsJson(text, offset) : null;
  if (isYaml && yaml === null) return { all: [], view: viewBundle({ main, files: {} }) };
  const [file, read, at] = yaml === null ? [main, text, offset] : [`${main}.json`, yaml.json, yaml.offset];
  const view = viewBundle({ main: file, files: { [file]: read } }, previous);
  const found = completionsAt(view, file, at).items.map((item) => {
    const { start, end } = yaml === null ? item.replace : yaml.replaced(item.replace);
    return { item, start, end, ...(yaml?.isName === true ? insertOfName(item.label) : insertOf(item)) };
  });
  const fitting = found.flatMap((each) => {
    const { item, start } = each;
    const isLonger = offset - start > item.label.length + 1;
    const fits = isLonger ? null : fitOf(item, bareOf(text.slice(start, offset)));
    return fits === null ? [] : [{ ...each, fits }];
  });
  const all = fitting
    .toSorted((one, other) => one.fits - other.fits || one.item.rank - other.item.rank)
    .slice(0, mostShown)
    .map(({ item, start, end, insert, chosen }) => ({
      label: item.label,
      detail: item.detail ?? "",
      docs: plainOf(item.docs ?? ""),
      start,
      end,
      insert,
      chosen,
    }));
  return { all, view };
}

/** The text with it, and what is chosen of that then. */
export function completed(
  text: string,
  { start, end, insert, chosen: [from, to] }: Suggestion,
): { readonly text: string; readonly chosen: readonly [number, number] } {
  const behind = text.slice(end);
  return { text: `${text.slice(0, start)}${insert}${behind}`, chosen: [start + from, start + to] };
}

const bareOf = (written: string): string => written.replace(/^["']/, "").toLowerCase();
/** 0: it begins so; 1: a part of it does; 2: it has those letters in that order; null: it does not fit. */
function fitOf({ label }: Completion, written: string): 0 | 1 | 2 | null {
  const whole = bareOf(label);
  if (whole.startsWith(written)) return 0;
  if (whole.includes(written)) return 1;
  let at = -1;
  for (const letter of written) {
    at = whole.indexOf(letter, at + 1);
    if (at < 0) return null;
  }
  return 2;
}

const behind = (insert: string): Pick<Suggestion, "insert" | "chosen"> => ({
  insert,
  chosen: [insert.length, insert.length],
});
const insertOfName = (label: string): Pick<Suggestion, "insert" | "chosen"> =>
  behind(label.endsWith("*") ? label.slice(0, -1) : `${label}: `);
/** A snippet without its signs: its first place to fill in is what is chosen. */
function insertOf({ insert, snippet }: Completion): Pick<Suggestion, "insert" | "chosen"> {
  if (snippet === undefined) return behind(insert);
  let [written, chosen, first] = ["", null as [number, number] | null, Number.POSITIVE_INFINITY];
  for (const [part, escaped, plain, place, text = "", choice] of snippet.matchAll(
    /\\([\\$}])|\$(\d)|\$\{(\d)(?::((?:\\.|[^}\\])*)|\|((?:\\.|[^|\\])*)\|)?\}|[^\\$]+|./gs,
  )) {
    const number = plain ?? place;
    if (number === undefined) {
      written += escaped ?? part;
      continue;
    }
    const offered = choice === undefined ? text : (/^(?:\\.|[^,\\])*/.exec(choice)?.[0] ?? "");
    const shown = offered.replace(/\\(.)/g, "$1");
    const order = Number(number) === 0 ? Number.MAX_SAFE_INTEGER : Number(number);
    if (order < first) [first, chosen] = [order, [written.length, written.length + shown.length]];
    written += shown;
  }
  return { insert: written, chosen: chosen ?? [written.length, written.length] };
}

/** Markdown as it is read aloud. */
const plainOf = (docs: string): string =>
  docs
    .replace(/```[\s\S]*?```/g, "")
    .replace(/[`*]/g, "")
    .replace(/\s+/g, " ")
    .trim();
