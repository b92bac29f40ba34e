import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { below, seedOf } from "../../random.ts";
import { askerOf } from "../owners.ts";
import { place } from "../place.ts";
import { host, world } from "../placer.testing.ts";
import { createPlacer } from "../placer.ts";
import { manyHosts, saidAnew } from "./waiting.ts";

test("of many hosts one that has room again is found, and what is said of the others comes in time", () => {
  const names = Array.from({ length: manyHosts + 1 }, (_, at) => `h${at}`);
  const { say, want, get } = world(names);
  for (const name of names) say(name, host(name));
  want("vm", 5000);
  assert.deepEqual([get("vm")?.refusals.length, get("vm")?.counts], [16, [{ kind: "memory", hosts: names.length }]]);
  const all = `of ${names.length} hosts that it may know of ${names.length} are without the memory`;
  assert.match(get("vm")?.reason ?? "", new RegExp(`^no host can hold it \\(h0: .*; ${all}\\)$`));
  say("h7", host("h7", 2000));
  const whyOf7 = (): string | undefined => get("vm")?.refusals.find((each) => each.host === "h7")?.why;
  assert.match(whyOf7() ?? "", /3000 MiB are free/, "not said anew at once");
  for (let change = 0; change < saidAnew; change += 1) say("h9", host("h9", 2000 + change));
  assert.match(whyOf7() ?? "", /1000 MiB are free/);
  say("h11", host("h11", 9000));
  assert.equal(get("vm")?.host, "h11");
});

test("all that a host has room for as it joins is placed by one step, and so by one commit", () => {
  const { say, want, get, input } = world(["h1", "h2"]);
  say("h1", host("h1", 1000));
  say("h2", null);
  const vms = Array.from({ length: 30 }, (_, at) => `v${at}`);
  for (const vm of vms) want(vm, 20);
  assert.ok(vms.every((vm) => get(vm)?.phase === "waiting"));
  const written = input({
    kind: "actual",
    from: peerName("host.h2"),
    key: "host",
    value: toJson(host("h2", 9000)),
  }).filter((effect) => effect.kind === "write");
  assert.equal(written.length, vms.length);
  assert.ok(vms.every((vm) => get(vm)?.host === "h2"));
});

test("what becomes free goes to who has the higher priority, the cloud's own before all, and of those that are alike to who has waited longest", () => {
  const { say, want, get, input } = world(["h1"]);
  say("h1", host("h1", 100));
  want("low", 600, 1, { priority: -1 });
  want("first", 600);
  want("second", 600);
  want("high", 600, 2, { priority: 7, restart: true });
  const root = peerName("controller.root");
  const own = { vm: "own", path: "root/own", cell: "root", incarnation: 1, memoryMiB: 600, cpus: 1, cpuSpeedMHz: 0 };
  input({ kind: "desired", from: root, key: "placement/own", value: { ...own, placement: {} } });
  const vms = ["low", "first", "second", "high"];
  const placed = (): readonly string[] => [
    ...vms.filter((vm) => get(vm)?.phase === "ready"),
    ...(get("own", root)?.phase === "ready" ? ["own"] : []),
  ];
  assert.deepEqual(placed(), []);
  const order: string[] = [];
  for (let memoryMiB = 1000; memoryMiB < 6000 && order.length < 5; memoryMiB += 100) {
    say("h1", host("h1", memoryMiB));
    order.push(...placed().filter((vm) => !order.includes(vm)));
  }
  assert.deepEqual(order, ["own", "high", "first", "second", "low"]);
});

test("who has to be beside another is tried everywhere once that one has gone, however little room it leaves", () => {
  const names = Array.from({ length: manyHosts + 1 }, (_, at) => `h${at}`);
  const { say, want, get, input } = world(names);
  for (const name of names) say(name, host(name, name === "h0" ? 1400 : 9000));
  const shop = peerName("controller.shop");
  const group = { uid: "g-1", path: "shop/near", name: "near", kind: "host affinity" };
  input({ kind: "desired", from: shop, key: "group/g-1", value: group });
  want("one", 100, 1, { placement: { groups: "near", host: "h0" } });
  assert.equal(get("one")?.host, "h0");
  want("two", 2000, 1, { placement: { groups: "near" } });
  assert.equal(get("two")?.phase, "waiting");
  want("one", null);
  assert.equal(get("two")?.phase, "ready");
});

