import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Effect } from "../../env.ts";
import { beatsAreDue, createBeats, takeBeat } from "./beats.ts";

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
  };
};
const heartbeat = (boot: number, fresh: boolean) => ({ "heartbeat/h1": { host: "h1", boot, fresh } });
const answer = (boot: number, count: number) => ({ "host.h1/beat": { boot, count } });

test("a host that is heard is said once, and once more when it is late", () => {
  const room = createRoom();
  assert.deepEqual(room.beat(0, { boot: 7, count: 1 }).said, { ...answer(7, 1), ...heartbeat(7, true) });
  assert.equal(room.timer(), 9000);
  assert.deepEqual(room.beat(3000, { boot: 7, count: 2 }).said, answer(7, 2));
  assert.deepEqual(room.due(9000), {}, "the second one is fresh");
  assert.equal(room.timer(), 3000);
  assert.deepEqual(room.due(12_000), heartbeat(7, false));
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
