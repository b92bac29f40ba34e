import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  boot,
  type Copy,
  cause,
  copyOf,
  createNetwork,
  desire,
  desiredAt,
  feed,
  halt,
  machineOf,
  type Network,
  putBack,
  release,
  restart,
  settle,
  stateOf,
  subscribe,
} from "./network.testing.ts";
import { type IsThere, instanceOf, leftoversOf } from "./node/release.ts";

const inputsOf = (network: Network, name: string, kind: string): Json[] =>
  stateOf(network, name).inputs.filter((input) => input.kind === kind) as unknown as Json[];
const logged = (network: Network, name: string, event: string): number =>
  machineOf(network, name).logs.filter((line) => line.event === event).length;
const leftovers = (network: Network, name: string, isThere: IsThere = () => true) => {
  const { node } = machineOf(network, name);
  return node === null ? assert.fail() : leftoversOf(node.distribution, isThere);
};
/** The book of peers does not name it. */
const endAsGone = (network: Network, name: string, peer: string, keys: readonly string[]): void =>
  feed(network, machineOf(network, name), { kind: "release", peer: peerName(peer), keys, isGone: true });

/** `controller.c` desired v1, of which there is a copy, and then changed it and desired v2. */
const older = (): { readonly network: Network; readonly copy: Copy } => {
  const network = createNetwork(["controller.c", "b"]);
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  const copy = copyOf(network, "controller.c");
  desire(network, "controller.c", "b", "v1", 2);
  desire(network, "controller.c", "b", "v2", 5);
  settle(network);
  return { network, copy };
};
const both = { "controller.c v1": 2, "controller.c v2": 5 };

test("restarts, broken connections and crashes of either side are no forks", () => {
  const network = createNetwork(["a", "b"]);
  for (let round = 1; round < 8; round += 1) {
    desire(network, "a", "b", "k", round, round % 3 === 0);
    if (round % 3 === 0) boot(network, machineOf(network, "a"));
    settle(network);
    restart(network, round % 2 === 0 ? "a" : "b");
    settle(network);
  }
  desire(network, "a", "b", "k", null);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), {});
  for (const name of ["a", "b"]) {
    assert.equal(logged(network, name, "distribution/forked"), 0);
    assert.deepEqual(leftovers(network, name), { clients: [], receivers: [] });
  }
});

test("a client that was put back changes and ends nothing that its receiver took before, over restarts of both", () => {
  const { network, copy } = older();
  putBack(network, "controller.c", copy);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), both, "an older value changes nothing");
  desire(network, "controller.c", "b", "v1", null);
  desire(network, "controller.c", "b", "v3", 1);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { ...both, "controller.c v3": 1 }, "what is new is taken");
  assert.deepEqual(inputsOf(network, "controller.c", "released"), [], "what is kept is never said to be taken back");
  for (const name of ["b", "controller.c", "b"]) {
    restart(network, name);
    settle(network);
    assert.deepEqual(leftovers(network, "b").clients[0]?.kept, 2, "what is said again was the client's own");
  }
  // Changed while nobody listens, and before the client's own next start.
  halt(network, machineOf(network, "b"));
  desire(network, "controller.c", "b", "v3", 2);
  restart(network, "controller.c");
  boot(network, machineOf(network, "b"));
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { ...both, "controller.c v3": 2 });
  desire(network, "controller.c", "b", "v3", null);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), both, "what was added since is the client's own");
  assert.deepEqual(inputsOf(network, "controller.c", "released"), [{ kind: "released", peer: "b", key: "v3" }]);
  for (const name of ["b", "controller.c"]) assert.equal(logged(network, name, "distribution/forked"), 1, name);
});

