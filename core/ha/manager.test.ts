import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { Effect, Input, Restored } from "../env.ts";
import { createHaManager } from "./manager.ts";
import type { HaState } from "./state.ts";

const shop = peerName("controller.shop");
const bank = peerName("controller.bank");
const manager = peerName("storage-manager");
const members = ["presence.1", "presence.2", "presence.3"].map(peerName);
const h1 = hostName("h1");
const options = {
  self: peerName("ha-manager"),
  presence: members,
  storageManagers: [manager],
  hosts: ["h1", "h2", "h3", "h4"].map((name) => peerName(`host.${name}`)),
};

const protectedVm = (more: JsonObject = {}): Json => ({
  vm: "a-1",
  cell: "shop",
  path: "shop/web",
  incarnation: 1,
  host: "h1",
  boot: 7,
  lost: "restart",
  priority: 0,
  isolated: "keep",
  storageManager: "storage-manager",
  ...more,
});
const death = (more: JsonObject = {}): Json => ({
  host: "h1",
  generation: 1,
  incarnation: 0,
  declaredAt: 1_700_000_000_000,
  reporters: 3,
  ...more,
});

/** An HA Manager with its store, which can be started again. */
class World {
  readonly service = createHaManager(options);
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, Json>();
  readonly fences = new Map<string, Json>();
  readonly probes = new Map<string, Json>();
  /** By host, that it is to say to its servers that it is there. */
  readonly beats = new Map<string, Json>();
  readonly said = new Map<string, Json>();
  state: HaState;
  ms = 1000;

