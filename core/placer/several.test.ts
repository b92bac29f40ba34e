import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ActualPlacement, ActualTaken } from "../documents/vocabulary.ts";
import { machineShares } from "./machine-memory.ts";
import { createPlacer } from "./placer.ts";
import type { HostRoom } from "./room/rooms.ts";
import type { PlacerState } from "./state.ts";

/** Memory for VMs at each host, a machine's own need included. */
const hostMiB = 1000;
const machineMiB = 100;
const hosts = ["h1", "h2"];

/** A Placer, its client, and what the hosts have told it. */
class Part {
  readonly controller: PeerName;
  readonly service;
  readonly published = new Map<string, ActualPlacement>();
  /** What hosts said and has not arrived: `<host> <vm>`. */
  readonly onItsWay = new Map<string, ActualTaken | null>();
  state: PlacerState;
  constructor(number: number) {
    const self = peerName(number === 1 ? "placer" : `placer.${number}`);
    this.controller = peerName(`controller.c${number}`);
    this.service = createPlacer({ self, hosts: hosts.map((name) => peerName(`host.${name}`)) });
    this.state = this.service.restore({ records: new Map(), desiredAt: new Map() });
    this.input({ kind: "start" });
    for (const host of hosts) {
      const value = {
        host,
        state: "up",
        address: "10.0.1.1",
        mac: "02:00:00:00:00:01",
        accelerator: "tcg",
        memoryMiB: hostMiB,
        reservedMiB: 0,
        machineMiB,
        cpus: 4,
        cpuSpeedMHz: 1000,
      };
      this.input({ kind: "actual", from: peerName(`host.${host}`), key: "host", value });
      this.input({ kind: "reachable", peer: peerName(`host.${host}`), reachable: true });
    }
  }
  input(input: Parameters<typeof this.service.step>[1]) {
    const { state, effects } = this.service.step(this.state, input, { ms: 0, wallMs: 0 });
    this.state = state;
    for (const effect of effects)
      if (effect.kind === "publish" && effect.key.startsWith(`${this.controller}/placement/`)) {
        const vm = effect.key.split("/")[2] ?? "";
        if (effect.value === null) this.published.delete(vm);
        else this.published.set(vm, effect.value as unknown as ActualPlacement);
      }
    return effects;
  }
  want(vm: string, memoryMiB: number | null, incarnation = 1, avoid: readonly string[] = []): void {
    const cell = this.controller.slice("controller.".length);
    const base = { vm, path: `${cell}/${vm}`, cell, incarnation, cpus: 1, cpuSpeedMHz: 0, placement: {}, avoid };
    const value = memoryMiB === null ? null : { ...base, memoryMiB };
    this.input({ kind: "desired", from: this.controller, key: `placement/${vm}`, value });
  }
  tell(host: string, vm: string, taken: ActualTaken | null): void {
    this.input({ kind: "actual", from: peerName(`host.${host}`), key: `taken/${vm}`, value: taken as unknown as Json });
  }
  rooms(): readonly HostRoom[] {
    const [reply] = this.input({ kind: "request", id: 1, request: { kind: "hosts" } });
    return reply?.kind === "reply" ? (reply.response as unknown as { hosts: readonly HostRoom[] }).hosts : [];
  }
}

test("a Placer counts what hosts have of others' VMs, and each VM once", () => {
  const placer = new Part(1);
  placer.tell("h1", "other", { memoryMiB: 300, cpus: 2 });
  placer.want("a", 200);
  assert.equal(placer.published.get("a")?.host, "h2");
  // The same VM, now at its host as well.
  placer.tell("h2", "a", { memoryMiB: 200, cpus: 1 });
  assert.deepEqual(
    placer.rooms().map(({ host, usedMiB, usedCpus, vms }) => [host, usedMiB, usedCpus, vms]),
    [
      ["h1", 500, 2, 1],
      ["h2", 300, 1, 1],
    ],
  );
  placer.want("b", 450);
  assert.equal(placer.published.get("b")?.host, "h2");
  placer.want("c", 600);
  assert.match(placer.published.get("c")?.reason ?? "", /h1: 600 MiB do not fit: 300 of 800 MiB are free/);
  placer.tell("h1", "other", null);
  assert.equal(placer.published.get("c")?.host, "h1");
  // Its last incarnation is still there: that is its own room.
  placer.want("a", 250, 2);
  assert.equal(placer.published.get("a")?.host, "h2");
});

test("a host that says fractions of a MiB, or more of them than there can be, is not believed, and stands in nobody's place", () => {
  const placer = new Part(1);
  const used = (): readonly number[] => placer.rooms().map(({ usedMiB }) => usedMiB);
  placer.tell("h1", "one", { memoryMiB: 1, cpus: 1 });
  placer.tell("h2", "other", { memoryMiB: 1, cpus: 1 });
  placer.want("a", 200);
  placer.want("a", null);
  const before = used();
  // By as much as that hosts of one class differ by their names.
  for (const memoryMiB of [1 - 2 ** -21, 0.5, 2 ** 30 + 1, 2 ** 48, -1]) {
    placer.tell("h2", "other", { memoryMiB, cpus: 1 });
    placer.want("b", 200);
    assert.deepEqual([placer.published.get("b")?.host, used().at(1)], ["h1", before.at(1)], `${memoryMiB}`);
    placer.want("b", null);
  }
  placer.tell("h2", "other", { memoryMiB: 2 ** 30, cpus: 1 });
  assert.ok((used().at(1) ?? 0) >= 2 ** 30);
});

