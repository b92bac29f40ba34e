import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  allow,
  boot,
  createNetwork,
  cut,
  deliver,
  feed,
  fireTimers,
  halt,
  inject,
  machineOf,
  type Network,
  publish,
  refusals,
  type Side,
  settle,
  stateOf,
  subscribe,
  wireBetween,
} from "./network.testing.ts";
import { digestBuckets } from "./node/digest.ts";
import { protocolVersion } from "./node/frames.ts";

/** Digests, windows, lives: what state distribution does beyond sending what changed. */

const actualAt = (network: Network, name: string): Json => Object.fromEntries(stateOf(network, name).actual);
const framesTo = (network: Network, to: string, kind: string): number =>
  network.sent.filter((sent) => sent.to === to && sent.frame.frame === kind).length;
const eventsOf = (network: Network, name: string, event: string): number =>
  machineOf(network, name).logs.filter((line) => line.event === event).length;
const targetOf = (network: Network, name: string, peer: string) => {
  const target = machineOf(network, name).node?.distribution.targets.get(peerName(peer));
  assert.ok(target);
  return target;
};
const digests = (network: Network, name: string): void => {
  fireTimers(network, machineOf(network, name));
  settle(network);
};
/** `b` publishes `count` keys from 1, `a` follows them all. */
const followed = (count: number): Network => {
  const network = createNetwork(["a", "b"]);
  for (let at = 1; at <= count; at += 1) publish(network, "b", `vm/${at}`, at);
  subscribe(network, "a", "b", "vm/");
  settle(network);
  return network;
};
const full = (count: number): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`b vm/${at + 1}`, at + 1]));

test("what a client lost by a mistake comes back with the next digest, and what it has too much goes", () => {
  const network = followed(300);
  const before = framesTo(network, "a", "actual");
  digests(network, "b");
  assert.equal(framesTo(network, "a", "digest"), 1);
  assert.equal(framesTo(network, "b", "repair"), 0, "nothing differs");
  const target = targetOf(network, "a", "b");
  target.link?.seen.delete("vm/7");
  target.link?.digest.toggle("vm/7", target.actual.get("vm/7")?.seq ?? 0);
  target.actual.delete("vm/7");
  stateOf(network, "a").actual.delete("b vm/7");
  target.actual.set("vm/ghost", { generation: target.generation, seq: 1, text: "1" });
  stateOf(network, "a").actual.set("b vm/ghost", 1);
  target.link?.seen.set("vm/ghost", 1);
  target.link?.digest.toggle("vm/ghost", 1);
  digests(network, "b");
  assert.deepEqual(actualAt(network, "a"), full(300));
  assert.equal(eventsOf(network, "a", "distribution/repaired"), 1);
  const again = framesTo(network, "a", "actual") - before;
  assert.ok(again >= 1 && again < 60, `only the parts that differ are sent again: ${again} of 300`);
  digests(network, "b");
  assert.equal(eventsOf(network, "a", "distribution/repaired"), 1, "in step again");
});

test("after a broken connection only what changed meanwhile is sent", () => {
  const network = followed(300);
  const before = framesTo(network, "a", "actual");
  const told = stateOf(network, "a").inputs.length;
  cut(network, wireBetween(network, "a", "b"), "client");
  publish(network, "b", "vm/5", 1000);
  publish(network, "b", "vm/6", null);
  publish(network, "b", "vm/301", 301);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), {
    ...Object.fromEntries(Object.entries(full(301) as object).filter(([key]) => key !== "b vm/6")),
    "b vm/5": 1000,
  });
  const again = framesTo(network, "a", "actual") - before;
  assert.ok(again >= 2 && again < 60, `${again} of 300`);
  assert.equal(stateOf(network, "a").inputs.length - told, 5, "unreachable, three changes, reachable");
  digests(network, "b");
  assert.equal(eventsOf(network, "a", "distribution/repaired"), 0, "what stayed counts as given");
});

test("a new life of the source, and what a client may no longer see, are never taken for the same", () => {
  const network = followed(100);
  halt(network, machineOf(network, "b"));
  boot(network, machineOf(network, "b"));
  for (let at = 1; at <= 100; at += 1) publish(network, "b", `vm/${at}`, at + 1);
  settle(network);
  assert.equal(stateOf(network, "a").actual.get("b vm/3"), 4);
  cut(network, wireBetween(network, "a", "b"), "client");
  allow(network, "b", "a", "vm/3", false);
  settle(network);
  assert.equal(stateOf(network, "a").actual.has("b vm/3"), false);
  assert.equal(stateOf(network, "a").actual.size, 99);
});

