import assert from "node:assert/strict";
import { test } from "node:test";
import { parseNetwork } from "../../model/addresses/addresses.ts";
import { whatHolds } from "../../model/addresses/pools.ts";
import { cidr, peerName } from "../../model/cell/identifiers.ts";
import type { AddressOffer } from "../../model/check/network/check-addresses.ts";
import type { Json } from "../../model/json/json.ts";
import type { ActualPools } from "../documents/network/network.ts";
import { addressOffer } from "../documents/readers/network.ts";
import type { Input } from "../env.ts";
import { createAddressManager } from "./manager.ts";

const [root, shop] = [peerName("controller.root"), peerName("controller.shop")];
const options = {
  self: peerName("address-manager"),
  internalPool: "10.64.0.0/10",
  externalPool: "198.18.0.0/28",
  reserved: ["10.0.0.0/16"],
  controllers: [root, shop],
};
const subnet = (uid: string, more: Readonly<Record<string, Json>> = {}): Json => ({
  uid,
  cell: "shop",
  path: `shop/${uid}`,
  size: 8,
  addressRange: "external",
  cidr: null,
  ...more,
});
type Range = { readonly cidr: string | null; readonly reason: string | null };

class Manager {
  readonly #service = createAddressManager(options);
  readonly records = new Map<string, Json>();
  readonly documents = new Map<string, Input & { readonly kind: "desired" }>();
  published = new Map<string, Json>();
  #state = this.#service.restore({ records: new Map(), desiredAt: new Map() });

  constructor() {
    this.restart();
    for (const peer of options.controllers) this.input({ kind: "complete", peer });
  }
  input(input: Input): void {
    const { state, effects } = this.#service.step(this.#state, input, { ms: 0, wallMs: 0 });
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind !== "write" && effect.kind !== "publish") continue;
      const map = effect.kind === "write" ? this.records : this.published;
      if (effect.value === null) map.delete(effect.key);
      else map.set(effect.key, effect.value);
    }
  }
  desire(from: typeof root, key: string, value: Json): void {
    const input = { kind: "desired", from, key, value } as const;
    if (value === null) this.documents.delete(key);
    else this.documents.set(key, input);
    this.input(input);
  }
  restart(): void {
    this.published = new Map();
    this.#state = this.#service.restore({ records: new Map(this.records), desiredAt: new Map() });
    for (const input of this.documents.values()) this.input(input);
    this.input({ kind: "start" });
  }
  declare(...external: readonly string[]): void {
    this.desire(root, "pools", external.length === 0 ? null : { external: [...external] });
  }
  want(uid: string, more: Readonly<Record<string, Json>> = {}): void {
    this.desire(shop, `subnet/${uid}`, subnet(uid, more));
  }
  range = (uid: string): Range => this.published.get(`controller.shop/subnet/${uid}`) as unknown as Range;
  get said(): ActualPools {
    return this.published.get("controller.root/pools") as unknown as ActualPools;
  }
  get offer(): AddressOffer {
    return addressOffer.of(structuredClone(this.published.get("addresses"))) ?? assert.fail("there is no offer");
  }
  get offered(): readonly string[] {
    return this.offer.external.fixed;
  }
}

test("external subnets are cut from the declared pools, in their order, and whoever waits gets of one that comes", () => {
  const manager = new Manager();
  assert.deepEqual(manager.offered, ["198.18.0.0/28"]);
  assert.equal(manager.said, undefined, "there is nothing to say");
  for (const uid of ["a", "b", "c"]) manager.want(uid);
  assert.deepEqual([manager.range("a").cidr, manager.range("b").cidr], ["198.18.0.0/29", "198.18.0.8/29"]);
  assert.match(manager.range("c").reason ?? "", /external pool 198\.18\.0\.0\/28 has no 8 addresses together left/);
  manager.declare("203.0.113.8/29", "192.0.2.0/24", "198.18.0.0/28");
  assert.deepEqual(manager.offered, ["203.0.113.8/29", "192.0.2.0/24", "198.18.0.0/28"]);
  manager.want("d");
  assert.deepEqual([manager.range("c").cidr, manager.range("d").cidr], ["203.0.113.8/29", "192.0.2.0/29"]);
  manager.want("e", { size: 500 });
  assert.match(manager.range("e").reason ?? "", /500 addresses are more than a subnet can have here: at most 256/);
  manager.want("f", { cidr: "192.0.2.128/25" });
  assert.equal(manager.range("f").cidr, "192.0.2.128/25");
  assert.deepEqual(manager.said, {
    external: ["203.0.113.8/29", "192.0.2.0/24", "198.18.0.0/28"],
    otherwise: "198.18.0.0/28",
    used: ["203.0.113.8/29", "192.0.2.0/24", "198.18.0.0/28"],
    kept: [],
    inside: [],
  });
  manager.want("f", { size: 256 });
  assert.match(manager.range("f").reason ?? "", /^the external pools 203.*, 198\.18\.0\.0\/28 have no 256 addresses/);
});

