import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bootAllowanceMs } from "../../core/documents/guest.ts";
import { uid } from "../../model/cell/identifiers.ts";
import {
  createLiveness,
  dueProbes,
  type HealthChange,
  type Liveness,
  mostProbes,
  nextDueMs,
  type ProbeTarget,
  restartGraceMs,
  setTargets,
  takeResult,
} from "./liveness.ts";

const target = (vm: string, changes: Partial<ProbeTarget> = {}): ProbeTarget => ({
  vm: uid(vm),
  incarnation: 1,
  interface: uid(`${vm}-i`),
  liveness: { protocol: "icmp", port: null, intervalMs: 2000, failures: 3 },
  health: "answering",
  reboots: 0,
  stalled: false,
  ...changes,
});
/** Runs from one moment to another and answers every probe at once; says what changed, and when. */
const run = (
  liveness: Liveness,
  fromMs: number,
  toMs: number,
  answer: (atMs: number) => boolean | null,
): readonly (HealthChange & { readonly atMs: number })[] => {
  const changes: (HealthChange & { readonly atMs: number })[] = [];
  for (let atMs = fromMs; atMs <= toMs; atMs += 100)
    for (const probe of dueProbes(liveness, atMs)) {
      const change = takeResult(liveness, { probe, answered: answer(atMs) }, atMs);
      if (change !== null) changes.push({ ...change, atMs });
    }
  return changes;
};

test("a VM that answered is silent after so many probes in a row, not before, and once", () => {
  const liveness = createLiveness(0);
  setTargets(liveness, [target("a")], 0);
  assert.deepEqual(
    run(liveness, 0, 60_000, () => true),
    [],
  );
  let misses = 0;
  const everyThird = (): boolean => {
    misses += 1;
    return misses % 3 === 0;
  };
  assert.deepEqual(run(liveness, 60_100, 120_000, everyThird), [], "two of three are lost, never three in a row");
  const [change, ...more] = run(liveness, 120_100, 180_000, () => false);
  assert.equal(change?.health, "silent");
  assert.equal(change?.reason, "did not answer 3 ICMP probes in a row");
  assert.deepEqual(more, []);
  assert.ok((change?.atMs ?? 0) >= 120_100 + 2 * 2000 && (change?.atMs ?? 0) <= 120_100 + 3 * 2000);
  assert.equal(run(liveness, 180_100, 190_000, () => true)[0]?.health, "answering");
});

test("one that never answered has its boot's time; its first answer is known soon", () => {
  const slow = createLiveness(0);
  const udp = { protocol: "udp", port: 7, intervalMs: 60_000, failures: 1 } as const;
  setTargets(slow, [target("a", { health: "starting", liveness: udp })], 0);
  const [change] = run(slow, 0, bootAllowanceMs + 10_000, () => false);
  assert.ok((change?.atMs ?? 0) >= bootAllowanceMs);
  assert.equal(change?.reason, "answered no UDP (port 7) probe in the 5 minutes since its start");
  const quick = createLiveness(0);
  setTargets(quick, [target("a", { health: "starting", liveness: udp })], 0);
  const [answering] = run(quick, 0, 10_000, (atMs) => atMs >= 4000);
  assert.ok(answering?.health === "answering" && answering.atMs <= 5000);
});

test("a reset gives a guest the time of a boot again, once per answer; answers from before it say nothing", () => {
  const liveness = createLiveness(0);
  const later = 100_000;
  setTargets(liveness, [target("a")], later);
  const [asked] = dueProbes(liveness, later + 2000);
  assert.ok(asked);
  setTargets(liveness, [target("a", { health: "starting", reboots: 1 })], later + 2000);
  assert.equal(takeResult(liveness, { probe: asked, answered: true }, later + 2001), null);
  assert.deepEqual(
    run(liveness, later + 2100, later + 200_000, () => false),
    [],
  );
  // Again and again without an answer in between: the allowance runs on.
  setTargets(liveness, [target("a", { health: "starting", reboots: 2 })], later + 200_000);
  assert.equal(run(liveness, later + 200_000, later + 310_000, () => false)[0]?.health, "silent");
});

test("nothing is held against a VM while its disk stops it, while probes cannot be sent, or when its host has just begun", () => {
  const liveness = createLiveness(0);
  setTargets(liveness, [target("a")], 0);
  assert.deepEqual(
    run(liveness, 0, restartGraceMs - 100, () => false),
    [],
  );
  const [after] = run(liveness, restartGraceMs, restartGraceMs + 20_000, () => false);
  assert.ok((after?.atMs ?? 0) >= restartGraceMs + 2 * 2000, "misses from before do not count");

  const stalled = createLiveness(-100_000);
  setTargets(stalled, [target("a", { stalled: true })], 0);
  assert.equal(dueProbes(stalled, 60_000).length, 0);
  assert.equal(nextDueMs(stalled, 0), null);
  setTargets(stalled, [target("a")], 60_000);
  assert.deepEqual(
    run(stalled, 60_000, 120_000, () => null),
    [],
  );
});

test("probes are spread over the interval and bounded in number", () => {
  const liveness = createLiveness(0);
  const many = Array.from({ length: 500 }, (_, index) => target(`v${index}`));
  setTargets(liveness, many, 0);
  const first = dueProbes(liveness, 200).length;
  assert.ok(first > 0 && first < 150, `${first} at once`);
  const under = first + dueProbes(liveness, 2000).length;
  assert.equal(under, mostProbes);
  assert.equal(dueProbes(liveness, 3000).length, 0, "until one is answered");
  setTargets(liveness, [], 3000);
  assert.equal(nextDueMs(liveness, 3000), null);
  assert.equal(liveness.watches.size, 0);
});

test("property: a VM is called silent only after `failures` misses in a row, whatever happens in between", () => {
  const happening = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("miss" as const, "answer" as const) },
    { weight: 1, arbitrary: fc.constantFrom("lost" as const, "reboot" as const, "stall" as const, "again" as const) },
  );
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (story, failures) => {
      const liveness = createLiveness(-restartGraceMs);
      let now = target("a", { liveness: { protocol: "icmp", port: null, intervalMs: 1000, failures } });
      setTargets(liveness, [now], 0);
      let atMs = 0;
      let misses = 0;
      for (const what of story) {
        atMs += 1000;
        if (what === "reboot") now = { ...now, health: "starting", reboots: now.reboots + 1 };
        if (what === "stall") now = { ...now, stalled: true };
        if (what === "again") now = { ...now, stalled: false };
        if (what === "reboot" || what === "stall") misses = 0;
        setTargets(liveness, [now], atMs);
        for (const probe of dueProbes(liveness, atMs)) {
          const answered = what === "lost" ? null : what === "answer";
          const change = takeResult(liveness, { probe, answered }, atMs);
          if (answered === false) misses += 1;
          if (answered === true) misses = 0;
          if (change !== null) now = { ...now, health: change.health };
          if (change?.health === "silent") assert.ok(misses >= failures);
          if (now.health === "answering") assert.ok(misses < failures);
        }
      }
    }),
  );
});