test("peers of the previous and the next version are served, others are not", () => {
  for (const [version, digested] of [
    [protocolVersion - 1, 0],
    [protocolVersion, 1],
    [protocolVersion + 1, 1],
  ] as const) {
    const network = createNetwork(["b"]);
    const b = machineOf(network, "b");
    publish(network, "b", "vm/1", 1);
    const got: string[] = [];
    const say = (frame: Json): void => feed(network, b, { kind: "frame", connection: 7, frame });
    feed(network, b, { kind: "connected", connection: 7, peer: peerName("a"), role: "server" });
    network.wires.set(7, {
      id: 7,
      client: peerName("a"),
      server: peerName("b"),
      busy: new Set<Side>(),
      to: { client: [], server: [] },
      open: new Set<Side>(["server"]),
    });
    say({ frame: "hello", version, generation: 5, session: 1, name: "a", future: true });
    say({ frame: "subscribe", prefix: "", future: { a: 1 } });
    for (let round = 0; round < 3; round += 1) {
      feed(network, b, { kind: "sendable", connection: 7 });
      fireTimers(network, b);
    }
    got.push(...network.sent.map(({ frame }) => frame.frame));
    assert.deepEqual(got.slice(0, 3), ["hello", "actual", "actual-complete"], `version ${version}`);
    assert.equal(Math.min(got.filter((frame) => frame === "digest").length, 1), digested, `version ${version}`);
    assert.deepEqual(refusals(network, "b"), []);
  }
});

test("a value that changes again and again is sent once in a window; few changes leave at once", () => {
  const network = followed(1);
  const wire = wireBetween(network, "a", "b");
  const sendAll = (): void => {
    for (const side of ["client", "server"] as const) while (deliver(network, wire, side));
  };
  const before = framesTo(network, "a", "actual");
  network.now += 1000;
  publish(network, "b", "vm/1", 1000);
  assert.equal(framesTo(network, "a", "actual") - before, 1, "the first leaves at once");
  sendAll();
  // A connection that takes everything at once, and a clock that hardly moves.
  for (let value = 1001; value <= 3000; value += 1) {
    publish(network, "b", "vm/1", value);
    sendAll();
    network.now = Math.floor(network.now / 1000) * 1000 + (value % 50);
  }
  const sent = framesTo(network, "a", "actual") - before;
  assert.ok(sent <= 64, `${sent} of 2001`);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 3000 });
});

test("a declared death withdraws what that life said, and no later one", () => {
  const network = createNetwork(["a", "b"]);
  const [a, b] = [machineOf(network, "a"), machineOf(network, "b")];
  feed(network, b, { kind: "life", life: 3 });
  publish(network, "b", "vm/1", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 2 });
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 1 }, "the death of an earlier life is old news");
  const told = stateOf(network, "a").inputs.length;
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  assert.deepEqual(stateOf(network, "a").inputs.slice(told), [
    { kind: "reachable", peer: "b", reachable: false },
    { kind: "actual", from: "b", key: "vm/1", value: null },
  ]);
  for (let round = 0; round < 5; round += 1) {
    for (const peer of a.dials) if (round < 4) attempt(network, peer);
    assert.deepEqual(actualAt(network, "a"), {}, "the same life does not come back");
  }
  feed(network, b, { kind: "life", life: 4 });
  publish(network, "b", "vm/1", 2);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 2 });
  assert.equal(eventsOf(network, "b", "distribution/reborn"), 1);
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 2 }, "a declaration that comes late");
});

test("who is no member of the Presence group declares nothing, whatever it publishes", () => {
  const network = createNetwork(["presence.1", "host.h1", "host.h2", "a"], ["presence.1"]);
  for (const name of ["host.h1", "host.h2"]) {
    feed(network, machineOf(network, name), { kind: "life", life: 1 });
    subscribe(network, "a", name, "");
  }
  publish(network, "host.h1", "vm/1", 1);
  const death = { host: "h1", generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 };
  publish(network, "host.h2", "dead/h1", death);
  settle(network);
  assert.equal(stateOf(network, "a").actual.get("host.h1 vm/1"), 1);
  assert.ok(stateOf(network, "a").actual.has("host.h2 dead/h1"), "it was heard");
});