test("a blank client is told what is kept for it, and may end that with a tombstone once it is released", () => {
  const { network } = older();
  putBack(network, "controller.c", null);
  desire(network, "controller.c", "b", "v9", 1);
  settle(network);
  assert.deepEqual(inputsOf(network, "controller.c", "forked"), [
    { kind: "forked", peer: "b", forked: true, itForked: false },
  ]);
  assert.deepEqual(inputsOf(network, "controller.c", "kept"), [
    { kind: "kept", peer: "b", key: "v1", value: 2 },
    { kind: "kept", peer: "b", key: "v2", value: 5 },
  ]);
  assert.deepEqual(leftovers(network, "b").clients, [
    { client: "controller.c", forked: true, kept: 2, keys: ["v1", "v2"], orphans: 2 },
  ]);
  release(network, "b", "controller.c");
  release(network, "controller.c", "controller.c");
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { ...both, "controller.c v9": 1 }, "a release ends nothing by itself");
  assert.equal(inputsOf(network, "controller.c", "forked").length, 2);
  desire(network, "controller.c", "b", "v2", null);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 2, "controller.c v9": 1 });
});

test("a release makes the older client's documents count; an operator's word ends those that it does not know", () => {
  const { network, copy } = older();
  putBack(network, "controller.c", copy);
  settle(network);
  desire(network, "controller.c", "b", "v7", 7);
  settle(network);
  release(network, "b", "controller.c", ["v7", "v2"]);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 2, "controller.c v7": 7 }, "no document in use ends");
  release(network, "b", "controller.c");
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 1, "controller.c v7": 7 });
  assert.deepEqual(leftovers(network, "b"), { clients: [], receivers: [] });
});

test("what a service knows to be a client's without a document of it is an orphan once the client has said all, or is gone", () => {
  const network = createNetwork(["controller.c", "controller.d", "b"]);
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  halt(network, machineOf(network, "controller.c"));
  restart(network, "b");
  for (const client of ["controller.c", "controller.d"])
    stateOf(network, "b").unclaimed.set(peerName(client), ["v1", "v2"]);
  const isThere = (peer: string): boolean => peer === "controller.c";
  const gone = { client: "controller.d", forked: false, kept: 0, keys: ["v1", "v2"], orphans: 2 };
  assert.deepEqual(leftovers(network, "b", isThere).clients, [gone]);
  release(network, "b", "controller.c", ["v2"]);
  release(network, "b", "controller.d", ["v2"]);
  assert.deepEqual(inputsOf(network, "b", "ended"), [], "both may have something to say of it");
  endAsGone(network, "b", "controller.d", ["v2", "v7"]);
  assert.deepEqual(inputsOf(network, "b", "ended"), [{ kind: "ended", peer: "controller.d", keys: ["v2"] }]);
  boot(network, machineOf(network, "controller.c"));
  settle(network);
  const heard = { client: "controller.c", forked: false, kept: 0, keys: ["v2"], orphans: 1 };
  assert.deepEqual(leftovers(network, "b", isThere).clients, [heard, gone], "what it repeats is claimed");
  release(network, "b", "controller.c", ["v1", "v2"]);
  assert.deepEqual(inputsOf(network, "b", "ended").slice(1), [{ kind: "ended", peer: "controller.c", keys: ["v2"] }]);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 1 });
});

test("of a client that is gone for good, whom an older receiver still knows, an operator ends what is left", () => {
  const network = createNetwork(["controller.c", "controller.d", "b"]);
  for (const client of ["controller.c", "controller.d"]) desire(network, client, "b", "v1", 1);
  settle(network);
  const copy = copyOf(network, "b");
  desire(network, "controller.c", "b", "v1", null);
  settle(network);
  for (const client of ["controller.c", "controller.d"]) halt(network, machineOf(network, client));
  putBack(network, "b", copy);
  settle(network);
  const isThere = (peer: string): boolean => peer !== "controller.c";
  assert.deepEqual(leftovers(network, "b").clients, [], "who is in the book may only be late");
  assert.deepEqual(leftovers(network, "b", isThere).clients, [
    { client: "controller.c", forked: false, kept: 0, keys: ["v1"], orphans: 1 },
  ]);
  const left = { "controller.c v1": 1, "controller.d v1": 1 };
  release(network, "b", "controller.c", ["v1"]);
  assert.deepEqual(desiredAt(network, "b"), left, "nor ends anything of one that is");
  endAsGone(network, "b", "controller.c", ["v1"]);
  assert.deepEqual(desiredAt(network, "b"), { "controller.d v1": 1 });
  assert.deepEqual(leftovers(network, "b", isThere).clients, []);
  boot(network, machineOf(network, "controller.d"));
  settle(network);
  endAsGone(network, "b", "controller.d", ["v1"]);
  assert.deepEqual(desiredAt(network, "b"), { "controller.d v1": 1 }, "nor of one that has been heard");
});