  constructor() {
    this.state = this.service.restore(this.#restored());
    this.give({ kind: "start" });
  }
  #restored(): Restored {
    return { records: new Map(this.records), desiredAt: new Map([[manager, new Map(this.fences)]]) };
  }
  restart(): void {
    this.state = this.service.restore(this.#restored());
    this.said.clear();
    for (const [key, value] of this.desired) {
      const [from = "", ...rest] = key.split(" ");
      this.give({ kind: "desired", from: from as PeerName, key: rest.join(" "), value });
    }
    this.give({ kind: "start" });
  }
  give(input: Input): readonly Effect[] {
    const { effects } = this.service.step(this.state, input, { ms: this.ms, wallMs: 1_700_000_000_000 + this.ms });
    for (const effect of effects) {
      if (effect.kind === "write") set(this.records, effect.key, effect.value);
      if (effect.kind === "desire" && effect.to === manager) set(this.fences, effect.key, effect.value);
      if (effect.kind === "desire" && effect.to !== manager && effect.key === "beats")
        set(this.beats, effect.to, effect.value);
      else if (effect.kind === "desire" && effect.to !== manager)
        set(this.probes, `${effect.to} ${effect.key}`, effect.value);
      if (effect.kind === "publish") set(this.said, effect.key, effect.value);
    }
    return effects;
  }
  protect(value: Json, from = shop, key = "protected/a-1"): void {
    set(this.desired, `${from} ${key}`, value);
    this.give({ kind: "desired", from, key, value });
  }
  declare(value: Json = death(), by: readonly PeerName[] = members): void {
    for (const from of by) this.give({ kind: "actual", from, key: "dead/h1", value });
  }
  fenced(more: JsonObject = {}): void {
    const value = { incarnation: 1, complete: true, volumes: [{ volume: "v-1", epoch: 2 }], reason: null, ...more };
    this.give({ kind: "actual", from: manager, key: "ha-manager/fence/a-1", value });
  }
  machines(host: HostName, machines: readonly JsonObject[], isHeard = true): void {
    this.give({ kind: "reachable", peer: peerName(`host.${host}`), reachable: isHeard });
    this.give({
      kind: "actual",
      from: peerName(`host.${host}`),
      key: "machines",
      value: { host, boot: 7, machines },
    });
  }
  /** A host says where it is on the network; the others are heard. */
  known(): void {
    const value = {
      host: "h1",
      state: "up",
      address: "10.0.1.1",
      mac: "02:00:00:00:01:01",
      memoryMiB: 1000,
      reservedMiB: 0,
      cpus: 4,
      cpuSpeedMHz: 0,
      accelerator: "tcg",
    };
    this.give({ kind: "actual", from: peerName("host.h1"), key: "host", value });
    for (const name of ["h2", "h3", "h4"])
      this.give({ kind: "reachable", peer: peerName(`host.${name}`), reachable: true });
  }
  probed(by: string, asked: number, answered: number, mac = "02:00:00:00:01:01"): void {
    const value = { host: "h1", asked, answered, mac: answered === 0 ? null : mac };
    this.give({ kind: "actual", from: peerName(`host.${by}`), key: "ha-manager/probe/h1", value });
  }
  get step(): string | undefined {
    return this.state.active.get("a-1" as never)?.step;
  }
  get over(): Json | undefined {
    return this.said.get("controller.shop/over/a-1");
  }
}
const set = (map: Map<string, Json>, key: string, value: Json): void => {
  if (value === null) map.delete(key);
  else map.set(key, value);
};

test("a host that is declared dead: its VM is fenced, and only then said to be over", () => {
  const world = new World();
  world.protect(protectedVm());
  assert.equal(world.step, undefined);
  world.declare(death(), members.slice(0, 1));
  assert.equal(world.step, undefined, "one member's word is one of several");
  world.declare();
  assert.equal(world.step, "Fencing");
  assert.deepEqual(world.fences.get("fence/a-1"), { vm: "a-1", cell: "shop", incarnation: 1 });
  assert.equal(world.over, undefined);
  world.fenced({ complete: false, volumes: [], reason: "it is being fenced" });
  assert.equal(world.state.fences.size, 1, "how far it is can be seen");
  world.fenced({ incarnation: 2 });
  assert.equal(world.over, undefined);
  world.fenced();
  assert.deepEqual(world.over, { vm: "a-1", incarnation: 1, host: "h1", by: "storage" });
  assert.equal(world.step, "Restarting");
  world.protect(protectedVm({ incarnation: 2, host: "h2" }));
  assert.deepEqual([world.step, world.over, world.fences.size], [undefined, undefined, 0]);
  assert.equal(world.state.fences.size, 0);
});

test("each step is durable: a start again goes on where it was, and says again what it has said", () => {
  const world = new World();
  world.protect(protectedVm());
  world.declare();
  world.restart();
  assert.equal(world.step, "Fencing");
  assert.equal(world.fences.size, 1);
  world.declare();
  world.fenced();
  world.restart();
  assert.equal(world.step, "Restarting");
  assert.deepEqual(world.over, { vm: "a-1", incarnation: 1, host: "h1", by: "storage" });
  world.declare();
  assert.equal(world.step, "Restarting", "there is one item of an incarnation, for good");
});

test("what its Host Manager says to run is not fenced, as long as it is heard", () => {
  const world = new World();
  world.protect(protectedVm());
  world.machines(h1, [{ vm: "a-1", incarnation: 1, power: "on" }]);
  world.declare();
  assert.equal(world.step, "Investigating");
  world.give({ kind: "reachable", peer: peerName("host.h1"), reachable: false });
  assert.equal(world.step, "Fencing", "it goes on at once when the word lapses");
});

test("what its Host Manager says to have ended needs no fence, and not being listed says nothing", () => {
  const world = new World();
  world.protect(protectedVm());
  world.machines(h1, [{ vm: "a-1", incarnation: 1, power: "off" }]);
  world.declare();
  assert.deepEqual(world.over, { vm: "a-1", incarnation: 1, host: "h1", by: "stopped" });
  assert.equal(world.fences.size, 0);
  const other = new World();
  other.protect(protectedVm());
  other.machines(h1, [{ vm: "a-1", incarnation: 2, power: "off" }]);
  other.declare();
  assert.deepEqual([other.step, other.over], ["Fencing", undefined]);
});

test("x.ha.isolated decides about a VM that is said to run for five minutes", () => {
  for (const isolated of ["keep", "restart"]) {
    const world = new World();
    world.protect(protectedVm({ isolated }));
    world.machines(h1, [{ vm: "a-1", incarnation: 1, power: "on" }]);
    world.declare();
    world.ms += 299_000;
    world.give({ kind: "timer", name: "look" });
    assert.equal(world.step, "Investigating");
    world.ms += 2000;
    world.give({ kind: "timer", name: "look" });
    assert.equal(world.step, isolated === "keep" ? "Investigating" : "Fencing");
  }
});

test("a host that is there again: nothing is done that had not begun", () => {
  const world = new World();
  world.protect(protectedVm());
  world.machines(h1, [{ vm: "a-1", incarnation: 1, power: "on" }]);
  world.declare();
  world.declare(death({ returned: 2 }));
  assert.equal(world.step, undefined);
  assert.equal(world.state.ended.get("item/a-1/1")?.step, "Cancelled");
  world.declare(death({ generation: 2 }));
  assert.equal(world.step, "Investigating", "it is lost once more");
});

test("a VM that is not started again by itself is left, until it is being stopped", () => {
  const world = new World();
  world.protect(protectedVm({ lost: "leave" }));
  world.declare();
  assert.equal(world.step, undefined);
  world.protect(protectedVm({ lost: "end" }));
  assert.deepEqual([world.step, world.state.active.get("a-1" as never)?.type], ["Fencing", "Stop"]);
  const gone = new World();
  gone.protect(protectedVm({ lost: "end", deleted: true }));
  gone.declare();
  assert.equal(gone.state.active.get("a-1" as never)?.type, "Destroy", "it has left its model");
});

test("the power of its host was off for certain: nothing is left to fence", () => {
  const world = new World();
  world.protect(protectedVm());
  world.declare(death({ ended: 7, endedIn: 1 }));
  assert.equal((world.over as JsonObject | undefined)?.by, "stopped");
  const later = new World();
  later.protect(protectedVm({ boot: 8 }));
  later.declare(death({ ended: 7, endedIn: 1 }));
  assert.equal(later.step, "Fencing", "that was another boot");
});

test("a controller speaks for its own cell's VMs, and for none that another one protects", () => {
  const world = new World();
  const refused = (from: PeerName, value: Json): boolean =>
    world
      .give({ kind: "desired", from, key: "protected/a-1", value })
      .some((effect) => effect.kind === "log" && effect.event === "document/refused");
  assert.ok(refused(bank, protectedVm()), "it names another cell");
  assert.ok(!refused(shop, protectedVm()));
  assert.ok(refused(bank, protectedVm({ cell: "bank" })), "another one protects it");
  assert.ok(refused(shop, protectedVm({ storageManager: "storage-manager.9" })));
  assert.ok(refused(shop, { vm: "a-1" }));
  world.give({ kind: "desired", from: bank, key: "protected/a-1", value: null });
  assert.equal(world.state.wanted.size, 1, "nor does it take it back");
});

test("a fence that an earlier store knew is taken back", () => {
  const world = new World();
  const value = { vm: "a-1", cell: "shop", incarnation: 1 };
  const effects = world.give({ kind: "kept", peer: manager, key: "fence/a-1", value });
  assert.ok(effects.some((effect) => effect.kind === "desire" && effect.key === "fence/a-1" && effect.value === null));
});

test("what is kept of an older store stands in no fence's way: the manager knows all that it desires", () => {
  const released = (effects: readonly Effect[]) =>
    effects.flatMap((each) => (each.kind === "recovered" ? [each.at] : []));
  const world = new World();
  assert.deepEqual(released(world.give({ kind: "forked", peer: manager, forked: true, itForked: false })), [manager]);
  assert.deepEqual(released(world.give({ kind: "forked", peer: manager, forked: false, itForked: true })), []);
  const forkedAt = new Map([[manager, { forked: true, itForked: false }]]);
  const state = world.service.restore({ records: new Map(), desiredAt: new Map(), forkedAt });
  const { effects } = world.service.step(state, { kind: "start" }, { ms: 1, wallMs: 1 });
  assert.deepEqual(released(effects), [manager], "also where it ended before it had said so");
});

test("two neighbours of a host are asked first: what answers on the network may run", () => {
  const world = new World();
  world.known();
  world.protect(protectedVm());
  world.declare();
  assert.equal(world.step, "Investigating", "they have their time");
  const wanted = { host: "h1", address: "10.0.1.1", mac: "02:00:00:00:01:01" };
  assert.deepEqual([...world.probes].sort(), [
    ["host.h2 probe/h1", wanted],
    ["host.h3 probe/h1", wanted],
  ]);
  world.probed("h2", 1, 1);
  world.probed("h3", 2, 0);
  world.ms += 6000;
  world.give({ kind: "timer", name: "asked" });
  assert.equal(world.step, "Investigating", "one answer is enough");
  world.ms += 4000;
  world.probed("h2", 2, 1);
  assert.equal(world.step, "Fencing", "an answer that is not fresh is none");
  assert.equal(world.probes.size, 0, "nobody is asked any more");
});

test("who was not asked about a lost host holds nothing up by saying that it answers", () => {
  const world = new World();
  world.known();
  world.protect(protectedVm());
  world.declare();
  assert.equal(world.probes.size, 2, "h2 and h3 are asked");
  world.probed("h4", 1, 1);
  world.probed("h2", 2, 0);
  world.probed("h3", 2, 0);
  assert.equal(world.step, "Fencing");
});

test("nobody answers, or another machine does, or no neighbour: then the host is as lost as it was", () => {
  const silent = new World();
  silent.known();
  silent.protect(protectedVm());
  silent.declare();
  silent.probed("h2", 2, 0);
  assert.equal(silent.step, "Investigating");
  silent.probed("h3", 2, 0);
  assert.equal(silent.step, "Fencing");
  const foreign = new World();
  foreign.known();
  foreign.protect(protectedVm());
  foreign.declare();
  for (const by of ["h2", "h3"]) foreign.probed(by, 2, 2, "02:00:00:00:09:09");
  assert.equal(foreign.step, "Fencing", "an answer from another MAC is none of that host");
  const late = new World();
  late.known();
  late.protect(protectedVm());
  late.declare();
  late.ms += 5000;
  late.give({ kind: "timer", name: "asked" });
  assert.equal(late.step, "Fencing", "who does not say anything is not waited for");
});

test("a host with something that is protected says to its servers that it is there, and one with nothing does not", () => {
  const world = new World();
  world.protect(protectedVm());
  assert.deepEqual([...world.beats], [["host.h1", { host: "h1", ends: ["a-1"] }]]);
  world.protect(protectedVm({ lost: "leave" }));
  assert.deepEqual([...world.beats], [["host.h1", { host: "h1", ends: [] }]], "nobody would start it elsewhere");
  world.give({ kind: "desired", from: peerName("controller.shop"), key: "protected/a-1", value: null });
  assert.deepEqual([...world.beats], []);
});

test("after a start an item goes no further, and is not over, before Presence has said what has become of its host", () => {
  const world = new World();
  world.protect(protectedVm());
  world.known();
  world.give({ kind: "request", id: 1, request: { kind: "ha-pause" } });
  world.declare();
  world.give({ kind: "request", id: 1, request: { kind: "ha-release" } });
  assert.equal(world.step, "Investigating", "neighbours have yet to answer");
  world.restart();
  assert.equal(world.step, "Investigating");
  world.ms += 60_000;
  world.give({ kind: "timer", name: "look" });
  assert.equal(world.step, "Investigating", "its host may be there again");
  world.declare();
  assert.equal(world.step, "Fencing");
  const returned = new World();
  returned.protect(protectedVm());
  returned.known();
  returned.declare();
  returned.restart();
  for (const peer of members.slice(0, 2)) returned.give({ kind: "reachable", peer, reachable: true });
  assert.equal(returned.step, undefined, "most members are heard, and none says that it is lost");
});

test("what was done for a cell before another one had it counts no more when it comes back", () => {
  const world = new World();
  world.protect(protectedVm({ boundAt: 5 }));
  world.declare();
  assert.deepEqual(world.fences.get("fence/a-1"), { vm: "a-1", cell: "shop", incarnation: 1, boundAt: 5 });
  world.fenced({ boundAt: 5 });
  assert.deepEqual(world.over, { vm: "a-1", incarnation: 1, host: "h1", by: "storage", boundAt: 5 });
  // Whether the controller could say meanwhile that it had another one is not known here.
  world.protect(protectedVm({ boundAt: 9 }));
  assert.equal(world.over, undefined, "the fence of then has ended, and it may run");
  assert.equal(world.step, "Fencing", "it is asked about anew");
  world.fenced({ boundAt: 5 });
  assert.equal(world.over, undefined, "the answer to the former question");
  world.fenced({ boundAt: 9 });
  assert.deepEqual(world.over, { vm: "a-1", incarnation: 1, host: "h1", by: "storage", boundAt: 9 });
  world.restart();
  world.declare();
  assert.deepEqual([world.step, world.over !== undefined], ["Restarting", true]);
});