test("what a subnet has it keeps when its pool is declared no longer, over a restart as well, and nothing more is given of it", () => {
  const manager = new Manager();
  manager.declare("203.0.113.0/24", "192.0.2.0/24");
  manager.want("a");
  manager.want("b", { cidr: "192.0.2.16/29" });
  manager.declare("192.0.2.0/24");
  manager.restart();
  manager.want("c");
  assert.deepEqual(
    ["a", "b", "c"].map((uid) => manager.range(uid).cidr),
    ["203.0.113.0/29", "192.0.2.16/29", "192.0.2.0/29"],
  );
  assert.deepEqual(manager.offer.kept, ["203.0.113.0/29"]);
  const { external, used, kept } = manager.said;
  assert.deepEqual([external, used, kept], [["192.0.2.0/24"], ["192.0.2.0/27"], ["203.0.113.0/29"]]);
  manager.desire(shop, "subnet/a", null);
  assert.equal(manager.offer.kept, undefined);
  manager.want("d", { cidr: "203.0.113.0/29" });
  assert.match(manager.range("d").reason ?? "", /an external subnet is inside the external pool 192\.0\.2\.0\/24/);
  assert.deepEqual(manager.said.kept, []);
  manager.declare();
  assert.deepEqual(manager.said.kept, ["192.0.2.16/29", "192.0.2.0/29"]);
  assert.deepEqual(manager.offered, ["198.18.0.0/28"]);
});

test("however many subnets have ranges of a pool that is declared no longer, all of them are told", () => {
  const manager = new Manager();
  manager.declare("203.0.112.0/20", "192.0.2.0/24", "198.51.100.0/24");
  for (let at = 0; at < 200; at += 1) manager.want(`s-${at}`);
  manager.want("alone", { cidr: "192.0.2.64/29" });
  manager.declare("198.51.100.0/24");
  const { kept } = manager.said;
  assert.ok(kept.length <= 64);
  assert.ok(kept.includes(cidr("192.0.2.64/29")), "one that stands alone is told as it is");
  for (let at = 0; at < 200; at += 1) {
    const network = parseNetwork(manager.range(`s-${at}`).cidr ?? "");
    assert.ok(network !== null && whatHolds(network, kept) !== undefined, `s-${at}`);
  }
  for (const text of kept) {
    const network = parseNetwork(text);
    assert.ok(network !== null && whatHolds(network, ["203.0.112.0/20", "192.0.2.0/24"]) !== undefined, text);
  }
});

test("a subnet that becomes internal, or external, gets another range", () => {
  const manager = new Manager();
  manager.want("a", { addressRange: "internal", cidr: "192.168.4.0/24" });
  manager.want("a", { addressRange: "external" });
  assert.equal(manager.range("a").cidr, "198.18.0.0/29");
  manager.want("a", { addressRange: "internal" });
  assert.equal(manager.range("a").cidr, "10.64.0.0/29");
});

test("a pool in which an internal subnet has a range comes into force when that is given back", () => {
  const manager = new Manager();
  manager.want("a", { addressRange: "internal", cidr: "192.168.4.0/29" });
  manager.declare("192.168.4.0/24", "192.0.2.0/24");
  assert.deepEqual(manager.offered, ["192.0.2.0/24"]);
  assert.deepEqual(manager.said.inside, ["192.168.4.0/29"]);
  manager.restart();
  assert.deepEqual(manager.offered, ["192.0.2.0/24"]);
  manager.desire(shop, "subnet/a", null);
  assert.deepEqual(manager.offered, ["192.168.4.0/24", "192.0.2.0/24"]);
  manager.want("b", { addressRange: "internal", cidr: "192.168.4.0/29" });
  assert.match(manager.range("b").reason ?? "", /cannot be used: .* and in no external pool$/);
});

