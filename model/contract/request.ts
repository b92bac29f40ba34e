import type { Refusal } from "../api.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { Fault, faultOf } from "../json/reader.ts";
import { fail, ok, type Result } from "../result.ts";
import type { BodyOf, QueryOf, QueryParameter } from "./route.ts";
import { type RouteName, type Routes, routeOf } from "./routes.ts";
import { faultIn } from "./schema.ts";

/*
 * What a request says beside its path, read by the table. Parameters that the table does not name are passed over: a client
 * of the next version may send them.
 */

/** The query of a URL, by the table; the error says how it is refused. Flags that are absent stay absent. */
export function readQuery<N extends RouteName>(
  name: N,
  url: string,
): Result<QueryOf<Routes[N]["query"]>, Refusal["error"]> {
  const query = new URLSearchParams(url.slice(url.indexOf("?") + 1 || url.length));
  const values: [string, Json][] = [];
  for (const [parameter, wanted] of Object.entries(routeOf(name).query)) {
    const read = readParameter(wanted, query.getAll(parameter));
    if (read instanceof Fault)
      return fail(wanted.refusal ?? { code: "bad-request", message: `${parameter} in the query: ${read}` });
    if (read !== undefined) values.push([parameter, read]);
  }
  return ok(Object.fromEntries(values) as unknown as QueryOf<Routes[N]["query"]>);
}

function readParameter(wanted: QueryParameter, given: readonly string[]): Json | undefined | Fault {
  if (given.length === 0 && !wanted.required) return wanted.repeated ? [] : undefined;
  const values = given.map((text) => valueIn(wanted.schema, text));
  const [value] = values;
  if (given.length > 1 && !wanted.repeated) return faultOf(values, "given once");
  for (const each of given.length === 0 ? [undefined] : values) {
    const fault = faultIn(wanted.schema, each);
    if (fault !== null) return fault;
  }
  return wanted.repeated ? values : value;
}

/** In a query all is text; what the table has as a number or a flag is one if it is written as one. */
function valueIn({ type }: JsonObject, text: string): Json {
  if (type === "integer" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** A body of JSON as the table has it; the error is a sentence. */
export function readJsonBody<N extends RouteName>(name: N, body: Json): Result<BodyOf<Routes[N]["body"]>, string> {
  const schema = routeOf(name).body?.schema;
  const fault = schema === undefined || schema === null ? null : faultIn(schema, body);
  if (fault !== null) return fail(`the body is not as ${name} takes it: ${fault}`);
  return ok(body as unknown as BodyOf<Routes[N]["body"]>);
}

export const keyHeader = "idempotency-key";
/** Why the key under which a request is to be made once is refused; null: it is sound, or there is none. */
export function keyRefusal(name: RouteName, key: string | readonly string[] | undefined): Refusal["error"] | null {
  const { method, headers = {} } = routeOf(name);
  if (key === undefined || method === "GET") return null;
  if (!Object.keys(headers).some((header) => header.toLowerCase() === keyHeader))
    return { code: "idempotency/not-taken", message: `${name} takes no Idempotency-Key: it would be done again` };
  return typeof key === "string" && /^[\x21-\x7e]{1,200}$/.test(key)
    ? null
    : { code: "bad-request", message: "an Idempotency-Key is 1 to 200 printable characters without blanks" };
}
