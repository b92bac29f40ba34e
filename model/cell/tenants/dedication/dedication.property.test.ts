import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type Dedications,
  dedicate,
  faultOf,
  mayStand,
  type Owner,
  type Resource,
  release,
  ruleOf,
  type Tree,
} from "./dedication.ts";

const tree: Tree = new Map<string, Resource>([
  ["z", { level: "zone", above: null }],
  ...["p", "q"].map((pod): [string, Resource] => [pod, { level: "pod", above: "z" }]),
  ...["p1", "p2", "q1"].map((cluster): [string, Resource] => [
    cluster,
    { level: "cluster", above: cluster.slice(0, 1) },
  ]),
  ...["p1a", "p1b", "p2a", "q1a", "q1b"].map((host): [string, Resource] => [
    host,
    { level: "host", above: host.slice(0, 2) },
  ]),
  ["alone", { level: "host", above: null }],
]);
const owners: readonly Owner[] = [
  ...["ROOT", "ROOT/d", "ROOT/d/s", "ROOT/e"].map((path): Owner => ({ kind: "domain", path })),
  ...["ROOT/o", "ROOT/d/a", "ROOT/d/b", "ROOT/d/s/c", "ROOT/e/f"].map((path): Owner => ({ kind: "account", path })),
];
const accounts = owners.filter(({ kind }) => kind === "account").map(({ path }) => path);
const step = fc.record({
  of: fc.constantFrom(...tree.keys()),
  /** Null: released. */
  to: fc.option(fc.constantFrom(...owners), { freq: 3 }),
});

test("any sequence of dedicate and release leaves a lawful tree, in which nobody stands at a host of a stranger", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let dedications: Dedications = new Map();
      for (const { of, to } of steps) {
        const outcome = to === null ? release(dedications, of) : dedicate(tree, dedications, of, to);
        if (!outcome.ok) continue;
        dedications = outcome.dedications;
        for (const each of dedications.keys()) assert.equal(faultOf(tree, dedications, each), null);
      }
      // Without the rules' own words for who is in what.
      for (const [host, { level }] of tree) {
        if (level !== "host") continue;
        const around = host === "alone" ? [host] : [host, host.slice(0, 2), host.slice(0, 1), "z"];
        const [inner, ...outer] = around.flatMap((each) => dedications.get(each) ?? []);
        assert.deepEqual(ruleOf(tree, dedications, host)?.to, inner);
        for (const each of outer) assert.ok(each.kind === "domain" && `${inner?.path}/`.startsWith(`${each.path}/`));
        for (const account of accounts)
          for (const group of [null, ...owners]) {
            const may = mayStand(ruleOf(tree, dedications, host), account, group);
            if (may && inner !== undefined)
              assert.ok(`${account}/`.startsWith(`${inner.path}/`), `${account} at ${host}`);
            if (may && group !== null) assert.deepEqual(inner, group);
          }
      }
    }),
    { numRuns: 500 },
  );
});

test("VMs of others stand against a dedication of what they run in, and are named; a host within that is somebody's stays out of it", () => {
  const [d, a, c]: readonly Owner[] = [
    { kind: "domain", path: "ROOT/d" },
    { kind: "account", path: "ROOT/d/a" },
    { kind: "account", path: "ROOT/d/s/c" },
  ];
  assert.ok(d !== undefined && a !== undefined && c !== undefined);
  const guests = [{ vm: "shop/vm", host: "p1a", account: "ROOT/d/s/c" }];
  assert.equal(dedicate(tree, new Map(), "p", d, guests).ok, true);
  const refused = dedicate(tree, new Map(), "p", a, guests);
  assert.match(refused.ok ? "" : refused.refused.why, /VMs of others run in p: shop\/vm at p1a/);
  assert.equal(dedicate(tree, new Map([["p1a", c]]), "p", d, guests).ok, true);
});
