import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { GroupKind } from "../../../model/cell/tenants/affinity/affinity.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

const root = peerName("controller.root");
const controller = (cell: string): PeerName => peerName(`controller.${cell}`);

/** Cells of the account ROOT/a1 are `shop` and `back`; `other` is of ROOT/a2; `team.shop` is within `shop`. */
function cloud(names: readonly string[] = ["h1", "h2"]) {
  const placer = world(names);
  for (const name of names) placer.say(name, host(name));
  const desire = (from: PeerName, key: string, value: JsonObject | null): unknown =>
    placer.input({ kind: "desired", from, key, value });
  for (const [cell, account] of [
    ["shop", "ROOT/a1"],
    ["back", "ROOT/a1"],
    ["other", "ROOT/a2"],
  ] as const)
    desire(root, `owner/${cell}`, { cell, account });
  const group = (cell: string, kind: GroupKind | null, name = "g"): unknown =>
    desire(
      controller(cell),
      `group/${cell}-${name}`,
      kind === null ? null : { uid: `${cell}-${name}`, path: `${cell.split(".")[0]}/${name}`, name, kind },
    );
  const start = (cell: string, vm: string, more: JsonObject = {}, placement: JsonObject = { groups: ["g"] }) => {
    const about = { cpus: 1, cpuSpeedMHz: 0, incarnation: 1, memoryMiB: 100 };
    desire(controller(cell), `placement/${vm}`, { vm, path: `${cell}/${vm}`, cell, placement, ...about, ...more });
    return placer.get(vm, controller(cell))?.host ?? null;
  };
  const said = (cell: string, vm: string) => placer.get(vm, controller(cell));
  return { ...placer, desire, group, start, said };
}
const none = (hosts: readonly unknown[] | undefined): boolean => hosts?.length === 0;

test("VMs of an anti-affinity group stand at different hosts, whichever cells of the account they are of", () => {
  const { group, start, said } = cloud();
  group("back", "host anti-affinity");
  const first = start("shop", "v1");
  const second = start("back", "v2");
  assert.deepEqual([first, second].sort(), ["h1", "h2"]);
  assert.equal(start("shop", "v3"), null);
  const [refusal] = said("shop", "v3")?.refusals ?? [];
  assert.equal(refusal?.kind, "apart");
  assert.equal(refusal?.why, 'the group "g" is "host anti-affinity", and a VM of it is there');
  assert.equal(start("other", "v4"), null, "another account has no such group");
  assert.match(said("other", "v4")?.reason ?? "", /ROOT\/a2 has no group "g"/);
  group("other", "host anti-affinity");
  assert.notEqual(
    said("other", "v4")?.host ?? null,
    null,
    "and with one of its own it stands beside the first account's",
  );
  assert.notEqual(start("team.shop", "v5", {}, {}), null, "who is in no group stands anywhere");
});

test("VMs of an affinity group stand where one of them is", () => {
  const { group, start, said } = cloud();
  group("shop", "host affinity");
  const first = start("shop", "v1", { memoryMiB: 2000 });
  assert.equal(start("back", "v2", { memoryMiB: 500 }), first);
  assert.equal(start("back", "v3", { memoryMiB: 900 }), null, "it does not fit there");
  const kinds = said("back", "v3")?.refusals.map(({ kind }) => kind);
  assert.deepEqual(kinds?.sort(), ["memory", "pinned"]);
});

test("a group that is not strict only prefers", () => {
  const { group, start } = cloud(["h1", "h2", "h3"]);
  group("shop", "non-strict host anti-affinity");
  const three = ["v1", "v2", "v3"].map((vm) => start("shop", vm));
  assert.deepEqual(three.sort(), ["h1", "h2", "h3"]);
  assert.notEqual(start("shop", "v4"), null, "beside one of them, where there is no other");
  group("shop", "non-strict host affinity", "near");
  const near: JsonObject = { groups: ["near"] };
  const first = start("shop", "n1", { memoryMiB: 1000 }, near);
  assert.equal(start("shop", "n2", { memoryMiB: 1000 }, near), first, "though others have more room");
  assert.notEqual(start("shop", "n3", { memoryMiB: 1000 }, near), null, "and elsewhere where it is full");
});

test("VMs of a group that would rather stand apart do so also where another host has less room", () => {
  const { group, start, say } = cloud();
  say("h1", host("h1", 8000));
  group("shop", "non-strict host anti-affinity");
  assert.deepEqual([start("shop", "v1"), start("shop", "v2")], ["h1", "h2"]);
  assert.equal(start("shop", "v3", {}, {}), "h1", "who is in no group goes where most is free");
});

