import assert from "node:assert/strict";
import { test } from "node:test";
import { bootAllowanceMs } from "../../core/documents/guest.ts";
import type { Effect } from "../../core/env.ts";
import { uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { AwaitedGuest } from "../host-requests.ts";
import { desiredVm, policy, Room } from "./manager.testing.ts";

/* What a host says of a guest that is to come up: nothing where nobody asks, and no more than its agent and its resets show. */
const vm = uid("a");
const asked = (incarnation = 1) => desiredVm("a", incarnation, { ready: "booted" });
const running = (document = asked()): Room => {
  const room = new Room();
  room.desire("policy/shop", policy());
  room.desire("vm/a", document);
  room.found();
  room.settle();
  return room;
};
const awaited = (room: Room): Json => room.ask({ kind: "awaited-guests" });
const answers = (room: Room, more: Partial<AwaitedGuest> = {}): void => {
  room.ask({ kind: "guest-up", guest: { vm, incarnation: 1, reboots: 0, ...more } });
};
const reset = (room: Room): readonly Effect[] => {
  const condition = { vm, incarnation: 1, condition: "rebooted", detail: "its guest reset itself" } as const;
  const request = { kind: "machine-condition", condition } as unknown as Json;
  return room.input({ kind: "request", id: 2, request });
};
const timers = (effects: readonly Effect[]): readonly (readonly [string, number | null])[] =>
  effects.flatMap((effect) => (effect.kind === "timer" ? [[effect.name, effect.afterMs] as const] : []));
const timeIsOver = (room: Room): void => void room.input({ kind: "timer", name: "guest/a" });

test("a guest boots until its agent has answered; nothing is said of it, and nobody asks it, where nobody wants to know", () => {
  const room = running();
  assert.equal(room.vm("a")?.guest, "booting");
  assert.equal(room.vm("a")?.phase, "ready", "which is for its controller to judge");
  assert.deepEqual(awaited(room), [{ vm: "a", incarnation: 1, reboots: 0 }]);
  answers(room);
  assert.equal(room.vm("a")?.guest, "up");
  assert.deepEqual(awaited(room), []);
  const other = running(desiredVm("a", 1));
  assert.deepEqual([other.vm("a")?.guest, awaited(other)], [undefined, []]);
});

test("an answer of another incarnation, or from before a reset, is no news", () => {
  const room = running();
  answers(room, { incarnation: 2 });
  reset(room);
  answers(room);
  assert.equal(room.vm("a")?.guest, "booting");
  assert.deepEqual(awaited(room), [{ vm: "a", incarnation: 1, reboots: 1 }]);
  answers(room, { reboots: 1 });
  assert.equal(room.vm("a")?.guest, "up");
});

test("a guest that resets itself boots again and has its time anew, but not while it has never come up", () => {
  const room = running();
  assert.deepEqual(timers(reset(room)), [], "the time of its start goes on");
  answers(room, { reboots: 1 });
  assert.deepEqual(timers(reset(room)), [["guest/a", bootAllowanceMs]]);
  assert.equal(room.vm("a")?.guest, "booting");
});

test("a guest that does not answer in its time is late, until it answers after all", () => {
  const room = running();
  timeIsOver(room);
  assert.equal(room.vm("a")?.guest, "late");
  reset(room);
  assert.equal(room.vm("a")?.guest, "late", "and a reset gives it no hope");
  assert.deepEqual(awaited(room), [{ vm: "a", incarnation: 1, reboots: 1 }]);
  answers(room, { reboots: 1 });
  assert.equal(room.vm("a")?.guest, "up");
});

test("the time over of a guest that has come up meanwhile says nothing", () => {
  const room = running();
  answers(room);
  timeIsOver(room);
  assert.equal(room.vm("a")?.guest, "up");
});

test("a Host Manager that starts again knows who has come up, and goes on to wait for the others", () => {
  const room = running();
  room.boot();
  room.found();
  assert.equal(room.vm("a")?.guest, "booting");
  assert.ok(room.state.guestTimers.has(vm), "its time begins anew");
  answers(room);
  room.boot();
  room.found();
  room.settle();
  assert.deepEqual([room.vm("a")?.guest, awaited(room)], ["up", []]);
});

test("who is asked for while it runs is asked then, and no more once nobody wants to know", () => {
  const room = running(desiredVm("a", 1));
  room.desire("vm/a", asked());
  assert.equal(room.vm("a")?.guest, "booting");
  assert.ok(room.state.guestTimers.has(vm));
  room.desire("vm/a", desiredVm("a", 1));
  assert.deepEqual([room.vm("a")?.guest, awaited(room), room.state.guestTimers.size], [undefined, [], 0]);
});

test("the next incarnation's guest boots like the first one's", () => {
  const room = running();
  answers(room);
  room.desire("vm/a", asked(2));
  room.settle();
  assert.deepEqual([room.vm("a")?.incarnation, room.vm("a")?.guest], [2, "booting"]);
});

test("a guest whose processors stand still for a disk's error is not asked, and its time stands still", () => {
  const room = running();
  const condition = (what: "stalled" | "running"): void => {
    room.ask({ kind: "machine-condition", condition: { vm, incarnation: 1, condition: what, detail: "no space" } });
  };
  condition("stalled");
  assert.deepEqual([awaited(room), room.state.guestTimers.size], [[], 0]);
  condition("running");
  assert.deepEqual([awaited(room), room.state.guestTimers.size], [[{ vm: "a", incarnation: 1, reboots: 0 }], 1]);
});
