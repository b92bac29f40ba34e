import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { ActualHeartbeat } from "../../documents/ha.ts";
import { createDeaths } from "../../presence/group/deaths.ts";
import { createPower } from "../power/power-state.ts";
import { member, World } from "../world.testing.ts";
import { heartbeat } from "./heartbeat.ts";
import type { Known } from "./investigator.ts";

const [h1, s1, s2] = [hostName("h1"), peerName("agent.s1"), peerName("agent.s2")];
const says = (boot: number, fresh: boolean): ActualHeartbeat => ({ host: h1, boot, fresh });
const ask = (said: readonly (readonly [typeof s1, ActualHeartbeat])[], boot?: number, away: readonly string[] = []) => {
  const known: Known = {
    deaths: createDeaths([]),
    machines: new Map(),
    machinesMs: new Map(),
    heartbeats: new Map([[h1, new Map(said)]]),
    reachable: new Map([s1, s2].map((agent) => [agent, !away.includes(agent)])),
    probes: new Map(),
    requests: new Map(),
    power: createPower(),
    nowMs: 0,
  };
  return heartbeat.ask({ vm: uid("a-1"), incarnation: 1, host: h1, ...(boot === undefined ? {} : { boot }) }, known);
};

test("a host that a storage server hears is not fenced, when nothing else is heard of it", () => {
  const world = new World(4, [member], [s1]);
  world.give({ kind: "reachable", peer: s1, reachable: true });
  world.protect("a-1", 1, "h1");
  const hears = (fresh: boolean): void => {
    world.give({ kind: "actual", from: s1, key: "heartbeat/h1", value: { ...says(7, fresh) } });
  };
  hears(true);
  world.lose("h1");
  world.give({ kind: "actual", from: s1, key: "ha-manager/requests/h1", value: { host: "h1", machines: [] } });
  for (let look = 0; look < 20; look += 1) {
    world.ms += 60_000;
    world.give({ kind: "timer", name: "look" });
    assert.equal(world.stepOf("a-1"), "Investigating");
  }
  hears(false);
  assert.equal(world.stepOf("a-1"), "Fencing", "it is late");
});

test("one server that hears the host in the boot of the VM says Running, and nothing else says anything", () => {
  assert.equal(ask([[s1, says(7, true)]], 7).state, "Running");
  assert.equal(
    ask(
      [
        [s1, says(7, false)],
        [s2, says(7, true)],
      ],
      7,
    ).state,
    "Running",
  );
  assert.equal(ask([[s1, says(7, true)]]).state, "Running", "in which boot it was started is not known");
  for (const [said, away, sentence] of [
    [[], [], /no storage server says/],
    [[[s1, says(7, false)]], [], /s1 has not heard h1 for some time/],
    [[[s1, says(7, true)]], [s1], /no storage server says/],
    [[[s1, says(8, true)]], [], /s1 has heard a later boot of h1/],
    [[[s1, says(6, true)]], [], /has not heard h1/],
  ] as const) {
    const answer = ask(said, 7, away);
    assert.equal(answer.state, "Unknown", JSON.stringify(said));
    assert.match(answer.sentence, sentence);
  }
});
