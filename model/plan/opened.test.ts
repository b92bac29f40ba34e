import assert from "node:assert/strict";
import { test } from "node:test";
import type { Openness } from "../cell/cell.ts";
import type { JsonObject } from "../json/json.ts";
import { checkDocument } from "../specification/specification.ts";
import { openedBy, openedLines } from "./opened.ts";

const cell = (made: JsonObject) => {
  const result = checkDocument({ c: { "x.type": "Cell", ...made } });
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
};
const opened = (from: JsonObject | null, to: JsonObject | null, bound: Openness | null = {}): readonly string[] =>
  openedLines(openedBy(from && cell(from), to && cell(to), bound, (label) => label)).slice(1);
const child = (policy: JsonObject = {}): JsonObject => ({
  "x.type": "CellController",
  "x.cell": { "x.type": "Cell", ...policy },
});
const unless = ", where they and their child cells say nothing stricter";

test("what a cell takes from the cell above without a word of its own is named", () => {
  const bound: Openness = { internet: "out", subnetConnectivity: true };
  const both = ["  c: x.policy.subnetConnectivity false → true", '  c: x.policy.internet "none" → "out"'];
  assert.deepEqual(opened(null, {}, bound), both);
  assert.deepEqual(opened(null, {}), []);
  assert.deepEqual(opened({}, {}, bound), [], "it was so before");
  assert.deepEqual(opened(null, { "x.policy.internet": "none" }, bound), [both[0]]);
  assert.deepEqual(opened({ "x.policy.internet": "none" }, {}, bound), [both[1]], "its own word goes");
  assert.deepEqual(opened(null, { "x.policy.internet": "out" }), [], "that is a cause in the plan of the cell itself");
  assert.deepEqual(opened(null, {}, { internet: "none", broadcast: "off" }), []);
  assert.deepEqual(opened({ "x.policy.broadcast": "off" }, {}), ['  c: x.policy.broadcast "off" → "on"']);
  assert.deepEqual(opened({}, null, bound), []);
});

test("what a cell opens for its child cells is named with each of them", () => {
  const children: JsonObject = { zoo: child(), ape: child({ "x.policy.internet": "none" }) };
  const defaults: JsonObject = { "x.defaults.internet": "out" };
  const line = (names: string): string => `  ${names}: x.policy.internet "none" → "out"${unless}`;
  assert.deepEqual(opened(children, { ...children, ...defaults }, null), [line("ape, zoo")], "ape may say else by now");
  assert.deepEqual(opened({ ...children, ...defaults }, children, null), [], "it closes");
  assert.deepEqual(opened(children, { ...children, ...defaults }, { internet: "none" }), [], "it may not");
  assert.deepEqual(opened(null, { ...children, ...defaults }, null), [line("zoo")], "of new ones the word counts");
  assert.deepEqual(opened(defaults, { ...children, ...defaults }, null), [line("zoo")]);
  assert.deepEqual(opened({}, { own: child({ "x.policy.internet": "out" }) }), [line("own")], "a word of its own");
  const closed: JsonObject = { "x.defaults.broadcast": "off" };
  assert.deepEqual(opened({ ...children, ...closed }, children, null), [
    `  ape, zoo: x.policy.broadcast "off" → "on"${unless}`,
  ]);
});

test("of many child cells some are named and all are counted", () => {
  const many: JsonObject = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`t${String(index).padStart(2, "0")}`, child()]),
  );
  const [line = ""] = opened(many, { ...many, "x.defaults.internet": "out" }, null);
  assert.match(line, /^ {2}t00, t01, .*, t49 and 10 more: x\.policy\.internet/);
});