test("a client whose name another one has by now is gone, where that one never comes", () => {
  const network = createNetwork(["controller.c", "b"]);
  machineOf(network, "controller.c").instance = "c-1";
  restart(network, "controller.c");
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  halt(network, machineOf(network, "controller.c"));
  restart(network, "b");
  const asIn = (book: string | undefined) => leftovers(network, "b", (_, is) => is === null || book === is).clients;
  assert.deepEqual(asIn("c-1"), [], "the same may only be late");
  assert.deepEqual(
    asIn("c-2").map(({ client, keys }) => [client, keys]),
    [["controller.c", ["v1"]]],
  );
  assert.equal(instanceOf(undefined), null);
});

test("a client whose older store has said again what its receiver has is older once more when that copy is put back again", () => {
  const network = createNetwork(["manager", "b"]);
  subscribe(network, "manager", "b", "");
  settle(network);
  const copy = copyOf(network, "manager");
  desire(network, "manager", "b", "v", 1);
  settle(network);
  const isForked = (): boolean => leftovers(network, "b").clients.some(({ forked }) => forked);
  for (const time of ["first", "second"]) {
    putBack(network, "manager", copy);
    settle(network);
    assert.ok(isForked(), `the ${time} time`);
    cause(network, "manager", { kind: "recovered", at: peerName("b") });
    settle(network);
    assert.ok(!isForked());
    desire(network, "manager", "b", "v", 1);
    settle(network);
    assert.deepEqual(desiredAt(network, "b"), { "manager v": 1 });
  }
});

test("a receiver that speaks of no fork any more ends none: an operator does, over restarts", () => {
  const { network, copy } = older();
  putBack(network, "controller.c", copy);
  settle(network);
  release(network, "b", "controller.c");
  settle(network);
  restart(network, "controller.c");
  settle(network);
  assert.deepEqual(leftovers(network, "controller.c").receivers, [{ receiver: "b", forked: true, itForked: false }]);
  release(network, "controller.c", "controller.c");
  restart(network, "controller.c");
  settle(network);
  assert.deepEqual(leftovers(network, "controller.c").receivers, []);
});

test("the store that was lost comes back, and everything is as it was", () => {
  const { network, copy } = older();
  const whole = copyOf(network, "controller.c");
  putBack(network, "controller.c", copy);
  desire(network, "controller.c", "b", "v1", null);
  settle(network);
  putBack(network, "controller.c", whole);
  settle(network);
  desire(network, "controller.c", "b", "v2", null);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 2 });
  assert.equal(logged(network, "b", "distribution/reunited"), 1);
  assert.deepEqual(leftovers(network, "controller.c").receivers, []);
});

test("a service that knows its desires again releases itself, a controller cannot", () => {
  for (const [name, last] of [
    ["manager", { "manager v": 3 }],
    ["controller.c", { "controller.c v": 2 }],
  ] as const) {
    const network = createNetwork([name, "b"]);
    desire(network, name, "b", "v", 1);
    settle(network);
    desire(network, name, "b", "v", 2);
    settle(network);
    putBack(network, name, null);
    desire(network, name, "b", "v", 3);
    settle(network);
    assert.deepEqual(desiredAt(network, "b"), { [`${name} v`]: 2 });
    cause(network, name, { kind: "recovered", at: peerName("b") });
    settle(network);
    assert.deepEqual(desiredAt(network, "b"), last);
  }
});

