import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseNetwork } from "../../model/addresses/addresses.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Input } from "../env.ts";
import { addressOfferOf, createAddressManager } from "./manager.ts";

const shop = peerName("controller.shop");
const options = {
  self: peerName("address-manager"),
  internalPool: "10.64.0.0/10",
  externalPool: "198.18.0.0/24",
  reserved: ["10.0.0.0/16"],
  controllers: [],
};
const subnet = (uid: string, size: number, cidr: string | null = null, addressRange = "internal") => ({
  uid,
  cell: "shop",
  path: `shop/${uid}`,
  size,
  addressRange,
  cidr,
});

function world(pools: Partial<typeof options> = {}) {
  const service = createAddressManager({ ...options, ...pools });
  const records = new Map<string, Json>();
  const wanted = new Map<string, Json>();
  const published = new Map<
    string,
    { phase: string; reason: string | null; cidr: string; gateway: string; taken?: string }
  >();
  let state = service.restore({ records, desiredAt: new Map() });
  const input = (what: Input) => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "publish" && effect.value === null) published.delete(effect.key);
      else if (effect.kind === "publish" && effect.key !== "addresses")
        published.set(effect.key, effect.value as never);
    }
    return step.effects;
  };
  const restart = () => {
    published.clear();
    state = service.restore({ records: new Map(records), desiredAt: new Map() });
    for (const [key, value] of wanted) input({ kind: "desired", from: shop, key, value });
    input({ kind: "start" });
  };
  const want = (uid: string, value: Json) => {
    if (value === null) wanted.delete(`subnet/${uid}`);
    else wanted.set(`subnet/${uid}`, value);
    return input({ kind: "desired", from: shop, key: `subnet/${uid}`, value });
  };
  restart();
  return { want, restart, records, published, wanted, get: (uid: string) => published.get(`${shop}/subnet/${uid}`) };
}

test("first fit of power-of-two blocks, at least eight addresses, the first one is the gateway", () => {
  const { want, get, restart } = world();
  want("a", subnet("a", 3));
  want("b", subnet("b", 200));
  want("c", subnet("c", 8));
  assert.deepEqual(get("a"), { phase: "ready", reason: null, cidr: "10.64.0.0/29", gateway: "10.64.0.1" });
  assert.equal(get("b")?.cidr, "10.64.1.0/24");
  assert.equal(get("c")?.cidr, "10.64.0.8/29");
  want("a", null);
  assert.equal(get("a"), undefined);
  restart();
  want("d", subnet("d", 5));
  assert.equal(get("d")?.cidr, "10.64.0.0/29");
  assert.equal(get("c")?.cidr, "10.64.0.8/29");
  want("x", subnet("x", 250, null, "external"));
  assert.equal(get("x")?.cidr, "198.18.0.0/24");
});

test("the record is written in the step that first tells of it, and saying the same again changes nothing", () => {
  const { want } = world();
  const kinds = want("a", subnet("a", 8)).map((effect) => effect.kind);
  assert.ok(kinds.indexOf("write") < kinds.indexOf("publish"));
  assert.deepEqual(want("a", subnet("a", 8)), []);
});

test("a fixed CIDR is honoured where it may be, and refused with the reason and the owner", () => {
  const { want, get } = world();
  want("a", subnet("a", 100, "192.168.7.0/24"));
  assert.equal(get("a")?.gateway, "192.168.7.1");
  for (const [cidr, reason] of [
    ["192.168.0.0/16", /"shop\/a" has it or a part of it/],
    ["192.168.7.128/25", /"shop\/a" has it/],
    ["10.0.3.0/24", /the installation itself has it/],
    ["8.8.8.0/24", /inside the internal pool 10.64.0.0\/10 or private/],
    ["10.70.0.1/24", /the network is 10.70.0.0\/24/],
    ["10.70.0.0/30", /between \/8 and \/29/],
    ["10.70.0.0/29", /8 addresses, fewer than the size of 100/],
    ["10.0.0.0/7", /between \/8 and \/29/],
  ] as const) {
    want("b", subnet("b", 100, cidr));
    assert.equal(get("b")?.phase, "failed");
    assert.match(get("b")?.reason ?? "", reason);
  }
  want("b", subnet("b", 100, "192.168.7.0/24"));
  want("a", null);
  assert.equal(get("b")?.phase, "ready", "a freed block goes to who waits for it");
});

test("an exhausted pool makes a subnet wait, also over a restart, until one is freed", () => {
  const { want, get, restart } = world({ internalPool: "10.64.0.0/28" });
  for (const uid of ["a", "b", "c"]) want(uid, subnet(uid, 8));
  assert.equal(get("c")?.phase, "waiting");
  restart();
  assert.match(get("c")?.reason ?? "", /the internal pool 10.64.0.0\/28 has no 8 addresses together left/);
  want("a", null);
  assert.equal(get("c")?.cidr, "10.64.0.0/29");
  want("big", subnet("big", 64));
  assert.equal(get("big")?.phase, "failed");
});

test("a pool that is empty says what would free a range, and names no other cell's subnet", () => {
  const { want, get } = world({ externalPool: "198.18.0.0/27" });
  const external = (name: string, size: number) => subnet(name, size, null, "external");
  want("a", external("a", 16));
  want("b", external("b", 8));
  want("c", external("c", 16));
  assert.match(
    get("c")?.reason ?? "",
    /^the external pool 198\.18\.0\.0\/27 has no 16 addresses together left: make it smaller \(`x\.size 8` fits\); delete a subnet of the cell that has as many \([^ ]*a\); have the operator enlarge the pool/,
  );
  want("a", null);
  assert.equal(get("c")?.phase, "ready", "which frees it");
});

