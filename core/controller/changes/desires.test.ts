import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { createOutbox } from "../../outbox.ts";
import { DesireBook, type Desires, type Entry } from "./desires.ts";
import { Tracking } from "./tracked.ts";

test("a step sees what steps before it desire, and nothing of its own from last time", () => {
  const [peer, tracking] = [peerName("placer"), new Tracking()];
  const book = new DesireBook(tracking, createOutbox({ records: new Map(), desiredAt: new Map() }));
  const [first, second] = [
    { rank: 1, order: 0 },
    { rank: 2, order: 0 },
  ];
  const seen: unknown[] = [];
  const look = (desires: Desires): void => void seen.push(desires.get(peer, "key") ?? null);
  let [one, two]: (readonly Entry[])[] = [[], []];
  one = book.collect(first, one ?? [], (desires) => {
    look(desires);
    desires.add(peer, "key", 1);
    look(desires);
  });
  two = book.collect(second, two ?? [], (desires) => {
    look(desires);
    desires.add(peer, "key", 2);
    look(desires);
  });
  book.collect(second, two, look);
  book.collect(first, one, look);
  assert.deepEqual(seen, [null, 1, 1, 2, 1, null]);
  assert.equal(book.get(peer, "key"), undefined);
});
