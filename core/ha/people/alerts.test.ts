import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, hostPeer, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { World } from "../world.testing.ts";
import { reportOf } from "./report.ts";

const alertsOf = (world: World): readonly string[] =>
  (reportOf(world.state).alerts ?? []).map(({ kind, subject }) => `${kind} ${subject}`.trim());
const look = (world: World, afterMs: number): readonly string[] => {
  world.ms += afterMs;
  world.give({ kind: "timer", name: "look" });
  return world.events.filter((event) => event.startsWith("alert/"));
};

test("a fence that takes long is one alert for its host, said once, and over with the last of them", () => {
  const world = new World(20);
  for (const vm of ["a-1", "a-2", "a-3"]) world.protect(vm, 1, "h1");
  world.lose("h1");
  assert.deepEqual(look(world, 50_000), []);
  assert.deepEqual(look(world, 15_000), ["alert/opened"]);
  assert.deepEqual(alertsOf(world), ["unfenced h1"]);
  const [alert] = reportOf(world.state).alerts ?? [];
  assert.match(alert?.sentence ?? "", /^shop\/a-1, shop\/a-2 and 1 more of h1 cannot be fenced.*cells host dead h1/);
  assert.deepEqual(look(world, 60_000), [], "it is open");
  world.restart();
  assert.deepEqual([alertsOf(world), world.events.includes("alert/opened")], [["unfenced h1"], false], "and stays so");
  assert.equal(reportOf(world.state).alerts?.[0]?.since, alert?.since);
  world.fenced("a-1", 1);
  assert.ok(!world.events.includes("alert/opened"), "it is about fewer, and the same one");
  assert.deepEqual(alertsOf(world), ["unfenced h1"]);
  world.fenced("a-2", 1);
  world.fenced("a-3", 1);
  assert.ok(world.events.includes("alert/ended"));
  assert.deepEqual(alertsOf(world), []);
});

test("a host that is declared dead and may run on is an alert after five minutes, until it is heard", () => {
  const world = new World(20);
  world.protect("a-1", 1, "h1");
  const peer = hostPeer(hostName("h1"));
  world.give({ kind: "reachable", peer, reachable: true });
  const machines = [{ vm: "a-1", incarnation: 1, power: "on" }];
  world.give({ kind: "actual", from: peer, key: "machines", value: { host: "h1", boot: 7, machines } });
  world.lose("h1");
  assert.equal(world.stepOf("a-1"), "Investigating");
  assert.deepEqual(look(world, 290_000), []);
  assert.deepEqual([look(world, 20_000), alertsOf(world)], [["alert/opened"], ["isolated h1"]]);
  world.give({ kind: "reachable", peer, reachable: false });
  assert.deepEqual(alertsOf(world), []);
});

test("where many hosts are lost at once that is one alert, and no other for what waits with it", () => {
  const world = new World(20);
  world.protect("a-1", 1, "h3");
  world.protect("a-2", 1, "h3");
  for (const host of ["h1", "h2", "h3"]) world.lose(host);
  assert.deepEqual(alertsOf(world), ["paused"]);
  world.release();
  assert.deepEqual(alertsOf(world), []);
});

test("a VM that a guard holds is an alert of its own, until somebody has looked", () => {
  const world = new World(5);
  world.loseTwice("a-1");
  assert.deepEqual(alertsOf(world), ["held shop:shop/a-1"]);
  world.release({ cell: "shop", path: "shop/a-1" });
  assert.deepEqual(alertsOf(world), []);
});

test("a cell whose own HA Manager is gone is an alert of the first one, as long as its controller says so, and nobody else", () => {
  const world = new World(5);
  const say = (from: string, value: JsonObject | null): void => {
    world.give({ kind: "desired", from: peerName(from), key: "unguarded", value });
  };
  const gone = { cell: "shop", haManager: "ha-manager.2" };
  say("controller.bank", gone);
  assert.deepEqual([world.events, alertsOf(world)], [["document/refused"], []]);
  say("controller.shop", { cell: "shop" });
  assert.deepEqual([world.events, alertsOf(world)], [["document/refused"], []]);
  say("controller.shop", gone);
  assert.deepEqual([world.events, alertsOf(world)], [["alert/opened"], ["unguarded ha-manager.2"]]);
  assert.match(
    reportOf(world.state).alerts?.[0]?.sentence ?? "",
    /^ha-manager\.2, which looks after .* of shop, is gone.*x\.services\.haManager/,
  );
  say("controller.bank", null);
  assert.deepEqual(alertsOf(world), ["unguarded ha-manager.2"]);
  say("controller.shop", null);
  assert.deepEqual([world.events, alertsOf(world)], [["alert/ended"], []]);
});

test("many cells of one HA Manager that is gone are one alert, which ends with the last of them", () => {
  const world = new World(5);
  const say = (cell: string, haManager: string | null): void => {
    const value = haManager === null ? null : { cell, haManager };
    world.give({ kind: "desired", from: peerName(`controller.${cell}`), key: "unguarded", value });
  };
  const opened: string[] = [];
  for (let number = 1; number <= 300; number += 1) {
    say(`c${number}`, "ha-manager.2");
    opened.push(...world.events);
  }
  say("other", "ha-manager.3");
  assert.deepEqual(opened, ["alert/opened"]);
  assert.deepEqual(alertsOf(world), ["unguarded ha-manager.2", "unguarded ha-manager.3"]);
  assert.match(reportOf(world.state).alerts?.[0]?.sentence ?? "", /the VMs of c1, c10 and 298 more, is gone/);
  for (let number = 2; number <= 300; number += 1) say(`c${number}`, null);
  assert.match(reportOf(world.state).alerts?.[0]?.sentence ?? "", /the VMs of c1, is gone/);
  say("c1", null);
  assert.deepEqual([world.events, alertsOf(world)], [["alert/ended"], ["unguarded ha-manager.3"]]);
});

test("too few hosts for the cloud's own VMs are one alert as long as the root controller says so, also after a start", () => {
  const world = new World(5);
  const say = (more: JsonObject): void => {
    const value = { settings: {}, ...more };
    world.give({ kind: "desired", from: peerName("controller.root"), key: "settings", value });
  };
  say({});
  assert.deepEqual(alertsOf(world), []);
  say({ short: { kept: 2, left: 1 } });
  assert.deepEqual([world.events, alertsOf(world)], [["alert/opened"], ["system-hosts"]]);
  assert.match(reportOf(world.state).alerts?.[0]?.sentence ?? "", /^1 of 2 hosts are left.*x\.placement\.systemHosts/);
  say({ short: { kept: 2, left: 0 } });
  assert.deepEqual(world.events, [], "it is the same one");
  say({ short: { kept: 2 } });
  assert.deepEqual([world.events, alertsOf(world)], [["document/refused"], ["system-hosts"]]);
  say({});
  assert.deepEqual([world.events, alertsOf(world)], [["alert/ended"], []]);
});
