import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import { beatsAreDue, createBeats, gatherMs, mayGather, takeBeat } from "./beats.ts";

const host = peerName("host.h1");

/** An agent's part, and what it says at each time. */
const createRoom = () => {
  const beats = createBeats();
  let timer: number | null = null;
  const said = (effects: readonly Effect[]): Record<string, Json> => {
    for (const effect of effects) if (effect.kind === "timer") timer = effect.afterMs;
    return Object.fromEntries(
      effects.flatMap((effect) => (effect.kind === "publish" ? [[effect.key, effect.value]] : [])),
    );
  };
  return {
    beat: (nowMs: number, value: Json, started = true) => {
      const effects: Effect[] = [];
      const refused = takeBeat(beats, host, value, { nowMs, started }, effects);
      return { refused, said: said(effects) };
    },
    due: (nowMs: number) => {
      const effects: Effect[] = [];
      timer = null;
      beatsAreDue(beats, nowMs, effects);
      return said(effects);
    },
    timer: () => timer,
    mayGather: (value: Json, { from = host, key = "beat" } = {}) => mayGather(beats, from, key, value),
  };
};
const heartbeat = (boot: number, fresh: boolean) => ({ "heartbeat/h1": { host: "h1", boot, fresh } });
const answer = (boot: number, count: number) => ({ "host.h1/beat": { boot, count } });

test("a host that is heard is said once, and once more when it is late", () => {
  const room = createRoom();
  assert.deepEqual(room.beat(0, { boot: 7, count: 1 }).said, { ...answer(7, 1), ...heartbeat(7, true) });
  assert.equal(room.timer(), 9000);
  assert.deepEqual(room.beat(3000, { boot: 7, count: 2 }).said, answer(7, 2));
  // It may have waited for others, and is no younger than that.
  assert.deepEqual(room.due(9000), {}, "the second one is fresh");
  assert.equal(room.timer(), 3000 - gatherMs);
  assert.deepEqual(room.due(12_000 - gatherMs), heartbeat(7, false));
  assert.equal(room.timer(), null, "nobody is fresh who could become late");
  assert.deepEqual(room.beat(20_000, { boot: 7, count: 3 }).said, { ...answer(7, 3), ...heartbeat(7, true) });
});

test("what is repeated, of an earlier boot, malformed, or from before this start is no sign of life", () => {
  const room = createRoom();
  assert.deepEqual(room.beat(0, { boot: 7, count: 5 }, false), { refused: null, said: {} }, "it was stored");
  assert.deepEqual(room.beat(100, { boot: 7, count: 5 }), { refused: null, said: {} });
  assert.deepEqual(room.beat(100, { boot: 7, count: 4 }), { refused: null, said: {} });
  assert.match(room.beat(100, { boot: 6, count: 9 }).refused ?? "", /of boot 6, and boot 7 was heard/);
  for (const bad of [{ boot: 7 }, { boot: -1, count: 8 }, { boot: 7, count: 0.5 }, [], "beat"])
    assert.match(room.beat(100, bad as Json).refused ?? "", /malformed/, JSON.stringify(bad));
  assert.equal(room.timer(), null);
  assert.deepEqual(room.beat(200, { boot: 7, count: 6 }).said, { ...answer(7, 6), ...heartbeat(7, true) });
  assert.deepEqual(
    room.beat(300, { boot: 8, count: 1 }).said,
    { ...answer(8, 1), ...heartbeat(8, true) },
    "a later boot",
  );
  assert.deepEqual(room.beat(400, null).said, { "host.h1/beat": null, "heartbeat/h1": null });
});

test("a beat waits for others where it says nothing new; what is new, or will be refused, is taken at once", () => {
  const room = createRoom();
  assert.equal(room.mayGather({ boot: 7, count: 1 }), false, "the host was not heard");
  room.beat(0, { boot: 7, count: 1 }, false);
  assert.equal(room.mayGather({ boot: 7, count: 2 }), false, "it was heard before this start alone");
  room.beat(100, { boot: 7, count: 2 });
  assert.equal(room.mayGather({ boot: 7, count: 3 }), true);
  assert.equal(room.mayGather({ boot: 7, count: 2 }), false, "it was heard");
  assert.equal(room.mayGather({ boot: 6, count: 9 }), false, "an earlier boot");
  assert.equal(room.mayGather({ boot: 8, count: 9 }), false, "a later boot");
  for (const bad of [{ boot: 7 }, { boot: 7, count: 3.5 }, [], "beat"])
    assert.equal(room.mayGather(bad as Json), false, JSON.stringify(bad));
  assert.equal(room.mayGather({ boot: 7, count: 3 }, { key: "lease/a" }), false);
  assert.equal(room.mayGather({ boot: 7, count: 3 }, { from: peerName("host.h2") }), false, "another host");
  assert.deepEqual(room.due(9100), heartbeat(7, false));
  assert.equal(room.mayGather({ boot: 7, count: 3 }), false, "it was late, and is heard again");
});