test("what waits for the last internal range in a declared pool does not get it, nor does the subnet that had it get another there", () => {
  for (const then of [null, "192.168.4.8/29"]) {
    const manager = new Manager();
    const inside = (uid: string, cidr: string): void => manager.want(uid, { addressRange: "internal", cidr });
    inside("a", "192.168.4.0/29");
    inside("b", "192.168.4.0/29");
    manager.declare("192.168.4.0/24", "192.0.2.0/24");
    assert.deepEqual(manager.offered, ["192.0.2.0/24"]);
    if (then === null) manager.desire(shop, "subnet/a", null);
    else inside("a", then);
    assert.deepEqual(manager.offered, ["192.168.4.0/24", "192.0.2.0/24"]);
    assert.deepEqual(manager.said.inside, [], "its machines would be outside");
    assert.match(manager.range("b").reason ?? "", /192\.168\.4\.0\/29 cannot be used: .* and in no external pool$/);
  }
});

test("while internal subnets keep every declared pool from being in force, an external one waits, and what there could be is told", () => {
  const manager = new Manager();
  manager.want("a", { addressRange: "internal", cidr: "192.168.4.0/29" });
  manager.declare("192.168.4.0/24");
  assert.deepEqual([manager.said.external, manager.said.inside], [[], ["192.168.4.0/29"]]);
  const offer = addressOffer.of(JSON.parse(JSON.stringify(manager.published.get("addresses"))));
  assert.deepEqual(offer?.external, { pool: "192.168.4.0/24", largest: 256, fixed: ["192.168.4.0/24"] });
  manager.declare("192.168.0.0/16");
  assert.deepEqual(manager.offered, ["192.168.0.0/16"]);
  manager.declare("192.168.4.0/24");
  manager.want("b");
  manager.want("c", { cidr: "192.168.4.128/25" });
  for (const uid of ["b", "c"])
    assert.equal(
      manager.range(uid).reason,
      "internal subnets have a part of each declared external pool: none is in force yet",
    );
  manager.desire(shop, "subnet/a", null);
  assert.deepEqual([manager.range("b").cidr, manager.range("c").cidr], ["192.168.4.0/29", "192.168.4.128/25"]);
});

test("a declaration that cannot be changes nothing", () => {
  const manager = new Manager();
  manager.declare("203.0.113.0/24");
  for (const value of [
    {},
    { external: [] },
    { external: ["10.64.0.0/24"] },
    { external: ["10.0.9.0/24"] },
    { external: ["a"] },
  ])
    manager.desire(root, "pools", value);
  assert.deepEqual(manager.offered, ["203.0.113.0/24"]);
});

test("a manager that is blank gives a range of a declared pool again, and none of its own before it knows the pools", () => {
  const manager = new Manager();
  manager.declare("203.0.113.0/24");
  manager.want("a", { size: 16 });
  const had = manager.range("a").cidr;
  manager.records.clear();
  manager.documents.clear();
  manager.restart();
  manager.want("a", { size: 16, has: had });
  manager.input({ kind: "complete", peer: shop });
  assert.equal(manager.range("a").cidr, null, "it waits");
  manager.declare("203.0.113.0/24");
  manager.input({ kind: "complete", peer: root });
  assert.equal(manager.range("a").cidr, had);
});

const lose = (manager: Manager): void => {
  manager.records.clear();
  manager.documents.clear();
  manager.restart();
};

test("a manager that is blank says of no pool that it is in force before the root controller and every cell have said all", () => {
  const manager = new Manager();
  manager.declare("203.0.113.0/24");
  manager.want("a");
  manager.declare("192.0.2.0/24");
  const { said } = manager;
  assert.deepEqual([said.external, said.kept], [["192.0.2.0/24"], ["203.0.113.0/29"]]);
  lose(manager);
  const isSaid = (): boolean => manager.published.has("controller.root/pools");
  manager.want("b");
  manager.desire(root, "pools", { external: ["192.0.2.0/24"], had: ["203.0.113.0/29"] });
  manager.input({ kind: "complete", peer: root });
  assert.ok(!isSaid(), "hosts would be told that 203.0.113.0/29 is outside");
  manager.want("a", { has: "203.0.113.0/29" });
  assert.ok(!isSaid());
  manager.input({ kind: "complete", peer: shop });
  assert.deepEqual(manager.said, { ...said, used: ["192.0.2.0/29"] });
  lose(manager);
  manager.want("a", { has: "203.0.113.0/29" });
  manager.input({ kind: "complete", peer: shop });
  assert.ok(!isSaid());
});

