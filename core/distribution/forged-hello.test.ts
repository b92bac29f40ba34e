import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  boot,
  createNetwork,
  desire,
  feed,
  halt,
  machineOf,
  type Network,
  publish,
  settle,
  stateOf,
  subscribe,
} from "./network.testing.ts";
import { leftoversOf } from "./node/release.ts";

/*
 * What the holder of a name can say of itself. Nobody else can say it: the name is that of the certificate, and a hello with
 * another one ends the connection (`runtime/transport/bad-peers.test.ts`, over TLS).
 */
const far = [2 ** 52 - 1, 2 ** 52, Number.MAX_SAFE_INTEGER];
const greet = (network: Network, at: string, from: string, more: object): void => {
  feed(network, machineOf(network, at), { kind: "connected", connection: 900, peer: peerName(from), role: "server" });
  const frame = { frame: "hello", version: 2, generation: 9000, session: 1, name: from, ...more };
  feed(network, machineOf(network, at), { kind: "frame", connection: 900, frame });
  feed(network, machineOf(network, at), { kind: "disconnected", connection: 900 });
};
const desiredAt = (network: Network, name: string): Json => Object.fromEntries(stateOf(network, name).desired);
const refusals = (network: Network, name: string): number =>
  machineOf(network, name).node?.distribution.refusals.get("generation ahead of time") ?? 0;
/** The machine is removed, and another one has its name. */
const replace = (network: Network, name: string): void => {
  halt(network, machineOf(network, name));
  machineOf(network, name).store.clear();
  machineOf(network, name).instance = "the next one's";
  boot(network, machineOf(network, name));
};

test("a client that says a generation which nobody can exceed harms no one that has its name after it", () => {
  for (const generation of far) {
    const network = createNetwork(["host.h1", "b"]);
    halt(network, machineOf(network, "host.h1"));
    greet(network, "b", "host.h1", { generation, instance: "the liar's" });
    assert.equal(refusals(network, "b"), 1);
    replace(network, "host.h1");
    desire(network, "host.h1", "b", "v1", 1);
    settle(network);
    assert.deepEqual(desiredAt(network, "b"), { "host.h1 v1": 1 });
  }
});

test("nor does a receiver, or one that says that it has seen such a generation", () => {
  for (const generation of far)
    for (const lie of [{ generation }, { generation: 1, seen: generation }]) {
      const network = createNetwork(["a", "host.h1"]);
      halt(network, machineOf(network, "host.h1"));
      const a = machineOf(network, "a");
      subscribe(network, "a", "host.h1", "");
      feed(network, a, { kind: "connected", connection: 900, peer: peerName("host.h1"), role: "client" });
      const hello = { frame: "hello", version: 2, session: 1, name: "host.h1", instance: "the liar's", ...lie };
      feed(network, a, { kind: "frame", connection: 900, frame: hello });
      feed(network, a, { kind: "disconnected", connection: 900 });
      replace(network, "host.h1");
      publish(network, "host.h1", "x", 1);
      desire(network, "a", "host.h1", "v1", 1);
      settle(network);
      assert.deepEqual(Object.fromEntries(stateOf(network, "a").actual), { "host.h1 x": 1 });
      assert.deepEqual(desiredAt(network, "host.h1"), { "a v1": 1 });
    }
});

test("who says another's instance, start or mark under its own name changes nothing of the other's", () => {
  const network = createNetwork(["controller.c", "controller.d", "b"]);
  machineOf(network, "controller.c").instance = "c's";
  halt(network, machineOf(network, "controller.c"));
  boot(network, machineOf(network, "controller.c"));
  for (const client of ["controller.c", "controller.d"]) desire(network, client, "b", "v1", 1);
  settle(network);
  const marks = (name: string) =>
    structuredClone(machineOf(network, "b").node?.distribution.clients.get(peerName(name))?.mark);
  const [ofC, ofD] = [marks("controller.c"), marks("controller.d")];
  assert.ok(ofC && ofD);
  halt(network, machineOf(network, "controller.d"));
  settle(network);
  const { start, count } = ofC;
  for (const more of [
    { instance: "c's" },
    { history: [{ start, count }] },
    { history: [{ start, count: count + 9 }], instance: "c's" },
  ])
    greet(network, "b", "controller.d", { generation: 9000 + Object.keys(more).length, ...more, session: 7 });
  assert.deepEqual(marks("controller.c"), ofC);
  assert.deepEqual(
    leftoversOf(machineOf(network, "b").node?.distribution ?? assert.fail(), () => true).clients.map(
      ({ client }) => client,
    ),
    ["controller.d"],
    "the liar alone is said to have lost its store",
  );
  desire(network, "controller.c", "b", "v1", 2);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 2, "controller.d v1": 1 });
});