test("what is kept on its way, while its client says that all of it counts again, is said once more", () => {
  const network = createNetwork(["manager", "b"]);
  desire(network, "manager", "b", "v", 1);
  settle(network);
  putBack(network, "manager", null);
  desire(network, "manager", "b", "w", 1);
  settle(network);
  // Both leave before the answer to the first can come.
  desire(network, "manager", "b", "v", 2);
  cause(network, "manager", { kind: "recovered", at: peerName("b") });
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "manager v": 2, "manager w": 1 });
  assert.deepEqual(leftovers(network, "b").clients, []);
});

test("a receiver that was put back is known as one, and gets what is desired", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "v1", 1);
  settle(network);
  const copy = copyOf(network, "b");
  for (const key of ["v2", "v3"]) {
    desire(network, "a", "b", key, 1);
    settle(network);
  }
  putBack(network, "b", copy);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "a v1": 1, "a v2": 1, "a v3": 1 });
  assert.deepEqual(inputsOf(network, "a", "forked"), [{ kind: "forked", peer: "b", forked: false, itForked: true }]);
  restart(network, "a");
  settle(network);
  assert.deepEqual(leftovers(network, "a").receivers, [{ receiver: "b", forked: false, itForked: true }]);
  release(network, "a", "b");
  assert.deepEqual(leftovers(network, "a").receivers, []);
});

test("where nothing is left of a client, or another one has its name, a blank store is no fork", () => {
  const network = createNetwork(["controller.c", "b"]);
  machineOf(network, "controller.c").instance = "one";
  restart(network, "controller.c");
  desire(network, "controller.c", "b", "v1", 1);
  settle(network);
  desire(network, "controller.c", "b", "v1", null);
  settle(network);
  putBack(network, "controller.c", null);
  desire(network, "controller.c", "b", "v1", 2);
  settle(network);
  desire(network, "controller.c", "b", "v1", 3);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 3 });
  machineOf(network, "controller.c").instance = "another";
  putBack(network, "controller.c", null);
  desire(network, "controller.c", "b", "policy/c", 1);
  desire(network, "controller.c", "b", "v1", 4);
  settle(network);
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v1": 4, "controller.c policy/c": 1 });
  assert.equal(logged(network, "b", "distribution/forked"), 0);
});

test("a client of the previous version, which says no history, is taken as it comes", () => {
  const { network } = older();
  const b = machineOf(network, "b");
  halt(network, machineOf(network, "controller.c"));
  settle(network);
  feed(network, b, { kind: "connected", connection: 900, peer: peerName("controller.c"), role: "server" });
  for (const frame of [
    { frame: "hello", version: 2, generation: 9_000, session: 1, name: "controller.c" },
    { frame: "desire", key: "v1", seq: 1, value: null },
    { frame: "desired-complete" },
  ])
    feed(network, b, { kind: "frame", connection: 900, frame });
  assert.deepEqual(desiredAt(network, "b"), { "controller.c v2": 5 });
  assert.equal(network.sent.filter(({ frame }) => frame.frame === "kept").length, 0);
  assert.deepEqual(inputsOf(network, "b", "earlier"), [{ kind: "earlier", peer: "controller.c" }]);
});

test("another receiver under an old name is no older one; the same one without its store is", () => {
  const network = createNetwork(["a", "b"]);
  const b = machineOf(network, "b");
  b.instance = "key 1";
  restart(network, "b");
  desire(network, "a", "b", "v1", 1);
  settle(network);
  putBack(network, "b", null);
  settle(network);
  assert.deepEqual(leftovers(network, "a").receivers, [{ receiver: "b", forked: false, itForked: true }]);
  restart(network, "a");
  b.instance = "key 2";
  putBack(network, "b", null);
  settle(network);
  assert.deepEqual(inputsOf(network, "a", "another"), [{ kind: "another", peer: "b" }]);
  assert.deepEqual(leftovers(network, "a").receivers, [], "what was known of the former one is forgotten");
  assert.deepEqual(desiredAt(network, "b"), { "a v1": 1 });
  restart(network, "a");
  settle(network);
  assert.deepEqual(leftovers(network, "a").receivers, []);
  assert.deepEqual(inputsOf(network, "a", "another"), [], "which is said once");
  b.instance = "key 3";
  restart(network, "b");
  settle(network);
  assert.deepEqual(
    inputsOf(network, "a", "another"),
    [],
    "one that has its store is the same, whatever it calls itself",
  );
});

