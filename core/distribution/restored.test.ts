import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  boot,
  cause,
  copyOf,
  createNetwork,
  deliver,
  desire,
  desiredAt,
  dial,
  goOn,
  halt,
  machineOf,
  type Network,
  publish,
  putBack,
  release,
  restart,
  settle,
  stateOf,
  subscribe,
  wireBetween,
} from "./network.testing.ts";

test("of what an older store says that its receiver does not have nothing begins before it counts", () => {
  const network = createNetwork(["controller.c", "h1", "h2"]);
  desire(network, "controller.c", "h1", "vm", 1);
  desire(network, "controller.c", "h1", "rules", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  // It moves.
  desire(network, "controller.c", "h1", "vm", null);
  desire(network, "controller.c", "h2", "vm", 2);
  desire(network, "controller.c", "h1", "rules", 2);
  settle(network);
  putBack(network, "controller.c", copy);
  for (const name of ["h1", "controller.c", "h1"]) {
    settle(network);
    assert.deepEqual(desiredAt(network, "h1"), { "controller.c rules": 2 }, "the machine has left this host");
    restart(network, name);
  }
  settle(network);
  desire(network, "controller.c", "h1", "later", 1);
  settle(network);
  assert.deepEqual(desiredAt(network, "h1"), { "controller.c rules": 2, "controller.c later": 1 });
  release(network, "controller.c", "controller.c");
  release(network, "h1", "controller.c");
  settle(network);
  const then = { "controller.c vm": 1, "controller.c rules": 1, "controller.c later": 1 };
  assert.deepEqual(desiredAt(network, "h1"), then, "it counts now, and says all of it");
});

test("one that lost its store while its clock is behind is heard, as a client and as a receiver; an earlier life is not", () => {
  const start = (network: Network): void => {
    for (const name of ["a", "b", "a", "b", "a", "b"]) restart(network, name);
    desire(network, "a", "b", "k", 1);
    subscribe(network, "a", "b", "");
    publish(network, "b", "x", 1);
    settle(network);
  };
  const blank = (network: Network, name: string): void => {
    putBack(network, name, null);
    halt(network, machineOf(network, name));
    machineOf(network, name).store.clear();
    boot(network, machineOf(network, name));
  };
  const client = createNetwork(["a", "b"]);
  start(client);
  blank(client, "a");
  desire(client, "a", "b", "l", 2);
  settle(client);
  assert.deepEqual(desiredAt(client, "b"), { "a k": 1, "a l": 2 });
  restart(client, "a");
  settle(client);
  desire(client, "a", "b", "l", 3);
  settle(client);
  assert.deepEqual(desiredAt(client, "b"), { "a k": 1, "a l": 3 }, "nor is it refused after its next start");

  const receiver = createNetwork(["a", "b"]);
  start(receiver);
  blank(receiver, "b");
  publish(receiver, "b", "x", 2);
  settle(receiver);
  assert.deepEqual(Object.fromEntries(stateOf(receiver, "a").actual), { "b x": 2 });
  assert.equal(stateOf(receiver, "a").reachable.get("b"), true);
});

test("one that was copied back from before others met later starts is heard once an operator lets it count, and not before", () => {
  for (const how of ["counts-again", "release"]) {
    const network = createNetwork(["a", "b"]);
    subscribe(network, "a", "b", "");
    settle(network);
    // Nothing in it says that it is one.
    const copy = [...machineOf(network, "b").store];
    for (const _start of [1, 2, 3, 4]) restart(network, "b");
    publish(network, "b", "x", 1);
    settle(network);
    const b = machineOf(network, "b");
    halt(network, b);
    b.store.clear();
    for (const [key, value] of copy) b.store.set(key, value);
    boot(network, b);
    publish(network, "b", "x", 2);
    assert.equal(goOn(network, 20), false, "it is refused, and dialled again and again");
    assert.deepEqual(Object.fromEntries(stateOf(network, "a").actual), { "b x": 1 }, "it may be an earlier life");
    assert.equal(stateOf(network, "a").reachable.get("b"), false);
    if (how === "release") release(network, "b", "b");
    else cause(network, "b", { kind: "counts-again" });
    settle(network);
    assert.deepEqual(Object.fromEntries(stateOf(network, "a").actual), { "b x": 2 });
    restart(network, "b");
    publish(network, "b", "x", 3);
    settle(network);
    assert.deepEqual(
      Object.fromEntries(stateOf(network, "a").actual),
      { "b x": 3 },
      "nor is it refused after its next start",
    );
  }
});

/** A client whose store is older, or was lost, where its receivers hold nothing of which that could be a fork. */
const inputsOf = (network: Network, name: string, kind: string): Json[] =>
  stateOf(network, name).inputs.filter((input) => input.kind === kind) as unknown as Json[];

test("of a client that was put back to before all that it had here ended, its receiver is told, and of nothing ordinary", () => {
  const network = createNetwork(["controller.c", "b"]);
  const told = (): Json[] => inputsOf(network, "b", "set-back");
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  restart(network, "controller.c");
  desire(network, "controller.c", "b", "v1", null);
  settle(network);
  for (const name of ["controller.c", "b", "controller.c"]) restart(network, name);
  settle(network);
  assert.deepEqual(told(), []);
  putBack(network, "controller.c", copy);
  settle(network);
  assert.deepEqual(told(), [{ kind: "set-back", peer: "controller.c" }]);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 1 }, "it is no fork");
  restart(network, "controller.c");
  settle(network);
  assert.equal(told().length, 1);
});

