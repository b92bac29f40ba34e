import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { NodeInput } from "../node/types.ts";
import { InputQueue } from "./input-queue.ts";

type Item = { readonly input: NodeInput };
const timer = (name: string): Item => ({ input: { kind: "timer", name } });
const request = (id: number): Item => ({ input: { kind: "request", id, request: null } });
const nameOf = ({ input }: Item): string =>
  input.kind === "timer" ? input.name : input.kind === "request" ? `request ${input.id}` : input.kind;
const queueOf = (...items: readonly Item[]): InputQueue<Item> => {
  const queue = new InputQueue<Item>();
  for (const item of items) queue.push(item);
  return queue;
};
/** A batch in which there is room for so many of those that nobody waits for. */
const taken = (queue: InputQueue<Item>, room: number): readonly string[] => {
  let left = room;
  return [
    ...queue.batch(() => {
      left -= 1;
      return left <= 0;
    }),
  ].map(nameOf);
};

test("a batch is bounded, and what is left is in the next ones, in its order", () => {
  const queue = queueOf(...["a", "b", "c", "d", "e"].map(timer));
  assert.deepEqual(taken(queue, 2), ["a", "b"]);
  assert.equal(queue.size, 3);
  assert.deepEqual(taken(queue, 2), ["c", "d"]);
  queue.push(timer("f"));
  assert.deepEqual(taken(queue, 9), ["e", "f"]);
  assert.equal(queue.size, 0);
  assert.deepEqual(taken(queue, 9), []);
});

test("who waits for an answer is in the next batch, in the order of asking, and nothing is held up for good by that", () => {
  const queue = queueOf(timer("a"), timer("b"), request(1), { input: { kind: "release", peer: peerName("placer") } });
  queue.push(request(2));
  assert.deepEqual(taken(queue, 1), ["request 1", "release", "request 2", "a"]);
  queue.push(request(3));
  assert.deepEqual(taken(queue, 0), ["request 3", "b"]);
});

test("what comes while a batch is gone through is in the next one", () => {
  const queue = queueOf(timer("a"), request(1));
  const seen: string[] = [];
  for (const item of queue.batch(() => false)) {
    seen.push(nameOf(item));
    if (seen.length < 3) for (const more of [timer(`${seen.length}`), request(1 + seen.length)]) queue.push(more);
  }
  assert.deepEqual(seen, ["request 1", "a"]);
  assert.deepEqual(taken(queue, 9), ["request 2", "request 3", "1", "2"]);
});
