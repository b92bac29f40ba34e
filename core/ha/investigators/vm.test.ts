import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { mostProbed } from "../../documents/ha.ts";
import { World } from "../world.testing.ts";

const mac = "02:00:0a:00:01:01";
const address = "10.64.0.9";
/** Of a host of five with a VM nobody but these investigators is asked, and others hear only its neighbours. */
const createRoom = (named: readonly string[] = ["vm"]) => {
  const world = new World(5);
  world.set({ investigators: named });
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
  world.protect("a-1", 1, "h1", "shop", { address });
  return {
    world,
    wanted: (by = "host.h2"): Json | undefined => world.state.outbox.desired.get(peerName(by))?.get("probe/h1"),
    /** `answered` of a-1, where it is a number; else what is said of machines. */
    says: (by: string, asked: number, answered: number | Json, more: JsonObject = {}) => {
      const machines = typeof answered === "number" ? [{ vm: "a-1", answered }] : answered;
      const value = { host: "h1", asked, answered: 0, mac: null, ...(machines === null ? {} : { machines }), ...more };
      return world.give({ kind: "actual", from: peerName(`host.${by}`), key: "ha-manager/probe/h1", value });
    },
    step: () => world.stepOf("a-1"),
    said: () => world.state.active.get("a-1" as never)?.answers.find(({ by }) => by === "vm"),
    after: (ms: number) => {
      world.ms += ms;
      return world.give({ kind: "timer", name: "look" });
    },
  };
};

test("a VM that answers at its address runs, though nothing else is heard of its host", () => {
  const { world, wanted, says, step, said, after } = createRoom();
  world.lose("h1");
  const asked = { host: "h1", address: "10.0.1.1", mac, machines: [{ vm: "a-1", address }] };
  assert.deepEqual([wanted(), wanted("host.h3"), wanted("host.h4")], [asked, asked, undefined]);
  assert.equal(step(), "Investigating", "they have their time");
  says("h2", 2, 0);
  says("h3", 2, 1);
  assert.deepEqual([step(), said()?.state], ["Investigating", "Running"]);
  assert.equal(said()?.sentence, "it answers h3 at its address, from h1");
  for (let count = 2; count < 8; count += 1) {
    after(5000);
    says("h3", 2 + count, count);
    assert.equal(step(), "Investigating", "as long as it does");
  }
  after(8999);
  says("h3", 20, 7);
  assert.equal(step(), "Investigating");
  after(1);
  assert.equal(step(), "Fencing", "an answer that is not fresh is none");
  assert.equal(wanted(), undefined, "nobody is asked any more");
});

test("one that does not answer says nothing of itself", () => {
  const { world, says, step } = createRoom();
  world.lose("h1");
  says("h2", 2, 0);
  assert.equal(step(), "Investigating");
  says("h3", 2, 0);
  assert.equal(step(), "Fencing");
});

test("what is no answer of that VM from that host is none", () => {
  for (const [why, speak] of [
    ["of a host that was not asked", ({ says }) => says("h4", 1, 1)],
    ["of another VM", ({ says }) => says("h2", 1, [{ vm: "b-1", answered: 3 }])],
    ["of the host alone", ({ says }) => says("h2", 1, 0, { answered: 1, mac })],
    ["of a host of an earlier version", ({ says }) => says("h2", 1, null)],
    ["malformed", ({ says }) => says("h2", 1, [{ vm: "a-1", answered: -1 }])],
    [
      "of whoever is not heard any more",
      ({ says, world, after }) => {
        says("h2", 1, 1);
        world.give({ kind: "reachable", peer: peerName("host.h2"), reachable: false });
        after(0);
      },
    ],
  ] as readonly (readonly [string, (room: ReturnType<typeof createRoom>) => unknown])[]) {
    const room = createRoom();
    room.world.protect("b-1", 1, "h5", "shop", { address: "10.64.0.10" });
    room.world.lose("h1");
    speak(room);
    assert.notEqual(room.said()?.state, "Running", why);
    room.after(5000);
    assert.equal(room.step(), "Fencing", why);
  }
  const other = createRoom(["neighbours"]);
  other.world.lose("h1");
  other.says("h2", 2, 1);
  other.says("h3", 2, 1);
  assert.equal(other.step(), "Fencing", "who is left out is not asked");
});