/*
 * By whatever happens, nobody who was refused goes on waiting where a scan of all hosts would place him. From CELLS_SEED.
 */
const events = 600;
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
test("who waits is placed as soon as a host has room", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  const chance = { random: seedOf(seed) };
  const pick = <T>(all: readonly T[]): T => all[below(chance, all.length)] as T;
  const peers = Array.from({ length: manyHosts + 8 }, (_, at) => peerName(`host.h${at}`));
  const service = createPlacer({ self: peerName("placer"), hosts: peers });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const step = (input: Input): void => void service.step(state, input, { ms: 0, wallMs: 0 });
  const shop = peerName("controller.shop");
  const desire = (key: string, value: Json, from = shop): void => step({ kind: "desired", from, key, value });
  const speak = (peer: PeerName, memoryMiB: number): void => {
    step({ kind: "actual", from: peer, key: "host", value: host(peer.slice("host.".length), memoryMiB) });
    step({ kind: "reachable", peer, reachable: true });
  };
  desire("owner/shop", { cell: "shop", account: "ROOT/a" }, peerName("controller.root"));
  step({ kind: "start" });
  for (const peer of peers) speak(peer, 2000);
  const wishes: readonly JsonObject[] = [
    ...[{}, {}, {}, {}],
    ...[{ spread: "a" }, { apartFrom: ["v1", "v2"] }, { dedication: "strict" }, { dedication: "preferred" }],
    ...[{ groups: "g" }, { groups: "n" }, { host: "h3" }, { tags: "ssd" }],
  ];
  for (const [name, kind] of [
    ["g", "host anti-affinity"],
    ["n", "host affinity"],
  ] as const)
    desire(`group/${name}`, { uid: name, path: `shop/${name}`, name, kind });
  const start = (vm: string): void =>
    desire(`placement/${vm}`, {
      vm,
      path: `shop/${vm}`,
      cell: "shop",
      incarnation: 1 + below(chance, 3),
      cpuSpeedMHz: 0,
      memoryMiB: pick([300, 500, 900, 2500]),
      cpus: 1 + below(chance, 8),
      placement: pick(wishes),
    });
  const happens: readonly (() => void)[] = [
    ...Array.from({ length: 4 }, () => () => start(`v${below(chance, 400)}`)),
    ...Array.from({ length: 3 }, () => () => desire(`placement/v${below(chance, 400)}`, null)),
    () => speak(pick(peers), pick([1000, 2000, 3600])),
    () => step({ kind: "reachable", peer: pick(peers), reachable: pick([true, false]) }),
    () => {
      const value = pick<Json>([null, { memoryMiB: 400, cpus: 2 }]);
      step({ kind: "actual", from: pick(peers), key: `taken/x${below(chance, 9)}`, value });
    },
    () => {
      const name = pick(peers).slice("host.".length);
      const value = pick<Json>([null, { host: name, tags: ["ssd"] }]);
      desire(`marks/${name}`, value, peerName("controller.root"));
    },
    () => {
      // Room is kept for a lost host while some begin, and then no more.
      desire("spare", { hosts: 1 }, peerName("controller.root"));
      for (let more = 0; more < 3; more += 1) start(`v${below(chance, 400)}`);
      desire("spare", null, peerName("controller.root"));
      isDue = true;
    },
  ];
  let isDue = false;
  for (let at = 0; at < 400; at += 1) start(`v${at}`);
  let [waited, most] = [0, 0];
  for (let at = 0; at < events; at += 1) {
    pick(happens)();
    most = Math.max(most, state.refused.size);
    // Whoever was overlooked is so for a while.
    const looked = isDue || at % 10 === 0 ? [...state.refused] : [];
    isDue = false;
    for (const vm of looked) {
      const { client, document } = state.wanted.get(vm) ?? assert.fail();
      const found = place([...state.hosts.values()], state.usage, document, state.ratios, askerOf(state, client));
      waited += 1;
      assert.ok("refusals" in found, `event ${at}: ${vm} ${JSON.stringify(document)} waits, and has a place`);
    }
  }
  assert.ok(waited > events && most > 20, `${waited} and ${most} show nothing`);
});
