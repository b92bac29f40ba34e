import { fail, ok, type Result } from "../../result.ts";

/**
 * Reads the XML of network views: elements, attributes, text, comments, CDATA, the five entities of the language and numbered
 * characters (XML 1.0, fifth edition). What a view never has is refused: a document type and so any entity of its own, other
 * encodings, names beyond ASCII. Bounded while it reads, so that what is refused costs little.
 *
 * Rejected: a library (decision 160). It would stand above this layer, builds its tree before anybody can bound it, and reads what is
 * refused here.
 */
export interface XmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly XmlElement[];
  /** Its own characters, without those of its children, and without spaces around. */
  readonly text: string;
  /** In which it begins, from 1. */
  readonly line: number;
}
export interface XmlFault {
  readonly line: number;
  readonly column: number;
  /** A sentence. */
  readonly message: string;
}

export const xmlLimits = {
  /** Characters. A view of 10,000 instances in 1,000 groups has four million. */
  length: 8 * 1024 * 1024,
  elements: 200_000,
  depth: 32,
  attributes: 16,
  /** Characters of one text or attribute. */
  value: 65_536,
} as const;

class Refused extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** The root element, or the first thing that is wrong. */
export function readXml(text: string): Result<XmlElement, XmlFault> {
  if (text.length > xmlLimits.length)
    return fail({ line: 1, column: 1, message: `the document has more than ${xmlLimits.length} characters` });
  try {
    return ok(new XmlReader(text).document());
  } catch (thrown) {
    if (!(thrown instanceof Refused)) throw thrown;
    const before = text.slice(0, thrown.at);
    const lines = before.split("\n");
    return fail({ line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, message: thrown.message });
  }
}

interface Open {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  children: XmlElement[];
  text: string;
  readonly line: number;
  readonly at: number;
}
const none: readonly XmlElement[] = Object.freeze([]);
const noAttributes: ReadonlyMap<string, string> = new Map();
const namePattern = /[A-Za-z_:][A-Za-z0-9._:-]*/y;
const spacePattern = /[ \t\r\n]*/y;
/** XML 1.0, 2.2: what is no character of a document, and control characters, which it advises against. */
const notCharacter = /(?![\t\n\r])\p{Cc}|\p{Cs}|[\ufffe\uffff]/u;
const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

class XmlReader {
  readonly #text: string;
  #at = 0;
  #line = 1;
  /** Where the line ends that `#line` is. */
  #lineEnd: number;
  #elements = 0;
  readonly #open: Open[] = [];

  constructor(text: string) {
    this.#text = text;
    this.#lineEnd = this.#newline(0);
  }

