import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import {
  allow,
  boot,
  createNetwork,
  cut,
  deliver,
  desire,
  feed,
  halt,
  inject,
  machineOf,
  type Network,
  publish,
  refusals,
  settle,
  stateOf,
  subscribe,
  unsubscribe,
  wireBetween,
} from "../network.testing.ts";

const framesTo = (network: Network, to: string, kind: string): Json[] =>
  network.sent
    .filter((sent) => sent.to === to && sent.frame.frame === kind)
    .map(({ frame }) => frame as unknown as Json);
const desiredAt = (network: Network, name: string): Json => Object.fromEntries(stateOf(network, name).desired);
const actualAt = (network: Network, name: string): Json => Object.fromEntries(stateOf(network, name).actual);
const outOf = (network: Network, name: string): string[] =>
  [...machineOf(network, name).store.keys()].filter((key) => key.startsWith("out/"));
const restart = (network: Network, name: string): void => {
  halt(network, machineOf(network, name));
  boot(network, machineOf(network, name));
};
test("a desired document reaches its receiver once, and the same value again costs no frame", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", { on: true });
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": { on: true } });
  desire(network, "a", "b", "vm/1", { on: true });
  settle(network);
  assert.equal(framesTo(network, "b", "desire").length, 1);
});

test("a tombstone outlives the client's restart and goes once it is acknowledged", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  halt(network, machineOf(network, "b"));
  desire(network, "a", "b", "vm/1", null);
  settle(network);
  assert.deepEqual(outOf(network, "a"), ["out/b/vm/1"]);
  restart(network, "a");
  assert.deepEqual(outOf(network, "a"), ["out/b/vm/1"]);
  boot(network, machineOf(network, "b"));
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": 1 }, "what was desired stays until it is taken back");
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), {});
  assert.deepEqual(outOf(network, "a"), []);
  restart(network, "b");
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), {});
});

test("a document is durable at its receiver before it is acknowledged", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  desire(network, "a", "b", "vm/2", 2);
  deliver(network, wireBetween(network, "a", "b"), "server", true);
  boot(network, machineOf(network, "b"));
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": 1, "a vm/2": 2 });
});

test("stored documents are delivered before the start", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  restart(network, "b");
  assert.deepEqual(
    stateOf(network, "b").inputs.map(({ kind }) => kind),
    ["desired", "start"],
  );
});

test("a client that comes back without its store adds, and takes nothing back", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/old", 1);
  settle(network);
  const a = machineOf(network, "a");
  const generation = a.store.get("generation") as number;
  halt(network, a);
  a.store.clear();
  a.store.set("generation", generation);
  boot(network, a);
  desire(network, "a", "b", "vm/new", 3);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a vm/old": 1, "a vm/new": 3 });
  restart(network, "b");
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a vm/old": 1, "a vm/new": 3 });
  const told = machineOf(network, "b").logs.filter(({ event }) => event === "distribution/orphans");
  assert.deepEqual(told[0]?.fields, { peer: "a", count: 1, keys: ["vm/old"] });
});

/** One movement towards the server only, so that a snapshot can be watched frame by frame. */
const settleStep = (network: Network): void => {
  const { dials } = machineOf(network, "a");
  if (network.wires.size === 0) {
    for (const peer of dials) {
      network.wireCount += 1;
      const id = network.wireCount;
      network.wires.set(id, {
        id,
        client: peerName("a"),
        server: peer,
        to: { client: [], server: [] },
        busy: new Set(),
        open: new Set(["client", "server"]),
      });
      feed(network, machineOf(network, peer), {
        kind: "connected",
        connection: id,
        peer: peerName("a"),
        role: "server",
      });
      feed(network, machineOf(network, "a"), { kind: "connected", connection: id, peer, role: "client" });
    }
    return;
  }
  assert.ok(deliver(network, wireBetween(network, "a", "b"), "server"));
};

test("an older generation and an older connection of a client are refused", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  const a = machineOf(network, "a");
  const before = new Map(a.store);
  restart(network, "a");
  settle(network);
  halt(network, a);
  a.store.clear();
  for (const [key, value] of before) a.store.set(key, value);
  a.store.set("generation", 0);
  boot(network, a);
  desire(network, "a", "b", "vm/1", 99);
  for (let round = 0; round < 50; round += 1) {
    try {
      settleOnce(network);
    } catch {
      break;
    }
  }
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": 1 });
  assert.ok(refusals(network, "b").includes("old generation"));
});

/** A refused client dials for ever: move everything once only. */
const settleOnce = (network: Network): void => {
  const { dials } = machineOf(network, "a");
  if (![...network.wires.values()].some((wire) => wire.open.has("client"))) {
    network.wires.clear();
    settleStep(network);
  }
  assert.ok(dials.size > 0);
  for (const wire of network.wires.values()) {
    for (const side of ["client", "server"] as const) while (deliver(network, wire, side));
  }
};