test("a VM that was stopped counts at its host without taking room, until its controller says no more of it", () => {
  const { group, start, said, desire, restart, rooms } = cloud();
  group("shop", "host anti-affinity");
  const first = start("shop", "v1", { memoryMiB: 2500 });
  start("shop", "v1", { memoryMiB: 2500, off: true, at: first });
  assert.equal(said("shop", "v1")?.host, first);
  assert.deepEqual(
    rooms().map(({ usedMiB, vms }) => [usedMiB, vms]),
    [
      [0, 0],
      [0, 0],
    ],
  );
  const second = start("shop", "v2");
  assert.notEqual(second, first);
  assert.equal(start("shop", "v3"), null, "v1 would rather start there again");
  assert.equal(start("back", "big", { memoryMiB: 2500 }, {}), first, "its room is others'");
  restart();
  for (const [vm, at] of [
    ["v1", first],
    ["v2", second],
  ])
    start("shop", vm ?? "", { at: at ?? "", ...(vm === "v1" ? { off: true } : {}) });
  start("shop", "v3");
  assert.equal(said("shop", "v3")?.host ?? null, null, "also after the Placer has started again");
  desire(controller("shop"), "placement/v1", null);
});

test("strict dedication counts a VM that was stopped lately", () => {
  const { start, desire, said } = cloud(["h1"]);
  start("other", "o1", {}, { dedication: "preferred" });
  start("other", "o1", { off: true, at: "h1" }, { dedication: "preferred" });
  assert.equal(start("shop", "v1", {}, { dedication: "strict" }), null);
  desire(controller("other"), "placement/o1", null);
  assert.equal(said("shop", "v1")?.host, "h1");
});

test("nobody is held where a host died, or is being emptied", () => {
  const { group, start, administer, said } = cloud();
  group("shop", "host affinity");
  const first = start("shop", "v1") ?? "";
  start("shop", "v2");
  administer(first, "maintenance");
  const to = first === "h1" ? "h2" : "h1";
  assert.equal(said("shop", "v1")?.leave?.to, to);
  assert.equal(said("shop", "v2")?.leave?.to, to);
});

test("two groups of one name and different kinds are none, and it is said which they are", () => {
  const { group, start, said } = cloud();
  group("shop", "host affinity");
  group("back", "host anti-affinity");
  assert.equal(start("shop", "v1"), null);
  assert.match(said("shop", "v1")?.reason ?? "", /two: "back\/g" \(host anti-affinity\), "shop\/g" \(host affinity\)/);
  assert.ok(none(said("shop", "v1")?.refusals));
  group("back", null);
  assert.notEqual(said("shop", "v1")?.host ?? null, null);
});

test("cells of no account have groups with the cells in them", () => {
  const { desire, group, start } = cloud();
  desire(root, "owner/shop", null);
  desire(root, "owner/back", null);
  group("shop", "host anti-affinity");
  const both = [start("shop", "v1"), start("team.shop", "v2")];
  assert.deepEqual(both.sort(), ["h1", "h2"]);
  assert.equal(start("back", "v3"), null, "and nobody else");
});

test("another cell's word about a group counts for nothing", () => {
  const { desire, group, start } = cloud();
  group("shop", "host anti-affinity");
  desire(controller("back"), "group/shop-g", { uid: "shop-g", path: "back/g", name: "g", kind: "host affinity" });
  desire(controller("back"), "group/shop-g", null);
  assert.notEqual(start("shop", "v1"), start("shop", "v2"));
});

test("VMs that stand together and whose host is not heard any more start together elsewhere once each of them asks for its next place", () => {
  const { group, start, say, input, said } = cloud();
  group("shop", "host affinity");
  const terms = { owned: true, groups: [{ name: "g", kind: "host affinity" }] };
  for (const vm of ["a", "b"]) assert.equal(start("shop", vm), "h1");
  for (const vm of ["a", "b"])
    input({
      kind: "actual",
      from: peerName("host.h1"),
      key: `taken/${vm}`,
      value: { by: controller("shop"), memoryMiB: 100, cpus: 1, terms },
    });
  say("h1", null);
  assert.equal(start("shop", "a", { incarnation: 2 }), null, "the other one has its place there");
  assert.match(said("shop", "a")?.refusals.find(({ host }) => host === "h2")?.why ?? "", /its VMs are at another host/);
  assert.equal(start("shop", "b", { incarnation: 2 }), "h2");
  assert.equal(said("shop", "a")?.host, "h2");
  // It is heard again, and says for a moment what it had.
  say("h1", host("h1"));
  for (const vm of ["c", "d", "e"]) assert.equal(start("shop", vm), "h2", vm);
});