  document(): XmlElement {
    const text = this.#text;
    if (text.startsWith("\ufeff")) this.#at = 1;
    const bad = notCharacter.exec(text);
    if (bad !== null) throw new Refused(bad.index, "a control character, or none that XML has");
    this.#declaration();
    let root: XmlElement | null = null;
    for (;;) {
      const end = text.indexOf("<", this.#at);
      const until = end < 0 ? text.length : end;
      this.#characters(until);
      this.#at = until;
      if (end < 0) break;
      const finished = this.#markup(root !== null);
      if (finished !== null) root = finished;
    }
    const open = this.#open.at(-1);
    if (open !== undefined) throw new Refused(open.at, `the element ${open.name} is never closed`);
    if (root === null) throw new Refused(text.length, "there is no element: the document is empty or breaks off");
    return root;
  }

  #declaration(): void {
    if (!this.#text.startsWith("<?xml", this.#at) || !/\s/.test(this.#text[this.#at + 5] ?? "")) return;
    const end = this.#text.indexOf("?>", this.#at);
    if (end < 0) throw new Refused(this.#at, "the XML declaration has no end");
    const said = this.#text.slice(this.#at, end);
    const [, , encoding] = /\bencoding\s*=\s*(["'])(.*?)\1/.exec(said) ?? [];
    if (encoding !== undefined && !/^(?:utf-8|us-ascii)$/i.test(encoding))
      throw new Refused(this.#at, "the encoding is not UTF-8");
    if (!/\bversion\s*=\s*["']1\.[0-9]+["']/.test(said))
      throw new Refused(this.#at, "the XML declaration has no version");
    this.#at = end + 2;
  }

  /** Text up to a place: of the open element, or space outside of the root. */
  #characters(until: number): void {
    if (until === this.#at) return;
    const written = this.#text.slice(this.#at, until);
    const open = this.#open.at(-1);
    const visible = /[^ \t\r\n]/.exec(written);
    if (visible === null) return;
    if (open === undefined) throw new Refused(this.#at + visible.index, "text outside of the root element");
    if (written.length > xmlLimits.value)
      throw new Refused(this.#at, `a text of more than ${xmlLimits.value} characters`);
    const closing = written.indexOf("]]>");
    if (closing >= 0) throw new Refused(this.#at + closing, "`]]>` stands in text");
    const decoded = this.#decoded(written, this.#at);
    open.text += decoded.includes("\r") ? decoded.replace(/\r\n?/g, "\n") : decoded;
  }

  #decoded(written: string, at: number): string {
    if (!written.includes("&")) return written;
    return written.replace(/&([^;&<]{0,12});?/g, (found, name: string, offset: number) => {
      if (!found.endsWith(";")) throw new Refused(at + offset, "`&` begins no entity; it is written `&amp;`");
      const [, hex, decimal] = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name) ?? [];
      if (hex !== undefined || decimal !== undefined) {
        const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
        const character =
          code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) && code > 0 ? String.fromCodePoint(code) : "\u0000";
        if (notCharacter.test(character)) throw new Refused(at + offset, `${found} is no character`);
        return character;
      }
      const character = Object.hasOwn(entities, name) ? entities[name] : undefined;
      if (character === undefined) throw new Refused(at + offset, "an entity that XML itself does not have");
      return character;
    });
  }

  /** @returns the root, once it is closed */
  #markup(hasRoot: boolean): XmlElement | null {
    const text = this.#text;
    if (text.startsWith("<!--", this.#at)) this.#skip("-->", 4, "the comment");
    else if (text.startsWith("<![CDATA[", this.#at)) this.#cdata();
    else if (text.startsWith("<!", this.#at))
      throw new Refused(this.#at, "a document type or a declaration, which no network view has");
    else if (text.startsWith("<?", this.#at)) {
      if (/^xml[\s?]/i.test(text.slice(this.#at + 2, this.#at + 6)))
        throw new Refused(this.#at, "the XML declaration is not at the beginning");
      this.#skip("?>", 2, "the processing instruction");
    } else if (text[this.#at + 1] === "/") return this.#close();
    else {
      if (hasRoot) throw new Refused(this.#at, "a second root element");
      return this.#start();
    }
    return null;
  }

  #skip(end: string, from: number, what: string): void {
    const found = this.#text.indexOf(end, this.#at + from);
    if (found < 0) throw new Refused(this.#at, `${what} has no end`);
    if (end === "-->" && this.#text.slice(this.#at + from, found + 1).includes("--"))
      throw new Refused(this.#at, "`--` stands in a comment");
    this.#at = found + end.length;
  }
  #cdata(): void {
    const open = this.#open.at(-1);
    const end = this.#text.indexOf("]]>", this.#at);
    if (open === undefined) throw new Refused(this.#at, "text outside of the root element");
    if (end < 0) throw new Refused(this.#at, "the CDATA section has no end");
    open.text += this.#text.slice(this.#at + 9, end);
    this.#at = end + 3;
  }

  #name(what: string): string {
    namePattern.lastIndex = this.#at;
    const found = namePattern.exec(this.#text)?.[0];
    if (found === undefined || found.length > 100) throw new Refused(this.#at, `${what} has no name`);
    this.#at += found.length;
    return found;
  }
  /** @returns whether there was any */
  #space(): boolean {
    spacePattern.lastIndex = this.#at;
    const found = spacePattern.exec(this.#text)?.[0].length ?? 0;
    this.#at += found;
    return found > 0;
  }
  #newline(from: number): number {
    const found = this.#text.indexOf("\n", from);
    return found < 0 ? this.#text.length : found;
  }
  /** Places are asked for in order. */
  #lineAt(at: number): number {
    while (this.#lineEnd < at) {
      this.#line += 1;
      this.#lineEnd = this.#newline(this.#lineEnd + 1);
    }
    return this.#line;
  }

  #start(): XmlElement | null {
    const at = this.#at;
    this.#at += 1;
    const name = this.#name("an element");
    this.#elements += 1;
    if (this.#elements > xmlLimits.elements)
      throw new Refused(at, `the document has more than ${xmlLimits.elements} elements`);
    if (this.#open.length >= xmlLimits.depth)
      throw new Refused(at, `more than ${xmlLimits.depth} elements stand inside one another`);
    const attributes = this.#attributes(name);
    const open = { name, attributes, children: none as XmlElement[], text: "", line: this.#lineAt(at), at };
    if (this.#text.startsWith("/>", this.#at)) {
      this.#at += 2;
      return this.#finished(open);
    }
    this.#at += 1;
    this.#open.push(open);
    return null;
  }

  #attributes(element: string): ReadonlyMap<string, string> {
    let attributes: Map<string, string> | null = null;
    for (;;) {
      const spaced = this.#space();
      const next = this.#text[this.#at];
      if (next === ">" || (next === "/" && this.#text[this.#at + 1] === ">")) return attributes ?? noAttributes;
      if (next === undefined) throw new Refused(this.#at, `the document breaks off within the element ${element}`);
      if (!spaced) throw new Refused(this.#at, `the element ${element} is written wrongly here`);
      const at = this.#at;
      const name = this.#name("an attribute");
      this.#space();
      if (this.#text[this.#at] !== "=") throw new Refused(this.#at, `the attribute ${name} has no value`);
      this.#at += 1;
      this.#space();
      const quote = this.#text[this.#at];
      const end = quote === '"' || quote === "'" ? this.#text.indexOf(quote, this.#at + 1) : -1;
      if (end < 0) throw new Refused(this.#at, `the value of the attribute ${name} is not in quotes`);
      const written = this.#text.slice(this.#at + 1, end);
      if (written.length > xmlLimits.value)
        throw new Refused(at, `an attribute of more than ${xmlLimits.value} characters`);
      const less = written.indexOf("<");
      if (less >= 0) throw new Refused(this.#at + 1 + less, "`<` stands in an attribute");
      attributes ??= new Map();
      if (attributes.has(name)) throw new Refused(at, `the attribute ${name} is there twice`);
      if (attributes.size >= xmlLimits.attributes)
        throw new Refused(at, `an element has more than ${xmlLimits.attributes} attributes`);
      attributes.set(name, this.#decoded(written.replace(/\r\n|[\t\r\n]/g, " "), this.#at + 1));
      this.#at = end + 1;
    }
  }

  #close(): XmlElement | null {
    const at = this.#at;
    this.#at += 2;
    const name = this.#name("a closing element");
    this.#space();
    const open = this.#open.pop();
    if (this.#text[this.#at] !== ">") throw new Refused(this.#at, `the closing element ${name} is written wrongly`);
    if (open === undefined || open.name !== name)
      throw new Refused(at, `${name} is closed here, and ${open === undefined ? "nothing" : open.name} is open`);
    this.#at += 1;
    return this.#finished(open);
  }

  #finished({ name, attributes, children, text, line }: Open): XmlElement | null {
    const element = { name, attributes, children, text: text.trim(), line };
    const parent = this.#open.at(-1);
    if (parent === undefined) return element;
    if (parent.children === none) parent.children = [element];
    else parent.children.push(element);
    return null;
  }
}

/** Text as XML has it between elements and in attributes. */
export const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&${Object.keys(entities).find((name) => entities[name] === character)};`);
