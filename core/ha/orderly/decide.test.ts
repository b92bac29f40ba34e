import assert from "node:assert/strict";
import { test } from "node:test";
import { isActive, orderlyTypes, type Step, steps } from "../item.ts";
import { decideOrderly, type OrderlyCircumstances, type OrderlyMove } from "./decide.ts";

/** The whole table: every type at every step with everything that can be so. */
const all: readonly OrderlyCircumstances[] = (["same", "later", "gone"] as const).flatMap((since) =>
  (["on", "off", "unknown"] as const).flatMap((power) =>
    [true, false].flatMap((isWanted) =>
      [true, false].flatMap((isStopping) =>
        [true, false].flatMap((isHostLost) =>
          [true, false].map((areTriesUsed) => ({ since, power, isWanted, isStopping, isHostLost, areTriesUsed })),
        ),
      ),
    ),
  ),
);
const follows: Readonly<Partial<Record<Step, Readonly<Record<string, readonly Step[]>>>>> = {
  Scheduled: {
    Migration: ["Migrating", "Cancelled"],
    CheckStop: ["Investigating", "Cancelled"],
    ForceStop: ["Stopping", "Cancelled"],
  },
  Investigating: { CheckStop: ["Stopping", "Done", "Cancelled"] },
  Stopping: { CheckStop: ["Done", "Cancelled"], ForceStop: ["Done", "Cancelled"] },
  Migrating: { Migration: ["Done", "Cancelled"] },
};
/** Every case that a type can come to. */
const cases = orderlyTypes.flatMap((type) =>
  steps
    .filter((step) => !isActive(step) || follows[step]?.[type] !== undefined)
    .flatMap((step) => all.map((so) => ({ type, step, so, move: decideOrderly(type, step, so) }))),
);
const where = ({ type, step, so }: (typeof cases)[number]): string => JSON.stringify({ type, step, ...so });

test("every case of the table ends at a step of its type that may follow, and says why", () => {
  for (const each of cases) {
    const { type, step, move } = each;
    if (move === null) continue;
    assert.ok((follows[step]?.[type] ?? []).includes(move.to), `${where(each)} → ${move.to}`);
    assert.notEqual(move.why, "");
  }
  assert.equal(all.length, 3 * 3 * 2 ** 4);
  assert.equal(cases.length, 3 * all.length * (1 + 3) + 4 * all.length, "of each type the first step and three ends");
});

test("of an incarnation that is over nothing goes on: what had begun is done, the rest is cancelled", () => {
  for (const each of cases) {
    const { step, so, move } = each;
    if (so.since === "same" || !isActive(step)) continue;
    assert.equal(move?.to, step === "Migrating" || step === "Stopping" ? "Done" : "Cancelled", where(each));
  }
});

test("a lost host is asked for nothing, but what an operator has freed waits for it", () => {
  for (const each of cases) {
    const { type, step, so, move } = each;
    if (so.since !== "same" || !so.isHostLost || !isActive(step)) continue;
    if (type !== "ForceStop") assert.equal(move?.to, "Cancelled", where(each));
    else if (so.isWanted && so.power !== "off" && step === "Stopping") assert.equal(move, null, where(each));
  }
});

test("what its host lists as running is not done, but given up after all tries", () => {
  for (const each of cases) {
    const { type, so, move } = each;
    if (so.since !== "same" || move?.to !== "Done") continue;
    const gaveUp = move.gaveUp === true;
    assert.ok(so.power === "off" || gaveUp, where(each));
    if (gaveUp) assert.ok(type === "CheckStop" && so.areTriesUsed && so.power !== "off", where(each));
  }
});

test("a machine that has begun to leave is not kept by who calls it back", () => {
  const so = { since: "same", power: "on", isStopping: true, isHostLost: false, areTriesUsed: false } as const;
  const moves = [true, false].map((isWanted): OrderlyMove | null =>
    decideOrderly("Migration", "Migrating", { ...so, isWanted }),
  );
  assert.deepEqual(moves, [null, null]);
  assert.equal(
    decideOrderly("Migration", "Migrating", { ...so, isWanted: false, isStopping: false })?.to,
    "Cancelled",
    "it was not stopped after all",
  );
});

test("what has ended stays so", () => {
  for (const { step, move } of cases) if (!isActive(step)) assert.equal(move, null);
});
