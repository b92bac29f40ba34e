import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { casesFrom } from "../../../model/testing/case-folders.testing.ts";
import { type Circumstances, decide, type Move } from "../decide.ts";
import type { Step } from "../item.ts";

/**
 * Decisions of an existing HA manager beside ours (`cases.json`; with CELLS_CASES another folder's `ha/cases.json`). An adapter makes
 * circumstances of what was given, and outcomes are compared, not words. What this manager does not have is told apart by what
 * was given, and counted.
 */
interface Case {
  readonly group: string;
  readonly name: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
}
const file = new URL("cases.json", casesFrom(new URL("./", import.meta.url), "ha"));
const { cases } = JSON.parse(readFileSync(file, "utf8")) as { readonly cases: readonly Case[] };

/** Why there is nothing to compare; null: there is. */
function notHere({ group, given }: Case): string | null {
  if (["schedule", "hostDown"].includes(group) && !("vmOnHostRecord" in given))
    return "the zone's switch, other hypervisors, and types of work that only people ask for";
  if (group === "investigateHost") return "a host's status is the Presence group's word";
  if ("timesTried" in given) return "no item is given up: what it waits for, it says";
  if ("startError" in given || "planner" in given)
    return "starts, their errors and their back-off are the controller's";
  if (given.type !== undefined && given.type !== "HA") return "other types than HA and Stop";
  // Theirs is stopped and left; here it is left alone from the start (decision 91).
  return given.vmHaEnabled === false ? "one that is not started again waits for its host" : null;
}

const usual: Circumstances = {
  since: "same",
  lost: "restart",
  isHostLost: true,
  state: "Unknown",
  isFenced: false,
  isAsking: false,
  isHeld: false,
  isCancelled: false,
  isolated: "keep",
  isVetoedLong: false,
};
function circumstancesOf({ given }: Case): readonly [Step, Circumstances] {
  const step = (given.fenced === true ? "Fencing" : (given.step ?? "Scheduled")) as Step;
  return [
    step,
    {
      ...usual,
      ...(given.vmSinceScheduled === undefined ? {} : { since: "later" as const }),
      ...(given.vmNowOn === undefined || given.vmNowOn === given.vmOnHostRecord ? {} : { since: "later" as const }),
      ...(given.host === "Up" ? { isHostLost: false } : {}),
      ...(given.answer === undefined ? {} : { state: given.answer as Circumstances["state"] }),
      ...(given.fenced === true ? { isFenced: true } : {}),
      // One item is worked on at a time: another one is held up by it.
      ...(given.otherItemOfSameVm === undefined ? {} : { isHeld: true }),
    },
  ];
}

/** In the words of the cases. */
function outcomeOf(step: Step, move: Move | null): Readonly<Record<string, unknown>> {
  if (move === null) return { do: "retry", after: "investigate.retry.interval" };
  if (move.to === "Cancelled") return { do: "drop", step: "Cancelled", cancelled: true, scheduled: [] };
  // Over: stopped for good, released, and started in the ordinary way.
  if (move.to === "Restarting")
    return step === "Fencing" ? { do: "forceStop", step: "Scheduled" } : { do: "continue", fenced: true };
  return { do: "continue" };
}

const compared = cases.filter((each) => notHere(each) === null);
for (const each of compared)
  test(`${each.group}: ${each.name}`, () => {
    const [step, so] = circumstancesOf(each);
    // What is scheduled is looked into at once, unless it waits for another one.
    const first = step === "Scheduled" && !so.isHeld ? decide(step, so) : decide("Investigating", so);
    const move = step === "Scheduled" ? first : decide(step, so);
    const outcome = outcomeOf(step, move);
    for (const [field, value] of Object.entries(each.expected)) assert.deepEqual(outcome[field], value, field);
  });

test("what there is to compare, and what this manager does not have", (context) => {
  assert.ok(compared.length > 0);
  const counts = Map.groupBy(cases, (each) => notHere(each) ?? "compared");
  for (const [why, all] of counts) context.diagnostic(`${all.length}: ${why}`);
});
