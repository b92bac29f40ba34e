import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceEvent } from "../../model/api.ts";
import { plain } from "../terminal/terminal.ts";
import { readSince, renderServiceEvent, renderTime } from "./timeline.ts";

const nowMs = new Date(2026, 0, 31, 12, 0, 0).getTime();
const event = (change: Partial<ServiceEvent>): ServiceEvent => ({
  id: "a-1",
  time: new Date(nowMs - 1500).toISOString(),
  service: "controller.shop",
  event: "element/state",
  cell: "shop",
  path: "shop/web/vm",
  fields: {},
  ...change,
});

test("an event is one line of columns: time, service, element, what happened and why", () => {
  const fields = { uid: "ab-1", type: "VM", phase: "failed", reason: "crashed" };
  assert.equal(
    renderServiceEvent(event({ fields }), plain, nowMs),
    "11:59:58.500  controller.shop   shop/web/vm             element/state  ✗ failed  crashed",
  );
  assert.equal(
    renderServiceEvent(
      event({ service: "supervisor", event: "service/ended", cell: null, path: null, fields: { how: "SIGKILL" } }),
      plain,
      nowMs,
    ),
    "11:59:58.500  supervisor                                service/ended  how=SIGKILL",
  );
  const forged = event({ path: "shop/\u001b[2J", fields: { why: "a\nb" } });
  assert.ok(!/\p{Cc}/u.test(renderServiceEvent(forged, plain, nowMs)), "no control characters");
});

test("times are local, with the day where it is another one", () => {
  assert.equal(renderTime(new Date(2026, 0, 31, 3, 4, 5, 6).toISOString(), nowMs), "03:04:05.006");
  assert.equal(renderTime(new Date(2026, 0, 30, 3, 4, 5, 6).toISOString(), nowMs), "2026-01-30 03:04:05.006");
});

test("since is read as a duration or as a time", () => {
  const since = (text: string): string => {
    const read = readSince(text, nowMs);
    return read.ok ? String(nowMs - Date.parse(read.value)) : read.error;
  };
  assert.equal(since("10m"), "600000");
  assert.equal(since("1.5h"), "5400000");
  assert.equal(since(new Date(nowMs - 1000).toISOString()), "1000");
  assert.match(since("yesterday"), /`yesterday` is no time: write 30s, 10m/);
  assert.match(since("999999999999d"), /is no time/);
});
