import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceEvent } from "../../model/api.ts";
import { createPathBook, inOrder, isNews, isService, markOf, passes, readEventFilter } from "./event-merge.ts";

const event = (id: string, seconds: number, change: Partial<ServiceEvent> = {}): ServiceEvent => ({
  id,
  time: new Date(seconds * 1000).toISOString(),
  service: "placer",
  event: "placement/state",
  cell: null,
  path: null,
  fields: {},
  ...change,
});

test("events are ordered by time, and alike ones stay as their service said them", () => {
  const ids = inOrder([event("a-1", 2), event("a-2", 2), event("b-1", 1), event("c-1", 2)]).map(({ id }) => id);
  assert.deepEqual(ids, ["b-1", "a-1", "a-2", "c-1"]);
});

test("an element is named by whoever knows its path, also afterwards and after it moved", () => {
  const book = createPathBook();
  const named = { path: "shop/web/vm", cell: "shop", fields: { uid: "ab-1" } };
  const first = book.annotate([event("a-1", 1, { fields: { vm: "ab-1" } }), event("b-1", 2, named)]);
  assert.deepEqual([first[0]?.path, first[0]?.cell], ["shop/web/vm", "shop"]);
  book.annotate([event("b-2", 3, { ...named, path: "shop/web2/vm" })]);
  const [later] = book.annotate([event("a-2", 4, { fields: { volume: "ab-1" } })]);
  assert.equal(later?.path, "shop/web2/vm");
  const [unknown] = book.annotate([event("a-3", 5, { fields: { vm: "zz-9" } })]);
  assert.equal(unknown?.path, null);
});

test("what a source repeats is no news; what its next life says is, unless it is what the former one said", () => {
  const last = markOf(event("life-5", 10));
  assert.ok(isNews(event("life-1", 1), null));
  assert.ok(!isNews(event("life-5", 10), last));
  assert.ok(isNews(event("life-6", 10), last));
  assert.ok(isNews(event("next-1", 11), last));
  assert.ok(!isNews(event("next-1", 9), last), "a controller tells its durable events again");
});

test("a filter is read from a query", () => {
  const filter = readEventFilter(new URLSearchParams("since=1970-01-01T00:00:05Z&cell=shop&service=h1&follow=true"));
  assert.ok(filter.ok);
  const fitting = event("a-1", 5, { cell: "shop", service: "host.h1" });
  assert.ok(passes(fitting, filter.value));
  assert.ok(!passes({ ...fitting, time: new Date(4999).toISOString() }, filter.value));
  assert.ok(!passes({ ...fitting, cell: "other" }, filter.value));
  assert.ok(!passes({ ...fitting, service: "host.h2" }, filter.value));
  const past = (query: string) => {
    const read = readEventFilter(new URLSearchParams(query));
    return read.ok && read.value.past;
  };
  assert.deepEqual(["", "past=true", "past=false"].map(past), [true, true, false]);
  assert.ok(!readEventFilter(new URLSearchParams("since=soon")).ok);
  assert.ok(isService("controller.a.b", "a.b") && !isService("host.h1", "host"));
});
