import assert from "node:assert/strict";
import { test } from "node:test";
import { type Circumstances, decide } from "./decide.ts";
import { steps } from "./item.ts";

/** The whole table: every step with everything that can be so. */
const all: readonly Circumstances[] = (["same", "later", "gone"] as const).flatMap((since) =>
  (["restart", "end", "leave"] as const).flatMap((lost) =>
    (["Running", "Stopped", "Unknown"] as const).flatMap((state) =>
      (["keep", "restart"] as const).flatMap((isolated) =>
        [true, false].flatMap((isHostLost) =>
          [true, false].flatMap((isFenced) =>
            [true, false].flatMap((isHeld) =>
              [true, false].flatMap((isAsking) =>
                [true, false].flatMap((isVetoedLong) =>
                  [true, false].map((isCancelled) => ({
                    since,
                    lost,
                    state,
                    isolated,
                    isHostLost,
                    isFenced,
                    isHeld,
                    isAsking,
                    isVetoedLong,
                    isCancelled,
                  })),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  ),
);

test("every case of the table ends at a step that may follow, and says why", () => {
  const follows = {
    Scheduled: ["Investigating", "Cancelled"],
    Investigating: ["Fencing", "Restarting", "Cancelled"],
    Fencing: ["Restarting", "Cancelled"],
    Restarting: ["Done"],
    Stopping: [],
    Migrating: [],
    Done: [],
    Cancelled: [],
    Error: [],
  } as const;
  let count = 0;
  for (const step of steps)
    for (const so of all) {
      const move = decide(step, so);
      count += 1;
      if (move === null) continue;
      assert.ok((follows[step] as readonly string[]).includes(move.to), `${step} → ${move.to}`);
      assert.notEqual(move.why, "");
    }
  assert.equal(count, 9 * 3456);
});

test("an incarnation is over only when it was seen stopped, or is fenced", () => {
  for (const step of steps)
    for (const so of all) {
      const move = decide(step, so);
      if (move?.to !== "Restarting") continue;
      assert.ok(move.by === "stopped" ? so.state === "Stopped" : so.isFenced, JSON.stringify({ step, so }));
      assert.equal(so.since, "same");
    }
});

test("what is said to run is not fenced, but where its owner wants that after a while", () => {
  for (const so of all) {
    const move = decide("Investigating", so);
    if (move?.to !== "Fencing") continue;
    assert.ok(so.state === "Unknown" || (so.state === "Running" && so.isolated === "restart" && so.isVetoedLong));
    assert.ok(so.isHostLost && so.lost !== "leave");
  }
});

test("what a person has cancelled goes no further, as long as no fence has begun", () => {
  for (const step of ["Scheduled", "Investigating"] as const)
    for (const so of all) if (so.isCancelled) assert.equal(decide(step, so)?.to, "Cancelled");
});

test("a fence that has begun is carried through, whatever its host does", () => {
  const base = {
    lost: "restart",
    isolated: "keep",
    isVetoedLong: false,
    state: "Unknown",
    isHeld: false,
    isCancelled: true,
    isAsking: false,
  } as const;
  for (const isHostLost of [true, false]) {
    assert.equal(decide("Fencing", { ...base, since: "same", isHostLost, isFenced: false }), null);
    assert.equal(decide("Fencing", { ...base, since: "same", isHostLost, isFenced: true })?.to, "Restarting");
    assert.equal(decide("Fencing", { ...base, since: "gone", isHostLost, isFenced: true })?.to, "Cancelled");
  }
});
