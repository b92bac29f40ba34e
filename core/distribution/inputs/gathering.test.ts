import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { type Effect, readAnything, type Service } from "../../env.ts";
import { createNode, stepNode } from "../node/node.ts";
import type { NodeInput } from "../node/types.ts";
import { Gathering, mayWait } from "./gathering.ts";

type Item = { readonly input: NodeInput; readonly name: string };
const item = (connection: number, name: string): Item => ({
  input: { kind: "frame", connection, frame: null },
  name,
});
const names = (items: readonly Item[]): string => items.map(({ name }) => name).join(" ");
const yes = (): boolean => true;
const no = (): boolean => false;

test("what may wait does so until its time is over, one of each connection", () => {
  const gathering = new Gathering<Item>();
  for (const [connection, name] of [
    [1, "a"],
    [2, "b"],
    [3, "c"],
  ] as const)
    assert.equal(names(gathering.take(item(connection, name), yes)), "");
  assert.equal(names(gathering.letGo()), "a b c");
  assert.equal(names(gathering.letGo()), "", "once");
  assert.equal(names(gathering.take(item(1, "d"), yes)), "", "and anew");
});

test("what else comes on a connection finds what waits there before it, be it of the same kind", () => {
  for (const mayIt of [yes, no]) {
    const gathering = new Gathering<Item>();
    gathering.take(item(1, "a"), yes);
    gathering.take(item(2, "b"), yes);
    assert.equal(names(gathering.take(item(3, "other"), no)), "other", "of another connection: nothing waits for it");
    const gone: Item = { input: { kind: "timer", name: "t" }, name: "timer" };
    assert.equal(names(gathering.take(gone, yes)), "timer");
    const more: Item = { input: { kind: "sendable", connection: 2 }, name: "more" };
    assert.equal(names(gathering.take(more, no)), "more", "it takes more: that is no word of its peer's");
    assert.equal(names(gathering.take(item(2, "behind"), mayIt)), "a b behind");
    assert.equal(names(gathering.letGo()), "");
  }
});

test("a node lets wait what its service does, of clients that were greeted; nothing that is taken back", () => {
  const client = peerName("host.h1");
  const service: Service<{ open: boolean }> = {
    restore: () => ({ open: true }),
    step: (state) => ({ state, effects: [] satisfies Effect[] }),
    entitled: () => true,
    accepts: () => true,
    read: readAnything,
    gathers: { forMs: 5, isOne: ({ open }, peer, key) => open && peer === client && key === "beat" },
  };
  const now = { ms: 0, wallMs: 0 };
  const node = createNode(service, new Map(), peerName("placer"), now, "draw");
  stepNode(node, { kind: "start" }, now);
  const frame = (frame: Json, connection = 1): NodeInput => ({ kind: "frame", connection, frame });
  const desire = (value: Json, key = "beat"): Json => ({ frame: "desire", key, seq: 1, value });
  assert.equal(mayWait(node, frame(desire(1))), false, "no such connection");
  stepNode(node, { kind: "connected", connection: 1, peer: client, role: "server" }, now);
  assert.equal(mayWait(node, frame(desire(1))), false, "its hello is to come first");
  stepNode(node, frame({ frame: "hello", version: 2, generation: 1, session: 0, name: client }), now);
  assert.equal(mayWait(node, frame(desire(1))), true);
  for (const other of [desire(null), desire(1, "other"), { frame: "desired-complete" }, null, [], "desire", {}])
    assert.equal(mayWait(node, frame(other)), false, JSON.stringify(other));
  assert.equal(mayWait(node, { kind: "sendable", connection: 1 }), false);
  stepNode(node, { kind: "connected", connection: 2, peer: peerName("host.h2"), role: "server" }, now);
  stepNode(node, frame({ frame: "hello", version: 2, generation: 1, session: 0, name: "host.h2" }, 2), now);
  assert.equal(mayWait(node, frame(desire(1), 2)), false, "of another peer");
  node.state.open = false;
  assert.equal(mayWait(node, frame(desire(1))), false, "as the service is now");
  assert.equal(mayWait({ ...node, service: { ...service, gathers: undefined as never } }, frame(desire(1))), false);
});
