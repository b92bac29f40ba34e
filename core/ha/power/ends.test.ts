import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { EndAnswer } from "../../presence/group/end.ts";
import { member, World, wallMs } from "../world.testing.ts";
import { type DueEnd, endToSay } from "./ends.ts";

const h1 = hostName("h1");
const uuid = "00112233-4455-6677-8899-aabbccddeeff";
const ask = (world: World, request: JsonObject): Json =>
  world
    .give({ kind: "request", id: 1, request })
    .flatMap((each) => (each.kind === "reply" ? [each.response] : []))[0] ?? null;
const due = (world: World): readonly DueEnd[] => ask(world, { kind: "ha-ends-next" }) as unknown as readonly DueEnd[];
/** Its host is lost, and its power was read as off. */
const off = (): World => {
  const world = new World(3);
  const controller = { kind: "ipmi", address: "10.9.0.1", user: "cells", sealed: "sealed", host: "h1", uuid };
  ask(world, { kind: "ha-power-register", host: "h1", controller });
  world.give({ kind: "reachable", peer: "host.h2" as never, reachable: true });
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  assert.deepEqual(due(world), []);
  ask(world, { kind: "ha-power-next" });
  ask(world, { kind: "ha-power-read", host: "h1", nonce: 1, power: "off", uuid, reason: null });
  return world;
};
const told = (world: World, boot = 7): void => void ask(world, { kind: "ha-end-told", host: "h1", boot });

test("a power that was read as off is told to the group until that has taken it, also after a start", () => {
  const world = off();
  assert.deepEqual(due(world), [{ host: "h1", boot: 7 }]);
  world.restart();
  assert.deepEqual(due(world), [{ host: "h1", boot: 7 }]);
  told(world, 6);
  assert.equal(due(world).length, 1, "that was another boot");
  told(world);
  assert.deepEqual(due(world), []);
  world.restart();
  assert.deepEqual(due(world), []);
});

test("what the group says itself needs no word, and what nobody takes is not said for ever", () => {
  const world = off();
  const value = { host: "h1", generation: 1, incarnation: 0, declaredAt: wallMs, reporters: 3, ended: 7, endedIn: 1 };
  world.give({ kind: "actual", from: member, key: "dead/h1", value });
  assert.deepEqual(due(world), []);
  const other = off();
  other.ms += 86_400_001;
  assert.deepEqual(due(other), []);
});

test("the edge is told that there is something to say", () => {
  const world = off();
  world.protect("a-1", 2, "h2");
  assert.equal(world.state.active.size, 0, "nothing else is to be asked about it");
  const replies = world
    .give({ kind: "request", id: 9, request: { kind: "ha-power-wait" } })
    .filter((effect) => effect.kind === "reply");
  assert.deepEqual(
    replies.map(({ id }) => id),
    [9],
  );
});

test("it is said of that boot alone, and only where nothing speaks against it", () => {
  const end = { host: h1, boot: 7 };
  const answer = (more: Partial<EndAnswer>): EndAnswer => ({
    known: { generation: 3, boot: 7 },
    against: null,
    ended: null,
    ...more,
  });
  assert.equal(endToSay(end, []), "wait", "nobody answers");
  assert.deepEqual(endToSay(end, [answer({}), answer({ known: null })]), { generation: 3, boot: 7 });
  assert.equal(endToSay(end, [answer({}), answer({ against: "host h1 is being heard: it runs" })]), "wait");
  assert.equal(endToSay(end, [answer({ known: { generation: 2, boot: 6 } })]), "wait", "they have yet to hear of it");
  assert.equal(endToSay(end, [answer({ known: { generation: 2, boot: null } })]), "wait");
  assert.equal(endToSay(end, [answer({}), answer({ known: { generation: 4, boot: 8 } })]), "over", "it is there again");
  assert.equal(endToSay(end, [answer({ ended: 7 })]), "over");
  assert.deepEqual(endToSay(end, [answer({ ended: 6 })]), { generation: 3, boot: 7 });
});
