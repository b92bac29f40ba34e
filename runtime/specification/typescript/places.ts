import { type Place, pointerPart } from "../../../model/cell/evaluated.ts";
import type { Position, RelatedPosition } from "../../../model/diagnostics/diagnostic.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { BuilderSite } from "./builder.ts";
import { type CallSite, type KeySite, scan } from "./scan.ts";

/** One text with what can be seen in it. Offsets are of its characters, as in `Position`. */
class SourceText {
  readonly #text: string;
  readonly #starts: readonly number[];
  readonly #calls: readonly CallSite[];
  /** Names that the text gave to functions of the builder. */
  readonly #aliases: ReadonlyMap<string, string>;

  constructor(text: string, functions: ReadonlySet<string>) {
    this.#text = text;
    const starts = [0];
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
    this.#starts = starts;
    const renamed = [...text.matchAll(/\b([A-Za-z]+)\s+as\s+([\w$]+)/g)].map(
      ([, name = "", alias = ""]) => [alias, name] as const,
    );
    this.#aliases = new Map(renamed.filter(([, name]) => functions.has(name)));
    this.#calls = scan(text, new Set([...functions, ...this.#aliases.keys()])).calls;
  }

  /** QuickJS counts columns in bytes, from 1, but on the first line from 0. */
  offset(line: number, column: number): number | null {
    const start = this.#starts[line - 1];
    if (start === undefined) return null;
    const text = this.#text.slice(start, (this.#starts[line] ?? this.#text.length + 1) - 1);
    const bytes = Math.max(0, line === 1 ? column : column - 1);
    // Reading bytes as characters is right where there are no others.
    return (
      start +
      (/^[\0-\x7f]*$/.test(text) ? Math.min(bytes, text.length) : Buffer.from(text).toString("utf8", 0, bytes).length)
    );
  }

