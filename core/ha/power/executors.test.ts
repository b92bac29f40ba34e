import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { member, World } from "../world.testing.ts";
import type { DueOrder } from "./orders.ts";

const uuid = "00112233-4455-6677-8899-aabbccddeeff";
const ask = (world: World, request: JsonObject): Json => {
  const [reply] = world.give({ kind: "request", id: 1, request }).filter((effect) => effect.kind === "reply");
  return reply?.response ?? null;
};
const hears = (world: World, host: string, reachable = true): void => {
  world.give({ kind: "reachable", peer: peerName(`host.${host}`), reachable });
};
/** A cloud in which a host with a controller is lost, and all others are heard. */
const begin = (hosts: number, host = "h1"): World => {
  const world = new World(hosts);
  const controller = { kind: "ipmi", address: "10.9.0.1", user: "cells", sealed: "sealed", host, uuid };
  ask(world, { kind: "ha-power-register", host, controller });
  for (let number = 1; number <= hosts; number += 1) if (`h${number}` !== host) hears(world, `h${number}`);
  world.protect("a-1", 1, host);
  return world;
};
const next = (world: World, afterMs = 10_000, more: JsonObject = {}): readonly DueOrder[] => {
  world.ms += afterMs;
  return ask(world, { kind: "ha-power-next", ...more }) as unknown as readonly DueOrder[];
};
const executors = (world: World): readonly string[] => next(world)[0]?.by.map((peer) => peer.slice(5)) ?? [];
const reads = (world: World, more: JsonObject): void => {
  const nonce = world.state.power.open.get(hostName("h1")) ?? 0;
  ask(world, { kind: "ha-power-read", host: "h1", nonce, uuid, reason: null, ...more });
};

test("two hosts carry an order out, away from the lost one by name, and others for each lost host", () => {
  const chosen = new Map<string, number>();
  for (let number = 1; number <= 40; number += 1) {
    const world = begin(40, `h${number}`);
    world.lose(`h${number}`);
    const by = executors(world);
    assert.equal(new Set(by).size, 2);
    for (const host of by) {
      const behind = (Number(host.slice(1)) - number + 40) % 40;
      assert.ok(Math.min(behind, 40 - behind) > 5, `${host} is beside h${number}`);
      chosen.set(host, (chosen.get(host) ?? 0) + 1);
    }
    assert.deepEqual(executors(begin(40, `h${number}`)), [], "of one that is not lost nothing is asked");
  }
  assert.ok(chosen.size >= 20, `${chosen.size} of 40 hosts carry out what concerns all`);
  assert.ok(Math.max(...chosen.values()) <= 8);
});

test("one that is suspected, lost or not heard carries nothing out as long as there is another", () => {
  const first = begin(4);
  first.lose("h1");
  const [one = "", two = ""] = executors(first);
  const rest = ["h2", "h3", "h4"].find((host) => host !== one && host !== two);
  const value = { host: one, generation: 1, incarnation: 0 };
  const suspected = begin(4);
  suspected.give({ kind: "actual", from: member, key: `suspected/${one}`, value });
  suspected.lose("h1");
  assert.deepEqual(executors(suspected), [two, rest]);
  const unheard = begin(4);
  hears(unheard, one, false);
  unheard.lose("h1");
  assert.deepEqual(executors(unheard), [two, rest]);
  const dead = begin(4);
  dead.lose("h1");
  dead.lose(one);
  assert.deepEqual(executors(dead), [two, rest]);
  for (const host of [two, rest ?? ""]) hears(suspected, host, false);
  assert.deepEqual(executors(suspected), [one], "it is better than nobody");
  const alone = begin(4);
  for (const host of ["h2", "h3", "h4"]) hears(alone, host, false);
  hears(alone, "h1");
  alone.give({ kind: "actual", from: member, key: "suspected/h1", value: { ...value, host: "h1" } });
  assert.deepEqual(executors(alone), [], "nobody cuts its own power");
  hears(alone, "h2");
  assert.deepEqual(executors(alone), ["h2"]);
});

test("a controller is tried by hosts that are heard, however many that come before them are away", () => {
  const world = begin(6);
  for (const host of ["h2", "h3", "h4"]) hears(world, host, false);
  const by = ask(world, { kind: "ha-power-executors", host: "h1" }) as readonly string[];
  assert.deepEqual([...by].sort(), ["host.h5", "host.h6"]);
});

test("who did not answer is named last at the next try, who did first; and all again where nobody has", () => {
  const world = begin(6);
  world.lose("h1");
  const [one = "", two = ""] = executors(world);
  reads(world, { power: "on", by: `host.${two}`, given: `host.${one}` });
  const [now = "", behind = ""] = executors(world);
  assert.equal(now, two);
  assert.ok(behind !== one && behind !== two);
  hears(world, two, false);
  assert.equal(executors(world)[0], behind);
  reads(world, { power: "on", by: `host.${behind}` });
  hears(world, two);
  assert.deepEqual(executors(world), [behind, two], "who has answered goes on");
  const suspected = begin(6);
  suspected.lose("h1");
  reads(suspected, { power: "on", by: `host.${next(suspected, 0)[0]?.by[0]?.slice(5)}` });
  suspected.give({
    kind: "actual",
    from: member,
    key: `suspected/${one}`,
    value: { host: one, generation: 1, incarnation: 0 },
  });
  assert.equal(executors(suspected)[0], two, "not one that is lost itself: the power would be cut by nobody");
  reads(world, { power: null, uuid: null, reason: "no answer" });
  const third = executors(world);
  assert.ok(!third.includes(one) && !third.includes(two) && !third.includes(behind));
  reads(world, { power: null, uuid: null, reason: "no answer" });
  const again = executors(world);
  assert.equal(again.length, 2, "nobody is left, so all have their turn");
  reads(world, { power: null, uuid: null, reason: "no answer" });
  const others = executors(world);
  assert.ok(others.every((host) => !again.includes(host)));
});

test("who reads another machine, or on where the power was to be cut, is not asked first for ever", () => {
  const other = begin(3);
  other.lose("h1");
  const [one = "", two = ""] = executors(other);
  reads(other, { power: "off", by: `host.${one}`, uuid: "99999999-4455-6677-8899-aabbccddeeff" });
  assert.deepEqual(executors(other), [two, one], "it may lie, or ask somewhere else");
  reads(other, { power: "on", by: `host.${two}` });
  assert.deepEqual(executors(other), [two, one]);
  const cut = begin(3);
  cut.lose("h1");
  const [first] = next(cut, 0);
  assert.equal(first?.action, "read");
  reads(cut, { power: "on", by: first?.by[0] ?? "" });
  const [off] = next(cut);
  assert.deepEqual([off?.action, off?.by], ["off", first?.by]);
  reads(cut, { power: "on", by: off?.by[0] ?? "" });
  assert.deepEqual(next(cut)[0]?.by, first?.by.toReversed(), "another one looks whether it was cut");
});

test("of a host of which the edge still has an order carried out no other one is given: it would be lost there", () => {
  const world = begin(5);
  world.lose("h1");
  assert.deepEqual(
    next(world, 0).map(({ action }) => action),
    ["read"],
  );
  assert.deepEqual(next(world, 12_000, { under: ["h1"] }), []);
  assert.equal(world.state.power.open.get(hostName("h1")), 1, "the answer to the first still counts");
  assert.deepEqual(
    next(world, 0, { under: [] }).map(({ action }) => action),
    ["off"],
    "it was not taken for given",
  );
});