test("a tombstone that a crash swallowed is seen at the start", () => {
  const { want, wanted, records, restart } = world();
  want("a", subnet("a", 8));
  wanted.delete("subnet/a");
  restart();
  assert.deepEqual([...records.keys()], ["recovery"]);
});

test("another cell can neither take a UID nor see it; malformed documents fail", () => {
  const service = createAddressManager(options);
  assert.ok(!service.accepts(peerName("host.h1"), "subnet/a"));
  const { want, get } = world();
  want("a", { uid: "a", size: "many" });
  assert.equal(get("a")?.phase, "failed");
});

test("20,000 subnets, then every other one again", () => {
  const { want, get, records } = world();
  for (let index = 0; index < 20_000; index += 1) want(`s${index}`, subnet(`s${index}`, 8));
  for (let index = 0; index < 20_000; index += 2) want(`s${index}`, null);
  for (let index = 0; index < 20_000; index += 2) want(`t${index}`, subnet(`t${index}`, 8));
  assert.equal(get("t19998")?.cidr, `10.66.${Math.floor((19_998 * 8 - 2 * 65_536) / 256)}.${(19_998 * 8) % 256}/29`);
  const ranges = [...records].filter(([key]) => key.startsWith("subnet/")).map(([, record]) => record);
  assert.equal(new Set(ranges.map((record) => (record as { cidr: string }).cidr)).size, 20_000);
});

test("property: no address is ever in two subnets", () => {
  const action = fc.record({
    uid: fc.nat(12),
    size: fc.integer({ min: 1, max: 70 }),
    cidr: fc.option(
      fc.record({ at: fc.nat(31), prefix: fc.integer({ min: 25, max: 29 }) }).map(({ at, prefix }) => {
        const size = 2 ** (32 - prefix);
        return `10.64.0.${(Math.floor((at * 8) / size) * size) % 256}/${prefix}`;
      }),
    ),
    there: fc.boolean(),
    restart: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
      const { want, restart, published, wanted } = world({ internalPool: "10.64.0.0/24" });
      for (const { uid, size, cidr, there, restart: again } of actions) {
        want(`s${uid}`, there ? subnet(`s${uid}`, size, cidr) : null);
        const blocks = () => JSON.stringify([...published].map(([key, { phase, cidr }]) => [key, phase, cidr]).sort());
        const before = blocks();
        if (again) {
          restart();
          assert.equal(blocks(), before, "a restart changes nothing");
        }
        const taken = new Set<number>();
        for (const { cidr: block } of published.values()) {
          const network = block === null ? null : parseNetwork(block);
          for (let address = network?.first ?? 1; address <= (network?.last ?? 0); address += 1) {
            assert.ok(!taken.has(address), `${address} is in two subnets`);
            taken.add(address);
          }
        }
        assert.equal(published.size, wanted.size);
      }
    }),
    { numRuns: 300 },
  );
});

test("what the pools could ever give is told to controllers: the largest subnet is what an empty pool gives", () => {
  const crowded = { ...options, internalPool: "10.64.0.0/24", reserved: ["10.64.0.0/26", "10.64.0.128/28"] };
  const offer = addressOfferOf(crowded);
  assert.deepEqual([offer.internal.largest, offer.external.largest], [64, 256]);
  assert.deepEqual([offer.shortestPrefix, offer.longestPrefix], [8, 29]);
  assert.equal(addressOfferOf({ ...crowded, reserved: ["10.64.0.0/24"] }).internal.largest, 0);
  const { want, get } = world(crowded);
  want("a", subnet("a", offer.internal.largest + 1));
  want("b", subnet("b", offer.internal.largest));
  assert.deepEqual([get("a")?.cidr ?? null, get("b")?.cidr], [null, "10.64.0.64/26"]);
  const service = createAddressManager(crowded);
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const { effects } = service.step(state, { kind: "start" }, { ms: 0, wallMs: 0 });
  assert.deepEqual(
    effects.filter((effect) => effect.kind === "publish"),
    [{ kind: "publish", key: "addresses", value: offer }],
  );
  assert.equal(service.entitled(state, shop, "addresses"), true);
  assert.equal(service.entitled(state, peerName("host.h1"), "addresses"), false);
});

test("a subnet whose range this service has forgotten has the same one again, and nobody else gets it unnoticed", () => {
  const { want, get, restart, records, wanted } = world();
  want("s-1", subnet("s-1", 8));
  want("s-2", subnet("s-2", 8));
  const had = ["s-1", "s-2"].map((uid) => get(uid)?.cidr);
  records.clear();
  wanted.clear();
  restart();
  // In another order, and one of them with more addresses than it had.
  want("s-2", { ...subnet("s-2", 8), has: had[1] ?? null });
  want("s-3", subnet("s-3", 8));
  assert.equal(get("s-2")?.cidr, had[1]);
  want("s-1", { ...subnet("s-1", 8), has: had[0] ?? null });
  assert.equal(get("s-1")?.cidr, null, "a new one was quicker");
  assert.match(get("s-1")?.reason ?? "", /its range 10\.64\.0\.0\/29 was given to "shop\/s-3"/);
  assert.equal(get("s-1")?.taken, had[0], "its controller is told which, and gives it up where no machine uses it");
  want("s-1", subnet("s-1", 8));
  const other = get("s-1");
  assert.deepEqual([other?.phase, other?.taken], ["ready", undefined]);
  want("s-1", null);
  want("s-1", { ...subnet("s-1", 8), has: had[0] ?? null });
  want("s-3", null);
  assert.equal(get("s-1")?.cidr, had[0]);
  want("s-1", { ...subnet("s-1", 16), has: had[0] ?? null });
  assert.equal(get("s-1")?.phase, "ready", "a larger one goes elsewhere");
});