  /** The innermost call of that function around a place: what QuickJS says is where its last argument was worked out. */
  call(name: string, offset: number): CallSite | null {
    let [low, high] = [0, this.#calls.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#calls[middle]?.start ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    for (let at = low - 1; at >= Math.max(0, low - 1000); at--) {
      const call = this.#calls[at];
      if (call && offset < call.end && (call.name === name || this.#aliases.get(call.name) === name)) return call;
    }
    return null;
  }

  /** Line, column and length of a range; no longer than its line. */
  range(start: number, end: number): readonly [line: number, column: number, length: number] {
    let [low, high] = [0, this.#starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= start) low = middle + 1;
      else high = middle;
    }
    const lineEnd = (this.#starts[low] ?? this.#text.length + 1) - 1;
    return [low, start - (this.#starts[low - 1] ?? 0) + 1, Math.max(1, Math.min(end, lineEnd) - start)];
  }

  skipSpace(from: number): number {
    let at = from;
    while (/\s/.test(this.#text[at] ?? "")) at++;
    return at;
  }
  wordAt(offset: number): number {
    return offset + (/^[\p{ID_Continue}$]+/u.exec(this.#text.slice(offset, offset + 100))?.[0].length ?? 1);
  }
}

export interface Frame {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Finds where in an author's texts something happened. */
export class Places {
  readonly #texts: Readonly<Record<string, string>>;
  readonly #functions: ReadonlySet<string>;
  readonly #sources = new Map<string, SourceText>();
  readonly #calls = new Map<
    string,
    { readonly file: string; readonly source: SourceText; readonly call: CallSite } | null
  >();
  readonly files: readonly string[];

  constructor(texts: Readonly<Record<string, string>>, functions: ReadonlySet<string>) {
    this.#texts = texts;
    this.#functions = functions;
    this.files = Object.keys(texts);
  }

  /**
   * Frames of a stack that lie in the author's texts, innermost first. Names of functions are the author's, so a line may
   * say what its author likes; all it can do is to show another place of the same texts.
   */
  frames(stack: string): readonly Frame[] {
    return stack.split("\n").flatMap((line) => {
      const match = /^\s+at (?:.* \()?([^()]+):(\d+):(\d+)\)?$/.exec(line);
      const [, file = "", row, column] = match ?? [];
      return Object.hasOwn(this.#texts, file) ? [{ file, line: Number(row), column: Number(column) }] : [];
    });
  }

  position({ file, line, column }: Frame): Position | undefined {
    const source = this.#source(file);
    const offset = source?.offset(line, column) ?? null;
    if (!source || offset === null) return undefined;
    return this.#positionOf(file, source.range(offset, source.wordAt(offset)));
  }
  /** Where a call of a function of the builder stands. */
  callPosition(stack: string, name: string): Position | undefined {
    const found = this.#call(stack, name);
    if (found)
      return this.#positionOf(
        found.file,
        found.source.range(found.call.start, found.call.start + found.call.name.length),
      );
    const [frame] = this.frames(stack);
    return frame && this.position(frame);
  }
  /** The calls that led to a frame, from the inside outwards. */
  chain(frames: readonly Frame[]): readonly RelatedPosition[] {
    return frames.slice(0, 8).flatMap((frame) => {
      const position = this.position(frame);
      return position ? [{ message: "called from here", position }] : [];
    });
  }
  textPosition(file: string, start: number, end: number): Position | undefined {
    const source = this.#source(file);
    return source && this.#positionOf(file, source.range(start, end));
  }

  /** Places of a document: of every component that was made by a call, and of its attributes that are written in it. */
  of(document: Json, sites: readonly BuilderSite[]): Readonly<Record<string, Place>> {
    const byPointer = new Map(sites.map((site) => [site[0], site]));
    const places: Record<string, Place> = Object.create(null);
    const shared = new Map<KeySite, Place>();
    const keyPlace = (file: string, source: SourceText, site: KeySite): Place => {
      const known = shared.get(site);
      if (known) return known;
      const name = source.range(site.start, site.end);
      const place: Place = [
        this.files.indexOf(file),
        ...name,
        ...source.range(source.skipSpace(site.valueStart), site.valueEnd),
      ];
      shared.set(site, place);
      return place;
    };
    type Holder = {
      readonly file: string;
      readonly source: SourceText;
      readonly call: CallSite;
      readonly key: string;
    } | null;
    const visit = (json: Json, pointer: string, holder: Holder): void => {
      if (typeof json !== "object" || json === null) return;
      const site = byPointer.get(pointer);
      const found = site ? this.#call(site[1], site[2]) : null;
      const position = site && this.callPosition(site[1], site[2]);
      if (position) {
        const at = [position.line, position.column, position.length] as const;
        places[pointer] = [this.files.indexOf(position.file), ...at, ...at];
      }
      const cell = site?.[2] === "cell";
      for (const [name, value] of Object.entries(json as JsonObject)) {
        const inside = `${pointer}${pointerPart(name)}`;
        const attribute = name.startsWith("x.");
        const key = !site
          ? holder && `${holder.key}/${name}`
          : attribute
            ? `${cell ? 2 : 0}/${name.slice(2).replace(".", "/")}`
            : `1/${name}`;
        const base = site ? found : holder;
        const keySite = base && key !== null ? base.call.keys.get(key) : undefined;
        if (base && keySite) places[inside] = keyPlace(base.file, base.source, keySite);
        visit(value, inside, base && key !== null ? { ...base, key } : null);
      }
    };
    visit(document, "", null);
    return places;
  }

  #positionOf(file: string, [line, column, length]: readonly [number, number, number]): Position {
    return { file, line, column, length };
  }
  #source(file: string): SourceText | undefined {
    const text = Object.hasOwn(this.#texts, file) ? this.#texts[file] : undefined;
    const known = this.#sources.get(file);
    if (known || text === undefined) return known;
    const source = new SourceText(text, this.#functions);
    this.#sources.set(file, source);
    return source;
  }
  #call(
    stack: string,
    name: string,
  ): { readonly file: string; readonly source: SourceText; readonly call: CallSite } | null {
    const key = `${name} ${stack}`;
    const known = this.#calls.get(key);
    if (known !== undefined) return known;
    const [frame] = this.frames(stack);
    const source = frame && this.#source(frame.file);
    const offset = frame && source?.offset(frame.line, frame.column);
    const call = typeof offset === "number" ? source?.call(name, offset) : undefined;
    const found = frame && source && call ? { file: frame.file, source, call } : null;
    this.#calls.set(key, found);
    return found;
  }
}
