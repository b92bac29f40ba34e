import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Input } from "../env.ts";
import { type AddressReport, createAddressManager } from "./manager.ts";

const [shop, web] = [peerName("controller.shop"), peerName("controller.web")];
const subnet = (uid: string, more: { readonly has?: string; readonly cidr?: string } = {}): Json => ({
  uid,
  cell: "shop",
  path: `shop/${uid}`,
  size: 8,
  addressRange: "internal",
  cidr: null,
  ...more,
});

/** A manager over a store that outlives it, or (`lose`) does not. */
function world(controllers: readonly PeerName[]) {
  const service = createAddressManager({
    self: peerName("address-manager"),
    internalPool: "10.64.0.0/24",
    externalPool: "198.18.0.0/24",
    controllers,
  });
  let records = new Map<string, Json>();
  let wanted = new Map<string, { readonly from: PeerName; readonly key: string; readonly value: Json }>();
  const published = new Map<
    string,
    { readonly phase: string; readonly reason: string | null; readonly cidr: string }
  >();
  const empty = { records: new Map(), desiredAt: new Map() };
  let state = service.restore(empty);
  const input = (what: Input): void => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) {
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "publish") published.set(effect.key, effect.value as never);
    }
  };
  const start = (wasRestored = false): void => {
    published.clear();
    state = service.restore({ ...empty, records: new Map(records), wasRestored });
    for (const document of wanted.values()) input({ kind: "desired", ...document });
    input({ kind: "start" });
  };
  start();
  return {
    start,
    excuse: (peer: PeerName) => input({ kind: "excused", peer }),
    copy: () => ({ records: new Map(records), wanted: new Map(wanted) }),
    putBack: (store: { readonly records: Map<string, Json>; readonly wanted: typeof wanted }) => {
      records = new Map(store.records);
      wanted = new Map(store.wanted);
      start();
    },
    want: (from: PeerName, uid: string, more: Parameters<typeof subnet>[1] = {}) => {
      const document = { from, key: `subnet/${uid}`, value: subnet(uid, more) };
      wanted.set(`${from} ${uid}`, document);
      input({ kind: "desired", ...document });
    },
    complete: (peer: PeerName) => input({ kind: "complete", peer }),
    tell: (names: readonly PeerName[]) => {
      const report: AddressReport = { kind: "controllers", controllers: names };
      input({ kind: "request", id: 1, request: report as unknown as Json });
    },
    get: (from: PeerName, uid: string) => published.get(`${from}/subnet/${uid}`),
    records: () => records,
  };
}
const blank = { records: new Map<string, Json>(), wanted: new Map() };

test("a blank manager gives nothing new before every controller has said which ranges it has", () => {
  const { want, get, complete, putBack } = world([shop, web]);
  want(web, "new");
  want(web, "fixed", { cidr: "10.64.0.0/29" });
  complete(web);
  assert.equal(get(web, "new")?.phase, "waiting");
  assert.match(get(web, "new")?.reason ?? "", /has yet to hear which ranges all cells have/);
  assert.doesNotMatch(get(web, "new")?.reason ?? "", /shop/, "whose it is, is no other cell's business");
  assert.equal(get(web, "fixed")?.phase, "waiting");
  want(shop, "old", { has: "10.64.0.0/29" });
  assert.equal(get(shop, "old")?.cidr, "10.64.0.0/29", "what was given before is given at once");
  assert.equal(get(web, "new")?.phase, "waiting", "it may have more");
  complete(shop);
  assert.equal(get(web, "new")?.cidr, "10.64.0.8/29");
  assert.match(get(web, "fixed")?.reason ?? "", /is not free: "shop\/old" has it/);
  putBack(blank);
  want(shop, "own", { cidr: "192.168.0.0/29", has: "192.168.0.0/29" });
  assert.equal(get(shop, "own")?.phase, "ready", "nor does a range wait that a model names and the cell has");
});

test("for whom it waits outlasts a restart, and a store that was never lost waits for nobody", () => {
  const { want, get, complete, start } = world([shop, web]);
  want(web, "given", { has: "10.64.0.8/29" });
  complete(web);
  start();
  want(web, "new");
  assert.equal(get(web, "new")?.phase, "waiting", "it is blank no more, and has heard no more");
  complete(shop);
  assert.equal(get(web, "new")?.cidr, "10.64.0.0/29");
  start();
  want(web, "more");
  assert.equal(get(web, "more")?.phase, "ready");
});

