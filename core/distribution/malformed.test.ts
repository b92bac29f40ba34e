import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import {
  boot,
  createNetwork,
  desire,
  feed,
  halt,
  machineOf,
  malformed,
  type Network,
  publish,
  settle,
  stateOf,
  subscribe,
} from "./network.testing.ts";
import { shareOf } from "./node/share/share.ts";
import { storeKey } from "./node/stored.ts";

const refused = (network: Network, name: string): number =>
  machineOf(network, name).node?.distribution.refusals.get("malformed document") ?? 0;
const named = (network: Network, name: string): readonly unknown[] =>
  machineOf(network, name).logs.flatMap(({ event, fields }) =>
    event === "distribution/refused" ? [[fields.peer, fields.key, fields.why]] : [],
  );

test("a malformed desire is acknowledged, counted and named, and the last good one stays", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  desire(network, "a", "b", "vm/2", malformed);
  settle(network);
  desire(network, "a", "b", "vm/1", malformed);
  desire(network, "a", "b", "vm/3", 3);
  settle(network);
  assert.deepEqual(
    [...stateOf(network, "b").desired],
    [
      ["a vm/1", 1],
      ["a vm/3", 3],
    ],
  );
  assert.equal(refused(network, "b"), 2);
  assert.deepEqual(named(network, "b")[0], ["a", "vm/2", "at it: found nothing good"]);
  halt(network, machineOf(network, "b"));
  boot(network, machineOf(network, "b"));
  assert.equal(stateOf(network, "b").desired.get("a vm/1"), 1);
  desire(network, "a", "b", "vm/1", null);
  settle(network);
  assert.deepEqual([...stateOf(network, "b").desired.keys()], ["a vm/3"], "its tombstone takes it back");
});

test("of what a source says, a malformed value is as if it had not been said, and both sides agree all the same", () => {
  const network = createNetwork(["a", "b"]);
  subscribe(network, "a", "b", "");
  publish(network, "b", "host", 1);
  settle(network);
  publish(network, "b", "host", malformed);
  publish(network, "b", "other", malformed);
  settle(network);
  assert.deepEqual([...stateOf(network, "a").actual], [["b host", 1]]);
  assert.equal(refused(network, "a"), 2);
  assert.ok(machineOf(network, "b").timers.has("distribution/digest"));
  const link = [...(machineOf(network, "a").node?.distribution.links.values() ?? [])][0];
  assert.deepEqual(link?.role === "client" ? [...link.seen.keys()].sort() : null, ["host", "other"]);
  publish(network, "b", "host", 2);
  publish(network, "b", "other", null);
  settle(network);
  assert.deepEqual([...stateOf(network, "a").actual], [["b host", 2]]);
});

test("what a receiver says that it keeps is read before the service sees it, and an unreadable one is named", () => {
  const network = createNetwork(["controller.c", "b"]);
  desire(network, "controller.c", "b", "vm/1", 1);
  settle(network);
  const a = machineOf(network, "controller.c");
  const [connection = 0] = a.node?.distribution.links.keys() ?? [];
  feed(network, a, { kind: "frame", connection, frame: { frame: "kept", key: "vm/2", value: malformed } });
  feed(network, a, { kind: "frame", connection, frame: { frame: "kept", key: "vm/3", value: 3 } });
  assert.deepEqual(
    stateOf(network, "controller.c").inputs.filter(({ kind }) => kind === "kept"),
    [{ kind: "kept", peer: "b", key: "vm/3", value: 3 }],
  );
  assert.deepEqual(named(network, "controller.c")[0], ["b", "vm/2", "at it: found nothing good"]);
  const { orphans } = a.node?.distribution.targets.get(peerName("b")) ?? assert.fail();
  assert.deepEqual([...orphans], ["vm/3"]);
});

test("a receiver that lies names no more that it keeps than its client could have desired there", () => {
  const network = createNetwork(["controller.c", "b"]);
  desire(network, "controller.c", "b", "vm/1", 1);
  settle(network);
  const a = machineOf(network, "controller.c");
  const [connection = 0] = a.node?.distribution.links.keys() ?? [];
  const { orphans } = a.node?.distribution.targets.get(peerName("b")) ?? assert.fail();
  const most = shareOf(peerName("controller.c")).documents;
  for (let count = 1; count < most; count += 1) orphans.add(`vm/more-${count}`);
  // One is said of its own accord, the other as an answer to a desire that there never was.
  for (const said of [{ key: "vm/2" }, { key: "vm/3" }, { key: "vm/4", seq: 1 }, { key: "vm/1" }, { key: "vm/2" }])
    feed(network, a, { kind: "frame", connection, frame: { frame: "kept", ...said, value: 3 } });
  assert.equal(orphans.size, most);
  assert.deepEqual(
    stateOf(network, "controller.c").inputs.flatMap((input) => (input.kind === "kept" ? [input.key] : [])),
    ["vm/2", "vm/1", "vm/2"],
  );
  assert.equal(a.node?.distribution.refusals.get("too many documents"), 2, "what is dropped is counted");
  assert.ok(
    a.logs.some(({ event, fields }) => event === "distribution/refused" && fields.peer === "b"),
    "and who said it is named",
  );
});

test("a stored desire that this version cannot read is kept, and the service knows that it is there", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  const server = machineOf(network, "b");
  halt(network, server);
  server.store.set(storeKey.in(peerName("a"), "vm/1"), { generation: 1, seq: 1, value: malformed });
  boot(network, server);
  assert.equal(refused(network, "b"), 1);
  assert.deepEqual([...stateOf(network, "b").desired], [["a vm/1", malformed]]);
  assert.ok(server.store.has(storeKey.in(peerName("a"), "vm/1")));
});
