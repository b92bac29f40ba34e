import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, pageKeys, pages, pagesFor, placeOf, titles } from "./place.ts";

test("each page has an address that leads to it, a title and a key of its own", () => {
  for (const page of pages)
    for (const cell of [null, "shop", "db.shop"]) {
      const [path = "", query] = addressOf({ page, cell }).split("?");
      assert.deepEqual(placeOf(path, query), { page, cell: page === "overview" ? null : cell });
    }
  assert.equal(new Set(Object.values(titles)).size, pages.length);
  assert.equal(new Set(Object.values(pageKeys)).size, pages.length);
});

test("what leads nowhere says so, whatever it is", () => {
  for (const path of ["/", "/ui/nothing", "/ui/machines/more", "/ui/overview", "/other", "/ui/__proto__"])
    assert.equal(placeOf(path).page, "unknown", path);
});

test("nobody is shown a page that is not for him", () => {
  assert.deepEqual(pagesFor("operator"), pages);
  assert.ok(!pagesFor("user").includes("availability"));
  assert.ok(pagesFor("user").includes("pools"));
  assert.ok(!pagesFor("user").includes("storage"), "where there are no persistent volumes he has none there");
  assert.ok(pagesFor("user", true).includes("storage") && !pagesFor("user", true).includes("placement"));
  assert.deepEqual(pagesFor("cell", true), [
    "overview",
    "cells",
    "machines",
    "specification",
    "versions",
    "network",
    "timeline",
  ]);
});
