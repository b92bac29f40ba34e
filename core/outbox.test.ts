import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../model/cell/identifiers.ts";
import {
  cellOfController,
  createOutbox,
  desire,
  longestSentence,
  progress,
  publish,
  sameJson,
  takeEffects,
  write,
} from "./outbox.ts";

test("only differences become effects, also against what was restored", () => {
  const outbox = createOutbox({
    records: new Map([["a", { x: 1 }]]),
    desiredAt: new Map([[peerName("p"), new Map([["k", { y: 2 }]])]]),
  });
  write(outbox, "a", { x: 1 });
  desire(outbox, peerName("p"), "k", { y: 2 });
  write(outbox, "gone", null);
  assert.deepEqual(takeEffects(outbox), []);
  desire(outbox, peerName("p"), "k", null);
  write(outbox, "a", { x: 2 });
  publish(outbox, "controller.shop/subnet/ab-1", { phase: "ready", reason: null });
  publish(outbox, "controller.shop/subnet/ab-1", { phase: "ready", reason: null });
  assert.deepEqual(
    takeEffects(outbox).map((effect) => effect.kind),
    ["desire", "write", "publish", "log"],
  );
});

test("JSON equality ignores the order of keys and sees nested differences", () => {
  assert.ok(sameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }));
  assert.ok(!sameJson({ a: 1 }, { a: 1, b: null }));
  assert.ok(!sameJson([1, 2], [1, 3]));
  assert.ok(!sameJson([], {}));
});

test("a controller is known by its name", () => {
  assert.equal(cellOfController(peerName("controller.shop")), "shop");
  assert.equal(cellOfController(peerName("host.h1")), null);
});

test("a reason that quotes more than its reader takes is cut, and any other is as it was", () => {
  const { reason } = progress("waiting", `"${"a".repeat(1_000_000)}" is being deleted`);
  assert.equal(reason?.length, longestSentence);
  assert.ok(reason?.startsWith('"aaa') && reason.endsWith("…"));
  assert.equal(progress("waiting", "a".repeat(longestSentence)).reason, "a".repeat(longestSentence));
  assert.deepEqual(progress("ready"), { phase: "ready", reason: null });
});
