import assert from "node:assert/strict";
import { test } from "node:test";
import { h1, h2, shop, started, world } from "./hosts.testing.ts";

/* Modes that put instances into the site's own network: STATIC gives them addresses of the configuration, SYSTEM none. */

const bare = { Mode: "SYSTEM", PublicIps: undefined, Subnets: undefined, Clusters: [{ Name: "one" }] };
const plain = { elastic: undefined };
const versionOf = (all: ReturnType<typeof started>): number => all.versionAt(h1);

test("in STATIC an instance has an address of the configuration, and nobody else has it before its host has given it up", () => {
  const all = started({ Mode: "STATIC", PublicIps: undefined });
  all.want(shop, "web", plain);
  assert.deepEqual([all.said(shop, "web").phase, all.said(shop, "web").address], ["waiting", "10.9.0.10"]);
  all.apply(h1);
  assert.deepEqual([all.said(shop, "web").phase, all.said(shop, "web").learnt], ["ready", undefined]);
  all.want(shop, "web", null);
  all.want(shop, "db", plain);
  assert.equal(all.said(shop, "db").address, "10.9.0.11", "the first one's host has yet to speak");
});

test("in SYSTEM an instance is ready with the view that has it, and its address is what its host has heard of it", () => {
  const all = started(bare);
  const before = versionOf(all);
  all.want(shop, "web", plain);
  const said = () => all.said(shop, "web");
  const { id = "" } = said();
  assert.deepEqual([said().phase, said().address, said().learnt], ["waiting", null, true]);
  assert.equal(said().reason, "its host h1 has yet to say that it has this instance in its view");
  assert.deepEqual(
    all.instancesAt(h1).map(({ instance }) => [instance.id, instance.privateIp, instance.publicIp]),
    [[id, undefined, undefined]],
  );
  // Of a view before it says nothing, though it names it.
  all.hear(h1, before, [{ id }]);
  assert.equal(said().phase, "waiting");
  const version = versionOf(all);
  all.hear(h1, version, [{ id }]);
  assert.deepEqual([said().phase, said().address], ["ready", null]);
  const heard = (state: string, address = "10.77.0.5") => [{ id, private: { address, state } }];
  all.hear(h1, version, heard("assigned"));
  assert.deepEqual([said().phase, said().address], ["ready", "10.77.0.5"]);
  all.hear(h1, version, heard("failed"));
  assert.deepEqual([said().phase, said().address], ["waiting", null]);
  all.hear(h1, version, heard("assigned", "10.77.0.6"));
  assert.deepEqual([said().phase, said().address], ["ready", "10.77.0.6"]);
  // What another host says of it is no word about it.
  all.hear(h2, version, heard("assigned", "10.77.0.9"));
  assert.equal(said().address, "10.77.0.6");
  // At another host it is not ready before that one says so.
  all.want(shop, "web", { ...plain, host: "h2" });
  assert.deepEqual([said().phase, all.instancesAt(h1).length, all.instancesAt(h2).length], ["waiting", 0, 1]);
  all.hear(h2, versionOf(all), [{ id }]);
  assert.deepEqual([said().phase, said().address], ["ready", null]);
});

test("in SYSTEM nothing of what the site gives is kept, and another mode is refused while instances are there", () => {
  const all = started(bare);
  all.want(shop, "web", plain);
  const { id = "" } = all.said(shop, "web");
  all.hear(h1, versionOf(all), [{ id, private: { address: "10.77.0.5", state: "assigned" } }]);
  assert.deepEqual(
    [...all.records.keys()].filter((key) => key.startsWith("book/address/")),
    [],
  );
  const edge = { Mode: "EDGE", PublicIps: ["192.0.2.1"] };
  assert.match(all.configure(edge), new RegExp(`the mode would be EDGE instead of SYSTEM: ${id}`));
  all.want(shop, "web", null);
  all.hear(h1, versionOf(all), []);
  assert.match(all.configure(edge), /"refused":null/);
});

test("in SYSTEM a store that is lost waits for the cells whose instances hosts name, and no view lacks them before", () => {
  const before = started(bare);
  before.want(shop, "web", plain);
  const { id = "" } = before.said(shop, "web");
  const all = world(new Map(), bare);
  all.send({ kind: "start" });
  all.hear(h2, 0, []);
  all.hear(h1, 9, [{ id, cell: "shop", private: { address: "10.77.0.5", state: "assigned" } }]);
  // Its configuration was lost, too, and is set after that.
  all.configure();
  assert.equal(all.versionAt(h1), 0, "nobody is told a view");
  all.group(shop, "shop-net");
  all.want(shop, "web", plain);
  assert.deepEqual(
    all.instancesAt(h1).map(({ instance }) => instance.id),
    [id],
  );
  assert.ok(all.versionAt(h1) > 9);
  assert.deepEqual(
    [...all.records.keys()].filter((key) => key.startsWith("book/address/")),
    [],
  );
  all.hear(h1, all.versionAt(h1), [{ id, private: { address: "10.77.0.5", state: "assigned" } }]);
  assert.deepEqual([all.said(shop, "web").phase, all.said(shop, "web").address], ["ready", "10.77.0.5"]);
});