test("a cell that is gone keeps nobody waiting, nor does one that was made since", () => {
  const { want, get, tell, complete } = world([shop, web]);
  want(web, "new");
  complete(web);
  tell([shop, web, peerName("controller.later")]);
  assert.equal(get(web, "new")?.phase, "waiting");
  tell([web, peerName("controller.later")]);
  assert.equal(get(web, "new")?.phase, "ready");
});

test("an older store shows when a cell has a range that it does not know; what is new then waits for the others", () => {
  const { want, get, complete, copy, putBack } = world([shop, web]);
  for (const controller of [shop, web]) complete(controller);
  const before = copy();
  want(shop, "s-1");
  want(shop, "s-2");
  want(web, "w-1");
  assert.deepEqual(
    [get(shop, "s-1")?.cidr, get(shop, "s-2")?.cidr, get(web, "w-1")?.cidr],
    ["10.64.0.0/29", "10.64.0.8/29", "10.64.0.16/29"],
  );
  putBack(before);
  want(web, "w-1", { has: "10.64.0.16/29" });
  want(web, "w-2");
  complete(web);
  assert.equal(get(web, "w-2")?.phase, "waiting");
  for (const [uid, has] of [
    ["s-1", "10.64.0.0/29"],
    ["s-2", "10.64.0.8/29"],
  ] as const) {
    want(shop, uid, { has });
    assert.equal(get(shop, uid)?.cidr, has);
  }
  complete(shop);
  assert.equal(get(web, "w-2")?.cidr, "10.64.0.24/29");
});

test("it shows also where the desire is known, and had no range yet", () => {
  const { want, get, complete, copy, putBack } = world([shop, web]);
  for (const controller of [shop, web]) complete(controller);
  for (let i = 0; i < 32; i += 1) want(web, `w-${i}`);
  want(shop, "s-1");
  assert.equal(get(shop, "s-1")?.phase, "waiting", "the pool is full");
  putBack(copy());
  want(shop, "s-1", { has: "192.168.0.0/29" });
  want(shop, "s-2", { cidr: "192.168.1.0/29" });
  complete(shop);
  assert.equal(get(shop, "s-2")?.phase, "waiting", "web may have more");
  complete(web);
  assert.equal(get(shop, "s-2")?.phase, "ready");
});

test("a store that was put back waits for all, though nobody shows a range that it has forgotten", () => {
  const { want, get, complete, start } = world([shop, web]);
  for (const controller of [shop, web]) complete(controller);
  want(shop, "s-1");
  start(true);
  want(web, "w-1");
  complete(web);
  assert.equal(get(web, "w-1")?.phase, "waiting");
  start();
  assert.equal(get(web, "w-1")?.phase, "waiting", "nor after one more start");
  for (const controller of [shop, web]) complete(controller);
  assert.equal(get(web, "w-1")?.phase, "ready");
});

test("a controller that has said all and makes up a range then holds up nobody, also after a restart", () => {
  const liar = peerName("controller.liar");
  const { want, get, complete, start } = world([shop, web, liar]);
  for (const controller of [shop, web, liar]) complete(controller);
  start();
  for (const controller of [shop, liar]) complete(controller);
  want(liar, "l-1", { has: "10.64.0.128/29" });
  want(shop, "s-1");
  assert.equal(get(shop, "s-1")?.phase, "ready", "web is silent, and nobody waits for it");
  start();
  want(shop, "s-2");
  assert.equal(get(shop, "s-2")?.phase, "ready");
});

test("an operator drops a controller that does not come back, and one that goes on making up ranges", () => {
  const liar = peerName("controller.liar");
  const { want, get, complete, excuse, start } = world([shop, web, liar]);
  for (const controller of [shop, web, liar]) complete(controller);
  start();
  complete(shop);
  want(liar, "l-1", { has: "10.64.0.128/29" });
  want(shop, "s-1");
  assert.equal(get(shop, "s-1")?.phase, "waiting", "the liar does not say that this is all");
  excuse(web);
  assert.equal(get(shop, "s-1")?.phase, "waiting");
  excuse(liar);
  assert.equal(get(shop, "s-1")?.phase, "ready");
  want(liar, "l-2", { has: "10.64.0.136/29" });
  want(shop, "s-2");
  assert.equal(get(shop, "s-2")?.phase, "ready", "what it makes up after that counts no more than before");
  start();
  want(shop, "s-3");
  assert.equal(get(shop, "s-3")?.phase, "ready");
});

test("the record of whom it waits for is a subnet of nobody to a version that does not know it", () => {
  const { complete, records } = world([shop]);
  complete(shop);
  const { client, path, cidr } = records().get("recovery") as { client: string; path: string; cidr: string };
  assert.deepEqual([client, path, cidr], ["address-manager", "recovery", "0.0.0.0/29"]);
});