test("the death of a life that the source had not named on its connection withdraws as soon as that breaks", () => {
  const network = createNetwork(["a", "b"]);
  const [a, b] = [machineOf(network, "a"), machineOf(network, "b")];
  publish(network, "b", "vm/1", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  // Its first life began after it had greeted.
  feed(network, b, { kind: "life", life: 3 });
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 1 }, "it speaks, and did not say in which life");
  disconnect(network);
  assert.deepEqual(actualAt(network, "a"), {});
  for (const peer of a.dials) attempt(network, peer);
  assert.deepEqual(actualAt(network, "a"), {}, "the same life does not come back");
});

test("a source that learns its first life after a greeting says so, and its death withdraws at once", () => {
  const network = createNetwork(["a", "b", "c"]);
  const [a, b, c] = [machineOf(network, "a"), machineOf(network, "b"), machineOf(network, "c")];
  publish(network, "b", "vm/1", 1);
  for (const name of ["a", "c"]) subscribe(network, name, "b", "");
  settle(network);
  // One hears of an earlier death before, and one of this very one before it knows who speaks.
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 2 });
  feed(network, b, { kind: "life", life: 3 });
  feed(network, c, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  assert.deepEqual(actualAt(network, "c"), { "b vm/1": 1 }, "it speaks, and did not say in which life");
  for (const client of ["a", "c"]) while (deliver(network, wireBetween(network, client, "b"), "client"));
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 1 }, "another life is over");
  assert.deepEqual(actualAt(network, "c"), {}, "it is that one");
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  assert.deepEqual(actualAt(network, "a"), {}, "the connection stands, and it is known whose it is");
  feed(network, b, { kind: "life", life: 4 });
  settle(network);
  for (const name of ["a", "c"]) assert.deepEqual(actualAt(network, name), { "b vm/1": 1 }, "its next life");
});

test("the death of an earlier life, heard late and of a source that is away, does not keep its present life out", () => {
  const network = createNetwork(["a", "b"]);
  const [a, b] = [machineOf(network, "a"), machineOf(network, "b")];
  publish(network, "b", "vm/1", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  feed(network, b, { kind: "life", life: 4 });
  disconnect(network);
  feed(network, a, { kind: "declared-dead", peer: peerName("b"), life: 3 });
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "b vm/1": 1 }, "it lives in another life than the one that is over");
});

/** Both sides of every connection hear that it is gone. */
const disconnect = (network: Network): void => {
  for (const wire of [...network.wires.values()])
    for (const side of ["client", "server"] as const) cut(network, wire, side);
};
/** One attempt to connect `a` to the peer, with all that follows from it. */
const attempt = (network: Network, peer: string): void => {
  const a = machineOf(network, "a");
  network.wireCount += 1;
  const id = network.wireCount;
  network.wires.set(id, {
    id,
    client: peerName("a"),
    server: peerName(peer),
    busy: new Set<Side>(),
    to: { client: [], server: [] },
    open: new Set<Side>(["client", "server"]),
  });
  feed(network, machineOf(network, peer), { kind: "connected", connection: id, peer: a.name, role: "server" });
  feed(network, a, { kind: "connected", connection: id, peer: peerName(peer), role: "client" });
  const wire = wireBetween(network, "a", peer);
  for (const side of ["client", "server", "client", "server"] as const) while (deliver(network, wire, side));
};

test("digests and repairs that make no sense are refused or ignored", () => {
  const network = followed(5);
  const wrong: Json[] = [
    { frame: "digest", digest: [1, 2, 3] },
    { frame: "digest", digest: new Array<number>(2 * digestBuckets).fill(-1) },
    { frame: "repaired", buckets: [digestBuckets] },
    { frame: "actual-complete", prefix: "vm/", same: [1, 1] },
  ];
  for (const frame of wrong) inject(network, "a", "b", "client", frame);
  inject(network, "a", "b", "client", { frame: "repaired", buckets: [1, 2, 3] });
  // A number below that of what is here.
  inject(network, "a", "b", "client", { frame: "actual", key: "vm/5", seq: 0, value: "old" });
  inject(network, "a", "b", "server", { frame: "repair", buckets: [0.5] });
  inject(network, "a", "b", "server", {
    frame: "subscribe",
    prefix: "x",
    holds: { generation: -1, digest: [] },
  });
  settle(network);
  assert.deepEqual(actualAt(network, "a"), full(5));
  assert.deepEqual(refusals(network, "a"), ["malformed frame", "out of order"], "one line a minute");
  assert.deepEqual(refusals(network, "b"), ["malformed frame"]);
  inject(network, "a", "b", "server", { frame: "repair", buckets: [0, 1, 2] });
  settle(network);
  assert.deepEqual(actualAt(network, "a"), full(5), "a repair that nobody needed harms nobody");
});

