import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../model/cell/identifiers.ts";
import type { JsonObject } from "../../model/json/json.ts";
import type { ActualPlacement } from "../documents/vocabulary.ts";
import type { Input } from "../env.ts";
import { host, shop, world } from "./placer.testing.ts";
import { createPlacer } from "./placer.ts";

test("VMs spread by free memory, ties by name, and an unchanged incarnation never moves", () => {
  const { want, say, get, restart, rooms } = world(["h1", "h2"]);
  say("h2", host("h2"));
  say("h1", host("h1"));
  want("a", 500);
  want("b", 1000);
  want("c", 100);
  assert.deepEqual([get("a")?.host, get("b")?.host, get("c")?.host], ["h1", "h2", "h1"]);
  say("h3", host("h3"));
  say("h1", host("h1", 1500));
  restart();
  assert.deepEqual([get("a")?.host, get("b")?.host, get("c")?.host], ["h1", "h2", "h1"]);
  assert.deepEqual(want("a", 500), []);
  assert.deepEqual(rooms()[1], {
    host: "h2",
    reachable: true,
    memoryMiB: 3000,
    usedMiB: 1000,
    cpus: 32,
    usedCpus: 1,
    vms: 1,
    leaving: [],
  });
  want("a", 500, 2);
  assert.deepEqual([get("a")?.host, get("a")?.incarnation], ["h2", 2]);
});

test("where the root controller's VM was started is its place, whatever else was reserved; nobody else names its place", () => {
  const { want, input, say, rooms } = world(["h1", "h2"]);
  for (const name of ["h1", "h2"]) say(name, host(name));
  const root = (incarnation: number, more: JsonObject = {}) =>
    input({
      kind: "desired",
      from: peerName("controller.root"),
      key: "placement/r",
      value: {
        vm: "r",
        path: "root/core1/vm",
        cell: "root",
        incarnation,
        memoryMiB: 500,
        cpus: 1,
        cpuSpeedMHz: 0,
        placement: {},
        ...more,
      },
    });
  root(1);
  const used = (): readonly number[] => rooms().map(({ usedMiB }) => usedMiB);
  assert.deepEqual(used(), [500, 0]);
  root(2, { on: "h2" });
  assert.deepEqual(used(), [0, 500]);
  // Of an incarnation that it had placed elsewhere itself, too.
  root(3);
  assert.deepEqual(used(), [500, 0]);
  root(3, { on: "h2" });
  assert.deepEqual(used(), [0, 500]);
  want("a", 100, 1, { on: "h2" });
  assert.deepEqual(used(), [100, 500], "a tenant's desire is placed as any other");
});

test("a Placer that has just started waits for every host's word before it places anything", () => {
  const { want, say, get, records, wanted } = world(["h1", "h2"]);
  say("h1", host("h1"));
  say("h2", host("h2"));
  want("a", 500);
  assert.equal(get("a")?.host, "h1");
  // As in `restart`, but h2 takes its time.
  const service = createPlacer({ self: peerName("placer"), hosts: [peerName("host.h1"), peerName("host.h2")] });
  let state = service.restore({ records: new Map(records), desiredAt: new Map() });
  const told = new Map<string, ActualPlacement>();
  const input = (what: Input): void => {
    const step = service.step(state, what, { ms: 0, wallMs: 0 });
    state = step.state;
    for (const effect of step.effects) if (effect.kind === "publish") told.set(effect.key, effect.value as never);
  };
  for (const [key, value] of wanted) input({ kind: "desired", from: shop, key, value });
  input({ kind: "start" });
  const base = wanted.get("placement/a") as JsonObject;
  const b = { ...base, vm: "b", path: "shop/b", memoryMiB: 100 };
  input({ kind: "desired", from: shop, key: "placement/b", value: b });
  input({ kind: "actual", from: peerName("host.h1"), key: "host", value: host("h1") });
  input({ kind: "reachable", peer: peerName("host.h1"), reachable: true });
  assert.equal(told.get(`${shop}/placement/a`)?.host, "h1", "what was placed stays, at once");
  assert.equal(told.get(`${shop}/placement/b`)?.phase, "waiting");
  assert.match(told.get(`${shop}/placement/b`)?.reason ?? "", /waits to hear from h2$/);
  input({ kind: "reachable", peer: peerName("host.h2"), reachable: false });
  assert.equal(told.get(`${shop}/placement/b`)?.host, "h1", "nobody waits for a host that is away");
});

