import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsIn, withWords } from "./timeline.ts";

const event = (id: string | number, more: object = {}) => ({
  id,
  time: "2026-11-28T18:00:00.000Z",
  service: "presence.1",
  event: "host/declared-dead",
  cell: null,
  path: null,
  fields: { host: "h3", why: "", none: null, seen: [1, 2] },
  ...more,
});
const ofCell = { id: 7, time: "2026-11-28T18:00:01.000Z", cell: "shop", path: "shop/web", type: "VM", event: "state" };
const stream = (...events: readonly object[]): string =>
  `: heading\n\n${events.map((each, at) => `id: ${at}\nevent: x\ndata: ${JSON.stringify(each)}\n\n`).join("")}`;

test("a stream that has ended is read from its end, in words, and what is no event is left out", () => {
  const text = `${stream(event("a"), { ...ofCell, phase: "failed", reason: "no room" })}data: {"id":1}\n\ndata: null\n\ndata: {broken\n\ndata: 3\n`;
  assert.deepEqual(eventsIn(text), [
    { id: "7", time: ofCell.time, what: "state", about: "shop/web", says: "failed, no room", service: null },
    {
      id: "a",
      time: "2026-11-28T18:00:00.000Z",
      what: "host: declared dead",
      about: "",
      says: "host h3, seen [1,2]",
      service: "presence.1",
    },
  ]);
  assert.deepEqual(eventsIn(""), []);
});

test("what happened is found by its words, whichever stands where", () => {
  const events = eventsIn(stream(event("a"), ofCell));
  const found = (words: string) => withWords(events, words).map(({ id }) => id);
  assert.deepEqual(found(""), ["7", "a"]);
  assert.deepEqual(found(" SHOP state"), ["7"]);
  assert.deepEqual(found("presence h3"), ["a"]);
  assert.deepEqual(found("nothing"), []);
});
