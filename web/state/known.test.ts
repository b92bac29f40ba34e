import assert from "node:assert/strict";
import { test } from "node:test";
import type { FollowEvent } from "../../model/contract/follow/follow.ts";
import { nothingFollowed, reduced } from "../../model/contract/follow/reduce.ts";
import { whyNoElements } from "./known.ts";

test("of a cell that is not there, or another's, nobody waits; of one whose controller has yet to speak somebody does", () => {
  const time = "2026-01-01T00:00:00Z";
  const cells = (...names: readonly string[]): FollowEvent => ({
    kind: "snapshot",
    time,
    topic: "cells",
    run: "a",
    n: 1,
    rows: Object.fromEntries(names.map((cell) => [cell, { cell }])),
  });
  assert.equal(whyNoElements(nothingFollowed, "shop"), null, "which cells there are has not come yet");
  const { followed } = reduced(nothingFollowed, cells("shop"));
  assert.equal(whyNoElements(followed, "shop"), null);
  assert.equal(whyNoElements(followed, null), null);
  assert.equal(whyNoElements(followed, "vault"), "There is no cell vault that you may see.");
  const none = reduced(nothingFollowed, cells()).followed;
  assert.equal(whyNoElements(none, null), "There is no cell yet that you may see.");
  const ended = reduced(followed, { kind: "ended", time, topic: "cell:shop", why: "its controller went" }).followed;
  assert.equal(whyNoElements(ended, "shop"), "its controller went");
});
