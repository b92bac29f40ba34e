import assert from "node:assert/strict";
import { test } from "node:test";
import { Ledger } from "../ledger.ts";
import { BestFit } from "./best-fit.ts";

const offer = { memoryMiB: 1000, cpus: 10, takes: (guestMiB: number) => guestMiB + 50 };
const vm = (memoryMiB: number, more: { second?: number; group?: number; cpus?: number; endsAt?: number } = {}) => ({
  second: 0,
  account: 0,
  group: 0,
  cpus: 1,
  endsAt: null,
  ...more,
  memoryMiB,
});

test("best fit takes the fullest host with room, opens another where there is none, and closes it with its last VM", () => {
  const fit = new BestFit(3, offer, false);
  // 600, then 500 beside nobody; 400 fits both exactly and not: the first has 400 left, of which a machine takes 50.
  for (const each of [vm(550, { endsAt: 10 }), vm(450), vm(350), vm(450)]) fit.arrive(each);
  assert.deepEqual(fit.report, { mean: 1.75, most: 2, arrivals: 4 });
  fit.arrive(vm(950, { second: 5, endsAt: 6 }));
  fit.arrive(vm(950, { second: 5 }));
  assert.equal(fit.refused, 1);
  assert.equal(fit.report.most, 3);
  fit.arrive(vm(1, { second: 20, cpus: 11 }));
  assert.equal(fit.refused, 2);
  assert.equal(fit.report.mean, (1.75 * 4 + 3 + 3 + 2) / 7);
});

test("of a group it takes the host with the fewest first", () => {
  const fit = new BestFit(2, offer, true);
  for (const group of [1, 1, 2, 2]) fit.arrive(vm(100, { group }));
  assert.deepEqual(fit.report, { mean: 1.75, most: 2, arrivals: 4 });
});

test("what is written down beside a Placer finds what is beyond a host's room", () => {
  const ledger = new Ledger(["h1", "h2"], offer);
  assert.ok(ledger.add("h1", vm(950)));
  assert.ok(!ledger.add("h1", vm(1)));
  assert.ok(!ledger.add("h9", vm(1)));
  assert.ok(ledger.hasAnywhere(vm(950)));
  assert.ok(!ledger.add("h2", vm(1, { cpus: 11 })));
  assert.ok(!ledger.hasAnywhere(vm(1)));
  assert.equal(ledger.inUse, 2);
  ledger.remove("h2", vm(1, { cpus: 11 }));
  assert.equal(ledger.inUse, 1);
});
