import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

const root = peerName("controller.root");
/** Hosts of two zones, of which the first two are in one. */
function cloud(memoryMiB: Readonly<Record<string, number>> = {}) {
  const placer = world(["h1", "h2", "h3"]);
  const desire = (key: string, value: JsonObject | null): unknown =>
    placer.input({ kind: "desired", from: root, key, value });
  for (const [name, cluster, tags] of [
    ["h1", "z1/p1/c1", ["ssd"]],
    ["h2", "z1/p2/c1", []],
    ["h3", "z2/p1/c1", ["gpu"]],
  ] as const) {
    placer.say(name, host(name, memoryMiB[name] ?? 4000));
    desire(`marks/${name}`, { host: name, cluster, ...(tags.length === 0 ? {} : { tags }) });
  }
  const start = (vm: string, placement: JsonObject, miB = 100): string | null => {
    placer.want(vm, miB, 1, { placement });
    return placer.get(vm)?.host ?? null;
  };
  return { ...placer, desire, start };
}

test("of hosts that take a VM it stands where its nice wishes that are so weigh most, and none keeps it away", () => {
  const { start, get } = cloud();
  assert.equal(start("a", { nice: { fast: { tags: ["ssd"] } } }), "h1");
  assert.deepEqual(get("a")?.nice, ["fast"]);
  const both = { fast: { tags: ["ssd"], weight: 2 }, far: { zone: "z2", weight: 3 } };
  assert.equal(start("b", { nice: both }), "h3", "the more it weighs, the rather");
  assert.deepEqual(get("b")?.nice, ["far"]);
  assert.equal(start("c", { nice: { near: { zone: "z1" }, fast: { tags: "ssd" }, far: { zone: "z2" } } }), "h1");
  assert.deepEqual(get("c")?.nice, ["near", "fast"]);
  assert.notEqual(start("d", { nice: { none: { tags: ["nobody-has-it"] } } }), null);
  assert.equal(get("d")?.nice, undefined);
  assert.equal(start("e", { zone: "z2", nice: { fast: { tags: "ssd", weight: 1000 } } }), "h3", "what it has to have");
});

test("by a nice wish it stands with a group of its account, or apart from it", () => {
  const { start, input } = cloud();
  const group = (name: string, kind: string): unknown =>
    input({
      kind: "desired",
      from: peerName("controller.shop"),
      key: `group/shop-${name}`,
      value: { uid: `shop-${name}`, path: `shop/${name}`, name, kind },
    });
  group("with", "host affinity");
  group("off", "host anti-affinity");
  const first = start("a", { groups: ["with", "off"] });
  assert.equal(start("b", { nice: { near: { group: "with" } } }), first);
  assert.notEqual(start("c", { nice: { apart: { group: "off" } } }), first);
  assert.equal(
    start("d", { nice: { apart: { group: "off" } }, host: first ?? "" }),
    first,
    "and yet it may stand there",
  );
});

test("a VM gets more than it has to have where that is there, and keeps it", () => {
  const { start, get, want, restart, rooms } = cloud({ h2: 1500, h3: 1500 });
  const placement = { nice: { roomy: { memory: 2000 }, many: { cpus: 64 } } };
  assert.equal(start("a", placement, 300), "h1");
  assert.deepEqual(get("a")?.given, { memoryMiB: 2000, cpus: 1 });
  assert.deepEqual(get("a")?.nice, ["roomy"]);
  const taken = (): number | undefined => rooms().find((each) => each.host === "h1")?.usedMiB;
  assert.equal(taken(), 2000, "that is what it takes of the host");
  want("a", 300, 1, { placement, at: "h1", has: { memoryMiB: 2000, cpus: 1 } });
  assert.equal(taken(), 2000);
  restart();
  assert.deepEqual(get("a")?.given, { memoryMiB: 2000, cpus: 1 });
  assert.notEqual(start("b", placement, 400), null, "with no more than it has to have");
  assert.equal(get("b")?.given, undefined);
  want("a", 300, 2, { placement: { ...placement, host: "h2" } });
  assert.deepEqual([get("a")?.host, get("a")?.given], ["h2", undefined], "elsewhere it gets what is there");
});

test("a Placer whose store was lost takes a VM for as large as it is", () => {
  const { want, get, records, restart } = cloud({ h2: 1500, h3: 1500 });
  const placement = { nice: { roomy: { memory: 2000 } } };
  want("a", 300, 1, { placement, at: "h1", has: { memoryMiB: 2000, cpus: 1 } });
  records.clear();
  restart();
  assert.deepEqual([get("a")?.host, get("a")?.given], ["h1", { memoryMiB: 2000, cpus: 1 }]);
  want("b", 1500, 1, { placement: { host: "h1" } });
  assert.equal(get("b")?.phase, "waiting", "its room is not promised twice");
});

test("one that leaves its host needs no more there than it has to have", () => {
  const { start, get, want, administer } = cloud({ h2: 1500, h3: 1500 });
  const placement = { nice: { roomy: { memory: 2000 } } };
  assert.equal(start("a", placement, 300), "h1");
  want("a", 300, 1, { placement, at: "h1", has: { memoryMiB: 2000, cpus: 1 } });
  administer("h1", "maintenance");
  assert.match(get("a")?.leave?.to ?? "", /^h[23]$/);
});

test("where room is kept for lost hosts nobody gets more than he has to have", () => {
  const { desire, start, get } = cloud();
  desire("spare", { hosts: 1 });
  assert.notEqual(start("a", { nice: { roomy: { memory: 2000 }, fast: { tags: "ssd" } } }, 300), null);
  assert.deepEqual([get("a")?.host, get("a")?.given, get("a")?.nice], ["h1", undefined, ["fast"]]);
});

test("VMs of one spread go to different zones first, and there to different hosts", () => {
  const { start } = cloud();
  const placement = { spread: "web", spreadOver: "zone" };
  const zoneOf = { h1: "z1", h2: "z1", h3: "z2" } as const;
  const at = ["a", "b", "c", "d"].map((vm) => start(vm, placement) as keyof typeof zoneOf);
  assert.notEqual(zoneOf[at[0] ?? "h1"], zoneOf[at[1] ?? "h1"], at.join());
  assert.notEqual(zoneOf[at[2] ?? "h1"], zoneOf[at[3] ?? "h1"], at.join());
  assert.deepEqual(at.filter((each) => zoneOf[each] === "z1").sort(), ["h1", "h2"], "each host of the zone once");
});

test("VMs that pack fill one host before the next", () => {
  const { start } = cloud();
  const at = ["a", "b", "c", "d"].map((vm) => start(vm, { fill: "pack" }, 1000));
  assert.deepEqual(at, ["h1", "h1", "h1", "h2"]);
  assert.equal(start("e", {}, 100), "h3", "others spread");
});
