import assert from "node:assert/strict";
import { test } from "node:test";
import { isOut, isTouchDue } from "../people/signed-in.ts";
import { draftOf, dropDraft, dropDrafts, keepDraft } from "./drafts.ts";

/** A tab's storage. */
function storage(most = Number.POSITIVE_INFINITY) {
  const all = new Map<string, string>();
  return {
    all,
    get length() {
      return all.size;
    },
    key: (at: number) => [...all.keys()][at] ?? null,
    getItem: (key: string) => all.get(key) ?? null,
    removeItem: (key: string) => void all.delete(key),
    setItem: (key: string, value: string) => {
      if (value.length > most) throw new Error("there is no room");
      all.set(key, value);
    },
  };
}
const draft = { text: "shop extends Cell { }", main: "shop.sf", version: 3 };

test("a text that was not applied is there again for who wrote it, and for nobody else", () => {
  const kept = storage();
  assert.equal(keepDraft(kept, "ann@ROOT", "shop", draft), true);
  assert.deepEqual(draftOf(kept, "ann@ROOT", "shop"), draft);
  assert.equal(draftOf(kept, "bob@ROOT", "shop"), null);
  assert.equal(draftOf(kept, "ann@ROOT", "bank"), null);
  dropDraft(kept, "ann@ROOT", "shop");
  assert.equal(draftOf(kept, "ann@ROOT", "shop"), null);
});

test("a sign-out by hand takes all texts away, and nothing else", () => {
  const kept = storage();
  kept.setItem("other", "1");
  for (const cell of ["shop", "bank"]) keepDraft(kept, "ann", cell, draft);
  dropDrafts(kept);
  assert.deepEqual([...kept.all.keys()], ["other"]);
});

test("a text that cannot be kept leaves no older one in its place", () => {
  const kept = storage(200);
  assert.equal(keepDraft(kept, "ann", "shop", draft), true);
  assert.equal(keepDraft(kept, "ann", "shop", { ...draft, text: "x".repeat(300) }), false);
  assert.equal(draftOf(kept, "ann", "shop"), null);
  const large = storage();
  assert.equal(keepDraft(large, "ann", "shop", { ...draft, text: "x".repeat(2 ** 20 + 1) }), false);
});

test("what is no draft is none", () => {
  const kept = storage();
  keepDraft(kept, "ann", "shop", draft);
  for (const wrong of ["", "{", "null", '{"text":1}', '{"text":"a","main":"b"}']) {
    for (const key of [...kept.all.keys()]) kept.all.set(key, wrong);
    assert.equal(draftOf(kept, "ann", "shop"), null, wrong);
  }
});

test("only what says that nobody is in signs out, and who uses the page is heard before he is idle", () => {
  assert.equal(isOut({ status: 401 }), true);
  for (const error of [{ status: 0 }, { status: 403 }, { status: 502 }, new Error("no"), null])
    assert.equal(isOut(error), false);
  assert.equal(isTouchDue(0, 299_999), false);
  assert.equal(isTouchDue(0, 300_000), true);
});
