import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlacedTerms } from "../../../core/documents/pools.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { desiredVm, Room } from "../../service/manager.testing.ts";

const root = peerName("controller.root");
const owner = (path: string): Json => ({ of: "h1", level: "host", to: { kind: "account", path } });

/** A host that hears the root controller; its VMs have no interfaces, so that nothing else is waited for. */
class Claimed extends Room {
  constructor(accounts: Readonly<Record<string, string | null>> = { shop: "ROOT/dev", bank: "ROOT/ops" }) {
    super();
    this.found();
    this.tell(accounts);
  }
  tell(accounts: Readonly<Record<string, string | null>>): void {
    for (const [cell, account] of Object.entries(accounts))
      this.input({ kind: "actual", from: root, key: `owner/${cell}`, value: { cell, account } });
  }
  claim(epoch: number, more: { readonly [key: string]: Json } | null): void {
    const value = more === null ? null : { host: "h1", epoch, rule: null, pooled: null, ...more };
    this.desire("claim/h1", value, root);
    this.settle();
  }
  run(cell: string, name: string, terms?: PlacedTerms, more: { readonly [key: string]: Json } = {}): void {
    const from: PeerName = peerName(`controller.${cell}`);
    const said = { ...(terms === undefined ? {} : { terms }), ...more };
    const document = { ...desiredVm(name, 1, { interfaces: [], disks: [], ...said }), cell, path: `${cell}/${name}` };
    this.desire(`vm/${name}`, document, from);
    this.settle();
  }
  of(cell: string, name: string): readonly [string | undefined, string | null | undefined] {
    const said = this.published.get(`controller.${cell}/vm/${name}`) as { power: string; reason: string | null };
    return [said?.power, said?.reason];
  }
}
const strict: PlacedTerms = { implicit: "strict", owned: true };
const plain: PlacedTerms = { owned: true };

test("a host starts beside a strict VM nobody else's, whatever Placers have promised, and more of its own account's", () => {
  const room = new Claimed({ shop: "ROOT/dev", bank: "ROOT/ops", more: "ROOT/dev" });
  room.run("shop", "a", strict);
  room.run("bank", "b", plain);
  room.run("more", "c", strict);
  room.run("root", "s", {});
  assert.equal(room.of("shop", "a")[0], "on");
  assert.match(room.of("bank", "b")[1] ?? "", /VMs of two accounts would stand beside one another/);
  assert.equal(room.of("more", "c")[0], "on");
  assert.equal(room.of("root", "s")[0], "on", "the cloud's own stand anywhere");
  const other = new Claimed();
  other.run("bank", "b", plain);
  other.run("shop", "a", strict);
  assert.match(other.of("shop", "a")[1] ?? "", /two accounts/);
});

test("what is refused stays refused, also after a crash", () => {
  const room = new Claimed();
  room.run("shop", "a", strict);
  room.run("bank", "b", plain);
  room.desire("vm/a", null);
  room.settle();
  assert.equal(room.machines.size, 0);
  assert.equal(room.of("bank", "b")[0], "off");
  assert.match(JSON.stringify(room.durable.get("machine/b")), /"refused":true/);
});

test("a host of an account takes that account's VMs alone, of those that ask for it", () => {
  const room = new Claimed();
  room.claim(3, { rule: owner("ROOT/dev") });
  assert.deepEqual(room.published.get("controller.root/claim/h1"), { epoch: 3 });
  const group: PlacedTerms = { ...plain, groups: [{ name: "DedicatedGrp-dev", kind: null }], claim: 3 };
  room.run("shop", "a", group);
  room.run("shop", "b", plain);
  room.run("bank", "c", { ...plain, groups: [{ name: "DedicatedGrp-dev", kind: null }], claim: 3 });
  assert.deepEqual([...room.machines.keys()], ["a"]);
  assert.match(room.of("shop", "b")[1] ?? "", /this host is dedicated/);
  // Of a controller of the version before nothing is said but whose it is.
  room.run("shop", "d");
  room.run("bank", "e");
  assert.deepEqual([...room.machines.keys()], ["a", "d"]);
});

test("one that was placed by a later word waits for it, and one by an earlier word is refused", () => {
  const room = new Claimed();
  const group = (claim: number): PlacedTerms => ({
    owned: true,
    groups: [{ name: "DedicatedGrp-dev", kind: null }],
    claim,
  });
  room.run("shop", "a", group(4));
  assert.match(room.of("shop", "a")[1] ?? "", /has not said here yet whose this host is/);
  room.claim(4, { rule: owner("ROOT/dev") });
  assert.equal(room.of("shop", "a")[0], "on");
  room.run("shop", "b", group(3));
  assert.match(room.of("shop", "b")[1] ?? "", /has changed since it was chosen/);
  room.claim(0, null);
  room.run("shop", "c", group(4));
  assert.match(room.of("shop", "c")[1] ?? "", /has changed since it was chosen/, "it is everybody's again");
  // What a root controller with an older store says counts for nothing.
  room.claim(2, { rule: owner("ROOT/ops") });
  room.run("shop", "d", plain);
  assert.equal(room.of("shop", "d")[0], "on");
  assert.deepEqual(room.published.get("controller.root/claim/h1"), { epoch: 4 });
});

test("a controller that calls its VM the cloud's own, or one that waits strict, has nothing by it", () => {
  const room = new Claimed();
  room.run("shop", "a", strict);
  room.run("bank", "b", plain, { restart: "host" });
  assert.match(room.of("bank", "b")[1] ?? "", /VMs of two accounts would stand beside one another/);
  const other = new Claimed();
  const taken = (name: string): Json | undefined => other.published.get(`taken/${name}`);
  other.run("bank", "w", { ...strict, claim: 2 ** 40 });
  assert.match(other.of("bank", "w")[1] ?? "", /has not said here yet/);
  assert.deepEqual(taken("w"), { memoryMiB: 100, cpus: 1, by: "controller.bank" }, "room alone");
  other.run("shop", "a", strict);
  assert.equal(other.of("shop", "a")[0], "on");
  assert.match(JSON.stringify(taken("a")), /"implicit":"strict"/);
});

