import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { limits } from "../limits.ts";
import {
  cause,
  createNetwork,
  desire,
  feed,
  halt,
  inject,
  machineOf,
  malformed,
  type Network,
  publish,
  refusals,
  settle,
  stateOf,
  subscribe,
} from "../network.testing.ts";
import { protocolVersion, textOf } from "./frames.ts";
import { shareOf } from "./share/share.ts";

const outOf = (network: Network, name: string): string[] =>
  [...machineOf(network, name).store.keys()].filter((key) => key.startsWith("out/"));

test("a refused document harms nobody, and its sender is not held up", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "forbidden/1", 1);
  desire(network, "a", "b", "vm/1", 1);
  settle(network);
  assert.deepEqual([...stateOf(network, "b").desired], [["a vm/1", 1]]);
  assert.deepEqual(refusals(network, "b"), ["not accepted here"]);
  desire(network, "a", "b", "forbidden/1", null);
  settle(network);
  assert.deepEqual(outOf(network, "a"), ["out/b/vm/1"]);
});

test("a value is nested as deep as it may be and no deeper, however much room the stack has", () => {
  const nested = (levels: number): Json => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`) as Json;
  assert.notEqual(textOf(nested(limits.nesting)), null);
  assert.equal(textOf(nested(limits.nesting + 1)), null);
  assert.equal(textOf({ a: nested(limits.nesting), b: 1 }), null);
  const wide: Json = Array.from({ length: 2000 }, () => [{ '"[{\\"': '[[[["\\' }]);
  assert.notEqual(textOf(wide), null, "what stands in texts does not count");
  assert.equal(textOf([wide, nested(limits.nesting)]), null);
});

test("unknown and malformed frames are counted, logged seldom, and change nothing", () => {
  const network = createNetwork(["a", "b"]);
  desire(network, "a", "b", "vm/1", 1);
  subscribe(network, "a", "b", "");
  settle(network);
  const { inputs } = stateOf(network, "b");
  const told = inputs.length;
  const bad: Json[] = [
    null,
    7,
    [],
    {},
    { frame: "order" },
    { frame: "desire", key: "vm/2", seq: 9 },
    { frame: "desire", key: "", seq: 9, value: 1 },
    { frame: "desire", key: "x".repeat(limits.keyLength + 1), seq: 9, value: 1 },
    { frame: "desire", key: "\ud800", seq: 9, value: 1 },
    { frame: "desire", key: "vm/2", seq: -1, value: 1 },
    { frame: "desire", key: "vm/2", seq: "9", value: 1 },
    { frame: "subscribe", prefix: 7 },
    { frame: "ack", seq: 1 },
  ];
  for (const frame of bad) inject(network, "a", "b", "server", frame);
  inject(network, "a", "b", "server", {
    frame: "desire",
    key: "vm/2",
    seq: 100,
    value: "x".repeat(limits.valueLength),
  });
  inject(network, "a", "b", "server", { frame: "desire", key: "vm/2", seq: 1, value: 1 });
  assert.equal(inputs.length, told);
  for (let count = 0; count < 1000; count += 1) inject(network, "a", "b", "server", { frame: "order" });
  assert.ok(refusals(network, "b").length < 30);
  for (const frame of [null, { frame: "actual", key: "x", seq: 1 }, { frame: "ack", seq: 0.5 }, { frame: "desire" }]) {
    inject(network, "a", "b", "client", frame);
  }
  assert.equal(stateOf(network, "a").actual.size, 0);
});

test("the wrong version, a borrowed name and a missing hello end the connection", () => {
  const hello = { frame: "hello", version: protocolVersion, generation: 5, session: 1, name: "a" };
  const cases: [Json, Json][] = [
    [{ ...hello, version: protocolVersion + 2 }, "unsupported version"],
    [{ ...hello, version: 0 }, "unsupported version"],
    [{ ...hello, name: "c" }, "name differs from certificate"],
    [{ frame: "subscribe", prefix: "" }, "out of order"],
  ];
  for (const [frame, reason] of cases) {
    const network = createNetwork(["b"]);
    const b = machineOf(network, "b");
    feed(network, b, { kind: "connected", connection: 7, peer: peerName("a"), role: "server" });
    feed(network, b, { kind: "frame", connection: 7, frame });
    assert.deepEqual(refusals(network, "b"), [reason]);
    assert.equal(b.node?.distribution.links.size, 0);
  }
});

test("a service's own misuse is logged and does no harm", () => {
  const network = createNetwork(["a"]);
  desire(network, "a", "a", "vm/1", 1);
  desire(network, "a", "b", "", 1);
  desire(network, "a", "b", "vm/1", "x".repeat(limits.valueLength));
  publish(network, "a", "", 1);
  subscribe(network, "a", "a", "");
  const { logs, store } = machineOf(network, "a");
  assert.equal(logs.filter(({ event }) => event === "distribution/misuse").length, 5);
  assert.deepEqual(
    [...store.keys()].filter((key) => key.startsWith("out/")),
    [],
  );
});

test("what a service itself finds wrong is counted, and logged once a minute for a peer", () => {
  const network = createNetwork(["a", "b"]);
  const lines = (): Json[] =>
    machineOf(network, "b")
      .logs.filter(({ event }) => event === "document/refused")
      .map(({ fields }) => [fields.from ?? null, fields.count ?? null]);
  const refuse = (from: string, at: number): void =>
    cause(network, "b", { kind: "log", event: "document/refused", fields: { from, key: "vm/1", why: `number ${at}` } });
  for (let at = 0; at < 50; at += 1) refuse("a", at);
  refuse("c", 0);
  assert.deepEqual(lines(), [
    ["a", 1],
    ["c", 1],
  ]);
  network.now += 60_000;
  refuse("a", 50);
  assert.deepEqual(lines().at(-1), ["a", 51]);
  assert.equal(machineOf(network, "b").node?.distribution.refusals.get("not acceptable"), 52);
});

test("what a connection notes of its client is bounded, also of one that reads nothing", () => {
  const network = createNetwork(["controller.c", "b"]);
  const b = machineOf(network, "b");
  desire(network, "controller.c", "b", "vm/1", 1);
  settle(network);
  halt(network, machineOf(network, "controller.c"));
  settle(network);
  const peer = peerName("controller.c");
  feed(network, b, { kind: "connected", connection: 900, peer, role: "server" });
  const hello = { frame: "hello", version: protocolVersion, generation: 9_000, session: 1, name: peer };
  feed(network, b, { kind: "frame", connection: 900, frame: { ...hello, history: [{ start: "s", count: 1 }] } });
  const link = b.node?.distribution.links.get(900);
  const client = b.node?.distribution.clients.get(peer);
  if (link?.role !== "server" || client === undefined) assert.fail();
  let seq = 0;
  const say = (key: string, value: Json): void => {
    seq += 1;
    feed(network, b, { kind: "frame", connection: 900, frame: { frame: "desire", key, seq, value } });
  };
  for (let count = 0; count < 100; count += 1) say(`vm/bad-${count}`, malformed);
  assert.equal(link.seen?.size, 0, "what is not taken is not noted");
  say("vm/1", 1);
  say("vm/2", 2);
  assert.deepEqual([...(link.seen ?? [])], ["vm/1", "vm/2"]);
  const { documents, characters } = shareOf(peer);
  client.characters = characters;
  for (let count = 0; count < documents; count += 1) link.telling.set(`vm/more-${count}`, 1);
  say("vm/3", 3);
  assert.equal(link.telling.size, documents);
  assert.equal(b.node?.distribution.refusals.get("too much in documents"), 1);
});