test("a receiver that is another one at each connection is named with how often, and not each time", () => {
  const network = createNetwork(["a", "b"]);
  const b = machineOf(network, "b");
  desire(network, "a", "b", "v1", 1);
  for (let time = 0; time < 5; time += 1) {
    b.instance = `key ${time}`;
    putBack(network, "b", null);
    settle(network);
  }
  assert.equal(inputsOf(network, "a", "another").length, 4);
  const said = (): readonly Json[] =>
    machineOf(network, "a").logs.flatMap(({ event, fields }) =>
      event === "distribution/another" ? [fields.count ?? null] : [],
    );
  assert.deepEqual(said(), [1]);
});

test("that another receiver has the name ends no fork of the client's own store: an operator's word does", () => {
  for (const isBlank of [true, false]) {
    const { network, copy } = older();
    const b = machineOf(network, "b");
    b.instance = "key 1";
    restart(network, "b");
    settle(network);
    const client = "controller.c";
    putBack(network, client, copy);
    settle(network);
    const latched = [{ receiver: "b", forked: true, itForked: false }];
    assert.deepEqual(leftovers(network, client).receivers, latched);
    b.instance = "key 2";
    if (isBlank) putBack(network, "b", null);
    else restart(network, "b");
    settle(network);
    assert.equal(inputsOf(network, client, "another").length, isBlank ? 1 : 0);
    const said = inputsOf(network, client, "forked");
    assert.ok(
      said.every((input) => (input as { forked: boolean }).forked),
      "its service hears of no release",
    );
    assert.deepEqual(leftovers(network, client).receivers, latched);
    restart(network, client);
    settle(network);
    assert.deepEqual(leftovers(network, client).receivers, latched, "nor does a restart");
    release(network, client, client);
    settle(network);
    assert.deepEqual(leftovers(network, client).receivers, []);
  }
});

test("a receiver that loses its store again is known to have, though nobody has looked at the first time", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "v1", 1);
  settle(network);
  for (const _time of [1, 2]) {
    putBack(network, "b", null);
    settle(network);
  }
  assert.equal(inputsOf(network, "a", "forked").length, 2);
});

test("a service hears of whom an operator says that it counts, and not of itself", () => {
  const network = createNetwork(["a", "b"]);
  release(network, "b", "a");
  release(network, "b", "b");
  release(network, "b", "a", ["v1"]);
  settle(network);
  assert.deepEqual(inputsOf(network, "b", "excused"), [{ kind: "excused", peer: "a" }]);
});

test("a receiver that is older than what a client has seen of it hears so before what that one desires, and once", () => {
  for (const isBlank of [false, true]) {
    const network = createNetwork(["a", "b"]);
    desire(network, "a", "b", "v1", 1);
    settle(network);
    const copy = copyOf(network, "b");
    desire(network, "a", "b", "v2", 1);
    settle(network);
    restart(network, "a");
    restart(network, "b");
    settle(network);
    assert.deepEqual(inputsOf(network, "b", "behind"), [], "a restart is none");
    putBack(network, "b", isBlank ? null : copy);
    settle(network);
    const told = stateOf(network, "b").inputs;
    const at = told.findIndex(({ kind }) => kind === "behind");
    assert.deepEqual(told[at], { kind: "behind", peer: "a" });
    const started = told.findIndex(({ kind }) => kind === "start");
    assert.ok(!told.slice(started, at).some(({ kind }) => kind === "desired"));
    assert.deepEqual(desiredAt(network, "b"), { "a v1": 1, "a v2": 1 });
    restart(network, "b");
    settle(network);
    assert.deepEqual(inputsOf(network, "b", "behind"), []);
  }
});

test("to end what is not there ends nothing, and nothing is told of it", () => {
  const { network } = older();
  endAsGone(network, "b", "controller.c", ["v1"]);
  settle(network);
  assert.equal(logged(network, "b", "distribution/ended"), 0);
  assert.deepEqual(desiredAt(network, "b"), both);
});
