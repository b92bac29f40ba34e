import assert from "node:assert/strict";
import { test } from "node:test";
import { uid } from "../../model/cell/identifiers.ts";
import { machine, manager, Room, s1 } from "./beats.testing.ts";
import { takeBeats } from "./beats.ts";

/** When it was fed last, before it was told to rest if it was. */
const lastFed = (room: Room): number =>
  Number(
    room.told
      .filter((word) => word.startsWith("feed "))
      .at(-1)
      ?.split(" ")[1] ?? Number.NaN,
  );
const isCounting = (room: Room): boolean => room.told.at(-1)?.startsWith("feed ") === true;
/** It is heard by its server for so long. */
const heardUntil = (room: Room, seconds: number): void => {
  for (let second = 2; second <= seconds; second += 1) {
    room.until(second * 1000);
    room.answer(s1, room.state.beats.count);
  }
};

test("it counts while something writes here that others would start elsewhere, and rests otherwise", () => {
  const reads = machine("c", "10.0.2.2", { writable: false });
  for (const [records, counts] of [
    [[machine("a", "10.0.2.1")], true],
    [[machine("a", "10.0.2.1"), reads], true],
    [[reads], false],
    [[machine("left", "10.0.2.1")], false],
    [[machine("r", "10.0.2.1", { restart: "host" })], false],
    [[{ ...machine("a", "10.0.2.1"), stage: "ended" as const }], false],
    [[{ ...machine("a", "10.0.2.1"), stage: "starting" as const }], false],
    [[{ ...machine("a", "10.0.2.1"), stage: "starting" as const, ending: true as const }], true],
    [[], false],
  ] as const) {
    const room = new Room(records);
    room.until(2000);
    assert.equal(isCounting(room), counts, records.map(({ vm, stage }) => `${vm.uid} ${stage}`).join());
  }
  const room = new Room([machine("a", "10.0.2.1")]);
  room.until(2000);
  takeBeats(room.state, manager, null);
  room.settle();
  assert.ok(!isCounting(room), "nobody is told that this host is there, so that nobody hears it says nothing");
  const unknown = new Room([machine("a", "10.0.2.1")]);
  unknown.state.peerAddresses = null;
  unknown.until(2000);
  assert.ok(!isCounting(unknown));
});

test("it is fed by being heard: by a server, or by most hosts, and by nothing else", () => {
  const room = new Room([machine("a", "10.0.2.1")]);
  room.hear();
  heardUntil(room, 20);
  assert.ok(lastFed(room) >= 19_000);
  room.until(40_000);
  assert.ok(lastFed(room) <= 20_000, "time alone feeds nothing");
  const others = new Room([machine("a", "10.0.2.1")]);
  others.until(60_000);
  assert.ok(lastFed(others) >= 57_000);
  others.state.beats.doubts = true;
  others.until(80_000);
  assert.ok(lastFed(others) <= 60_000, "it gets no answers itself");
  assert.deepEqual(
    others.told.filter((word) => word.startsWith("rest")),
    [],
  );
});

test("what was ended after 9 s has it rest before it resets; what does not end has the machine reset 12 s after it was heard", () => {
  const room = new Room([machine("a", "10.0.2.1")]);
  room.hear();
  heardUntil(room, 4);
  const fed = lastFed(room);
  room.until(13_500);
  assert.deepEqual(room.lost, [uid("a")]);
  const record = room.state.records.get(uid("a"));
  assert.ok(record !== undefined);
  // It was killed, and is there still.
  room.state.records.set(uid("a"), { ...record, stage: "starting", ending: true });
  room.until(30_000);
  assert.deepEqual([isCounting(room), lastFed(room)], [true, fed]);
  room.state.records.set(uid("a"), { ...record, stage: "ended" });
  room.settle();
  assert.equal(room.told.at(-1), "rest 30000");
});

test("one that stood still, or is heard again, begins anew", () => {
  const room = new Room([machine("a", "10.0.2.1")]);
  room.hear();
  heardUntil(room, 4);
  room.state.now = 11_000;
  room.settle();
  assert.equal(lastFed(room), 11_000);
  room.until(15_000);
  assert.equal(lastFed(room), 11_000);
  room.answer(s1, room.state.beats.count);
  assert.equal(lastFed(room), 15_000);
});
