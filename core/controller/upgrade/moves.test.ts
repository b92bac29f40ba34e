import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, hostName, ipv4, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import type { RootOptions } from "../state.ts";
import { shop, World } from "../world.testing.ts";

/* The world's Placer says where there is room by `leaves`, and places the next incarnation at the first host that it has. */
const [h1, h2] = [hostName("h1"), hostName("h2")];
const at = (world: World, path: string) => [world.vm(path)?.host, world.vm(path)?.document.incarnation];
const leave = (world: World, path: string, to: typeof h1 | null): World => {
  const refusals = to === null ? [{ host: h2, kind: "memory" as const, why: "it is full", lifts: "make room" }] : [];
  const incarnation = world.vm(path)?.document.incarnation ?? 0;
  world.leaves.set(`${world.uidOf(path)}@${incarnation}`, { to, refusals });
  return world;
};
/** Nothing new is placed at h1. */
const closed = (world: World): World => {
  world.hosts.delete(h1);
  return world;
};
const running = (json = shop()): World => {
  const world = new World();
  world.put(json);
  return world.settle();
};
const placement = (world: World, path: string): DesiredPlacement | undefined =>
  world.documents<DesiredPlacement>("placer", "placement").find((each) => each.path === path);
const move = (world: World, vm: string, to: string, tentative = false) =>
  world.ask({ method: "MOVE", vm, to, tentative });

test("a VM for which room is kept elsewhere is stopped in order, and starts there with the same volumes", () => {
  const world = running();
  const before = world.vm("shop/web")?.document;
  assert.deepEqual(at(world, "shop/web"), ["host.h1", 1]);
  world.slowStops.add(h1);
  closed(leave(world, "shop/web", h2)).settle();
  assert.equal(world.standing("shop/web"), "working: stops h1", "nothing starts before its host has confirmed the end");
  assert.equal(placement(world, "shop/web")?.incarnation, 1);
  world.slowStops.clear();
  world.settle();
  assert.deepEqual(at(world, "shop/web"), ["host.h2", 2]);
  assert.equal(world.standing("shop/web"), "ready");
  const volumes = (of: typeof before) => of?.disks.map(({ attachment }) => attachment.volume);
  assert.deepEqual(volumes(world.vm("shop/web")?.document), volumes(before));
  assert.deepEqual(at(world, "shop/db"), ["host.h1", 1], "the other one was left alone");
});

test("a VM for which there is no room runs on, and says why", () => {
  const world = leave(running(), "shop/web", null);
  world.settle();
  assert.deepEqual(at(world, "shop/web"), ["host.h1", 1]);
  assert.equal(world.standing("shop/web"), "ready: cannot-leave h1 h2 memory");
  const why = JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body);
  assert.match(why, /it is to leave h1, and runs on there: no other host can hold it: h2: it is full/);
  assert.match(why, /h2: make room; it goes by itself then/);
  closed(leave(world, "shop/web", h2)).settle();
  assert.deepEqual(at(world, "shop/web"), ["host.h2", 2]);
});

test("a move survives a start of the controller at every step of it", () => {
  const world = running();
  world.crashing = true;
  closed(leave(world, "shop/web", h2)).settle();
  assert.deepEqual(at(world, "shop/web"), ["host.h2", 2]);
  assert.equal(world.standing("shop/web"), "ready");
});

test("one that is switched off meanwhile stays off; one that is not heard is not stopped", () => {
  const world = running();
  world.slowStops.add(h1);
  closed(leave(world, "shop/web", h2)).settle();
  world.put(shop({ web: { ...((shop().shop as JsonObject).web as JsonObject), "x.desiredState": "off" } }));
  world.slowStops.clear();
  world.settle();
  assert.deepEqual(at(world, "shop/web"), [undefined, undefined]);
  const silent = running();
  silent.silent.add(peerName("host.h1"));
  silent.settle();
  closed(leave(silent, "shop/web", h2)).settle();
  assert.deepEqual(at(silent, "shop/web"), ["host.h1", 1]);
});

const hears = (world: World): World => {
  const hosts = ["h1", "h2"].map((host) => ({ host, memoryMiB: 4096, cpus: 16, cpuSpeedMHz: 2000 }));
  world.step({ kind: "actual", from: peerName("placer"), key: "hosts", value: { hosts, complete: true } });
  return world;
};

test("the operator's word for one VM goes to the Placer, is durable, and ends with the next incarnation", () => {
  const world = hears(running());
  assert.deepEqual(move(world, "shop/web", "h2", true).body, {
    vm: "shop/web",
    from: "h1",
    to: "h2",
    incarnation: 1,
    isThere: false,
  });
  assert.equal(placement(world, "shop/web")?.moveTo, undefined, "that was a question");
  assert.equal(move(world, "shop/web", "h2").status, 200);
  assert.equal(placement(world, "shop/web")?.moveTo, "h2");
  assert.equal(placement(world, "shop/db")?.moveTo, undefined);
  world.crash();
  world.settle();
  assert.equal(placement(world, "shop/web")?.moveTo, "h2");
  closed(leave(world, "shop/web", h2)).settle();
  assert.deepEqual(at(world, "shop/web"), ["host.h2", 2]);
  assert.equal(placement(world, "shop/web")?.moveTo, undefined);
  assert.deepEqual(
    [...world.state.vms.values()].map(({ move: asked }) => asked),
    [undefined, undefined],
  );
});

