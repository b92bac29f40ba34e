import assert from "node:assert/strict";
import { test } from "node:test";
import { placementSettings } from "../../cell/attributes/placement-settings.ts";
import type { JsonObject } from "../../json/json.ts";
import { checkDocument } from "../../specification/specification.ts";

const checked = (attributes: JsonObject, name = "root") =>
  checkDocument({ [name]: { "x.type": "Cell", ...attributes } });
const said = (attributes: JsonObject, name?: string): string => {
  const result = checked(attributes, name);
  return result.ok ? "" : result.error.map(({ code, message, hint = "" }) => `${code}: ${message} ${hint}`).join("\n");
};

test("each setting of the Placers is taken from its least to its most, and refused beyond them with both named", () => {
  for (const [name, { least, most, preset }] of Object.entries(placementSettings)) {
    const attribute = `x.placement.${name}`;
    for (const value of [least, preset, most]) assert.equal(said({ [attribute]: value }), "", `${name} ${value}`);
    for (const value of [least - 1, most + 1, 7.5, "60", true])
      assert.match(said({ [attribute]: value }), new RegExp(`${attribute}.*${least}.*${most}`), `${name} ${value}`);
  }
  assert.match(said({ "x.placement.lastHosts": 3 }), /lastHosts.*lastHostS/s, "one that is none, with what was meant");
});

test("what is not written is not in the cell, and what is written is the root cell's alone", () => {
  const result = checked({ "x.placement.lastHostS": 60 });
  assert.deepEqual(result.ok && result.value.placement, { lastHostS: 60 });
  const without = checked({});
  assert.equal(without.ok && without.value.placement, undefined);
  assert.match(
    said({ "x.placement.lastHostS": 60 }, "shop"),
    /cell\/placement: `shop` sets .* root cell's alone Leave `x\.placement` out beside the cell/,
  );
});
