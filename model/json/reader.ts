import { isObject, type Json, type JsonObject } from "./json.ts";

/**
 * Readers turn JSON from another process into a value of a declared type, or into a fault that says where it is wrong.
 *
 * A reader never throws, whatever it is given. It lets fields through that it does not know, since the next version may
 * send them, and leaves them out of what it returns. It bounds every number, text and list. Where it has nothing to leave
 * out it returns the value that it was given, so that reading costs no memory.
 *
 * Rejected: checking in each service what that service happens to use. Whoever passes a document on has then believed the
 * rest of it unseen, and a field that is used later is one that nobody checks.
 */
export type Reader<T> = (value: Json | undefined) => T | Fault;
/** A field that may be absent. One that is there must be right; `null` is not absent. */
export interface Optional<T> {
  readonly optional: Reader<T>;
}

/** What is wrong with a value. `found` never repeats a secret: see `secret`. */
export class Fault {
  /** From the outermost value to the one that is wrong: names of fields and indexes of lists. */
  readonly path: readonly (string | number)[];
  readonly found: string;
  /** What would be right, as in "must be …". */
  readonly right: string;

  constructor(path: readonly (string | number)[], found: string, right: string) {
    this.path = path;
    this.found = found;
    this.right = right;
  }

  /** The same fault, seen from the value around it. */
  within(step: string | number): Fault {
    return new Fault([step, ...this.path], this.found, this.right);
  }

  /** `at interfaces[2].mac: found "x", must be a MAC address`. */
  toString(): string {
    const { path, found, right } = this;
    const text = path.reduce<string>(
      (before, step) => before + (typeof step === "number" ? `[${step}]` : before === "" ? step : `.${step}`),
      "",
    );
    return `${text === "" ? "" : `at ${shortened(text, pathLength)}: `}found ${found}, must be ${right}`;
  }
}

/** Above every number that counts something in one installation, and far below where numbers stop being exact (2^53). */
export const maximumCount = 2 ** 48;
/** Characters of a path and of a found text that a fault shows. */
const pathLength = 120;
const foundLength = 40;
/** Values inside one another that free JSON (`x.data`, a cell's document) may have. */
const jsonDepth = 1024;