test("an owner's VM does not start beside one of who was there before", () => {
  const room = new Claimed();
  room.run("bank", "b", plain);
  room.claim(1, { rule: owner("ROOT/dev") });
  room.run("shop", "a", { ...plain, groups: [{ name: "DedicatedGrp-dev", kind: null }], claim: 1 });
  assert.match(room.of("shop", "a")[1] ?? "", /VMs of others are still there/);
  assert.equal(room.of("bank", "b")[0], "on", "what runs goes on");
});

test("a host of a pool takes whom the pool authorises, and of a flavour without one nobody", () => {
  const room = new Claimed();
  const as = { uid: "p-1", cell: "shop", path: "shop/racks", name: "rack1", enabled: true, authorised: ["ROOT/dev"] };
  room.claim(1, { pooled: { flavor: "large", pool: as } });
  room.run("shop", "a", { ...plain, pool: "p-1" as never, claim: 1 });
  room.run("shop", "b", plain);
  room.run("bank", "c", { ...plain, pool: "p-1" as never, claim: 1 });
  assert.deepEqual([...room.machines.keys()], ["a"]);
  room.claim(2, { pooled: { flavor: "large", pool: null } });
  room.run("shop", "d", { ...plain, pool: "p-1" as never, claim: 2 });
  assert.match(room.of("shop", "d")[1] ?? "", /not of the pool/);
});

test("two VMs of an anti-affinity group of an account never start at one host, also of different cells", () => {
  const room = new Claimed({ shop: "ROOT/dev", bank: "ROOT/ops", more: "ROOT/dev" });
  const group: PlacedTerms = { owned: true, groups: [{ name: "replicas", kind: "host anti-affinity" }] };
  room.run("shop", "a", group);
  room.run("more", "b", group);
  room.run("bank", "c", group);
  assert.deepEqual([...room.machines.keys()], ["a", "c"]);
  assert.match(room.of("more", "b")[1] ?? "", /a VM of its group "replicas" is at this host already/);
});

test("whose a cell is says the root controller alone: until it has, what concerns it waits, and is kept over a crash", () => {
  const room = new Claimed({});
  room.run("shop", "a", strict);
  assert.match(room.of("shop", "a")[1] ?? "", /has not said here yet whose the cell shop is/);
  assert.ok(room.subscribed.has("controller.root"));
  room.input({
    kind: "actual",
    from: peerName("controller.shop"),
    key: "owner/shop",
    value: { cell: "shop", account: "ROOT/x" },
  });
  room.settle();
  assert.equal(room.of("shop", "a")[0], "off");
  room.tell({ shop: "ROOT/dev" });
  room.settle();
  assert.equal(room.of("shop", "a")[0], "on");
  room.boot();
  room.found();
  room.run("bank", "b", plain);
  assert.match(room.of("bank", "b")[1] ?? "", /whose the cell bank is/);
  // One of the version before says nothing of that: a cell of which it has said nothing is no account's.
  room.input({ kind: "reachable", peer: root, reachable: true });
  room.settle();
  assert.match(room.of("bank", "b")[1] ?? "", /two accounts/);
});

test("a VM that was placed by a claim which came and went before the host heard of it is refused, and waits for no word", () => {
  const room = new Claimed();
  const group: PlacedTerms = { ...plain, groups: [{ name: "DedicatedGrp-dev", kind: null }], claim: 5 };
  room.run("shop", "a", group);
  assert.match(room.of("shop", "a")[1] ?? "", /has not said here yet whose this host is/);
  room.claim(6, {});
  assert.match(room.of("shop", "a")[1] ?? "", /has changed since it was chosen/);
  room.run("bank", "b", plain);
  assert.equal(room.of("bank", "b")[0], "on", "it is everybody's");
});

test("a cell that is made after the root controller has said all is waited for where a Placer knows of its account", () => {
  const room = new Claimed({ root: null, shop: "ROOT/dev" });
  room.run("shop", "a", strict);
  room.tell({ root: null, shop: "ROOT/dev" });
  room.input({ kind: "reachable", peer: root, reachable: true });
  room.settle();
  room.run("more", "b", strict);
  assert.match(room.of("more", "b")[1] ?? "", /has not said here yet whose the cell more is/);
  // Of no account, by its Placer: nothing is waited for.
  room.run("free", "c", {});
  assert.match(room.of("free", "c")[1] ?? "", /two accounts/);
  room.tell({ more: "ROOT/dev" });
  room.settle();
  assert.equal(room.of("more", "b")[0], "on");
});

test("a guest whose account an older root controller does not know of any more keeps nobody waiting", () => {
  const room = new Claimed({ root: null, shop: "ROOT/dev", more: "ROOT/x" });
  room.tell({ root: null, shop: "ROOT/dev", more: "ROOT/x" });
  room.input({ kind: "reachable", peer: root, reachable: true });
  room.settle();
  room.run("more", "a", plain);
  assert.equal(room.of("more", "a")[0], "on");
  room.input({ kind: "actual", from: root, key: "owner/more", value: null });
  room.settle();
  // It runs on, as nobody's: who must not stand beside others is refused for another place, and who may stands.
  room.run("shop", "b", strict);
  assert.match(room.of("shop", "b")[1] ?? "", /two accounts/);
  room.run("shop", "c", plain);
  assert.equal(room.of("shop", "c")[0], "on");
});