test("of very many VMs some are asked at once, and the rest in turns, each before its item goes on", () => {
  const { world, wanted, says, after } = createRoom();
  const many = 2 * mostProbed + 1;
  const names = Array.from({ length: many }, (_, number) => `v-${1000 + number}`);
  for (const [number, vm] of names.entries())
    world.protect(vm, 1, "h1", "shop", { address: `10.64.${1 + (number >> 7)}.${number & 127}` });
  world.lose("h1");
  const turn = (by: string): readonly string[] => {
    const { machines = [] } = wanted(by) as { readonly machines?: readonly { readonly vm: string }[] };
    return machines.map(({ vm }) => vm);
  };
  const seen: string[] = [];
  let asked = 0;
  const goOn = (answering: readonly string[]): void => {
    const now = turn("host.h2");
    assert.deepEqual(turn("host.h3"), now, "both have the same turn");
    assert.ok(now.length <= mostProbed);
    asked += 1;
    const machines = now.map((vm) => ({ vm, answered: answering.includes(vm) ? 1 : 0 }));
    says("h2", asked, machines);
    assert.deepEqual(turn("host.h2"), now, "as long as the other has not asked");
    says("h3", asked, machines);
    seen.push(...now);
  };
  goOn([]);
  goOn([]);
  assert.equal(world.stepOf(seen[0] ?? ""), "Fencing", "it was asked, and the host twice");
  assert.equal(world.stepOf(names.at(-1) ?? ""), "Investigating", "its turn is to come");
  goOn([names.at(-1) ?? ""]);
  assert.deepEqual(new Set(seen), new Set(["a-1", ...names]));
  const left = ["a-1", ...names].filter((vm) => world.stepOf(vm) !== "Fencing");
  assert.deepEqual(left, [names.at(-1)], "it answers");
  world.ms += 8000;
  asked += 1;
  says("h2", asked, [{ vm: names.at(-1) ?? "", answered: 2 }]);
  after(8999);
  assert.equal(world.stepOf(names.at(-1) ?? ""), "Investigating");
  after(1);
  assert.equal(world.stepOf(names.at(-1) ?? ""), "Fencing");
});

test("a turn is of those that are asked in it: what was under way when it began counts for the one before", () => {
  const { world, wanted, says } = createRoom();
  for (let number = 0; number < mostProbed; number += 1)
    world.protect(`v-${1000 + number}`, 1, "h1", "shop", { address: `10.64.1.${number}` });
  world.lose("h1");
  const turn = (): readonly string[] => {
    const { machines = [] } = wanted() as { readonly machines?: readonly { readonly vm: string }[] };
    return machines.map(({ vm }) => vm);
  };
  const left = `v-${1000 + mostProbed - 1}`;
  // All others answer, and go on being asked.
  const back = (vms: readonly string[], answered: number) =>
    vms.map((vm) => ({ vm, answered: vm === left ? 0 : answered }));
  const first = turn();
  assert.ok(!first.includes(left));
  for (const by of ["h2", "h3"]) says(by, 1, back(first, 1));
  const second = turn();
  assert.ok(second.includes(left));
  // Both had asked those of the first turn once more when they were told of the second, and say so of whom they are to ask still.
  for (const by of ["h2", "h3"])
    says(
      by,
      2,
      back(
        second.filter((vm) => first.includes(vm)),
        2,
      ),
    );
  assert.deepEqual(turn(), second, "nobody has asked the one that was left");
  for (const by of ["h2", "h3"]) says(by, 3, back(second, 3));
  assert.equal(world.stepOf(left), "Fencing");
});

test("a turn ends though some of it are not asked about any more", () => {
  const { world, wanted, says } = createRoom();
  for (let number = 0; number < 2 * mostProbed; number += 1)
    world.protect(`v-${1000 + number}`, 1, "h1", "shop", { address: `10.64.1.${number}` });
  world.lose("h1");
  const turn = (): readonly string[] => {
    const { machines = [] } = wanted() as { readonly machines?: readonly { readonly vm: string }[] };
    return machines.map(({ vm }) => vm);
  };
  const first = turn();
  world.protect("v-1000", 1, "h1", "shop", { address: "10.64.1.0", lost: "leave" });
  const rest = turn();
  assert.equal(rest.length, first.length - 1);
  for (const by of ["h2", "h3"])
    says(
      by,
      1,
      rest.map((vm) => ({ vm, answered: 0 })),
    );
  assert.ok(!turn().includes("v-1001"), "the next turn has come");
});