test("a late connection does not supersede its successor", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  const first = wireBetween(network, "a", "b");
  // The client sees the end, the server does not; what the client sent last is still on its way.
  desire(network, "a", "b", "vm/1", 2);
  const late = [...first.to.server];
  cut(network, first, "client");
  desire(network, "a", "b", "vm/1", 3);
  first.to.server.length = 0;
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": 3 });
  for (const frame of late) {
    feed(network, machineOf(network, "b"), {
      kind: "frame",
      connection: first.id,
      frame: frame as unknown as Json,
    });
  }
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a vm/1": 3 });
  assert.deepEqual(network.faults, []);
});

test("actual state: snapshot, change, retraction; only what the prefix covers", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "a/1", 1);
  publish(network, "b", "c/1", 1);
  subscribe(network, "a", "b", "a/");
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b a/1": 1 });
  publish(network, "b", "a/1", 2);
  publish(network, "b", "a/2", 1);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b a/1": 2, "b a/2": 1 });
  publish(network, "b", "a/1", null);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b a/2": 1 });
  const frames = framesTo(network, "a", "actual").length;
  publish(network, "b", "a/2", 1);
  settle(network);
  assert.equal(framesTo(network, "a", "actual").length, frames);
});

test("a broken connection makes actual state old, a goodbye withdraws it, a new life brings it back", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "host", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  assert.equal(stateOf(network, "a").reachable.get("b"), true);
  halt(network, machineOf(network, "b"));
  settle(network);
  assert.equal(stateOf(network, "a").reachable.get("b"), false);
  assert.deepEqual(actualAt(network, "a"), { "b host": 1 });
  boot(network, machineOf(network, "b"));
  publish(network, "b", "host", 2);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b host": 2 });
  assert.equal(stateOf(network, "a").reachable.get("b"), true);
  feed(network, machineOf(network, "b"), { kind: "stop" });
  halt(network, machineOf(network, "b"));
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {});
  assert.equal(stateOf(network, "a").reachable.get("b"), false);
  boot(network, machineOf(network, "b"));
  publish(network, "b", "host", 3);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b host": 3 });
});

test("a goodbye is no word on what was said: the source is unreachable before any of it goes", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "vm/1", 1);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  const told = stateOf(network, "a").inputs.length;
  feed(network, machineOf(network, "b"), { kind: "stop" });
  settle(network);
  assert.deepEqual(
    stateOf(network, "a").inputs.slice(told),
    [
      { kind: "reachable", peer: "b", reachable: false },
      { kind: "actual", from: "b", key: "vm/1", value: null },
    ],
    "a client that takes absence for a confirmation must not be in step when it sees it",
  );
});

test("what a restarted source no longer says is withdrawn at its complete mark", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "vm/1", 1);
  publish(network, "b", "vm/2", 1);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  restart(network, "b");
  publish(network, "b", "vm/2", 1);
  const told = stateOf(network, "a").inputs.length;
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/2": 1 });
  const later = stateOf(network, "a").inputs.slice(told);
  assert.deepEqual(
    later.map((input) => (input.kind === "actual" ? [input.key, input.value] : input.kind)),
    ["reachable", ["vm/1", null], "reachable"],
    "an unchanged value is not told again",
  );
});

test("a withdrawn generation does not come back", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "host", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  inject(network, "a", "b", "client", { frame: "goodbye" });
  assert.deepEqual(actualAt(network, "a"), {});
  network.wires.clear();
  for (let round = 0; round < 5; round += 1) settleOnce(network);
  assert.deepEqual(actualAt(network, "a"), {});
  assert.ok(refusals(network, "a").includes("old generation"));
  restart(network, "b");
  publish(network, "b", "host", 2);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b host": 2 });
});

test("a peer sees what it is entitled to, from when it is until it is not", () => {
  const network = createNetwork(["a", "b", "c"]);
  allow(network, "b", "a", "location/1", false);
  publish(network, "b", "location/1", 1);
  subscribe(network, "a", "b", "location/");
  subscribe(network, "c", "b", "location/");
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {});
  assert.deepEqual(actualAt(network, "c"), { "b location/1": 1 });
  publish(network, "b", "location/1", 2);
  settle(network);
  assert.deepEqual(framesTo(network, "a", "actual"), []);
  allow(network, "b", "a", "location/1", true);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b location/1": 2 });
  allow(network, "b", "a", "location/1", false);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {});
  allow(network, "b", "a", "location/1", true);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b location/1": 2 });
});

