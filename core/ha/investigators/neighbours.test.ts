import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Effect } from "../../env.ts";
import { World } from "../world.testing.ts";

const mac = "02:00:0a:00:01:01";
/** A lost host of five of which its neighbours say that it answers. */
const begun = (settings: { readonly investigateRetryInterval?: number } = {}) => {
  const world = new World(5);
  world.set(settings);
  for (const name of ["h2", "h3", "h4", "h5"])
    world.give({ kind: "reachable", peer: peerName(`host.${name}`), reachable: true });
  const host = {
    host: "h1",
    state: "up",
    address: "10.0.1.1",
    mac,
    memoryMiB: 1,
    reservedMiB: 0,
    machineMiB: 1,
    cpus: 1,
    cpuSpeedMHz: 1,
    accelerator: "tcg",
  };
  world.give({ kind: "actual", from: peerName("host.h1"), key: "host", value: host });
  world.protect("a-1", 1, "h1");
  world.lose("h1");
  const asked = (): readonly string[] => [...(world.state.asking.get("h1" as never)?.peers ?? [])];
  return {
    world,
    asked,
    answers: (by: string, count: number): readonly Effect[] => {
      const value = { host: "h1", asked: count, answered: count, mac };
      return world.give({ kind: "actual", from: peerName(by), key: "ha-manager/probe/h1", value });
    },
  };
};

test("as long as somebody says that a host answers, others get their turn in place of who got no answer", () => {
  const { world, asked, answers } = begun();
  assert.deepEqual(asked(), ["host.h2", "host.h3"]);
  let count = 0;
  const goOn = (by: string, ms: number): void => {
    for (let passed = 0; passed < ms; passed += 5000) {
      world.ms += 5000;
      count += 1;
      answers(by, count);
      assert.equal(world.stepOf("a-1"), "Investigating");
    }
  };
  goOn("host.h3", 55_000);
  assert.deepEqual(asked(), ["host.h2", "host.h3"]);
  goOn("host.h3", 5000);
  assert.deepEqual(asked(), ["host.h3", "host.h4"], "a minute after they were asked");
  goOn("host.h3", 60_000);
  assert.deepEqual(asked(), ["host.h3", "host.h5"]);
  goOn("host.h3", 60_000);
  assert.deepEqual(asked(), ["host.h3", "host.h2"], "and round again");
  goOn("host.h2", 60_000);
  assert.deepEqual(asked(), ["host.h2", "host.h4"], "who hears nothing any more makes way, too");
});

test("after how long is as the operator sets it", () => {
  const { world, asked, answers } = begun({ investigateRetryInterval: 10 });
  for (const [ms, peers] of [
    [5000, ["host.h2", "host.h3"]],
    [4999, ["host.h2", "host.h3"]],
    [1, ["host.h2", "host.h4"]],
  ] as const) {
    world.ms += ms;
    answers("host.h2", world.ms);
    assert.deepEqual(asked(), peers);
  }
});
