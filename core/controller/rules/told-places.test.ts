import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../../model/cell/identifiers.ts";
import type { Effect } from "../../env.ts";
import { Tracking } from "../changes/tracked.ts";
import { createDerived, type Derived } from "./derived.ts";
import { createTurns, settleTold, type Teller, turnDue, turnTimer } from "./told-places.ts";

interface Told {
  readonly state: Teller;
  readonly derived: Derived;
  readonly effects: Effect[];
}
function told(): Told {
  const derived = createDerived(new Tracking());
  const effects: Effect[] = [];
  const state = { derived, turns: createTurns(derived), outbox: { effects } } as unknown as Teller;
  return { state, derived, effects };
}
const hosts = (count: number) => Array.from({ length: count }, (_, at) => hostName(`h${at}`));

test("what is known first goes at once, more in its turn, and an idle cloud sets no timer", () => {
  const { state, derived, effects } = told();
  const lengths = (): number | undefined => derived.toldAudience.get(1)?.length;
  derived.audience.set(1, hosts(1));
  settleTold(state);
  assert.equal(lengths(), 1);
  assert.deepEqual(effects, []);
  derived.audience.set(1, hosts(2));
  settleTold(state);
  assert.equal(lengths(), 2, "nobody waits where nothing was said before");
  assert.deepEqual(effects, [{ kind: "timer", name: turnTimer, afterMs: 20 }]);
  for (const count of [3, 4]) derived.audience.set(1, hosts(count));
  settleTold(state);
  assert.equal(lengths(), 2);
  turnDue(state);
  settleTold(state);
  assert.equal(lengths(), 4, "one word for both");
  turnDue(state);
  settleTold(state);
  assert.equal(effects.length, 2);
});

test("a turn takes so much and no more, and the next one goes on behind it", () => {
  const { state, derived } = told();
  const all = Array.from({ length: 200 }, (_, at) => at + 1);
  const grow = (count: number): void => {
    for (const identity of all) derived.audience.set(identity, hosts(count));
  };
  const toldOf = (count: number): readonly number[] =>
    all.filter((identity) => derived.toldAudience.get(identity)?.length === count);
  grow(1);
  settleTold(state);
  assert.equal(toldOf(1).length, 200);
  grow(2);
  settleTold(state);
  assert.deepEqual(toldOf(2), all.slice(0, 125));
  grow(3);
  turnDue(state);
  settleTold(state);
  assert.deepEqual(toldOf(3), [...all.slice(0, 50), ...all.slice(125)], "those that waited longest come first");
  turnDue(state);
  settleTold(state);
  assert.equal(toldOf(3).length, 200);
});

test("an interface that is gone is not told of any more, and its successor knows all at once", () => {
  const { state, derived } = told();
  derived.audience.set(1, hosts(1));
  settleTold(state);
  derived.audience.set(1, hosts(2));
  derived.audience.delete(1);
  settleTold(state);
  assert.equal(derived.toldAudience.has(1), false);
  derived.audience.set(1, hosts(3));
  settleTold(state);
  assert.equal(derived.toldAudience.get(1)?.length, 3);
});
