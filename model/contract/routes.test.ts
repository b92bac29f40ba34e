import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import type { Json, JsonObject } from "../json/json.ts";
import { match } from "./match.ts";
import { readJsonBody, readQuery } from "./request.ts";
import { parametersIn } from "./route.ts";
import { parameterDocs, routeNames, routeOf } from "./routes.ts";
import { faultIn, keywords } from "./schema.ts";

/** All schemas of the table, each with the route and the place that it stands at. */
const schemas = routeNames.flatMap((name) => {
  const { query, body, answer, headers = {} } = routeOf(name);
  const parameters = [...Object.entries(query), ...Object.entries(headers)];
  const all: (readonly [string, JsonObject | null])[] = [
    ...parameters.map(([parameter, { schema }]) => [`${name} ${parameter}`, schema] as const),
    [`${name} body`, body?.schema ?? null],
    [`${name} answer`, answer.schema],
  ];
  return all.flatMap(([place, schema]) => (schema === null ? [] : [{ place, schema }]));
});

const urlOf = (path: string): string =>
  path.replace(/\{([^}*]+)(\*?)\}/g, (_whole, name: string, star: string) =>
    star === "*" ? "a/b%20c/d" : `a-${name}`,
  );

test("every route is found by its path, and no other", () => {
  for (const name of routeNames) {
    const { method, path } = routeOf(name);
    const found = match(method, `${urlOf(path)}?x=/y`);
    assert.equal(found?.name, name, `${method} ${path}`);
    const expected = parametersIn(path).map(({ name, several }) => [name, several ? "a/b c/d" : `a-${name}`]);
    assert.deepEqual(found?.parameters, Object.fromEntries(expected));
    assert.equal(match("TRACE", urlOf(path)), null);
  }
  for (const path of [
    "/",
    "",
    "/nothing",
    "/cells/shop/nothing",
    "/cells/root/hosts",
    "/images/a/b",
    "/cells/%zz/model",
  ])
    assert.equal(match("GET", path), null, path);
});

test("empty parts of a path do not count", () => {
  assert.equal(match("GET", "/cells/shop/model/")?.name, "readModel");
  assert.deepEqual(match("GET", "//cells//shop/model/shop//web")?.parameters, { cell: "shop", path: "shop/web" });
});

test("no part of a path is both written out and a parameter", () => {
  const parts = routeNames.flatMap((name) => {
    const { path } = routeOf(name);
    const all = path.split("/").map((part) => (part.startsWith("{") ? part.replace(/[^{*}]+/, "") : part));
    return all.map((part, index) => ({ before: all.slice(0, index).join("/"), part }));
  });
  for (const { before, part } of parts) {
    const beside = parts.filter((other) => other.before === before && other.part !== part);
    assert.ok(part !== "{}" || beside.length === 0, `${before}: ${beside.map((other) => other.part)}`);
  }
});

