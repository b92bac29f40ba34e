import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

/** The index passes over hosts where others of a spread are, unless one of them can be better: each of these is such a choice. */
const root = peerName("controller.root");
function cloud(hosts: Readonly<Record<string, number>>, clusters: Readonly<Record<string, string>> = {}) {
  const placer = world(Object.keys(hosts));
  for (const [name, memoryMiB] of Object.entries(hosts)) placer.say(name, host(name, memoryMiB));
  const say = (key: string, value: JsonObject): unknown => placer.input({ kind: "desired", from: root, key, value });
  say("owner/shop", { cell: "shop", account: "ROOT/a" });
  for (const [name, cluster] of Object.entries(clusters)) say(`marks/${name}`, { host: name, cluster });
  const start = (vm: string, placement: JsonObject): string | null => {
    placer.want(vm, 100, 1, { placement });
    return placer.get(vm)?.host ?? null;
  };
  const at = (vm: string, name: string, more: JsonObject = {}): void =>
    assert.equal(start(vm, { spread: "a", host: name, ...more }), name);
  return { start, at };
}

test("a VM that spreads goes where none of the others is, however much room there is beside them", () => {
  const { start, at } = cloud({ h1: 9000, h2: 4000, h3: 3000 });
  at("a1", "h1");
  assert.equal(start("a2", { spread: "a" }), "h2");
  assert.equal(start("a3", { spread: "a" }), "h3");
  assert.equal(start("b1", { spread: "b" }), "h1", "those of another one are nothing to it");
  assert.equal(start("a4", { spread: "a" }), "h1", "where some are everywhere, it is the room again");
  assert.equal(start("a5", { spread: "a" }), "h2", "of those with the fewest");
});

test("of zones the one with the fewest goes before a host without any", () => {
  const { start, at } = cloud({ h1: 4000, h2: 4000, h3: 4000 }, { h1: "z1/p1/c1", h2: "z1/p1/c1", h3: "z2/p1/c1" });
  at("a1", "h1");
  at("a2", "h1");
  at("a3", "h3");
  assert.equal(start("a4", { spread: "a", spreadOver: "zone" }), "h3");
  assert.equal(start("a5", { spread: "a", spreadOver: "zone" }), "h2", "as many in both: the host without any");
});

test("a host that is its account's by what runs there, and one that it would rather have, go before spread", () => {
  const { start, at } = cloud({ h1: 4000, h2: 4000 });
  at("a1", "h1", { dedication: "preferred" });
  assert.equal(start("a2", { spread: "a", dedication: "preferred" }), "h1");
  const wishing = cloud({ h1: 4000, h2: 4000 }, { h1: "z1/p1/c1", h2: "z2/p1/c1" });
  wishing.at("a1", "h1");
  const nice = { near: { zone: "z1" } };
  assert.equal(wishing.start("a2", { spread: "a", nice }), "h1");
  assert.equal(wishing.start("a3", { spread: "a" }), "h2");
});
