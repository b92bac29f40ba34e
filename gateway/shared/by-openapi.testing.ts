import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Json, JsonObject } from "../../model/json/json.ts";

/*
 * A client that is made of the OpenAPI document and knows nothing else of the interface lets users work: what the document leaves
 * out, or says wrong, it cannot ask for or read.
 */
interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonObject }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: JsonObject }>> }>
  >;
}
interface Asking {
  readonly body?: JsonObject | readonly JsonObject[];
  readonly [parameter: string]:
    | string
    | number
    | boolean
    | readonly string[]
    | JsonObject
    | readonly JsonObject[]
    | undefined;
}
export interface Answered {
  readonly status: number;
  readonly json: JsonObject;
  readonly list: readonly JsonObject[];
}
export type Send = (
  line: string,
  body: JsonObject | readonly JsonObject[] | undefined,
  headers: Readonly<Record<string, string>>,
) => Promise<Answered>;

/** A function for each operation, by its `operationId`. What is asked and answered is held to the document's schemas. */
export function clientOf(document: JsonObject, send: Send): (operation: string, asking?: Asking) => Promise<Answered> {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: "openapi", ...document });
  const pointer = (...parts: readonly string[]): string =>
    `openapi#/${parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/")}`;
  const compiled = new Map<string, ValidateFunction>();
  const hold = (value: Json, what: string, ...at: readonly string[]): void => {
    const ref = pointer(...at);
    const validate = compiled.get(ref) ?? ajv.compile({ $ref: ref });
    compiled.set(ref, validate);
    assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
  };
  const paths = document.paths as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const operations = new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, operation]) => [operation.operationId, { path, method, operation }] as const,
      ),
    ),
  );
  return async (name, { body, ...given } = {}) => {
    const found = operations.get(name);
    assert.ok(found !== undefined, `the document has no operation ${name}`);
    const { path, method, operation } = found;
    const { parameters = [], requestBody, responses } = operation;
    const query = new URLSearchParams();
    const headers: Record<string, string> = {};
    let url = path;
    for (const [key, value] of Object.entries(given)) {
      const parameter = parameters.find((each) => each.name === key);
      assert.ok(parameter !== undefined, `${name} has no parameter ${key}`);
      if (parameter.in === "path") url = url.replace(`{${key}}`, encodeURIComponent(String(value)));
      else if (parameter.in === "header") headers[key.toLowerCase()] = String(value);
      else for (const each of Array.isArray(value) ? value : [value]) query.append(key, String(each));
    }
    for (const { name: needed, required, in: where } of parameters)
      assert.ok(required !== true || where === "header" || needed in given, `${name} needs ${needed}`);
    if (body !== undefined) {
      const types = Object.keys(requestBody?.content ?? {});
      const type =
        types.find((each) => each === "application/json") ??
        types.find((each) => /^application\/(?:[a-z-]+\+)?json$/.test(each));
      assert.ok(type !== undefined, `${name} takes no JSON`);
      headers["content-type"] = type;
      hold(body as Json, `what ${name} is sent`, "paths", path, method, "requestBody", "content", type, "schema");
    }
    const answer = await send(`${method.toUpperCase()} ${url}${query.size === 0 ? "" : `?${query}`}`, body, headers);
    const status = String(answer.status);
    const at = status in responses ? status : "default";
    const response = responses[at];
    assert.ok(response !== undefined, `${name}: the document has no answer ${status}`);
    if (response.content?.["application/json"] !== undefined)
      hold(
        answer.json,
        `what ${name} answers`,
        "paths",
        path,
        method,
        "responses",
        at,
        "content",
        "application/json",
        "schema",
      );
    return answer;
  };
}