const shortened = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most)}…`);

/** A value for people, shortened; of lists and objects only that they are some. */
function describe(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return JSON.stringify(shortened(value, foundLength));
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
export const faultOf = (value: Json | undefined, right: string): Fault => new Fault([], describe(value), right);

// --- single values -----------------------------------------------------------------------------------------------

export const boolean: Reader<boolean> = (value) =>
  typeof value === "boolean" ? value : faultOf(value, "true or false");

/** A whole number from `least` to `most`, both included. */
export const integer =
  (least: number, most: number): Reader<number> =>
  (value) =>
    typeof value === "number" && Number.isInteger(value) && value >= least && value <= most
      ? value
      : faultOf(value, `a whole number from ${least} to ${most}`);

/** Any number from `least` to `most`, both included. */
export const number =
  (least: number, most: number): Reader<number> =>
  (value) =>
    typeof value === "number" && value >= least && value <= most
      ? value
      : faultOf(value, `a number from ${least} to ${most}`);

/** What counts or numbers something, 0 included: incarnations, generations, epochs, versions. */
export const count = integer(0, maximumCount);
/** The same without 0. */
export const ordinal = integer(1, maximumCount);
/** Milliseconds since 1970, up to the last that a date can have. */
export const wallMs = number(0, 8.64e15);

/** Text of at most so many characters, which UTF-8 can carry. */
export const text =
  (most: number): Reader<string> =>
  (value) =>
    typeof value === "string" && value.length <= most && value.isWellFormed()
      ? value
      : faultOf(value, `text of at most ${most} characters`);

/** A text that passes a test, given its brand by a constructor of `identifiers.ts`. */
export const branded =
  <T extends string>(make: (text: string) => T, is: (text: string) => boolean, right: string): Reader<T> =>
  (value) =>
    typeof value === "string" && is(value) ? make(value) : faultOf(value, right);

/** Text of one form. `pattern` must bound its length. */
export const pattern = (form: RegExp, right: string): Reader<string> =>
  branded(String, (text) => form.test(text), right);

/** One of these and nothing else. */
export const oneOf = <const T extends string | number | boolean | null>(...values: readonly T[]): Reader<T> => {
  const right = values.map((value) => JSON.stringify(value)).join(" or ");
  return (value) => {
    const found = values.find((each) => each === value);
    return found === undefined ? faultOf(value, right) : found;
  };
};

/** What a reader takes, but of a wrong value only its kind and length are said: keys and tokens. */
export const secret =
  <T>(read: Reader<T>): Reader<T> =>
  (value) => {
    const result = read(value);
    if (!(result instanceof Fault) || typeof value !== "string") return result;
    return new Fault(result.path, `a text of ${value.length} characters`, result.right);
  };

// --- values made of others ----------------------------------------------------------------------------------------

export const optional = <T>(read: Reader<T>): Optional<T> => ({ optional: read });

/** One that a previous version leaves out where it has nothing to say. */
export const absentAs =
  <T>(otherwise: T, read: Reader<T>): Reader<T> =>
  (value) =>
    value === undefined ? otherwise : read(value);

export const nullable =
  <T>(read: Reader<T>): Reader<T | null> =>
  (value) => {
    if (value === null) return null;
    const result = read(value);
    return result instanceof Fault ? new Fault(result.path, result.found, orNull(result)) : result;
  };
const orNull = ({ path, right }: Fault): string => (path.length === 0 ? `${right}, or null` : right);

/** The first reader that takes it. `right`: what is said when none does. */
export const either =
  <A, B>(first: Reader<A>, second: Reader<B>, right: string): Reader<A | B> =>
  (value) => {
    const one = first(value);
    if (!(one instanceof Fault)) return one;
    const other = second(value);
    return other instanceof Fault ? faultOf(value, right) : other;
  };

/** A further condition. `wrong` says what would be right, or null when the value is. */
export const checked =
  <T>(read: Reader<T>, wrong: (value: T) => string | null): Reader<T> =>
  (value) => {
    const result = read(value);
    if (result instanceof Fault) return result;
    const right = wrong(result);
    return right === null ? result : faultOf(value, right);
  };

/** A list of at most so many. */
export const list =
  <T>(read: Reader<T>, most: number): Reader<readonly T[]> =>
  (value) => {
    if (!Array.isArray(value)) return faultOf(value, "a list");
    if (value.length > most) return faultOf(value, `a list of at most ${most}`);
    const items: readonly Json[] = value;
    const results: T[] = [];
    let same = true;
    for (let index = 0; index < items.length; index += 1) {
      const result = read(items[index]);
      if (result instanceof Fault) return result.within(index);
      if (!Object.is(result, items[index])) same = false;
      results.push(result);
    }
    return same ? as<readonly T[]>(value) : results;
  };

/** An object with names of one form, at most so many. */
export const dictionary =
  <T>(read: Reader<T>, name: RegExp, most: number): Reader<{ readonly [name: string]: T }> =>
  (value) => {
    if (!isObject(value)) return faultOf(value, "an object");
    const entries = Object.entries(value);
    if (entries.length > most) return faultOf(value, `an object with at most ${most} fields`);
    const results: [string, T][] = [];
    let same = true;
    for (const [key, each] of entries) {
      if (!name.test(key))
        return new Fault([], `a field ${describe(key)}`, `an object with names of the form ${name.source}`);
      const result = read(each);
      if (result instanceof Fault) return result.within(key);
      if (!Object.is(result, each)) same = false;
      results.push([key, result]);
    }
    return same ? as<{ readonly [name: string]: T }>(value) : Object.fromEntries(results);
  };

/** A reader for every field of a type: `optional` for those that may be absent, and only for those. */
export type Fields<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? Optional<Exclude<T[K], undefined>>
    : Reader<T[K]>;
};

/** An object with these fields. Others may be there, and are left out. */
export const object = <T extends object>(fields: Fields<T>): Reader<T> => {
  const all = Object.entries(fields).map(([name, field]): FieldReader => {
    const given = field as Reader<unknown> | Optional<unknown>;
    return typeof given === "function"
      ? { name, read: given, needed: true }
      : { name, read: given.optional, needed: false };
  });
  return (value) => {
    if (!isObject(value)) return faultOf(value, "an object");
    const results: unknown[] = [];
    let same = true;
    let present = 0;
    for (const { name, read, needed } of all) {
      const given = Object.hasOwn(value, name) ? value[name] : undefined;
      if (given === undefined && !needed) {
        results.push(undefined);
        continue;
      }
      const result = read(given);
      if (result instanceof Fault) return result.within(name);
      if (!Object.is(result, given)) same = false;
      present += 1;
      results.push(result);
    }
    if (same && Object.keys(value).length === present) return as<T>(value);
    const entries = all.flatMap(({ name }, index) => (results[index] === undefined ? [] : [[name, results[index]]]));
    return as<T>(Object.fromEntries(entries));
  };
};
interface FieldReader {
  readonly name: string;
  readonly read: Reader<unknown>;
  readonly needed: boolean;
}

/** One of several objects, told apart by their `kind`. */
export const byKind = <T extends { readonly kind: string }>(
  readers: {
    readonly [K in T["kind"]]: Reader<Extract<T, { readonly kind: K }>>;
  },
): Reader<T> => {
  const all = new Map(Object.entries<Reader<T>>(readers));
  const right = [...all.keys()].map((kind) => `"${kind}"`).join(" or ");
  return (value) => {
    if (!isObject(value)) return faultOf(value, "an object");
    const kind = Object.hasOwn(value, "kind") ? value.kind : undefined;
    const read = typeof kind === "string" ? all.get(kind) : undefined;
    return read === undefined ? faultOf(kind, right).within("kind") : read(value);
  };
};

/** Any JSON that is not nested too deeply. Nothing in it is left out. */
export const json: Reader<Json> = (value) =>
  value !== undefined && isShallow(value, jsonDepth) ? value : faultOf(value, `JSON of at most ${jsonDepth} levels`);
/** The same, and an object. */
export const jsonObject: Reader<JsonObject> = (value) => {
  if (!isObject(value)) return faultOf(value, "an object");
  const result = json(value);
  return result instanceof Fault ? result : value;
};
function isShallow(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (levels === 0) return false;
  for (const each of Object.values(value)) if (!isShallow(each, levels - 1)) return false;
  return true;
}

/** The one place where JSON becomes a type: every field of it was looked at. */
const as = <T>(value: Json): T => value as unknown as T;

// --- documents ---------------------------------------------------------------------------------------------------

/** A kind of document: its reader, and what in it must agree with the key and with whoever sent it. */
export interface Document<T> {
  readonly read: Reader<T>;
  readonly names: Names<T>;
  /**
   * The document as its type; null: it is malformed, or is not about what the end of its key (`id`) names. What was read
   * before is not read again.
   */
  of(value: Json | undefined, id?: string): T | null;
}
export interface Names<T> {
  /** A field that says the same as the end of the key: of `vm/<uid>`, `uid`. */
  readonly key?: Name<T>;
  /** A field that names who says it, as a peer: `host.h1`. */
  readonly speaker?: Name<T>;
}
export interface Name<T> {
  readonly field: string;
  readonly of: (document: T) => string;
}

export function document<T extends object>(read: Reader<T>, names: Names<T> = {}): Document<T> {
  const known = new WeakSet<object>();
  const remembered: Reader<T> = (value) => {
    if (isObject(value) && known.has(value)) return as<T>(value);
    const result = read(value);
    if (!(result instanceof Fault)) known.add(result);
    return result;
  };
  return {
    read: remembered,
    names,
    of: (value, id) => {
      const result = remembered(value);
      if (result instanceof Fault) return null;
      return id === undefined || names.key === undefined || names.key.of(result) === id ? result : null;
    },
  };
}
