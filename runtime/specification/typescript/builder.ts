/*
 * The builder `cells/model`, as it runs in QuickJS: it makes elements, and at the end one document of all that stands in
 * the cell. No other module is imported here, and nothing of an author's is trusted to be plain: each value is read once,
 * property by property, into plain data, which then leaves as text.
 *
 * An element is an empty frozen object; what is known of it is kept beside it, so that an author's code can neither read
 * nor change it and an editor shows nothing that is not meant.
 */
type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
type Path = readonly string[];

/** The part of the one table that the builder needs. */
export interface BuilderTable {
  /** Function names by element type. */
  readonly functions: Readonly<Record<string, string>>;
  /** By type, attributes that are objects of attributes, such as `liveness`. */
  readonly nested: Readonly<Record<string, readonly string[]>>;
  readonly limits: { readonly nesting: number; readonly attributes: number; readonly diagnostics: number };
}
/** What is wrong, where: the pointer of the attribute in the document, and the stack of the element that it belongs to. */
export interface BuilderFault {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly pointer: string;
  readonly path: string;
  readonly stack: string;
  readonly related?: { readonly message: string; readonly stack: string; readonly function: string };
}
/** Where a component was made: its pointer, the stack then, the function that made it. */
export type BuilderSite = readonly [pointer: string, stack: string, made: string];
export interface BuilderResult {
  readonly document: Json;
  readonly sites: readonly BuilderSite[];
  readonly faults: readonly BuilderFault[];
}

interface Made {
  readonly type: string;
  readonly function: string;
  readonly attributes: unknown;
  readonly content: unknown;
  readonly stack: string;
  /** Of a cell. */
  readonly name: string;
  at: { readonly root: object; readonly path: Path } | null;
}

class Misuse extends Error {
  override readonly name = "Misuse";
}
class Enough extends Error {}

const escaped = (name: string): string => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
const pointerOf = (path: Path): string => path.map(escaped).join("");
const what = (value: unknown): string => {
  if (value === undefined) return "undefined";
  if (typeof value === "number") return String(value);
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  return typeof value === "bigint" ? "a BigInt" : "an object of a class";
};
const hintOf = (value: unknown): string => {
  if (value === undefined) return "Leave the name out where there is no value.";
  if (typeof value === "bigint") return "Write the number without `n`.";
  if (typeof value === "function") return "Call it, and give what it returns.";
  return "A cell is made of plain data: text, finite numbers, booleans, null, lists and plain objects.";
};

export function createBuilder(table: BuilderTable) {
  const known = new WeakMap<object, Made>();
  const references = new WeakMap<object, string>();
  const madeOf = (value: unknown): Made | undefined =>
    typeof value === "object" && value !== null ? known.get(value) : undefined;

  const stackHere = (): string => String(new Error().stack);
  const isPlain = (value: unknown): value is object => {
    if (typeof value !== "object" || value === null) return false;
    const prototype = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
  };

  const make = (made: Omit<Made, "stack" | "at">): object => {
    const { attributes, content, function: name } = made;
    if (!isPlain(attributes) || known.has(attributes) || references.has(attributes))
      throw new Misuse(`\`${name}\` takes its attributes as one object, as in \`${name}({ … })\``);
    if (!isPlain(content) || known.has(content) || references.has(content))
      throw new Misuse(`\`${name}\` takes what stands inside as one object, as in \`{ web: vm({ … }) }\``);
    const element = Object.freeze({});
    known.set(element, { ...made, stack: stackHere(), at: null });
    return element;
  };
  const element =
    (type: string) =>
    (attributes: unknown, content: unknown = {}): object =>
      make({ type, function: table.functions[type] ?? type, attributes, content, name: "" });
  const cell = (name: unknown, content: unknown, attributes: unknown = {}): object => {
    if (typeof name !== "string") throw new Misuse('`cell` takes the cell\'s name first, as in `cell("shop", { … })`');
    return make({ type: "Cell", function: "cell", attributes, content, name });
  };
  const ref = (path: unknown): object => {
    if (typeof path !== "string" || !/^(\/|\.\.)/.test(path) || />/.test(path))
      throw new Misuse(
        '`ref` takes a path from the document (`"/shop/web/vm"`) or of another cell (`"//other.cells.example.com/a"`)',
      );
    const reference = Object.freeze({});
    references.set(reference, `<ref:${path}>`);
    return reference;
  };

  /** The result as JSON text: a `BuilderResult`. */
  const finish = (main: object): string => {
    const found = Object.getOwnPropertyDescriptor(main, "default")
      ? (main as { default?: unknown }).default
      : undefined;
    const made = madeOf(found);
    if (made?.type !== "Cell" || typeof found !== "object" || found === null) {
      const message = made
        ? `The main file's default export is one element (\`${made.function}\`), not a cell`
        : "The main file has no cell as its default export";
      const hint = 'Write `export default cell("shop", { … });`.';
      const fault = { code: "typescript/no-cell", message, hint, pointer: "", path: "", stack: made?.stack ?? "" };
      return JSON.stringify({ document: {}, sites: [], faults: [fault] } satisfies BuilderResult);
    }
    return JSON.stringify(new Writer(table, madeOf, references, isPlain).write(found, made));
  };
  const isMisuse = (thrown: unknown): boolean => thrown instanceof Misuse;
  return Object.freeze({ element, cell, ref, finish, isMisuse });
}