test("a slow destination gets the newest value of each key and no queue", () => {
  const network = createNetwork(["a", "b"]);
  subscribe(network, "a", "b", "");
  desire(network, "a", "b", "x", 0);
  settle(network);
  const before = { actual: framesTo(network, "a", "actual").length, desire: framesTo(network, "b", "desire").length };
  for (let value = 1; value <= 1000; value += 1) {
    publish(network, "b", `k${value % 3}`, value);
    desire(network, "a", "b", `k${value % 3}`, value);
  }
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b k0": 999, "b k1": 1000, "b k2": 998 });
  assert.deepEqual(desiredAt(network, "b"), { "a x": 0, "a k0": 999, "a k1": 1000, "a k2": 998 });
  assert.ok(framesTo(network, "a", "actual").length - before.actual <= 4);
  assert.ok(framesTo(network, "b", "desire").length - before.desire <= 4);
});

test("a long snapshot goes in bursts and is complete", () => {
  const network = createNetwork(["a", "b"]);
  for (let number = 0; number < 1000; number += 1) {
    publish(network, "b", `k${number}`, number);
    desire(network, "a", "b", `k${number}`, number);
  }
  subscribe(network, "a", "b", "");
  settle(network);
  assert.equal(stateOf(network, "a").actual.size, 1000);
  assert.equal(stateOf(network, "b").desired.size, 1000);
  desire(network, "a", "b", "k7", null);
  settle(network);
  assert.equal(stateOf(network, "b").desired.size, 999);

  // Neither side takes the first burst of a repeated snapshot for all of it.
  const told = { a: stateOf(network, "a").inputs.length, b: stateOf(network, "b").inputs.length };
  cut(network, wireBetween(network, "a", "b"), "client");
  settle(network);
  assert.deepEqual(stateOf(network, "b").inputs.slice(told.b), [{ kind: "complete", peer: "a" }]);
  assert.deepEqual(
    stateOf(network, "a")
      .inputs.slice(told.a)
      .map(({ kind }) => kind),
    ["reachable", "reachable"],
  );
});

test("prefixes that overlap cost nothing twice", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "vm/1", 1);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  subscribe(network, "a", "b", "");
  settle(network);
  assert.equal(framesTo(network, "a", "actual").length, 1);
  unsubscribe(network, "a", "b", "vm/");
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 1 });
});

test("what was on its way to a former subscription is void in the next one", () => {
  const network = createNetwork(["a", "b"]);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  const wire = wireBetween(network, "a", "b");
  publish(network, "b", "vm/1", 1);
  assert.ok(wire.to.client.length > 0, "it is on its way");
  unsubscribe(network, "a", "b", "vm/");
  while (deliver(network, wire, "server"));
  publish(network, "b", "vm/1", null);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {});
});

test("a source does not go back to an earlier generation", () => {
  const network = createNetwork(["a", "b"]);
  publish(network, "b", "host", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  restart(network, "b");
  publish(network, "b", "host", 2);
  settle(network);
  const b = machineOf(network, "b");
  halt(network, b);
  b.store.set("generation", 0);
  settle(network);
  boot(network, b);
  publish(network, "b", "host", 1);
  network.wires.clear();
  for (let round = 0; round < 5; round += 1) settleOnce(network);
  assert.deepEqual(actualAt(network, "a"), { "b host": 2 });
  assert.ok(refusals(network, "a").includes("old generation"));
});

test("to unsubscribe and subscribe again ends in step, whatever was on its way", () => {
  const network = createNetwork(["a", "b"]);
  subscribe(network, "a", "b", "vm/");
  publish(network, "b", "vm/1", 1);
  settle(network);
  publish(network, "b", "vm/2", 2);
  unsubscribe(network, "a", "b", "vm/");
  assert.deepEqual(actualAt(network, "a"), {});
  subscribe(network, "a", "b", "vm/");
  publish(network, "b", "vm/1", null);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/2": 2 });
  unsubscribe(network, "a", "b", "vm/");
  settle(network);
  publish(network, "b", "vm/2", 3);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {});
});

test("a peer that cannot be reached is said to be so, once", () => {
  const network = createNetwork(["a"]);
  subscribe(network, "a", "nobody", "");
  for (let attempt = 0; attempt < 3; attempt += 1) {
    feed(network, machineOf(network, "a"), { kind: "unreachable", peer: peerName("nobody") });
  }
  const { inputs, reachable } = stateOf(network, "a");
  assert.equal(reachable.get("nobody"), false);
  assert.equal(inputs.filter(({ kind }) => kind === "reachable").length, 1);
});

test("a node starts once and first", () => {
  const network = createNetwork(["a"]);
  assert.throws(() => feed(network, machineOf(network, "a"), { kind: "start" }), /starts once/);
});
