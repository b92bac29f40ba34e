import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

test("of a VM that waits for a host alone by its offering the advice is about the offering", () => {
  const it = world(["h1"]);
  it.say("h1", host("h1"));
  const offerings = [{ name: "alone", memoryMiB: 4000, cpus: 4, dedication: "strict" }];
  const tell = (key: string, value: JsonObject): void =>
    void it.input({ kind: "desired", from: peerName("controller.root"), key, value });
  tell("settings", { settings: {}, offerings });
  tell("owner/shop", { cell: "shop", account: "ROOT/acme/dev" });
  it.want("a", 100);
  assert.equal(it.get("a")?.host, "h1");
  it.want("b", 100, 1, { placement: { offering: "alone", dedication: "strict" } });
  assert.equal(it.get("b")?.advice?.change, "leave out `x.placement.offering`");
  it.want("c", 100, 1, { placement: { dedication: "strict" } });
  assert.equal(it.get("c")?.advice?.change, 'write `x.placement.dedication "preferred"`');
});
