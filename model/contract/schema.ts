import type { Json, JsonObject } from "../json/json.ts";
import { Fault, faultOf } from "../json/reader.ts";

/**
 * JSON Schemas as data (draft 2020-12, the few keywords of `keywords`), made by functions that hold them to the TypeScript
 * types of `model/api.ts`: a field that the schema lacks, or has too much, does not compile.
 *
 * Objects are open: the next version may send fields that this one does not know. What a request must not have more of is
 * bounded where it is read.
 *
 * Rejected: types computed from the schemas. A reader of the contract then sees a type that no file holds, without a word
 * on what its fields mean.
 */
declare const of: unique symbol;
/** `T` is what a value that passes is. Neither wider nor narrower: an `enum` lists all that the type does. */
export type Schema<T> = JsonObject & { readonly [of]?: (value: T) => T };
/** What a schema is of. */
export type Of<S> = S extends { readonly [of]?: (value: infer T) => unknown } ? T : never;
export interface Optional<T> {
  readonly optional: Schema<T>;
}
/** A schema for every field of a type: `optional` for those that may be absent, and only for those. */
export type Fields<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? Optional<Exclude<T[K], undefined>>
    : Schema<T[K]>;
};

/** All that a schema here may say. The last three say nothing about a value; one that is only written is never shown. */
export const keywords = [
  "type",
  "enum",
  "const",
  "anyOf",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "pattern",
  "minimum",
  "maximum",
  "title",
  "description",
  "writeOnly",
] as const;

// --- making them --------------------------------------------------------------------------------------------------

/** Text; with `most` of at most so many characters. */
export const text = (most?: number): Schema<string> => ({
  type: "string",
  ...(most === undefined ? {} : { maxLength: most }),
});
/** Text with a brand of `identifiers.ts`. */
export const branded = <T extends string>(description: string): Schema<T> => ({ type: "string", description });
/** Text of one form. `right`: what it must be, as in "must be …". */
export const pattern = (form: RegExp, right: string): Schema<string> => ({
  type: "string",
  pattern: form.source,
  description: right,
});
/** The same of what nobody is shown again, not even where it is wrong: a password. */
export const secret = (form: RegExp, right: string): Schema<string> => ({
  ...plain(pattern(form, right)),
  writeOnly: true,
});
export const time: Schema<string> = { type: "string", description: "a time in ISO 8601" };
/** One that somebody asks about: a day alone is its beginning, in UTC. */
export const askedTime = pattern(
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/,
  "a time in ISO 8601, as 2026-11-26 or 2026-11-26T14:30:00Z",
);
export const boolean: Schema<boolean> = { type: "boolean" };
export const number: Schema<number> = { type: "number" };
/** A whole number, by default one that counts something. Both ends included. */
export const integer = (least = 0, most = Number.MAX_SAFE_INTEGER): Schema<number> => ({
  type: "integer",
  minimum: least,
  ...(most === Number.MAX_SAFE_INTEGER ? {} : { maximum: most }),
});
export const oneOf = <const T extends string | number>(...values: readonly T[]): Schema<T> => ({ enum: values });
/** One of these, or a word of a later version, which is shown as it is. */
export type OrLater<T extends string> = T | (string & Record<never, never>);
/**
 * Of what the next version may say more: a list that it makes longer would have whoever knows the shorter one refuse the whole
 * answer. Only of answers: what somebody asks for is known, or refused.
 */
export const orLater = <const T extends string>(...values: readonly T[]): Schema<OrLater<T>> => ({
  type: "string",
  maxLength: 64,
  description: `${values.join(", ")}; later versions may say others`,
});
export const exactly = <const T extends string | number | boolean>(value: T): Schema<T> => ({ const: value });
/** Any JSON. */
export const json: Schema<Json> = {};
export const jsonObject: Schema<JsonObject> = { type: "object" };

export const nullable = <T>(schema: Schema<T>): Schema<T | null> =>
  typeof schema.type === "string" && schema.type !== "object" && schema.type !== "array"
    ? { ...plain(schema), type: [schema.type, "null"] }
    : { anyOf: [plain(schema), { type: "null" }] };
export const list = <T>(schema: Schema<T>, { least = 0, most }: Bounds = {}): Schema<readonly T[]> => ({
  type: "array",
  items: plain(schema),
  ...(least === 0 ? {} : { minItems: least }),
  ...(most === undefined ? {} : { maxItems: most }),
});
interface Bounds {
  readonly least?: number;
  readonly most?: number;
}
export const dictionary = <T>(schema: Schema<T>): Schema<{ readonly [name: string]: T }> => ({
  type: "object",
  additionalProperties: plain(schema),
});
export const optional = <T>(schema: Schema<T>): Optional<T> => ({ optional: schema });
/** An object with these fields. Others may be there. */
export const record = <T extends object>(fields: Fields<T>, title?: string): Schema<T> => {
  const all = (Object.entries(fields) as readonly (readonly [string, AnyField])[]).map(([name, field]) =>
    isOptional(field) ? { name, schema: field.optional, needed: false } : { name, schema: field, needed: true },
  );
  return {
    ...(title === undefined ? {} : { title }),
    type: "object",
    properties: Object.fromEntries(all.map(({ name, schema }) => [name, schema])),
    required: all.flatMap(({ name, needed }) => (needed ? [name] : [])),
  };
};
/** A name by which documents refer to it. */
export const titled = <T>(title: string, schema: Schema<T>): Schema<T> => ({ title, ...plain(schema) });
export const described = <T>(schema: Schema<T>, description: string): Schema<T> => ({ ...plain(schema), description });