test("where it is already there is nothing to do, and an earlier word is taken back", () => {
  const world = hears(running());
  move(world, "shop/web", "h2");
  assert.equal((move(world, "shop/web", "h1").body as JsonObject).isThere, true);
  world.settle();
  assert.equal(placement(world, "shop/web")?.moveTo, undefined);
  assert.deepEqual(at(world, "shop/web"), ["host.h1", 1]);
});

test("a move that cannot be is refused before anything is touched, with what would be right", () => {
  const world = hears(running());
  const says = (vm: string, to: string, status: number, message: RegExp): void => {
    // But that somebody has asked.
    const records = (): string => JSON.stringify([...world.records].filter(([key]) => !key.startsWith("audit")));
    const before = records();
    const answer = move(world, vm, to);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.match(JSON.stringify(answer.body), message);
    assert.equal(records(), before);
  };
  says("shop/webDisk", "h2", 404, /shop\/webDisk is no VM of the cell shop/);
  says("shop/nobody", "h2", 404, /is no VM of the cell shop/);
  says("shop/web", "h12", 404, /there is no host h12: did you mean h[12]\?/);
  says("shop/web", "", 404, /the hosts are h1, h2/);
  world.put(shop({ web: { ...((shop().shop as JsonObject).web as JsonObject), "x.placement.host": "h1" } }));
  world.settle();
  says("shop/web", "h2", 409, /x\.placement\.host of shop\/web asks for h1/);
  world.put(shop({ web: { ...((shop().shop as JsonObject).web as JsonObject), "x.desiredState": "off" } }));
  world.settle();
  says("shop/web", "h2", 409, /shop\/web does not run/);
});

// --- services of the cloud
const root: RootOptions = {
  management: cidr("10.0.0.0/16"),
  authority: { address: ipv4("10.0.0.31"), fingerprint: "ab".repeat(32) },
  credentialHashes: [],
  token: (vm, incarnation, role) => ({ token: `${vm} ${incarnation} ${role}`, hash: `${vm} ${incarnation} ${role}` }),
};
const roles: Readonly<Record<string, JsonObject>> = {
  core: { controller: { cell: "shop", cellUid: "c1", cellNumber: 7 }, presence: { number: 1 } },
  two: { presence: { number: 2 } },
  three: { presence: { number: 3 } },
  other: { controller: { cell: "web", cellUid: "c2", cellNumber: 8 } },
};
const service = (name: string): JsonObject => ({
  vm: {
    "x.type": "VM",
    "x.memory": 160,
    "x.restartOnFailure": true,
    "x.liveness.protocol": "icmp",
    "x.data": { service: { roles: roles[name] ?? {} } },
  },
  card: { "x.type": "VirtualInterface", "x.vm": `<ref:/shop/${name}/vm>`, "x.subnet": "<ref:/shop/net>" },
});
const cloud = (): World => {
  const world = new World({ root });
  world.put({
    shop: {
      "x.type": "Cell",
      net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
      ...Object.fromEntries(Object.keys(roles).map((name) => [name, service(name)])),
    },
  });
  return world.settle();
};
const vm = (name: string): string => `shop/${name}/vm`;
/** It runs, and does not answer yet. */
const boots = (world: World, name: string, incarnation: number): void => {
  world.ended.set(`${world.uidOf(vm(name))}@${incarnation}`, { health: "starting" } as never);
};

test("services move one after the other: the next one when all others are well", () => {
  const world = cloud();
  for (const name of ["two", "three"]) boots(world, name, 2);
  for (const name of ["two", "three", "other"]) leave(world, vm(name), h2);
  closed(world).settle();
  assert.deepEqual(at(world, vm("two")), ["host.h2", 2]);
  assert.deepEqual(at(world, vm("three")), ["host.h1", 1]);
  assert.equal(world.standing(vm("three")), "ready: leaves-after h1 shop/two/vm");
  assert.deepEqual(at(world, vm("other")), ["host.h2", 2], "nothing rests on a controller but its cell");
  world.ended.delete(`${world.uidOf(vm("two"))}@2`);
  world.settle();
  assert.deepEqual(at(world, vm("three")), ["host.h2", 2]);
});

test("the VM of the root controller is not stopped from here, and cannot be asked to move", () => {
  const world = hears(leave(cloud(), vm("core"), h2));
  world.settle();
  assert.deepEqual(at(world, vm("core")), ["host.h1", 1]);
  assert.equal(world.standing(vm("core")), "ready: leaves-with-its-host h1");
  const { status, body } = move(world, vm("core"), "h2");
  assert.equal(status, 409);
  assert.match(JSON.stringify(body), /another host starts it when its own is off, so switch h1 off in order/);
});
