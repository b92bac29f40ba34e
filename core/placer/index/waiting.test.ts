import assert from "node:assert/strict";
import { test } from "node:test";
import { host, world } from "../placer.testing.ts";
import { manyHosts, saidAnew } from "./waiting.ts";

test("of many hosts one that has room again is found, and what is said of the others comes in time", () => {
  const names = Array.from({ length: manyHosts + 1 }, (_, at) => `h${at}`);
  const { say, want, get } = world(names);
  for (const name of names) say(name, host(name));
  want("vm", 5000);
  assert.equal(get("vm")?.refusals.length, names.length);
  say("h7", host("h7", 2000));
  const whyOf7 = (): string | undefined => get("vm")?.refusals.find((each) => each.host === "h7")?.why;
  assert.match(whyOf7() ?? "", /3000 MiB are free/, "not said anew at once");
  for (let change = 0; change < saidAnew; change += 1) say("h9", host("h9", 2000 + change));
  assert.match(whyOf7() ?? "", /1000 MiB are free/);
  say("h11", host("h11", 9000));
  assert.equal(get("vm")?.host, "h11");
});