test("a manager that is blank gives ranges of former pools again, which the root controller has kept for it, and of no other network", () => {
  for (const fixed of [false, true]) {
    const manager = new Manager();
    lose(manager);
    const want = (uid: string, has: string): void => manager.want(uid, { has, ...(fixed ? { cidr: has } : {}) });
    want("a", "203.0.113.8/29");
    manager.input({ kind: "complete", peer: shop });
    assert.equal(manager.range("a").cidr, null);
    assert.match(manager.range("a").reason ?? "", /has yet to hear/);
    manager.desire(root, "pools", {
      external: ["192.0.2.0/24"],
      had: ["203.0.113.8/29", "10.64.0.0/24", "127.0.0.0/8"],
    });
    assert.equal(manager.range("a").cidr, "203.0.113.8/29");
    manager.input({ kind: "complete", peer: root });
    for (const [at, has] of ["203.0.113.0/29", "10.64.0.0/29", "127.0.0.0/29"].entries()) {
      want(`other-${at}`, has);
      assert.notEqual(manager.range(`other-${at}`).cidr, has);
    }
    assert.deepEqual(manager.said.kept, ["203.0.113.8/29"]);
    manager.want("new", { cidr: "203.0.113.8/29" });
    assert.equal(manager.range("new").cidr, null);
  }
});

test("what a manager that is blank has yet to hear of internal subnets keeps a pool from being in force", () => {
  const manager = new Manager();
  lose(manager);
  manager.declare("192.168.4.0/24", "192.0.2.0/24");
  manager.input({ kind: "complete", peer: root });
  manager.want("a", { addressRange: "internal", cidr: "192.168.4.0/29", has: "192.168.4.0/29" });
  assert.equal(manager.range("a").cidr, "192.168.4.0/29");
  manager.input({ kind: "complete", peer: shop });
  assert.deepEqual([manager.said.external, manager.said.inside], [["192.0.2.0/24"], ["192.168.4.0/29"]]);
  manager.want("b", { addressRange: "internal", cidr: "192.168.4.8/29", has: "192.168.4.8/29" });
  assert.equal(manager.range("b").cidr, null, "it has said all that it has");
});

test("of a pool that waits for an internal subnet no other one gets a part", () => {
  const manager = new Manager();
  manager.want("a", { addressRange: "internal", cidr: "192.168.4.0/29" });
  manager.declare("192.168.4.0/24", "192.0.2.0/24");
  manager.want("b", { addressRange: "internal", cidr: "192.168.4.8/29" });
  assert.match(manager.range("b").reason ?? "", /cannot be used: .* and in no external pool$/);
  manager.want("c", { addressRange: "internal", cidr: "192.168.5.0/29" });
  assert.equal(manager.range("c").cidr, "192.168.5.0/29");
  manager.desire(shop, "subnet/a", null);
  assert.deepEqual(manager.offered, ["192.168.4.0/24", "192.0.2.0/24"]);
});

test("a manager that is blank says of no pool that it is in force before the root controller has said all", () => {
  const manager = new Manager();
  const pools = ["203.0.113.0/24", "198.18.0.0/28"];
  manager.declare(...pools);
  manager.want("a", { cidr: "198.18.0.0/29" });
  assert.deepEqual(manager.said.external, pools);
  manager.records.clear();
  manager.documents.clear();
  manager.restart();
  manager.want("a", { has: "198.18.0.0/29" });
  manager.input({ kind: "complete", peer: shop });
  assert.equal(manager.range("a").cidr, "198.18.0.0/29");
  assert.ok(!manager.published.has("controller.root/pools"), "hosts would be told that 203.0.113.0/24 is outside");
  manager.declare(...pools);
  manager.input({ kind: "complete", peer: root });
  assert.deepEqual(manager.said.external, pools);
});