class Writer {
  readonly #table: BuilderTable;
  readonly #madeOf: (value: unknown) => Made | undefined;
  readonly #references: WeakMap<object, string>;
  readonly #isPlain: (value: unknown) => value is object;
  readonly #sites: BuilderSite[] = [];
  readonly #faults: BuilderFault[] = [];
  readonly #open = new Set<object>();
  #left: number;
  /** The innermost component that is being written, and its root. */
  #component: Made | null = null;
  #root: object = {};
  /** Roots inside one another: what pointers begin with. */
  #prefix: Path = [];

  constructor(
    table: BuilderTable,
    madeOf: (value: unknown) => Made | undefined,
    references: WeakMap<object, string>,
    isPlain: (value: unknown) => value is object,
  ) {
    this.#table = table;
    this.#madeOf = madeOf;
    this.#references = references;
    this.#isPlain = isPlain;
    this.#left = table.limits.attributes;
  }

  write(root: object, made: Made): BuilderResult {
    let document: Json = {};
    try {
      document = this.#rooted(root, made, []);
    } catch (error) {
      if (!(error instanceof Enough)) throw error;
    }
    return { document, sites: this.#sites, faults: this.#faults };
  }

  /** The document of a cell: places all of its elements, so that each can be referred to, then writes them. */
  #rooted(root: object, made: Made, prefix: Path): Json {
    const [outerRoot, outerPrefix, outer] = [this.#root, this.#prefix, this.#component];
    [this.#root, this.#prefix, this.#component] = [root, prefix, made];
    this.#place(made, [made.name]);
    const document = this.#plain();
    this.#set(document, made.name, this.#write(made, [made.name]));
    [this.#root, this.#prefix, this.#component] = [outerRoot, outerPrefix, outer];
    return document;
  }

  #place(made: Made, path: Path): void {
    if (made.at) {
      const first = made.at.root === this.#root ? `at \`/${made.at.path.join("/")}\` already` : "in another cell";
      this.#fault(
        "typescript/placed-twice",
        `This \`${made.function}\` stands ${first}, and cannot stand at \`/${path.join("/")}\` too`,
        "Make one for each place: a function that makes it, called once for each.",
        path,
        made,
      );
      return;
    }
    made.at = { root: this.#root, path };
    this.#within(made.content, path, () => this.#placeIn(made.content, path));
  }

  #placeIn(content: unknown, path: Path): void {
    for (const [name, value] of this.#entries(content, path)) {
      const made = this.#madeOf(value);
      const inside = [...path, name];
      if (made && made.type !== "Cell") this.#place(made, inside);
      else if (!made && this.#isPlain(value) && !this.#references.has(value))
        this.#within(value, inside, () => this.#placeIn(value, inside));
    }
  }

  #write(made: Made, path: Path): Json {
    const before = this.#component;
    this.#component = made;
    this.#sites.push([pointerOf([...this.#prefix, ...path]), made.stack, made.function]);
    const json = this.#plain();
    json["x.type"] = made.type;
    const nested = this.#table.nested[made.type] ?? [];
    for (const [name, value] of this.#entries(made.attributes, path))
      if (nested.includes(name) && this.#isPlain(value) && !this.#madeOf(value))
        for (const [inner, item] of this.#entries(value, [...path, `x.${name}`]))
          this.#set(json, `x.${name}.${inner}`, this.#value(item, [...path, `x.${name}.${inner}`], "refer"));
      else this.#set(json, `x.${name}`, this.#value(value, [...path, `x.${name}`], "refer"));
    for (const [name, value] of this.#entries(made.content, path))
      this.#set(json, name, this.#value(value, [...path, name], "place"));
    this.#component = before;
    return json;
  }

  /** `place`: an element stands here; `refer`: it is referred to. */
  #value(value: unknown, path: Path, mode: "place" | "refer"): Json {
    if (--this.#left < 0)
      this.#stop("limit/document", `The cell has more than ${this.#table.limits.attributes} attributes`, path);
    if (value === null || typeof value === "boolean") return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value === "string") return this.#text(value, path);
    if (typeof value !== "object") return this.#notData(value, path);
    const reference = this.#references.get(value);
    if (reference !== undefined) return reference;
    const made = this.#madeOf(value);
    if (made) return this.#made(value, made, path, mode);
    if (Array.isArray(value)) return this.#within(value, path, () => this.#list(value, path)) ?? [];
    if (!this.#isPlain(value)) return this.#notData(value, path);
    const written = this.#within(value, path, () => {
      const json = this.#plain();
      for (const [name, item] of this.#entries(value, path))
        this.#set(json, name, this.#value(item, [...path, name], mode));
      return json;
    });
    return written ?? null;
  }

  #text(value: string, path: Path): Json {
    if (!value.isWellFormed())
      this.#fault(
        "typescript/value",
        `\`${path.at(-1)}\` has half of a surrogate pair in it, which is no character`,
        "Cut texts between characters: `[...text]` gives them one by one.",
        path,
      );
    return value;
  }

  #list(value: readonly unknown[], path: Path): Json {
    const items: Json[] = [];
    const { length } = value;
    for (let index = 0; index < length; index++)
      items.push(this.#value(value[index], [...path, String(index)], "refer"));
    return items;
  }

  #made(element: object, made: Made, path: Path, mode: "place" | "refer"): Json {
    if (made.type === "Cell") {
      if (path.at(-1) === "x.cell" && this.#component?.type === "CellController")
        return made.at ? this.#misplaced(made, path) : this.#child(element, made, path);
      return this.#misplaced(made, path);
    }
    if (mode === "place") return made.at?.root === this.#root ? this.#write(made, path) : null;
    if (made.at?.root === this.#root) return `<ref:/${made.at.path.join("/")}>`;
    this.#fault(
      "typescript/not-placed",
      made.at
        ? `\`${path.at(-1)}\` refers to a \`${made.function}\` of another cell`
        : `\`${path.at(-1)}\` refers to a \`${made.function}\` that stands nowhere in the cell`,
      made.at
        ? 'Into another cell, a reference is written `ref("//domain/path")`.'
        : "Put it under a name into the cell, or into a group of it.",
      path,
      this.#component,
      { message: "it was made here", stack: made.stack, function: made.function },
    );
    return null;
  }

  #child(element: object, made: Made, path: Path): Json {
    const prefix = [...this.#prefix, ...path];
    if (prefix.length > this.#table.limits.nesting) this.#stop("limit/document", "The cells are nested too deep", path);
    return this.#rooted(element, made, prefix);
  }

  #misplaced(made: Made, path: Path): Json {
    this.#fault(
      "typescript/placed-twice",
      "A cell stands inside another one only as the `cell` of a `controller`, and only once",
      "Write `controller({ cell: cell(…) })` for a child cell, and groups as plain objects.",
      path,
      this.#component,
      { message: "the cell was made here", stack: made.stack, function: "cell" },
    );
    return null;
  }

  #notData(value: unknown, path: Path): Json {
    this.#fault(
      "typescript/value",
      `\`${path.at(-1)}\` is ${what(value)}, which is no part of a cell`,
      hintOf(value),
      path,
    );
    return null;
  }

  /** Own properties, read once. What is no plain property is a fault. */
  #entries(object: unknown, path: Path): readonly [string, unknown][] {
    const entries: [string, unknown][] = [];
    if (typeof object !== "object" || object === null) return entries;
    for (const name of Reflect.ownKeys(object)) {
      const property = Object.getOwnPropertyDescriptor(object, name);
      if (!property?.enumerable) continue;
      if (typeof name === "symbol") this.#fault("typescript/value", "A name is a symbol", "Names are text.", path);
      else if (!("value" in property))
        this.#fault(
          "typescript/value",
          `\`${name}\` is worked out when it is read (\`get ${name}()\`)`,
          "Give the value itself.",
          [...path, name],
        );
      else entries.push([name, property.value]);
    }
    return entries;
  }

  #within<T>(object: unknown, path: Path, work: () => T): T | undefined {
    if (typeof object !== "object" || object === null) return work();
    if (this.#open.has(object)) {
      this.#fault("typescript/value", `\`${path.at(-1)}\` contains itself`, "A cell is a tree.", path);
      return undefined;
    }
    if (path.length > this.#table.limits.nesting)
      this.#stop("limit/document", `The cell is nested deeper than ${this.#table.limits.nesting} levels`, path);
    this.#open.add(object);
    const done = work();
    this.#open.delete(object);
    return done;
  }

  #plain(): { [name: string]: Json } {
    return Object.create(null);
  }
  #set(object: { [name: string]: Json }, name: string, value: Json): void {
    Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
  }

  #fault(
    code: string,
    message: string,
    hint: string,
    path: Path,
    component: Made | null = this.#component,
    related?: NonNullable<BuilderFault["related"]>,
  ): void {
    const pointer = pointerOf([...this.#prefix, ...path]);
    if (this.#faults.some((each) => each.code === code && each.pointer === pointer)) return;
    this.#faults.push({
      code,
      message,
      hint,
      pointer,
      path: path.filter((name) => !name.startsWith("x.")).join("/"),
      stack: component?.stack ?? "",
      ...(related === undefined ? {} : { related }),
    });
    if (this.#faults.length >= this.#table.limits.diagnostics) throw new Enough();
  }
  #stop(code: string, message: string, path: Path): never {
    this.#fault(code, message, "Split the cell into several.", path);
    throw new Enough();
  }
}
