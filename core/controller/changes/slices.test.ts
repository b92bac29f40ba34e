import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import type { Effect, Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createController } from "../controller.ts";
import { shopOptions } from "../shop.testing.ts";
import { addressManager, dnsManager, placerOf, storageManagerOf } from "../state.ts";
import { shop } from "../world.testing.ts";
import { Changes } from "./pass.ts";
import { isWorking, sliceTimer } from "./slices.ts";

const isSlice = (effect: Effect): boolean => effect.kind === "timer" && effect.name === sliceTimer;

/** A controller that looks at so many keys in a slice, and knows all services. */
const controllerOf = (slice: number) => {
  const service = createController(shopOptions, (tracking, outbox) => new Changes(tracking, outbox, slice));
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const step = (input: Input): readonly Effect[] => service.step(state, input, { ms: 1, wallMs: 1 }).effects;
  const all = (input: Input): readonly Effect[] => {
    const effects = [...step(input)];
    while (isWorking(state)) effects.push(...step({ kind: "timer", name: sliceTimer }));
    return effects.filter((effect) => !isSlice(effect));
  };
  all({ kind: "start" });
  for (const peer of [storageManagerOf(state), placerOf(state), addressManager, dnsManager])
    all({ kind: "reachable", peer, reachable: true });
  return { state, step, all };
};
const volume = { "x.type": "Volume", "x.size": 64 };
const more = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`more${at}`, volume]));
const request = (id: number, what: object): Input => ({ kind: "request", id, request: toJson(what) });
const put = request(1, { method: "PUT", path: "", json: shop(more) });
const said: Input = { kind: "reachable", peer: dnsManager, reachable: false };
const bodyOf = (effects: readonly Effect[], id: number): JsonObject | undefined => {
  const reply = effects.find((effect) => effect.kind === "reply" && effect.id === id);
  return reply?.kind === "reply" ? ((reply.response as JsonObject).body as JsonObject) : undefined;
};

test("who reads is answered in the middle of a pass; everything else waits, and comes to the same", () => {
  const whole = controllerOf(Number.POSITIVE_INFINITY);
  const expected = [...whole.all(put), ...whole.all(said)];
  const { state, step } = controllerOf(50);
  const effects = [...step(put)];
  assert.ok(isSlice(effects.at(-1) as Effect), "it goes on by a timer");
  assert.deepEqual(step(said), []);
  // First the model of before, which is none, and then the new one, whose pass goes on.
  const reads = { before: 0, after: 0 };
  for (let id = 100; isWorking(state); id += 1) {
    const isTaken = effects.some((effect) => effect.kind === "write" && effect.key === "model");
    const answer = bodyOf(step(request(id, { method: "GET", path: "shop/more99", state: true })), id);
    assert.ok(Object.hasOwn(answer ?? {}, isTaken ? "$state" : "error"), JSON.stringify(answer));
    reads[isTaken ? "after" : "before"] += 1;
    effects.push(...step({ kind: "timer", name: sliceTimer }));
  }
  assert.ok(reads.before > 3 && reads.after > 5, `${reads.before} slices, and ${reads.after} when it was taken`);
  assert.deepEqual(
    effects.filter((effect) => !isSlice(effect)),
    expected,
  );
});

test("the records of a model are made in slices, and durable in one; of a model that is refused there are none", () => {
  const { state, step } = controllerOf(50);
  const slices = [step(put)];
  const recordsSeen = new Set<number>();
  while (isWorking(state)) {
    slices.push(step({ kind: "timer", name: sliceTimer }));
    if (state.model.version === 0) recordsSeen.add(state.elements.size);
  }
  assert.ok(recordsSeen.size > 2, `${[...recordsSeen]} records before there is a model`);
  const taken = slices.filter((effects) => effects.some((effect) => effect.kind === "write" && effect.key === "model"));
  const [effects = []] = taken;
  const written = new Set(effects.flatMap((effect) => (effect.kind === "write" ? [effect.key] : [])));
  assert.equal(taken.length, 1);
  const before = slices.slice(0, slices.indexOf(effects));
  assert.deepEqual(
    before.flat().filter((effect) => !isSlice(effect)),
    [],
  );
  for (const uid of state.uids.values()) assert.ok(written.has(`element/${uid}`), uid);
  const { model } = state;
  step(request(2, { method: "PUT", path: "", json: shop({ ...more, last: { "x.type": "Volume" } }) }));
  for (const volumes = state.elements.size; isWorking(state); ) {
    step({ kind: "timer", name: sliceTimer });
    assert.equal(state.elements.size, volumes);
  }
  assert.equal(state.model, model);
});

test("while a model is taken in, who reads sees the one of before, also of what leaves", () => {
  const { state, step, all } = controllerOf(20);
  all(put);
  const { volumes, id } = { volumes: Object.keys(more).map((name) => `shop/${name}`), id: 100 };
  const shown = (path: string): JsonObject | undefined =>
    bodyOf(step(request(id, { method: "GET", path, state: true })), id);
  const [path = ""] = volumes;
  const before = shown(path);
  step(
    request(2, { method: "PUT", path: "", json: shop({ more0: { ...volume, "x.size": 32 } }), allowDestroy: volumes }),
  );
  let marked = 0;
  while (state.model.version === 1) {
    marked = Math.max(marked, state.indexes.deleting.size);
    assert.deepEqual(shown(path), before);
    assert.deepEqual(shown("shop/more99"), shown("shop/more99"));
    assert.equal(Object.hasOwn(shown("shop/more99") ?? {}, "x.size"), true);
    step({ kind: "timer", name: sliceTimer });
  }
  assert.ok(marked > 0 && marked < 100, `${marked} were marked in a slice before the last one`);
  while (isWorking(state)) step({ kind: "timer", name: sliceTimer });
  assert.equal((shown("shop/more99")?.$state as JsonObject | undefined)?.phase, "deleting");
});

test("a request overtakes news that waits, and what is said but once ends the pass", () => {
  const { state, step, all } = controllerOf(50);
  step(put);
  step(said);
  step(request(2, { method: "SUMMARY" }));
  const effects: Effect[] = [];
  while (state.reachable.get(dnsManager) === true) {
    assert.ok(isWorking(state));
    effects.push(...step({ kind: "timer", name: sliceTimer }));
  }
  assert.ok(bodyOf(effects, 1) !== undefined && bodyOf(effects, 2) !== undefined);
  while (isWorking(state)) step({ kind: "timer", name: sliceTimer });
  step(request(3, { method: "DELETE", path: "", allowDestroy: Object.keys(more).map((name) => `shop/${name}`) }));
  assert.ok(isWorking(state));
  const forked = step({ kind: "forked", peer: placerOf(state), forked: true, itForked: false });
  assert.ok(!isWorking(state) && bodyOf(forked, 3) !== undefined && state.forkedAt.size === 1);
  assert.deepEqual(
    all({ kind: "timer", name: sliceTimer }).filter(({ kind }) => kind !== "timer"),
    [],
  );
});