test("the client hears of it from each receiver, once in the life of its store, also where the receiver starts before it could say so", () => {
  const network = createNetwork(["controller.c", "b", "d"]);
  const told = (): Json[] => inputsOf(network, "controller.c", "seen-later");
  for (const peer of ["b", "d"]) desire(network, "controller.c", peer, "v1", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  restart(network, "controller.c");
  for (const peer of ["b", "d"]) desire(network, "controller.c", peer, "v1", null);
  settle(network);
  assert.deepEqual(told(), []);
  putBack(network, "controller.c", copy);
  settle(network);
  const bySender = (): readonly Json[] =>
    told()
      .map((input) => (input as { readonly peer: string }).peer)
      .sort();
  assert.deepEqual(bySender(), ["b", "d"]);
  for (const name of ["controller.c", "b", "d"]) restart(network, name);
  settle(network);
  assert.deepEqual(bySender(), [], "not in its next start");
  // Its store is lost again: both say so again, though what they saw last is the store that was put back.
  for (const peer of ["b", "d"]) desire(network, "controller.c", peer, "v1", null);
  settle(network);
  putBack(network, "controller.c", copy);
  dial(network, machineOf(network, "controller.c"), peerName("b"));
  const wire = wireBetween(network, "controller.c", "b");
  deliver(network, wire, "server");
  assert.equal(inputsOf(network, "b", "set-back").length, 1);
  wire.to.client.length = 0;
  restart(network, "b");
  settle(network);
  assert.deepEqual(bySender(), ["b", "d"], "though b started before its answer had left");
});

test("a document that is let go stays where it is, over starts of both, and its receiver names it", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "v1", 1);
  desire(network, "a", "b", "v2", 2);
  settle(network);
  cause(network, "a", { kind: "let-go", at: peerName("b"), key: "v1" });
  cause(network, "a", { kind: "let-go", at: peerName("b"), key: "never" });
  settle(network);
  for (const name of ["a", "b", "a"]) restart(network, name);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a v1": 1, "a v2": 2 });
  const [client] = machineOf(network, "b").node?.distribution.clients.values() ?? [];
  assert.deepEqual([...(client?.orphans ?? [])], ["v1"]);
  desire(network, "a", "b", "v1", 3);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a v1": 3, "a v2": 2 }, "it may be desired once more");
});
