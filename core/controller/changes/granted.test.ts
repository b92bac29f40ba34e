import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { uid } from "../../../model/cell/identifiers.ts";
import { limitKeys } from "../../../model/contract/tenancy/quotas.ts";
import { Granted } from "./granted.ts";
import { Task, Tracking } from "./tracked.ts";

const accounts = ["ROOT/a", "ROOT/ab", "ROOT/d/a", "ROOT/d/e/a", "ROOT/d/e/b"];
const paths = [...accounts, "ROOT", "ROOT/d", "ROOT/d/e", "ROOT/x"];

test("what cells get, give back, and who they come to and leave adds up as if it were added up anew", () => {
  const part = fc.record({
    account: fc.constantFrom(...accounts),
    amount: fc.option(fc.record({ vms: fc.nat(9), cells: fc.constant(1), units: fc.nat(3) }), { nil: null }),
  });
  const step = fc.record({ child: fc.constantFrom("k1", "k2", "k3", "k4"), part: fc.option(part, { nil: null }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const granted = new Granted(new Tracking());
      const parts = new Map<string, NonNullable<(typeof steps)[number]["part"]>>();
      for (const { child, part } of steps) {
        granted.part(uid(child), part);
        if (part === null) parts.delete(child);
        else parts.set(child, part);
        for (const path of paths) {
          const below = [...parts.values()].filter(({ account }) => `${account}/`.startsWith(`${path}/`));
          const sum = Object.fromEntries(
            limitKeys.map((key) => [
              key,
              below.reduce((all, { amount }) => all + ((amount as Record<string, number> | null)?.[key] ?? 0), 0),
            ]),
          );
          const own = below.filter(({ account }) => account === path).length;
          assert.deepEqual(granted.at(path), { sum, own, all: below.length }, path);
        }
      }
    }),
  );
});

test("what one cell has anew is news for its account and the domains above it, and for nobody else", () => {
  const tracking = new Tracking();
  const granted = new Granted(tracking);
  const tasks = new Map(paths.map((path) => [path, new Task()]));
  const look = (): void => {
    for (const [path, task] of tasks) tracking.run(task, () => granted.at(path));
  };
  granted.part(uid("k1"), { account: "ROOT/d/e/a", amount: { vms: 1 } });
  look();
  granted.part(uid("k1"), { account: "ROOT/d/e/a", amount: { vms: 2 } });
  const stale = [...tasks].filter(([, { isStale }]) => isStale).map(([path]) => path);
  assert.deepEqual(stale.sort(), ["ROOT", "ROOT/d", "ROOT/d/e", "ROOT/d/e/a"]);
  look();
  granted.part(uid("k1"), { account: "ROOT/d/e/a", amount: { vms: 2 } });
  assert.equal(
    [...tasks.values()].some(({ isStale }) => isStale),
    false,
    "the same is no news",
  );
});
