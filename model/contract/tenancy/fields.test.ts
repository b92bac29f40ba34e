import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../json/json.ts";
import { routeOf } from "../routes.ts";
import { askedTime, faultIn } from "../schema.ts";
import { tenantRoutes } from "./routes.ts";

/** Texts of a schema that are not one of a list, each with its place. */
function* textsOf(schema: JsonObject, at: string): Generator<readonly [at: string, schema: JsonObject]> {
  const { anyOf = [], type, properties = {}, items, additionalProperties } = schema;
  for (const each of anyOf as readonly JsonObject[]) yield* textsOf(each, at);
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (types.includes("string") && schema.enum === undefined && schema.const === undefined) yield [at, schema];
  for (const [name, each] of Object.entries(properties as JsonObject))
    yield* textsOf(each as JsonObject, `${at}.${name}`);
  if (items !== undefined) yield* textsOf(items as JsonObject, `${at}[]`);
  if (typeof additionalProperties === "object") yield* textsOf(additionalProperties as JsonObject, `${at}.*`);
}
/** Certificates of an issuer's authority are that long. */
const longer: ReadonlySet<string> = new Set(["addProvider body.authority"]);

test("each field of what is asked about tenants refuses 10,000 characters, whatever they are, and says what would be right", () => {
  let bounded = 0;
  for (const name of Object.keys(tenantRoutes) as (keyof typeof tenantRoutes)[]) {
    const { body, query } = routeOf(name);
    const texts = [
      ...(body === null ? [] : [...textsOf((body.schema ?? {}) as JsonObject, "body")]),
      ...Object.entries(query).flatMap(([parameter, { schema }]) => [...textsOf(schema, `?${parameter}`)]),
    ];
    for (const [at, schema] of texts) {
      if (longer.has(`${name} ${at}`)) continue;
      for (const character of ["x", "9", "/", ".", "é", "\u0000"]) {
        const fault = faultIn(schema, character.repeat(10_000));
        assert.ok(fault !== null, `${name} ${at} takes 10,000 times ${JSON.stringify(character)}`);
        assert.ok(`${fault}`.length < 2000 && /must be/.test(`${fault}`), `${fault}`);
      }
      bounded += 1;
    }
  }
  assert.ok(bounded > 60, `${bounded} fields`);
});

test("a time that somebody asks about is one, and what is not is refused", () => {
  for (const good of ["2026-11-26", "2026-11-26T14:30Z", "2026-11-26T14:30:00Z", "2026-11-26T14:30:00.123+01:00"])
    assert.equal(faultIn(askedTime, good), null, good);
  for (const bad of ["yesterday", "", "2026", "2026-13-01", "2026-11-26T14:30:00", "2026-11-26T25:00:00Z", "1d"])
    assert.match(`${faultIn(askedTime, bad)}`, /must be a time in ISO 8601, as 2026-11-26/, bad);
});