test("a host where it could not be started is the last resort", () => {
  const { want, say, get } = world(["h1", "h2"]);
  say("h1", host("h1"));
  say("h2", host("h2", 1500));
  want("a", 400, 1, { avoid: ["h1"] });
  assert.equal(get("a")?.host, "h2");
  want("a", 400, 2, { avoid: ["h1", "h2"] });
  assert.equal(get("a")?.host, "h1");
  want("a", 600, 3, { avoid: ["h1"] });
  assert.equal(get("a")?.host, "h1");
});

test("what each machine takes beside its guest is counted, so that a host need not refuse what was placed there", () => {
  const { want, say, get } = world(["h1"]);
  // 2500 MiB for machines, each 128 MiB larger than its guest, and a large one 256 MiB.
  say("h1", host("h1", 3500, { machineMiB: 128 }));
  want("a", 1300);
  assert.equal(get("a")?.host, "h1");
  want("b", 1000);
  assert.match(get("b")?.refusals[0]?.why ?? "", /1000 MiB do not fit: 688 of 2244 MiB are free/);
  want("b", 688, 2);
  assert.equal(get("b")?.host, "h1");
  want("b", 600, 3);
  want("c", 200);
  assert.match(get("c")?.refusals[0]?.why ?? "", /200 MiB do not fit: 0 of 2244 MiB are free/);
  want("b", 255, 4);
  want("c", 255);
  assert.deepEqual([get("b")?.host, get("c")?.host], ["h1", "h1"]);
});