test("the death that Presence declares withdraws what a host said at everyone who follows it, and nobody else hears of it", () => {
  const members = ["presence.1", "presence.2", "presence.3"];
  const network = createNetwork([...members, "host.h1", "host.h10", "a"], members);
  for (const name of ["host.h1", "host.h10"]) {
    feed(network, machineOf(network, name), { kind: "life", life: 1 });
    publish(network, name, "vm/1", 1);
    subscribe(network, "a", name, "");
  }
  settle(network);
  const dead = (by: string, host: string, generation: number): void =>
    publish(network, by, `dead/${host}`, { host, generation, incarnation: 0, declaredAt: 0, reporters: 3 });
  dead("a", "h1", 1);
  for (const by of ["presence.1", "presence.3"]) dead(by, "h10", 0);
  dead("presence.1", "h1", 2 ** 47);
  settle(network);
  assert.equal(
    Object.keys(actualAt(network, "a") as object).length,
    2,
    "another's word, an earlier life's death, and one member's",
  );
  halt(network, machineOf(network, "host.h1"));
  settle(network);
  assert.equal(stateOf(network, "a").actual.size, 2, "a connection that is gone is no death");
  halt(network, machineOf(network, "presence.1"));
  for (const by of ["presence.2", "presence.3"]) dead(by, "h1", 1);
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "host.h10 vm/1": 1 });
  const heard = new Set(stateOf(network, "a").inputs.flatMap((input) => ("from" in input ? [input.from] : [])));
  assert.deepEqual([...heard].sort(), ["host.h1", "host.h10"], "the service did not ask for Presence");
  boot(network, machineOf(network, "host.h1"));
  feed(network, machineOf(network, "host.h1"), { kind: "life", life: 2 });
  publish(network, "host.h1", "vm/1", 2);
  boot(network, machineOf(network, "presence.1"));
  settle(network);
  assert.deepEqual(actualAt(network, "a"), { "host.h10 vm/1": 1, "host.h1 vm/1": 2 });
  subscribe(network, "a", "presence.2", "dead/h1");
  settle(network);
  assert.ok(stateOf(network, "a").actual.has("presence.2 dead/h1"), "a service that asks is told");
});

test("who follows a host only after its death takes nothing of the life that is over", () => {
  const members = ["presence.1", "presence.2", "presence.3"];
  const network = createNetwork([...members, "host.h1", "a"], members);
  const [a, host] = [machineOf(network, "a"), machineOf(network, "host.h1")];
  feed(network, host, { kind: "life", life: 1 });
  publish(network, "host.h1", "vm/1", 1);
  // The service follows the group itself: it is told of each death once, whomever it follows by then.
  for (const by of members) {
    subscribe(network, "a", by, "dead/");
    publish(network, by, "dead/h1", { host: "h1", generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 });
  }
  settle(network);
  subscribe(network, "a", "host.h1", "");
  const ofHost = (): string[] => [...stateOf(network, "a").actual.keys()].filter((key) => key.startsWith("host.h1 "));
  for (let round = 0; round < 3; round += 1) {
    for (const peer of a.dials) attempt(network, peer);
    assert.deepEqual(ofHost(), []);
  }
  feed(network, host, { kind: "life", life: 2 });
  publish(network, "host.h1", "vm/1", 2);
  settle(network);
  assert.deepEqual(ofHost(), ["host.h1 vm/1"], "a later life is another matter");
});

test("many followers get their digests one part after the other, each once in the period", () => {
  const names = Array.from({ length: 129 }, (_, at) => `c${at}`);
  const network = createNetwork(["b", ...names]);
  publish(network, "b", "vm/1", 1);
  for (const name of names) subscribe(network, name, "b", "");
  settle(network);
  const got = (): number[] => names.map((name) => framesTo(network, name, "digest"));
  const rounds = [1, 2, 3].map(() => {
    const before = got().reduce((sum, count) => sum + count, 0);
    digests(network, "b");
    return got().reduce((sum, count) => sum + count, 0) - before;
  });
  assert.ok(
    rounds.every((count) => count <= 64),
    `${rounds}`,
  );
  assert.deepEqual(new Set(got()), new Set([1]));
  // The next period begins with those who came first in this one.
  digests(network, "b");
  assert.equal(framesTo(network, "c0", "digest"), 2);
});
