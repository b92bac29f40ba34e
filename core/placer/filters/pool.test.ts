import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import { bootImagePattern } from "../../../model/cell/image-name.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { toJson } from "../../outbox.ts";
import { host, world } from "../placer.testing.ts";
import type { HostRoom } from "../room/rooms.ts";

const root = peerName("controller.root");
const [dev, test1, stranger] = ["ROOT/acme/dev", "ROOT/acme/test", "ROOT/other/ops"];
const accounts = { shop: dev, lab: test1, store: stranger } as const;

/** Hosts with room: `h1` in a pool of the cell `shop`, `h2` of its flavour and in none, `h3` of none. */
function cloud(pool: JsonObject | null = {}) {
  const placer = world(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2", "h3"]) placer.say(name, host(name));
  const say = (key: string, value: JsonObject | null): unknown =>
    placer.input({ kind: "desired", from: root, key, value });
  for (const [cell, account] of Object.entries(accounts)) say(`owner/${cell}`, { cell, account });
  const pooled = (more: JsonObject, tag: string): unknown =>
    say("pooled/h1", {
      host: "h1",
      flavor: "large",
      tag,
      pool: { uid: "c1-4", cell: "shop", path: "shop/racks", name: "rack1", enabled: true, authorised: [dev], ...more },
    });
  if (pool !== null) pooled(pool, "first");
  say("pooled/h2", { host: "h2", flavor: "large", tag: "large", pool: null });
  const start = (cell: string, vm: string, placement: JsonObject, more: JsonObject = {}): string | null => {
    const from: PeerName = peerName(`controller.${cell}`);
    placer.input({
      kind: "desired",
      from,
      key: `placement/${vm}`,
      value: toJson({
        vm,
        path: `${cell}/${vm}`,
        cell,
        incarnation: 1,
        memoryMiB: 100,
        cpus: 1,
        cpuSpeedMHz: 0,
        placement,
        ...more,
      }),
    });
    return placer.published.get(`${from}/placement/${vm}`)?.host ?? null;
  };
  const said = (cell: string, vm: string) => placer.published.get(`controller.${cell}/placement/${vm}`);
  const standing = (name: string): unknown => placer.published.get(`controller.root/standing/${name}`);
  return { ...placer, start, said, standing, pooled, say };
}

test("who asks for no pool stands at no host of a flavour, and who asks for one at its hosts alone", () => {
  const { start } = cloud();
  assert.equal(start("shop", "a", {}), "h3");
  assert.equal(start("store", "b", {}), "h3");
  assert.equal(start("shop", "c", { pool: "c1-4" }), "h1");
  assert.equal(start("shop", "d", { pool: "shop/racks" }), "h1", "in its own cell by its path");
  assert.equal(start("shop", "e", { pool: "racks" }), "h1");
  assert.equal(start("root", "f", {}), "h3", "the cloud's own VMs, too");
});

test("a pool takes VMs of the accounts that it authorises, by its UID", () => {
  const { start } = cloud({ authorised: [test1] });
  assert.equal(start("lab", "a", { pool: "c1-4" }), "h1");
  assert.equal(start("lab", "b", { pool: "shop/racks" }), null, "a path is another cell's own");
  assert.equal(start("shop", "c", { pool: "c1-4" }), null, "its owner has shut himself out");
});

test("of a pool that is another's no more is said than of one that is not there, and no host is named", () => {
  const { start, said } = cloud();
  start("store", "a", { pool: "c1-4" });
  start("store", "b", { pool: "c1-5" });
  const [there, nowhere] = [said("store", "a"), said("store", "b")];
  assert.equal(there?.reason?.replace("c1-4", "c1-5"), nowhere?.reason);
  assert.deepEqual(there?.refusals, []);
  assert.doesNotMatch(JSON.stringify([there, nowhere]), /h[123]|rack1/);
});

test("a host that is disabled in its pool takes nothing new and is called by its owner's name", () => {
  const { start, said, pooled } = cloud({ enabled: false });
  assert.equal(start("shop", "a", { pool: "c1-4" }), null);
  assert.match(said("shop", "a")?.reason ?? "", /rack1: it is disabled in its pool/);
  assert.doesNotMatch(JSON.stringify(said("shop", "a")), /h[123]/);
  pooled({ enabled: true }, "second");
  assert.equal(said("shop", "a")?.host, "h1", "it waits for that");
});

test("a pool takes VMs of the offerings and images that its owner names, and says which", () => {
  const { start, said, pooled } = cloud({ offerings: ["small"], images: ["debian", "//images.cells.internal/alpine"] });
  const small = { pool: "c1-4", offering: "small" };
  assert.equal(start("shop", "a", small, { image: "debian" }), "h1");
  assert.equal(start("shop", "b", small, { image: "//images.cells.internal/alpine" }), "h1");
  for (const [vm, placement, more, why] of [
    ["c", { ...small, offering: "large" }, { image: "debian" }, /rack1: .*offering small, and the VM is of large/],
    ["d", { pool: "c1-4" }, { image: "debian" }, /the VM is of none/],
    ["e", small, { image: "windows" }, /images debian, .*, and the VM boots from windows/],
    ["f", small, {}, /boots from none/],
  ] as const) {
    assert.equal(start("shop", vm, placement, more), null, vm);
    assert.match(said("shop", vm)?.reason ?? "", why);
    assert.doesNotMatch(JSON.stringify(said("shop", vm)), /h[123]/);
  }
  assert.match(said("shop", "c")?.refusals[0]?.lifts ?? "", /x\.placement\.offering "small"/);
  assert.equal(start("shop", "g", {}, {}), "h3", "elsewhere nobody asks");
  pooled({}, "second");
  assert.deepEqual(
    ["c", "d", "e", "f"].map((vm) => said("shop", vm)?.host),
    ["h1", "h1", "h1", "h1"],
  );
});

test("an image may be called as long as a pool may name it", () => {
  const longest = `//${"a".repeat(253)}/${"b".repeat(253)}`;
  assert.match(longest, bootImagePattern);
  const { start } = cloud({ images: [longest] });
  assert.equal(start("shop", "a", { pool: "c1-4" }, { image: longest }), "h1");
  assert.equal(start("shop", "b", { pool: "c1-4" }, { image: `${longest}${"c".repeat(1000)}` }), null);
});

test("all other filters hold in a pool", () => {
  const { start, said } = cloud();
  assert.equal(start("shop", "a", { pool: "c1-4", dedication: "strict" }), "h1");
  assert.equal(start("shop", "b", { pool: "c1-4", apartFrom: "shop/a" }), null);
  assert.match(said("shop", "b")?.reason ?? "", /rack1: x\.placement\.apartFrom keeps it apart/);
});

test("the root controller hears what stands at hosts of flavours and at disabled ones, by which of its words", () => {
  const { start, standing, pooled, say, input } = cloud();
  assert.deepEqual(standing("h1"), { vms: [], tag: "first" });
  assert.deepEqual(standing("h2"), { vms: [], tag: "large" });
  assert.equal(standing("h3"), undefined);
  start("shop", "vm-1", { pool: "c1-4" });
  assert.deepEqual(standing("h1"), { vms: ["vm-1"], tag: "first" });
  input({ kind: "actual", from: peerName("host.h1"), key: "taken/x-9", value: { memoryMiB: 10, cpus: 1 } });
  assert.deepEqual(standing("h1"), { vms: ["vm-1", "x-9"], tag: "first" }, "what another Placer has there, too");
  pooled({ enabled: false }, "second");
  assert.deepEqual(standing("h1"), { vms: ["vm-1", "x-9"], tag: "second" });
  say("host/h3", { host: "h3", state: "disabled" });
  assert.deepEqual(standing("h3"), { vms: [], tag: null });
  say("host/h3", null);
  assert.equal(standing("h3"), undefined);
});

test("a pool promises as many processors as its owner wants, and no more than a host holds", () => {
  for (const [cpuRatio, most] of [
    [1, 2],
    [3, 6],
    [64, 32],
  ] as const) {
    const { start, said } = cloud({ cpuRatio });
    const more = (cpus: number): JsonObject => ({ cpus, memoryMiB: 1 });
    assert.equal(start("shop", "a", { pool: "c1-4" }, more(most - 1)), "h1");
    assert.equal(start("shop", "b", { pool: "c1-4" }, more(2)), null, `${cpuRatio}`);
    assert.match(
      JSON.stringify(said("shop", "b")),
      new RegExp(`1 of ${most} \\(2 × ${Math.min(16, cpuRatio)}\\) are free`),
    );
    assert.equal(start("shop", "c", { pool: "c1-4" }, more(1)), "h1");
    assert.equal(start("shop", "d", {}, more(30)), "h3", "elsewhere it is as ever");
  }
});

test("a pool that packs fills one host before the next, and another one spreads", () => {
  for (const [fill, hosts] of [
    ["pack", ["h1", "h1", "h1"]],
    ["spread", ["h1", "h2", "h1"]],
  ] as const) {
    const { start, say } = cloud({ fill });
    const pool = {
      uid: "c1-4",
      cell: "shop",
      path: "shop/racks",
      name: "rack2",
      enabled: true,
      authorised: [dev],
      fill,
    };
    say("pooled/h2", { host: "h2", flavor: "large", tag: "second", pool });
    assert.deepEqual(
      ["a", "b", "c"].map((vm) => start("shop", vm, { pool: "c1-4" })),
      hosts,
    );
    // Of hosts that differ by nothing but their room, too.
    const apart = { pool: "c1-4", apartFrom: "shop/a" };
    assert.equal(start("shop", "large", apart, { memoryMiB: 1000 }), "h2");
    assert.equal(start("shop", "d", { pool: "c1-4" }), fill === "pack" ? "h2" : "h1", fill);
  }
});

test("a pool promises as much memory as its owner wants, and no more than a host holds", () => {
  for (const [memoryPercent, most] of [
    [25, 750],
    [100, 3000],
    [400, 3000],
  ] as const) {
    const { start, said } = cloud({ memoryPercent });
    const more = (memoryMiB: number): JsonObject => ({ memoryMiB });
    assert.equal(start("shop", "a", { pool: "c1-4" }, more(most - 100)), "h1");
    assert.equal(start("shop", "b", { pool: "c1-4" }, more(101)), null, `${memoryPercent}`);
    assert.match(JSON.stringify(said("shop", "b")), new RegExp(`100 of ${most} MiB are free`));
    assert.equal(start("shop", "c", { pool: "c1-4" }, more(100)), "h1");
    assert.equal(start("shop", "d", {}, more(3000)), "h3", "elsewhere it is as ever");
  }
});

test("what a pool's hosts promise counts by its ratios in what is shown, in metrics, and in room for a host that is lost", () => {
  const { input, say, published } = cloud({ cpuRatio: 2, memoryPercent: 50 });
  const [reply] = input({ kind: "request", id: 1, request: { kind: "hosts" } });
  assert.ok(reply?.kind === "reply");
  const { hosts } = reply.response as unknown as { readonly hosts: readonly HostRoom[] };
  const shown = hosts.map(({ host: name, memoryMiB, cpus }) => [name, memoryMiB, cpus]);
  assert.deepEqual(shown, [
    ["h1", 1500, 4],
    ["h2", 3000, 32],
    ["h3", 3000, 32],
  ]);
  say("spare", { hosts: 1 });
  const want = (vm: string, memoryMiB: number): string | null | undefined => {
    const document = { vm, path: `store/${vm}`, cell: "store", incarnation: 1, memoryMiB, cpus: 1, cpuSpeedMHz: 0 };
    const value = toJson({ ...document, placement: {} });
    input({ kind: "desired", from: peerName("controller.store"), key: `placement/${vm}`, value });
    return published.get(`controller.store/placement/${vm}`)?.host;
  };
  say("pooled/h2", null);
  input({ kind: "actual", from: peerName("host.h2"), key: "host", value: toJson(host("h2", 1000)) });
  assert.equal(want("a", 1400), "h3", "one of the pool's could take it");
  assert.equal(want("b", 200), null, "and none that VMs of both, by the pool's own ratio");
});
