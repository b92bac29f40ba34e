import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../json/json.ts";
import { checkDocument } from "../../specification/specification.ts";

const checked = (attributes: JsonObject, name = "root") =>
  checkDocument({ [name]: { "x.type": "Cell", ...attributes } });
const said = (attributes: JsonObject, name?: string): string => {
  const result = checked(attributes, name);
  return result.ok ? "" : result.error.map(({ code, message, hint = "" }) => `${code}: ${message} ${hint}`).join("\n");
};
const whole = {
  "x.zone.name": "cloud.example.org",
  "x.zone.servers": "ns1.example.org  ns2.example.org",
  "x.zone.secondaries": ["10.0.0.9"],
};

test("a zone has a domain, servers, and from where they fetch it; without it there is none", () => {
  const result = checked(whole);
  assert.deepEqual(result.ok && result.value.zone, {
    name: "cloud.example.org",
    servers: ["ns1.example.org", "ns2.example.org"],
    secondaries: ["10.0.0.9"],
  });
  const keyed = checked({ ...whole, "x.zone.key": "transfer.example.org" });
  assert.equal(keyed.ok && keyed.value.zone?.key, "transfer.example.org");
  const without = checked({});
  assert.equal(without.ok && without.value.zone, undefined);
});

test("what of it is missing or none is said, with one that would do", () => {
  for (const [change, told] of [
    [{ "x.zone.name": "Cloud.example.org" }, /"Cloud\.example\.org", which is no domain .*small letters/],
    [{ "x.zone.name": "org" }, /"org", which is no domain/],
    [{ "x.zone.name": `${"a".repeat(64)}.org` }, /no domain/],
    [{ "x.zone.servers": " " }, /has 0 names of name servers Name from one to eight/],
    [{ "x.zone.servers": Array.from({ length: 9 }, (_, at) => `ns${at}.example.org`).join(" ") }, /has 9 names/],
    [{ "x.zone.servers": "ns1.example.org 10.0.0.9/" }, /"10\.0\.0\.9\/", which is no name of a host/],
    [{ "x.zone.secondaries": [] }, /nobody would fetch it/],
    [{ "x.zone.secondaries": ["ns1"] }, /x\.zone\.secondaries/],
    [{ "x.zone.key": "Transfer" }, /"Transfer", which is no name of a key .*give its secret to `cells zone key` alone/],
    [{ "x.zone.key": `a${".a".repeat(32)}` }, /no name of a key/],
    [{ "x.zone.key": "a..b" }, /no name of a key/],
  ] as const)
    assert.match(said({ ...whole, ...change }), told, JSON.stringify(change));
  assert.match(said({ "x.zone.key": "transfer" }), /`x\.zone` has no `x\.zone\.name`/);
  assert.match(said({ "x.zone.secondaries": ["10.0.0.9"] }), /`x\.zone` has no `x\.zone\.name`/);
  assert.match(said(whole, "shop"), /cell\/zone: `shop` hands names .* root cell's alone Leave `x\.zone` out here/);
});
