import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Json, JsonObject } from "../json/json.ts";
import { openApi } from "./openapi.ts";
import { restPage } from "./page.ts";
import { publishedPath } from "./route.ts";
import { routeNames, routeOf } from "./routes.ts";

const document = openApi();
type Operation = {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean }[];
  readonly responses: JsonObject;
};
const operations = Object.entries(document.paths as unknown as Record<string, Record<string, Operation>>).flatMap(
  ([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

test("docs/rest.md is what `cells api reference` prints", () => {
  const committed = readFileSync(new URL("../../docs/rest.md", import.meta.url), "utf8");
  assert.equal(committed, restPage(), "write it anew: `cells api reference docs/rest.md`");
});

test("every route is an operation, once, with all parameters of its path", () => {
  assert.deepEqual(operations.map(({ operation }) => operation.operationId).sort(), [...routeNames].sort());
  for (const { path, method, operation } of operations) {
    const route = routeOf(operation.operationId as (typeof routeNames)[number]);
    assert.deepEqual([method.toUpperCase(), path], [route.method, publishedPath(route).replace("*", "")]);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
    assert.deepEqual(
      declared.map(({ name }) => name),
      inPath,
    );
    assert.ok(declared.every(({ required }) => required === true));
    assert.ok(String(route.answer.status) in operation.responses);
  }
});

test("every reference leads somewhere, and every component is a valid schema that something refers to", () => {
  const used = new Set<string>();
  const walk = (value: Json): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, each] of Object.entries(value)) {
      if (key === "$ref") used.add(String(each));
      else walk(each as Json);
    }
  };
  walk(document);
  const { schemas } = document.components as { readonly schemas: JsonObject };
  const known = [
    ...Object.keys(schemas).map((name) => `#/components/schemas/${name}`),
    "#/components/responses/Refused",
  ];
  assert.deepEqual([...used].sort(), known.sort());
  const ajv = new Ajv2020({ strict: false });
  ajv.addSchema({ $id: "openapi", ...document });
  for (const name of Object.keys(schemas))
    assert.ok(ajv.compile({ $ref: `openapi#/components/schemas/${name}` }), name);
});