test("each host says by a kind and in a sentence why it is not the one", () => {
  const { want, say, get } = world(["h1", "h2", "h3", "h4", "h5", "h6"]);
  say("h1", host("h1", 1100));
  say("h2", host("h2", 9000, { state: "draining" }));
  say("h3", host("h3", 9000, { cpuSpeedMHz: 900 }));
  say("h4", host("h4", 9000, { cpus: 0 }));
  say("h5", host("h5"));
  say("h5", null);
  want("a", 400, 1, { cpuSpeedMHz: 1000 });
  for (const { lifts } of get("a")?.refusals ?? []) assert.notEqual(lifts, "");
  const told = get("a")?.refusals.map(({ host, kind, why }) => ({ host, kind, why }));
  assert.deepEqual(told, [
    { host: "h1", kind: "memory", why: "400 MiB do not fit: 100 of 100 MiB are free" },
    { host: "h2", kind: "closed", why: "it is draining" },
    { host: "h3", kind: "speed", why: "its CPUs run at 900 MHz, and 1000 MHz are asked for" },
    { host: "h4", kind: "cpus", why: "1 CPUs do not fit: 0 of 0 (0 × 16) are free" },
    { host: "h5", kind: "unreachable", why: "not reachable" },
    { host: "h6", kind: "unreachable", why: "not reachable" },
  ]);
  assert.match(get("a")?.reason ?? "", /^no host can hold it \(h1: 400 MiB/);
  say("h6", host("h6"));
  assert.deepEqual(get("a"), { phase: "ready", reason: null, incarnation: 1, host: "h6", refusals: [], terms: {} });
});

test("nothing is placed at a host that is declared dead, which the others' refusals tell", () => {
  const { want, input, say, get } = world(["h1", "h2"]);
  say("h1", host("h1", 1400));
  say("h2", host("h2"));
  const death = { host: "h2", generation: 3, incarnation: 0, declaredAt: Date.UTC(2026, 10, 21), reporters: 3 };
  const tell = (value: JsonObject): unknown =>
    input({ kind: "actual", from: peerName("presence.1"), key: "dead/h2", value });
  // As state distribution does it: not heard, then what it said is withdrawn.
  say("h2", null);
  input({ kind: "actual", from: peerName("host.h2"), key: "host", value: null });
  want("a", 500);
  tell(death);
  assert.equal(get("a")?.host, null);
  const why = get("a")?.refusals.find((refusal) => refusal.host === "h2")?.why;
  assert.equal(why, "declared dead at 2026-11-21T00:00:00Z");
  tell({ ...death, returned: 4 });
  assert.equal(get("a")?.refusals.find((refusal) => refusal.host === "h2")?.why, "not reachable");
  say("h2", host("h2"));
  assert.equal(get("a")?.host, "h2");
});

test("members of Presence that come are followed, and count for what most of them say", () => {
  const { want, input, say, get } = world(["h1", "h2"]);
  say("h1", host("h1", 1400));
  say("h2", host("h2"));
  const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
  const effects = input({ kind: "request", id: 1, request: { kind: "members", members } });
  assert.deepEqual(
    effects.flatMap((effect) => (effect.kind === "subscribe" ? [`${effect.to} ${effect.prefix}`] : [])),
    ["presence.2 dead/", "presence.3 dead/"],
  );
  assert.equal(effects.filter(({ kind }) => kind === "reply").length, 1, "whoever told it knows that it was taken");
  const value = { host: "h2", generation: 3, incarnation: 0, declaredAt: Date.UTC(2026, 10, 21), reporters: 3 };
  const tell = (number: number): unknown =>
    input({ kind: "actual", from: peerName(`presence.${number}`), key: "dead/h2", value });
  say("h2", null);
  tell(1);
  want("a", 500);
  const why = (): string | undefined => get("a")?.refusals.find((refusal) => refusal.host === "h2")?.why;
  assert.equal(why(), "not reachable");
  tell(3);
  assert.equal(why(), "declared dead at 2026-11-21T00:00:00Z");
});

test("what a host says is told when it is another thing, and not when it says it once more", () => {
  const { input, say } = world(["h1"]);
  const hear = (value: JsonObject | null): readonly string[] =>
    input({ kind: "actual", from: peerName("host.h1"), key: "host", value }).flatMap((effect) =>
      effect.kind === "log" ? [effect.event] : [],
    );
  assert.deepEqual(hear(host("h1")), ["host/joined"]);
  assert.deepEqual(hear(host("h1", 5000)), ["host/changed"]);
  say("h1", null);
  assert.deepEqual(hear(host("h1", 5000)), [], "it is there again, as it was");
  assert.deepEqual(hear(null), ["host/left"]);
});

test("a death of a host that nobody has is none", () => {
  const { want, input, say, rooms } = world(["h1"]);
  say("h1", host("h1"));
  const death = { host: "h9", generation: 1, incarnation: 0, declaredAt: Date.UTC(2026, 10, 21), reporters: 3 };
  input({ kind: "actual", from: peerName("presence.1"), key: "dead/h9", value: death });
  want("a", 500);
  assert.deepEqual(
    rooms().map(({ host }) => host),
    ["h1"],
  );
});

test("what waits is placed when room is freed, also over a restart", () => {
  const { want, say, get, restart, wanted, records } = world(["h1"]);
  say("h1", host("h1"));
  want("a", 2500);
  want("b", 2500);
  restart();
  assert.equal(get("b")?.phase, "waiting");
  want("a", null);
  assert.equal(get("a"), undefined);
  assert.equal(get("b")?.host, "h1");
  want("c", 2500);
  wanted.delete("placement/b");
  restart();
  assert.equal(get("c")?.host, "h1");
  assert.deepEqual([...records.keys()], ["reservation/c"]);
});

test("a VM is pinned by name, and kept apart from others both ways", () => {
  const { want, say, get } = world(["h1", "h2"]);
  say("h1", host("h1"));
  say("h2", host("h2", 9000));
  want("a", 10, 1, { placement: { host: "h1" } });
  want("b", 10, 1, { placement: { apartFrom: ["c", "shop/d"] } });
  assert.deepEqual([get("a")?.host, get("b")?.host], ["h1", "h2"]);
  want("c", 10);
  want("d", 10, 1, { placement: { host: "h2" } });
  assert.equal(get("c")?.host, "h1");
  assert.match(get("d")?.reason ?? "", /h2: x.placement.apartFrom keeps it apart from "shop\/b"/);
});

test("a Placer without its store keeps each incarnation where its controller has it, once it has heard that host", () => {
  const { say, want, get, records, restart } = world(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2", "h3"]) say(name, host(name, 4000));
  const at = (vm: string) => get(vm)?.host;
  want("a", 500, 1, { placement: { apartFrom: ["b"] } });
  assert.equal(at("a"), "h1");
  want("a", 500, 1, { placement: { apartFrom: ["b"] }, at: "h1" });
  say("h1", null);
  records.clear();
  restart();
  const { host: none, phase, reason } = get("a") ?? {};
  assert.deepEqual([none, phase], [null, "waiting"]);
  assert.equal(reason, "a Placer placed it at h1 before, which this one has not heard yet");
  say("h1", host("h1", 1600));
  assert.equal(at("a"), "h1", "the least room, and it may run there");
  say("h1", host("h1", 9000));
  want("b", 500);
  assert.equal(at("b"), "h2", "h1 has the most room, and a is there");

  // What an earlier Placer made up for it, not knowing better, is put right.
  records.set("reservation/a", { ...(records.get("reservation/a") as JsonObject), host: "h3" });
  restart();
  assert.equal(at("a"), "h1");
  // A controller's word promises no more than the host has; what the host itself has is a fact.
  want("c", 9000, 1, { at: "h2" });
  assert.equal(at("c"), null);
});

test("a VM that was renamed is kept apart from by its new path, and its end has that", () => {
  const { want, say, get } = world(["h1", "h2"]);
  say("h1", host("h1", 9000));
  say("h2", host("h2"));
  want("a", 10);
  want("a", 10, 1, { path: "shop/front/a" });
  want("b", 10, 1, { placement: { apartFrom: "shop/front/a" } });
  assert.deepEqual([get("a")?.host, get("b")?.host], ["h1", "h2"]);
  const told = want("a", null).flatMap((effect) => (effect.kind === "log" && effect.fields.path) || []);
  assert.deepEqual(told, ["shop/front/a"]);
});

test("VMs of a group go to different hosts as long as there are others, whatever room there is", () => {
  const { want, say, get } = world(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2", "h3"]) say(name, host(name, name === "h1" ? 9000 : 4000));
  const spread = (group: string): JsonObject => ({ placement: { spread: group } });
  for (const vm of ["a", "b", "c", "d"]) want(vm, 100, 1, spread("core"));
  assert.deepEqual(["a", "b", "c"].map((vm) => get(vm)?.host).sort(), ["h1", "h2", "h3"]);
  // There is no other left: it is a desire, and no condition.
  assert.equal(get("d")?.host, "h1");
  want("e", 100, 1, spread("more"));
  assert.equal(get("e")?.host, "h1");
  want("d", null);
  want("b", 100, 2, { ...spread("core"), avoid: ["h2"] });
  assert.equal(get("b")?.host, "h1", "a host where it could not be started comes after all others");
});

test("the cloud's own VMs wait until more than half of its hosts were heard, and tenants' do not", () => {
  const { want, say, get, input, restart } = world(["h1", "h2", "h3", "h4"]);
  for (const name of ["h3", "h4"]) say(name, null);
  say("h1", host("h1"));
  say("h2", null);
  const own = (vm: string, incarnation: number) => want(vm, 100, incarnation, { cell: "root", path: `root/${vm}` });
  own("core", 1);
  assert.match(get("core")?.reason ?? "", /wait for a quorum of its hosts: 1 of 4 have been heard, and 3 are needed/);
  want("tenant", 100);
  assert.equal(get("tenant")?.host, "h1");
  say("h2", host("h2"));
  assert.equal(get("core")?.phase, "waiting");
  // One that is declared dead is not waited for.
  const dead = { host: "h4", generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 };
  input({ kind: "actual", from: peerName("presence.1"), key: "dead/h4", value: dead });
  assert.equal(get("core")?.host, "h2");
  // Once it was there, what happens to hosts changes nothing until the next start; what has its place keeps it.
  say("h2", null);
  own("more", 1);
  assert.equal(get("more")?.host, "h1");
  restart();
  own("third", 1);
  assert.match(get("third")?.reason ?? "", /1 of 4 have been heard/);
  assert.equal(get("core")?.host, "h2");
});

test("malformed desires fail, strangers are not accepted", () => {
  const { want, get } = world(["h1"]);
  want("a", -5);
  assert.equal(get("a")?.phase, "failed");
  assert.ok(!createPlacer({ self: peerName("placer"), hosts: [] }).accepts(peerName("host.h1"), "placement/a"));
});

test("property: capacity is never exceeded, and what fits somewhere does not wait", () => {
  const action = fc.record({
    vm: fc.nat(8),
    memoryMiB: fc.option(fc.integer({ min: 1, max: 2000 })),
    cpus: fc.integer({ min: 1, max: 20 }),
    incarnation: fc.integer({ min: 1, max: 3 }),
    restart: fc.boolean(),
    away: fc.option(fc.constantFrom("h1", "h2")),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 50 }), (actions) => {
      const { want, say, restart, rooms, wanted, get } = world(["h1", "h2"]);
      for (const { vm, memoryMiB, cpus, incarnation, restart: again, away } of actions) {
        for (const name of ["h1", "h2"]) say(name, name === away ? null : host(name));
        want(`v${vm}`, memoryMiB, incarnation, { cpus });
        if (again) restart();
        for (const { host: name, memoryMiB: memory, usedMiB, cpus: all, usedCpus, reachable } of rooms()) {
          assert.ok(!reachable || (usedMiB <= memory && usedCpus <= all), `${name} is over its capacity`);
          assert.ok(usedMiB <= 3000 && usedCpus <= 32);
          for (const [key, value] of wanted) {
            const actual = get(key.slice("placement/".length));
            const request = value as { memoryMiB: number; cpus: number; incarnation: number };
            assert.equal(actual?.incarnation, request.incarnation);
            if (actual.phase === "waiting" && reachable) {
              assert.ok(usedMiB + request.memoryMiB > memory || usedCpus + request.cpus > all, "it would fit");
            }
          }
        }
      }
    }),
    { numRuns: 500 },
  );
});

test("of a VM that waits is said how many hosts each rule keeps away, and the smallest change with which it had a place", () => {
  const { want, get, say, administer } = world(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2", "h3"]) say(name, host(name));
  administer("h3", "disabled");
  want("large", 4000);
  assert.deepEqual(get("large")?.advice, {
    rules: [
      { kind: "memory", hosts: 2 },
      { kind: "closed", hosts: 1 },
    ],
    change: "write `x.memory 3000`",
  });
  want("fast", 100, 1, { cpuSpeedMHz: 3000, placement: { zone: "z1" } });
  assert.equal(get("fast")?.advice?.change, "leave out `x.placement.zone` and write `x.cpuSpeed 2000`");
  for (const name of ["h1", "h2"]) administer(name, "maintenance");
  want("any", 100);
  assert.deepEqual(get("any")?.advice, { rules: [{ kind: "closed", hosts: 3 }], change: null });
  administer("h1", null);
  assert.deepEqual([get("any")?.host, get("any")?.advice], ["h1", undefined]);
});
