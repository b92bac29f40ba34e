import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostPresence } from "../../core/presence/group/group.ts";
import { hostName } from "../../model/cell/identifiers.ts";
import { mergePresence } from "./presence.ts";

const view = (state: HostPresence["state"], sinceMs: number, generation = 1): HostPresence => ({
  host: hostName("h1"),
  generation,
  incarnation: 0,
  reports: 0,
  state,
  sinceMs,
});
const merge = (...views: readonly HostPresence[]) => mergePresence(views.map((each) => [each])).get("h1");
const at = (ms: number): string => new Date(ms).toISOString();

test("one member that knows of a death is enough, and one that knows of the return ends it", () => {
  assert.deepEqual(merge(view("alive", 1000), view("dead", 9000)), { state: "dead", since: at(9000) });
  assert.deepEqual(merge(view("alive", 12_000, 2), view("dead", 9000)), { state: "up", since: at(12_000) });
});

test("that its power is off is what one member knows of the life in question, and nothing of a later one", () => {
  const off = { ...view("dead", 9000), powerIsOff: true } as const;
  assert.deepEqual(merge(view("dead", 9000), off), { state: "dead", since: at(9000), powerIsOff: true });
  assert.deepEqual(merge(view("dead", 12_000, 2), off), { state: "dead", since: at(12_000) });
});

test("of alive and suspected the worst counts, since the first that said so", () => {
  const status = merge(view("alive", 1000), view("reported", 5000), view("reported", 4000));
  assert.deepEqual(status, { state: "suspected", since: at(4000) });
  assert.deepEqual(merge(view("gone", 0)), { state: "unknown", since: null });
  assert.deepEqual(merge(view("gone", 0), view("alive", 7)), { state: "up", since: at(7) });
  assert.equal(mergePresence([]).size, 0);
});
