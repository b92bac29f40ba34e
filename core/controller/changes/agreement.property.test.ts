import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { Effect, Service } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { below, seedOf } from "../../random.ts";
import { createController } from "../controller.ts";
import type { ControllerState } from "../state.ts";
import { shop, World } from "../world.testing.ts";
import { checkTimer } from "./check.ts";
import { Changes } from "./pass.ts";
import { isWorking, sliceTimer } from "./slices.ts";

/** Every step of a `World` is compared with that of a controller which looks at everything (`agreement.ts`). */
const runs = Number(process.env.CELLS_RUNS ?? 12);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 1e9));

const vm = (on: boolean): JsonObject => ({
  "x.type": "VM",
  "x.memory": 256,
  "x.desiredState": on ? "on" : "off",
  "x.restartOnFailure": true,
});
const subnet: JsonObject = { "x.type": "Subnet", "x.size": 16, "x.addressRange": "internal" };

/** The shop with a few machines more or less, rules between them, and sometimes as a whole or not at all. */
function randomModel(pick: (limit: number) => number): JsonObject {
  const more: Record<string, JsonObject> = pick(2) === 0 ? {} : { third: subnet };
  for (let at = 0; at < pick(4); at += 1) {
    more[`m${at}`] = vm(pick(4) > 0);
    more[`d${at}`] = {
      "x.type": "VolumeCopy",
      "x.image": pick(2) === 0 ? "<ref:/shop/golden>" : "<ref:/shop/webDisk>",
    };
    more[`b${at}`] = {
      "x.type": "VolumeConnection",
      "x.vm": `<ref:/shop/m${at}>`,
      "x.volume": `<ref:/shop/d${at}>`,
      "x.busType": "virtio",
    };
    more[`c${at}`] = {
      "x.type": "VirtualInterface",
      "x.vm": `<ref:/shop/m${at}>`,
      "x.subnet": more.third !== undefined && pick(2) === 0 ? "<ref:/shop/third>" : "<ref:/shop/back>",
      ...(pick(2) === 0 ? { "x.vifName": `n${at}` } : {}),
      ...(pick(3) === 0 ? { "x.public": true } : {}),
    };
    if (pick(2) === 0)
      more[`r${at}`] = {
        "x.type": "NetworkRule",
        "x.address1": `<ref:/shop/m${at}>`,
        "x.address2": pick(3) === 0 ? "10.0.0.0/8" : pick(2) === 0 ? "<ref:/shop/front>" : "<ref:/shop/db>",
        "x.protocol": "tcp",
        "x.port2": 80 + pick(3),
      };
  }
  const whole: Record<string, JsonObject | string> = { ...more };
  if (pick(5) === 0) whole["x.policy.deploy"] = "all-or-none";
  return shop(whole);
}

const peers = ["placer", "storage-manager", "address-manager", "dns-manager", "host.h1", "host.h2"].map(peerName);

function act(world: World, pick: (limit: number) => number): void {
  const peer = peers[pick(peers.length)] as PeerName;
  const timers = [...world.timers.keys(), checkTimer];
  // It may be answered later, once it is known what there is.
  const ask = (request: object): void => void world.step({ kind: "request", id: 1, request: toJson(request) });
  const [record] = [...world.state.vms.values()].slice(pick(Math.max(1, world.state.vms.size)));
  switch (pick(9)) {
    case 0:
    case 1:
      ask({ method: "PUT", path: "", json: randomModel(pick), allowDestroy: everything });
      return;
    case 2:
      if (world.silent.has(peer)) world.silent.delete(peer);
      else world.silent.add(peer);
      return;
    case 3:
      world.step({ kind: "timer", name: timers[pick(timers.length)] ?? "" });
      return;
    case 4:
      if (record?.run != null)
        world.ended.set(`${record.uid}@${record.run.incarnation}`, { power: "off", ended: "crashed", reason: "a try" });
      return;
    case 5:
      if (pick(3) === 0) world.crash();
      return;
    case 6:
      if (pick(4) === 0) ask({ method: "DELETE", path: "", allowDestroy: everything });
      return;
    case 7: {
      const host = hostName(`h${1 + pick(2)}`);
      if (world.slowStops.has(host)) world.slowStops.delete(host);
      else world.slowStops.add(host);
      return;
    }
    default: {
      const volumes = [...world.state.elements.values()].filter(({ type }) => type === "VolumeCopy");
      const volume = volumes[pick(Math.max(1, volumes.length))];
      if (volume === undefined) return;
      if (world.slowVolumes.has(volume.uid)) world.slowVolumes.delete(volume.uid);
      else world.slowVolumes.add(volume.uid);
    }
  }
}
const everything = ["shop/webDisk", "shop/dbDisk", ...[0, 1, 2, 3].map((at) => `shop/d${at}`)];

/** A random history, at the end of which all peers do as they are asked. */
function play(world: World, pick: (limit: number) => number): void {
  for (let step = 0; step < 25; step += 1) {
    act(world, pick);
    if (pick(3) > 0) world.settle();
  }
  world.silent.clear();
  world.slowStops.clear();
  world.settle();
}
function playMany(make: (pick: (limit: number) => number) => World, then: (world: World) => void = () => {}): void {
  for (let run = 0; run < runs; run += 1) {
    const random = { random: seedOf(seed + run) };
    const pick = (limit: number): number => below(random, limit);
    try {
      const world = make(pick);
      play(world, pick);
      then(world);
    } catch (error) {
      assert.fail(`CELLS_SEED=${seed + run}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

test("a pass over what changed does what a pass over everything does", () => {
  playMany(() => new World());
});

/** Goes through its steps in slices, and dies now and then behind one that has written something. */
function createMortal(
  service: Service<ControllerState>,
  pick: (limit: number) => number,
  dies: (isDead: boolean) => void,
): Service<ControllerState> {
  return {
    ...service,
    step: (state, input, now) => {
      dies(false);
      const effects: Effect[] = [];
      for (let next = input; ; next = { kind: "timer", name: sliceTimer }) {
        effects.push(...service.step(state, next, now).effects);
        if (!isWorking(state)) return { state, effects };
        if (pick(40) > 0 || !effects.some(({ kind }) => kind === "write" || kind === "desire")) continue;
        dies(true);
        return { state, effects };
      }
    },
  };
}

test("what was done before a crash between two slices is gone on with from there", () => {
  const mortal = (pick: (limit: number) => number): World => {
    const made: { world: World | null } = { world: null };
    const world = new World({}, (options) =>
      createMortal(
        createController(options, (tracking, outbox) => new Changes(tracking, outbox, 1 + pick(10))),
        pick,
        (isDead) => {
          if (made.world !== null) made.world.crashing = isDead;
        },
      ),
    );
    made.world = world;
    return world;
  };
  playMany(mortal, (world) => {
    const atRest = (): object => ({
      desired: structuredClone(world.desired),
      phases: [...world.state.elements.values()].map(({ path, phase }) => [path, phase]),
    });
    world.crashing = false;
    const before = atRest();
    world.crash();
    world.settle();
    assert.deepEqual(atRest(), before, "a start finds nothing to do");
  });
});