/** Of whatever type. */
type AnyField = JsonObject | { readonly optional: JsonObject };
const isOptional = (field: AnyField): field is { readonly optional: JsonObject } => Object.hasOwn(field, "optional");
/** Without the type, which only the compiler sees. */
const plain = <T>(schema: Schema<T>): JsonObject => schema;

// --- checking -----------------------------------------------------------------------------------------------------

/** What is wrong with a value, the first of it that is found; null: nothing. */
export function faultIn(schema: JsonObject, value: Json | undefined): Fault | null {
  if (Array.isArray(schema.anyOf)) return faultInAny(schema.anyOf as readonly JsonObject[], value);
  if (value === undefined || !hasType(schema, value) || !isListed(schema, value) || !isWithin(schema, value))
    return schema.writeOnly === true && value !== undefined
      ? new Fault([], `a ${typeof value} that is not shown`, rightOf(schema))
      : faultOf(value, rightOf(schema));
  if (Array.isArray(value)) return faultInItems(schema, value);
  if (typeof value === "object" && value !== null) return faultInFields(schema, value as JsonObject);
  return null;
}

/** The value as its type, or what is wrong with it. */
export function read<T>(schema: Schema<T>, value: Json | undefined): T | Fault {
  return faultIn(schema, value) ?? (value as unknown as T);
}

/** Of several ways to be right, the one that the value comes closest to says what is wrong. */
function faultInAny(schemas: readonly JsonObject[], value: Json | undefined): Fault | null {
  let closest: Fault | null = null;
  for (const schema of schemas) {
    const fault = faultIn(schema, value);
    if (fault === null) return null;
    if (closest === null || fault.path.length > closest.path.length) closest = fault;
  }
  if (closest === null || closest.path.length > 0) return closest;
  return faultOf(value, schemas.map(rightOf).join(", or "));
}

function faultInItems({ items, minItems = 0, maxItems }: JsonObject, value: readonly Json[]): Fault | null {
  if (value.length < Number(minItems)) return faultOf(value, `a list of at least ${minItems}`);
  if (maxItems !== undefined && value.length > Number(maxItems)) return faultOf(value, `a list of at most ${maxItems}`);
  if (items === undefined) return null;
  for (const [index, each] of value.entries()) {
    const fault = faultIn(items as JsonObject, each);
    if (fault !== null) return fault.within(index);
  }
  return null;
}

function faultInFields(schema: JsonObject, value: JsonObject): Fault | null {
  const properties = (schema.properties ?? {}) as { readonly [name: string]: JsonObject };
  for (const name of (schema.required ?? []) as readonly string[])
    if (!Object.hasOwn(value, name)) return faultIn(properties[name] ?? {}, undefined)?.within(name) ?? null;
  for (const [name, each] of Object.entries(value)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties;
    const fault = known === undefined ? null : faultIn(known as JsonObject, each);
    if (fault !== null) return fault.within(name);
  }
  return null;
}

const typesOf = ({ type }: JsonObject): readonly string[] =>
  type === undefined ? [] : Array.isArray(type) ? (type as readonly string[]) : [String(type)];

const hasType = (schema: JsonObject, value: Json): boolean => {
  const types = typesOf(schema);
  return types.length === 0 || types.some((type) => isOfType(type, value));
};
function isOfType(type: string, value: Json): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

const isListed = (schema: JsonObject, value: Json): boolean =>
  (schema.enum === undefined || (schema.enum as readonly Json[]).includes(value)) &&
  (schema.const === undefined || schema.const === value);

function isWithin({ minLength, maxLength, pattern, minimum, maximum }: JsonObject, value: Json): boolean {
  if (typeof value === "number")
    return value >= Number(minimum ?? Number.NEGATIVE_INFINITY) && value <= Number(maximum ?? Number.POSITIVE_INFINITY);
  if (typeof value !== "string") return true;
  return (
    value.length >= Number(minLength ?? 0) &&
    (maxLength === undefined || isAtMost(value, Number(maxLength))) &&
    (pattern === undefined || new RegExp(String(pattern), "u").test(value))
  );
}

/** Counted as JSON Schema does, by code points; a text that is far too long is not looked through. */
const isAtMost = (value: string, most: number): boolean =>
  value.length <= most || (value.length <= 2 * most && [...value].length <= most);

const nouns: Readonly<Record<string, string>> = {
  string: "text",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  null: "null",
};

/** What would be right, as in "must be …". */
export function rightOf(schema: JsonObject): string {
  if (typeof schema.description === "string" && schema.pattern !== undefined) return schema.description;
  if (Array.isArray(schema.anyOf)) return (schema.anyOf as readonly JsonObject[]).map(rightOf).join(", or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined)
    return (schema.enum as readonly Json[]).map((each) => JSON.stringify(each)).join(" or ");
  const types = typesOf(schema);
  return types.length === 0 ? "JSON" : types.map((type) => nounOf(type, schema)).join(", or ");
}
function nounOf(type: string, { minimum, maximum, maxLength }: JsonObject): string {
  if (type === "string" && maxLength !== undefined) return `text of at most ${maxLength} characters`;
  if (type !== "integer" && type !== "number") return nouns[type] ?? type;
  const noun = type === "integer" ? "a whole number" : "a number";
  if (minimum !== undefined && maximum !== undefined) return `${noun} from ${minimum} to ${maximum}`;
  return minimum === undefined ? noun : `${noun}, at least ${minimum}`;
}
