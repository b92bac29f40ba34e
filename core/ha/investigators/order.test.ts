import assert from "node:assert/strict";
import { test } from "node:test";
import { investigatorNames } from "../../../model/cell/attributes/ha-settings.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import { reportOf } from "../people/report.ts";
import { investigators } from "../queue.ts";
import { member, World } from "../world.testing.ts";

const s1 = peerName("agent.s1");
/** A lost host whose beats a storage server has, and nobody else says anything. */
const begun = (named: readonly string[] | null): World => {
  const world = new World(4, [member], [s1]);
  if (named !== null) world.set({ investigators: named });
  for (const peer of [s1, peerName("host.h2"), peerName("host.h3")])
    world.give({ kind: "reachable", peer, reachable: true });
  const host = {
    host: "h1",
    state: "up",
    address: "10.0.1.1",
    mac: "02:00:0a:00:01:01",
    memoryMiB: 1,
    reservedMiB: 0,
    machineMiB: 1,
    cpus: 1,
    cpuSpeedMHz: 1,
    accelerator: "tcg",
  };
  world.give({ kind: "actual", from: peerName("host.h1"), key: "host", value: host });
  world.protect("a-1", 1, "h1");
  world.give({ kind: "actual", from: s1, key: "heartbeat/h1", value: { host: "h1", boot: 7, fresh: true } });
  return world;
};
const asked = (world: World): readonly string[] =>
  reportOf(world.state).items.flatMap((item) => item.investigators.map(({ by }) => by));

test("each name that an operator may write is an investigator's, in the preset order", () => {
  assert.deepEqual(
    investigators.map(({ name }) => name),
    investigatorNames,
  );
});

test("all are asked, in the preset order or in the operator's, and shown so", () => {
  const preset = begun(null);
  preset.lose("h1");
  assert.deepEqual(asked(preset), investigatorNames);
  const reversed = [...investigatorNames].reverse();
  const other = begun(reversed);
  other.lose("h1");
  assert.deepEqual(asked(other), reversed);
  other.set({});
  assert.deepEqual(asked(other), investigatorNames, "at once, also for what is under way");
});

test("who is left out is not asked, has nobody ask, and holds nothing up", () => {
  const world = begun(["power", "heartbeat"]);
  const effects = world.give({
    kind: "actual",
    from: member,
    key: "dead/h1",
    value: { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 3 },
  });
  const desires = effects.flatMap((effect) => (effect.kind === "desire" ? [effect.key] : []));
  assert.deepEqual(
    desires.filter((key) => /^(?:probe|requests)/.test(key)),
    [],
    "neither neighbours nor storage servers",
  );
  assert.equal(world.stepOf("a-1"), "Investigating");
  const deaf = begun(["power"]);
  deaf.lose("h1");
  assert.equal(deaf.stepOf("a-1"), "Fencing", "a beat is nothing to who is not asked about it");
});

test("a list that an HA Manager does not know leaves all as it was", () => {
  for (const wrong of [["power", "oracle"], "power", [7]]) {
    const world = begun(["export"]);
    world.set({ investigators: wrong as never });
    assert.ok(world.events.includes("document/refused"), JSON.stringify(wrong));
    world.lose("h1");
    assert.deepEqual(asked(world), ["export"]);
  }
});
