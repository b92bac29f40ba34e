import assert from "node:assert/strict";
import { test } from "node:test";
import { framesIn, idleFigures, wakeUpsOf } from "./idle.ts";

test("frames of a device count both ways, and no other's do", () => {
  const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9999 9999 0 0 0 0 0 0 9999 9999 0 0 0 0 0 0
 tap12:   1000      10    0    0    0     0          0         0      500       7    0    0    0     0       0          0
  tap1:   1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0
`;
  assert.equal(framesIn(text, ["tap12"]), 17);
  assert.equal(framesIn(text, ["tap12", "tap1"]), 19);
  assert.equal(framesIn(text, []), 0);
});

test("a wait is a wake-up", async () => {
  const before = wakeUpsOf(process.pid);
  for (let times = 0; times < 20; times += 1) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.ok(wakeUpsOf(process.pid) - before >= 20);
});

test("who takes the most comes first, and what could not be counted says so", () => {
  const all = [
    { name: "one/vm", pid: 1, frames: 3.4, wakeUps: 60, translations: 12, cpuMs: 60, memoryMiB: 90 },
    { name: "root/core1/vm", pid: 2, frames: 100, wakeUps: 600, translations: null, cpuMs: 6000, memoryMiB: 411.6 },
  ];
  const [first, second] = idleFigures(all);
  assert.equal(first?.what, "idle: root/core1/vm, of one core");
  assert.equal(first?.value, 10);
  assert.match(first?.note ?? "", /100 frames, 600 wake-ups, translations not counted; 412 MiB/);
  assert.match(second?.note ?? "", /3 frames, 60 wake-ups, 12 translations/);
});