test("what a host has of nobody's is taken until the host says otherwise, also of what was released", () => {
  const placer = new Part(1);
  placer.want("a", 800);
  assert.equal(placer.published.get("a")?.host, "h1");
  placer.tell("h1", "a", { memoryMiB: 800, cpus: 1 });
  placer.want("a", null);
  placer.want("b", 800);
  placer.want("c", 800);
  assert.equal(placer.published.get("b")?.host, "h2");
  assert.equal(placer.published.get("c")?.phase, "waiting");
  placer.tell("h1", "a", null);
  assert.equal(placer.published.get("c")?.host, "h1");
});

const withMachine = (memoryMiB: number): number => memoryMiB + machineMiB * machineShares(memoryMiB);

/** Hosts as they are: each takes what fits, says so to all Placers some time later, and refuses the rest. */
class World {
  readonly parts = [new Part(1), new Part(2)];
  readonly running = new Map<string, { readonly host: string; readonly memoryMiB: number }>();
  readonly wanted = new Map<string, { part: Part; memoryMiB: number; incarnation: number; avoid: string[] }>();
  refusals = 0;

  usedMiB(host: string): number {
    const here = [...this.running.values()].filter((each) => each.host === host);
    return here.reduce((sum, { memoryMiB }) => sum + withMachine(memoryMiB), 0);
  }
  start(part: Part, vm: string, memoryMiB: number): void {
    if (this.wanted.has(vm)) return;
    this.wanted.set(vm, { part, memoryMiB, incarnation: 1, avoid: [] });
    part.want(vm, memoryMiB);
  }
  stop(vm: string): void {
    const machine = this.running.get(vm);
    this.running.delete(vm);
    if (machine !== undefined) this.say(machine.host, vm, null);
    this.wanted.get(vm)?.part.want(vm, null);
    this.wanted.delete(vm);
  }
  /** The controller hands a placed VM to its host, which starts or refuses it. */
  handOver(vm: string): boolean {
    const wanted = this.wanted.get(vm);
    const placement = wanted?.part.published.get(vm);
    const host = placement?.host ?? null;
    if (wanted === undefined || host === null || this.running.has(vm)) return false;
    const { part, memoryMiB } = wanted;
    if (this.usedMiB(host) + withMachine(memoryMiB) <= hostMiB) {
      this.running.set(vm, { host, memoryMiB });
      this.say(host, vm, { memoryMiB, cpus: 1 });
      wanted.avoid = [];
    } else {
      this.refusals += 1;
      wanted.avoid = [...new Set([...wanted.avoid, host])];
      wanted.incarnation += 1;
      part.want(vm, memoryMiB, wanted.incarnation, wanted.avoid);
    }
    return true;
  }
  say(host: string, vm: string, taken: ActualTaken | null): void {
    for (const part of this.parts) {
      part.onItsWay.delete(`${host} ${vm}`);
      part.onItsWay.set(`${host} ${vm}`, taken);
    }
  }
  deliver(part: Part): boolean {
    const [first] = part.onItsWay;
    if (first === undefined) return false;
    const [host = "", vm = ""] = first[0].split(" ");
    part.onItsWay.delete(first[0]);
    part.tell(host, vm, first[1]);
    return true;
  }
}

test("property: two Placers never overcommit a host, see the same when all is said, and leave nothing out that fits", () => {
  let refused = 0;
  let waited = 0;
  const step = fc.record({
    what: fc.constantFrom("start", "start", "stop", "hand", "hand", "deliver"),
    part: fc.nat(1),
    vm: fc.nat(7),
    memoryMiB: fc.constantFrom(100, 250, 400, 700),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World();
      const check = (): void => {
        for (const host of hosts) assert.ok(world.usedMiB(host) <= hostMiB, `${host} is overcommitted`);
      };
      for (const { what, part, vm, memoryMiB } of steps) {
        const own = world.parts[part] ?? assert.fail();
        const name = uid(`c${part + 1}-${vm}`);
        if (what === "start") world.start(own, name, memoryMiB);
        else if (what === "stop") world.stop(name);
        else if (what === "hand") world.handOver(name);
        else world.deliver(own);
        check();
      }
      // Everything arrives, and everything that is placed is handed over, until nothing moves.
      for (let moves = 0, moved = true; moved; moves += 1) {
        assert.ok(moves < 200, "does not come to rest");
        moved = world.parts.map((part) => world.deliver(part)).includes(true);
        for (const vm of world.wanted.keys()) moved = world.handOver(vm) || moved;
        check();
      }
      const [one, two] = world.parts.map((part) => part.rooms());
      assert.deepEqual(one, two);
      for (const room of one ?? []) assert.equal(room.usedMiB, world.usedMiB(room.host));
      for (const [vm, { memoryMiB }] of world.wanted) {
        if (world.running.has(vm)) continue;
        waited += 1;
        for (const host of hosts)
          assert.ok(world.usedMiB(host) + withMachine(memoryMiB) > hostMiB, `${vm} waits, and ${host} has room`);
      }
      refused += world.refusals;
    }),
    { numRuns: 300 },
  );
  assert.ok(refused > 0 && waited > 0, `${refused} refusals, ${waited} that waited`);
});

