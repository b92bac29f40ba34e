import assert from "node:assert/strict";
import { test } from "node:test";
import { haSettings } from "../../cell/attributes/ha-settings.ts";
import type { JsonObject } from "../../json/json.ts";
import { checkDocument } from "../../specification/specification.ts";

const checked = (attributes: JsonObject, name = "root") =>
  checkDocument({ [name]: { "x.type": "Cell", ...attributes } });
const said = (attributes: JsonObject, name?: string): string => {
  const result = checked(attributes, name);
  return result.ok ? "" : result.error.map(({ code, message, hint = "" }) => `${code}: ${message} ${hint}`).join("\n");
};

test("each setting is taken from its least to its most, and refused beyond them with both named", () => {
  for (const [name, { least, most }] of Object.entries(haSettings)) {
    const attribute = `x.ha.${name}`;
    // What is forgotten sooner than it is counted is another fault.
    const beside = name === "timeBetweenFailures" ? { "x.ha.timeBetweenCleanup": 2_592_000 } : {};
    for (const value of [least, most]) assert.equal(said({ [attribute]: value, ...beside }), "", `${name} ${value}`);
    for (const value of [least - 1, most + 1, 7.5, "60", true])
      assert.match(said({ [attribute]: value }), new RegExp(`${attribute}.*${least}.*${most}`), `${name} ${value}`);
  }
  assert.match(
    said({ "x.ha.maxRetires": 3 }),
    /maxRetires.*maxRetries/s,
    "one that is none, with the one that was meant",
  );
});

test("the presets are CloudStack's, and what is not written is not in the cell", () => {
  const presets = Object.entries(haSettings).map(([name, { preset }]) => `${name} ${preset}`);
  assert.deepEqual(presets, [
    "syncInterval 60",
    "timeToSleep 60",
    "investigateRetryInterval 60",
    "stopRetryInterval 600",
    "timeBetweenCleanup 86400",
    "timeBetweenFailures 3600",
    "restartRetryInterval 600",
    "haWorkers 5",
    "maxRetries 5",
    "spareHosts 0",
  ]);
  const result = checked({ "x.ha.maxRetries": 5 });
  assert.deepEqual(result.ok && result.value.ha, { maxRetries: 5 });
  const without = checked({});
  assert.equal(without.ok && without.value.ha, undefined);
});

test("who is asked is a list of those there are, each once and one at least", () => {
  const result = checked({ "x.ha.investigators": ["export", "power"] });
  assert.deepEqual(result.ok && result.value.ha, { investigators: ["export", "power"] });
  for (const [value, right] of [
    [["power", "neighbors"], /has "neighbors", which is none of "power", "host-manager", .*neighbours/s],
    [["power", "power"], /has "power" twice/],
    [[], /must be at least one of "power", .* Leave `x\.ha\.investigators` out for all of them/],
    ["power", /must be a list of "power", .* Write \["power"\]/],
    [[7], /must be a list of/],
  ] as const)
    assert.match(said({ "x.ha.investigators": value as never }), right, JSON.stringify(value));
  assert.match(said({ "x.ha.investigators": ["power"] }, "shop"), /cell\/ha: `shop` sets/);
});

test("they are the root cell's alone; what is counted is not forgotten before", () => {
  assert.match(
    said({ "x.ha.maxRetries": 3 }, "shop"),
    /cell\/ha: `shop` sets .* root cell's alone Leave `x\.ha` out here/,
  );
  assert.match(
    said({ "x.ha.timeBetweenFailures": 90_000 }),
    /cell\/ha: `x\.ha\.timeBetweenFailures` is 90000 s, and what has ended is forgotten after 86400 s/,
  );
  assert.equal(said({ "x.ha.timeBetweenFailures": 86_400 }), "");
});