test("what the table says is complete: a sentence for each, a word on each parameter, and schemas that the checker knows", () => {
  const known = new Set<string>(keywords);
  const walk = (schema: Json, place: string): void => {
    const { properties = {}, ...own } = schema as { properties?: JsonObject } & JsonObject;
    for (const [keyword, value] of Object.entries(own)) {
      assert.ok(known.has(keyword), `${place}: the checker does not know "${keyword}"`);
      if (keyword === "items" || keyword === "additionalProperties") walk(value, place);
      if (keyword === "anyOf") for (const each of value as readonly Json[]) walk(each, place);
    }
    for (const [name, value] of Object.entries(properties)) walk(value, `${place}.${name}`);
  };
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: true });
  for (const { place, schema } of schemas) {
    walk(schema, place);
    assert.ok(ajv.validateSchema(schema), `${place}: ${ajv.errorsText()}`);
  }
  for (const name of routeNames) {
    const { doc, path, method, body } = routeOf(name);
    assert.match(doc, /^[A-Z`].*[.]$/, name);
    for (const { name: parameter } of parametersIn(path)) assert.ok(parameterDocs[parameter], `${name} ${parameter}`);
    assert.ok(body === null || method === "PUT" || method === "PATCH" || method === "POST", name);
  }
});

test("the checker and Ajv agree on every schema of the table", () => {
  const ajv = new Ajv2020({ strict: false });
  for (const { place, schema } of schemas) {
    const validate = ajv.compile(schema);
    const near = valueNear(schema);
    const property = fc.property(fc.oneof(near, fc.jsonValue() as fc.Arbitrary<Json>), (value) => {
      const fault = faultIn(schema, value);
      assert.equal(fault === null, validate(value), `${place}: ${JSON.stringify(value)}: ${fault}`);
    });
    fc.assert(property, { numRuns: 40 });
  }
});

/** Values that a schema takes, or would but for something. */
function valueNear(schema: JsonObject): fc.Arbitrary<Json> {
  const wrong = fc.constantFrom<Json>(null, "", "x", -1, 0.5, 70_000, true, [], {});
  const mostly = (right: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
    fc.oneof({ weight: 12, arbitrary: right }, { weight: 1, arbitrary: wrong });
  if (Array.isArray(schema.anyOf)) return fc.oneof(...(schema.anyOf as readonly JsonObject[]).map(valueNear));
  if (schema.enum !== undefined) return mostly(fc.constantFrom(...(schema.enum as readonly Json[])));
  if (schema.const !== undefined) return mostly(fc.constant(schema.const));
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "string") {
    const { pattern, maxLength } = schema;
    const text = fc.oneof(fc.string(), fc.constantFrom("é", "💡".repeat(150), "x".repeat(201), "2026-01-01T00:00:00Z"));
    const exact = pattern === undefined ? text : fc.stringMatching(new RegExp(String(pattern)));
    return mostly(maxLength === undefined ? exact : text);
  }
  if (type === "integer" || type === "number") return mostly(fc.integer());
  if (type === "boolean") return mostly(fc.boolean());
  if (type === "array") return mostly(fc.array(valueNear(schema.items as JsonObject), { maxLength: 3 }));
  if (type !== "object") return fc.jsonValue() as fc.Arbitrary<Json>;
  const { properties, additionalProperties } = schema;
  if (properties === undefined)
    return mostly(fc.dictionary(fc.string(), valueNear((additionalProperties ?? {}) as JsonObject), { maxKeys: 3 }));
  const fields = Object.entries(properties as { readonly [name: string]: JsonObject });
  const model = Object.fromEntries(fields.map(([name, each]) => [name, valueNear(each)]));
  const needed = schema.required as string[];
  return mostly(
    fc.oneof(
      { weight: 8, arbitrary: fc.record(model, { requiredKeys: needed }) },
      fc.record(model, { requiredKeys: [] }),
    ) as fc.Arbitrary<Json>,
  );
}

test("a query is read by the table, and a fault in it has a name and what would be right", () => {
  const read = (query: string) => readQuery("putModel", `/cells/shop/model${query}`);
  assert.deepEqual(read(""), { ok: true, value: { allowDestroy: [] } });
  assert.deepEqual(read("?dryRun=true&allowDestroy=a&allowDestroy=b&later=1"), {
    ok: true,
    value: { dryRun: true, allowDestroy: ["a", "b"] },
  });
  const errors = [
    ["?dryRun=1", 'dryRun in the query: found "1", must be true or false'],
    ["?dryRun", 'dryRun in the query: found "", must be true or false'],
    ["?dryRun=true&dryRun=false", "dryRun in the query: found a list of 2, must be given once"],
  ] as const;
  for (const [query, error] of errors) {
    const result = read(query);
    assert.deepEqual(result.ok || result.error, { code: "bad-request", message: error });
  }
  const port = (text: string) => readQuery("explain", `/cells/shop/why?port=${text}`);
  assert.deepEqual(port("80"), { ok: true, value: { port: 80 } });
  for (const text of ["0", "65536", "1.5", "0x50", "", "9999999999999999999"])
    assert.match(JSON.stringify(port(text)), /port in the query: found .*, must be a whole number from 1 to 65535/);
  assert.match(JSON.stringify(readQuery("addImage", "/images/x")), /image\/format.*the format must be declared/);
});

test("a body is read by the table, and a fault in it has a place", () => {
  assert.ok(readJsonBody("exec", { vm: "shop/vm", command: ["ls"], later: true }).ok);
  const errors = [
    [{ vm: "shop/vm", command: ["ls", 7] }, "at command[1]: found 7, must be text"],
    [{ vm: "shop/vm", command: [] }, "at command: found a list of 0, must be a list of at least 1"],
    [{ command: ["ls"] }, "at vm: found nothing, must be text"],
    [[], "found a list of 0, must be an object"],
  ] as const;
  for (const [body, error] of errors)
    assert.deepEqual(readJsonBody("exec", body), { ok: false, error: `the body is not as exec takes it: ${error}` });
});