const account = (part: Part, cell: string, path: string): void =>
  void part.input({
    kind: "desired",
    from: peerName("controller.root"),
    key: `owner/${cell}`,
    value: { cell, account: path },
  });
const placing = (part: Part, vm: string, placement: Record<string, Json>): ActualPlacement | undefined => {
  const cell = part.controller.slice("controller.".length);
  const room = { memoryMiB: 100, cpus: 1, cpuSpeedMHz: 0 };
  const value = { vm, path: `${cell}/${vm}`, cell, incarnation: 1, ...room, placement };
  part.input({ kind: "desired", from: part.controller, key: `placement/${vm}`, value });
  return part.published.get(vm);
};

test("of what another Placer has placed a host says whose it is, so that an account's strict VMs stand together and nobody beside them", () => {
  const placer = new Part(1);
  for (const [cell, path] of [
    ["c1", "ROOT/a"],
    ["c2", "ROOT/a"],
    ["c3", "ROOT/b"],
  ] as const)
    account(placer, cell, path);
  const strict = { memoryMiB: 100, cpus: 1, terms: { implicit: "strict" as const, owned: true as const } };
  placer.tell("h1", "own", { ...strict, by: peerName("controller.c2") });
  placer.tell("h2", "strange", { ...strict, by: peerName("controller.c3") });
  const found = placing(placer, "v", { dedication: "strict" });
  assert.deepEqual([found?.host, found?.terms], ["h1", { implicit: "strict", owned: true }]);
  // As a host of the version before says it, nobody knows.
  placer.tell("h1", "own", { memoryMiB: 100, cpus: 1 });
  placer.want("v", null);
  assert.equal(placing(placer, "w", { dedication: "strict" })?.phase, "waiting");
});

test("an affinity group that is written in a cell of another Placer is known by its VMs", () => {
  const placer = new Part(1);
  for (const cell of ["c1", "c2"]) account(placer, cell, "ROOT/a");
  account(placer, "c3", "ROOT/b");
  const wish = { groups: "replicas" };
  assert.match(placing(placer, "early", wish)?.reason ?? "", /ROOT\/a has no group "replicas"/);
  const groups = [{ name: "replicas", kind: "host anti-affinity" as const }];
  const taken = (by: string): ActualTaken => ({
    memoryMiB: 100,
    cpus: 1,
    by: peerName(by),
    terms: { owned: true, groups },
  });
  placer.tell("h2", "strange", taken("controller.c3"));
  assert.equal(placer.published.get("early")?.phase, "waiting", "another account's group is none of ours");
  placer.tell("h1", "other", taken("controller.c2"));
  const found = placer.published.get("early");
  assert.deepEqual([found?.host, found?.terms], ["h2", { owned: true, groups }]);
  const mixed = [{ name: "replicas", kind: "host affinity" as const }];
  placer.tell("h2", "more", { ...taken("controller.c2"), terms: { owned: true, groups: mixed } });
  assert.match(placing(placer, "late", wish)?.reason ?? "", /other cells have it as "host affinity" and "host anti-/);
});

test("a claim by which a VM was placed, and which the root controller does not know any more, is said to it", () => {
  const placer = new Part(1);
  account(placer, "c1", "ROOT/a");
  const said: Json[] = [];
  const root = (key: string, value: Json): void => {
    const effects = placer.input({ kind: "desired", from: peerName("controller.root"), key, value });
    for (const effect of effects)
      if (effect.kind === "publish" && effect.key === "controller.root/claim/h1") said.push(effect.value);
  };
  const dedicated = (epoch: number): Json => ({
    host: "h1",
    of: "h1",
    level: "host",
    epoch,
    to: { kind: "account", path: "ROOT/a" },
  });
  root("dedicated/h1", dedicated(3));
  const found = placing(placer, "v", { groups: "DedicatedGrp-a" });
  assert.deepEqual([found?.host, found?.terms?.claim], ["h1", 3]);
  assert.deepEqual(said, [], "what the root controller says nobody has to tell it");
  root("dedicated/h1", dedicated(1));
  assert.deepEqual(said, [{ epoch: 3 }], "its store is older");
  root("dedicated/h1", dedicated(4));
  assert.deepEqual(said, [{ epoch: 3 }, null]);
  root("dedicated/h1", null);
  assert.deepEqual(said.at(-1), { epoch: 3 }, "or it knows of none at all");
});
