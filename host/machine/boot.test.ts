import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { ActualHost } from "../../core/documents/vocabulary.ts";
import { peerName, uid } from "../../model/cell/identifiers.ts";
import { desiredVm, policy, Room } from "../service/manager.testing.ts";
import { readBootMark, takeLeaveMark, writeLeaveMark } from "./boot.ts";

const bootOf = (room: Room): number | undefined => (room.published.get("host") as ActualHost | undefined)?.boot;
const member = peerName("presence.1");
/** In boot 100, with a machine that was placed for it. */
const runningOne = (): Room => {
  const room = new Room();
  room.wallMs = 100;
  room.boot(true);
  room.found();
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 1, { boot: 100 }));
  room.settle();
  return room;
};

test("a machine's start is told from that of its Host Manager, also by a run directory that outlives the machine", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-boot-"));
  const kernel = join(directory, "boot_id");
  try {
    writeFileSync(kernel, "first\n");
    const asked: unknown[] = [];
    const remember = async (): Promise<void> => {
      const mark = await readBootMark(directory, kernel);
      await mark.remember(async (request) => {
        asked.push(request);
        return null;
      });
    };
    assert.equal((await readBootMark(directory, kernel)).booted, true);
    assert.equal((await readBootMark(directory, kernel)).booted, true, "not remembered yet");
    await remember();
    assert.equal(asked.length, 1, "its number is durable first");
    assert.equal((await readBootMark(directory, kernel)).booted, false);
    writeFileSync(kernel, "second\n");
    assert.equal((await readBootMark(directory, kernel)).booted, true);
    assert.equal(typeof (await readBootMark(directory)).booted, "boolean", "with the kernel's own");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("each boot has a number above those before, whatever the clock says; a restart of the Host Manager has the same", () => {
  const room = new Room();
  room.wallMs = 5000;
  room.boot(true);
  assert.equal(bootOf(room), 5000);
  room.boot(false);
  assert.equal(bootOf(room), 5000);
  room.wallMs = 4000;
  room.boot(true);
  assert.equal(bootOf(room), 5001);
  room.wallMs = 9000;
  room.boot(true);
  assert.equal(bootOf(room), 9000);
  room.durable.clear();
  room.boot(false);
  assert.equal(bootOf(room), 9000, "a store that was lost has a number again");
});

test("what was placed for an earlier boot is never started in this one, and its controller is told", () => {
  const room = new Room();
  room.wallMs = 100;
  room.boot(true);
  room.desire("policy/shop", policy());
  // It came, and the power went before it was started.
  room.desire("vm/a", desiredVm("a", 1, { boot: 100 }));
  room.desire("vm/b", desiredVm("b", 1, { restart: "host" }));
  room.wallMs = 200;
  room.boot(true);
  room.found();
  room.settle();
  assert.equal(room.machines.has(uid("a")), false);
  assert.deepEqual([room.vm("a")?.ended, room.vm("a")?.phase], [null, "failed"]);
  assert.match(room.vm("a")?.reason ?? "", /started again since it was chosen/);
  assert.equal(room.machines.get(uid("b")), 1, "one that is bound to no boot is started");
  room.desire("vm/a", desiredVm("a", 2, { boot: 200 }));
  room.settle();
  assert.equal(room.machines.get(uid("a")), 2, "what was placed for this boot is");
});

test("a host of which it is said that it has ended, and which runs, ends all that was placed there and goes on as another", () => {
  const room = runningOne();
  assert.equal(room.machines.get(uid("a")), 1);
  room.ask({ kind: "presence-said", publications: [{ key: "presence/self", value: { generation: 1 } }] });
  assert.deepEqual(room.published.get("presence/self"), { generation: 1, boot: 100 });
  const death = { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 1 };
  const say = (value: object, from = member): void =>
    void room.input({ kind: "actual", from, key: "dead/h1", value: { ...value } });
  say({ ...death, ended: 100 });
  room.ask({ kind: "presence-follow", members: [member] });
  say(death);
  say({ ...death, ended: 99 });
  say({ ...death, ended: 100 }, peerName("host.h2"));
  room.settle();
  assert.equal(bootOf(room), 100, "a stranger, silence, and an earlier boot say nothing of this one");
  say({ ...death, ended: 100 });
  assert.equal(bootOf(room), 101);
  assert.deepEqual(room.published.get("presence/self"), { generation: 1, boot: 101 });
  room.settle();
  assert.equal(room.machines.size, 0);
  room.boot(false);
  assert.equal(bootOf(room), 101, "it is durable");
});

test("one member of the group ends no boot and no life of a host, whatever number it says", () => {
  const room = runningOne();
  const members = [1, 2, 3].map((number) => peerName(`presence.${number}`));
  room.ask({ kind: "presence-follow", members });
  const say = (by: number, ended: number): void =>
    void room.input({
      kind: "actual",
      from: members[by] ?? member,
      key: "dead/h1",
      value: { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 1, ended },
    });
  for (const ended of [100, 2 ** 48 - 2, 2 ** 53 - 1]) {
    say(0, ended);
    room.settle();
    assert.equal(bootOf(room), 100);
    assert.equal(room.machines.get(uid("a")), 1);
  }
  // With an honest word beside it the number is the honest one's.
  say(1, 100);
  assert.equal(bootOf(room), 101);
});

test("that a Host Manager was told to end counts once", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cells-left-"));
  try {
    assert.equal(await takeLeaveMark(directory), false);
    await writeLeaveMark(directory);
    assert.equal(await takeLeaveMark(directory), true);
    assert.equal(await takeLeaveMark(directory), false, "the next end may be a power cut");
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test("an incarnation that has ended here, and was forgotten, is not started once more, over restarts, and its controller is told", () => {
  const room = new Room();
  room.wallMs = 100;
  room.boot(true);
  room.desire("policy/shop", policy());
  room.desire("vm/a", desiredVm("a", 2));
  room.desire("vm/b", desiredVm("b", 1, { restart: "host" }));
  room.found();
  room.settle();
  assert.equal(room.machines.get(uid("a")), 2);
  for (const vm of ["a", "b"]) room.desire(`vm/${vm}`, null);
  room.settle();
  assert.equal(room.machines.size, 0);
  room.wallMs = 200;
  room.boot(false);
  room.found();
  // An older controller says again what it desired then.
  room.desire("vm/a", desiredVm("a", 2));
  room.desire("vm/b", desiredVm("b", 1, { restart: "host" }));
  room.settle();
  assert.equal(room.machines.has(uid("a")), false);
  assert.deepEqual([room.vm("a")?.ended, room.vm("a")?.phase], [null, "failed"]);
  assert.match(room.vm("a")?.reason ?? "", /has ended here before/);
  assert.equal(room.machines.get(uid("b")), 1, "one that its host starts again is started");
  room.desire("vm/a", desiredVm("a", 3));
  room.settle();
  assert.equal(room.machines.get(uid("a")), 3);
});