test("what answers again in a later turn has answered since, though its neighbours count anew", () => {
  const { world, wanted, says } = createRoom();
  for (let number = 0; number < mostProbed; number += 1)
    world.protect(`v-${number}`, 1, "h1", "shop", { address: `10.64.1.${number}` });
  for (let number = 0; number < mostProbed; number += 1)
    world.protect(`w-${number}`, 1, "h1", "shop", { address: `10.64.2.${number}` });
  world.lose("h1");
  const turn = (): readonly string[] => {
    const { machines = [] } = wanted() as { readonly machines?: readonly { readonly vm: string }[] };
    return machines.map(({ vm }) => vm);
  };
  // All of them answer each time they are asked, so all have turns for ever.
  let before: readonly { readonly vm: string; readonly answered: number }[] = [];
  for (let asked = 1; asked < 40; asked += 1) {
    const counted = (name: string): number => before.find(({ vm }) => vm === name)?.answered ?? 0;
    const machines = turn().map((vm) => ({ vm, answered: counted(vm) + 1 }));
    before = machines;
    says("h2", asked, machines);
    says("h3", asked, machines);
    world.ms += 1500;
  }
  world.give({ kind: "timer", name: "look" });
  for (const vm of ["a-1", "v-0", "v-63", "w-0"]) assert.equal(world.stepOf(vm), "Investigating", vm);
});

test("nobody waits for turns without end, nor for one neighbour that is silent", () => {
  const begin = (extra: number) => {
    const room = createRoom();
    for (let number = 0; number < extra; number += 1)
      room.world.protect(`v-${1000 + number}`, 1, "h1", "shop", { address: `10.65.${number >> 7}.${number & 127}` });
    room.world.lose("h1");
    return room;
  };
  const few = begin(mostProbed - 1);
  few.after(4999);
  assert.equal(few.step(), "Investigating");
  few.after(1);
  assert.equal(few.step(), "Fencing");
  const many = begin(20 * mostProbed);
  many.after(9499);
  assert.equal(many.step(), "Investigating");
  many.after(1);
  assert.equal(many.step(), "Fencing", "four turns are waited for, however many there are");
  const silent = begin(mostProbed);
  const turn = (): number =>
    (silent.wanted() as { readonly machines: readonly { readonly vm: string }[] }).machines.filter(
      ({ vm }) => vm === "v-1063",
    ).length;
  const first = (silent.wanted() as { readonly machines: Json }).machines;
  assert.equal(turn(), 0);
  silent.says("h2", 1, first as never);
  const said = (first as readonly { readonly vm: string }[]).map(({ vm }) => ({ vm, answered: 0 }));
  for (const asked of [2, 3, 4]) silent.says("h2", asked, said);
  assert.equal(silent.world.state.patienceDueMs, silent.world.ms + 2000);
  assert.equal(turn(), 0, "who says at once that it has asked, again and again, leaves the other its time");
  const after = (ms: number): void => {
    silent.world.ms += ms;
    silent.world.give({ kind: "timer", name: "asked" });
  };
  after(1999);
  assert.equal(turn(), 0);
  after(1);
  assert.equal(turn(), 1, "after two seconds nobody waits for one that is silent");
  const unasked = begin(mostProbed);
  const now = (): Json => (unasked.wanted() as { readonly machines: Json }).machines;
  const before = now();
  unasked.world.ms += 2000;
  unasked.world.give({ kind: "timer", name: "asked" });
  assert.deepEqual(now(), before, "no turn is over in which nobody has asked");
});

test("one that is silent holds nobody up either where more machines come to those that are asked already", () => {
  const { world, wanted, says } = createRoom();
  world.lose("h1");
  for (let number = 0; number < mostProbed; number += 1)
    world.protect(`v-${1000 + number}`, 1, "h1", "shop", { address: `10.65.0.${number}` });
  const turn = (): readonly string[] =>
    (wanted() as { readonly machines: readonly { readonly vm: string }[] }).machines.map(({ vm }) => vm);
  const first = turn();
  assert.ok(first.length === mostProbed && !first.includes("v-1063"));
  says(
    "h2",
    1,
    first.map((vm) => ({ vm, answered: 0 })),
  );
  world.ms += 2000;
  world.give({ kind: "timer", name: "asked" });
  assert.ok(turn().includes("v-1063"), "the last one has its turn");
});

test("one without an address is asked nowhere, nor one that is not looked into", () => {
  const { world, wanted } = createRoom();
  const machinesOf = (): readonly string[] => {
    const { machines = [] } = wanted() as { readonly machines?: readonly { readonly vm: string }[] };
    return machines.map(({ vm }) => vm);
  };
  world.protect("a-2", 1, "h1", "shop", { lost: "leave", address: "10.64.0.11" });
  world.protect("a-3", 1, "h1");
  world.protect("a-4", 1, "h1", "shop", { forced: true, address: "10.64.0.12" });
  for (let number = 0; number < mostProbed; number += 1)
    world.protect(`0-${number}`, 1, "h1", "shop", { lost: "leave", address: `10.64.1.${number}` });
  world.lose("h1");
  assert.deepEqual(machinesOf(), ["a-1"]);
});
