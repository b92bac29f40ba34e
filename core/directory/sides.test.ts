import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatNetwork, type Network, parseNetwork } from "../../model/addresses/addresses.ts";
import { cidr, elementPath, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { Side } from "./agreement.ts";
import { Sides } from "./sides.ts";

const sideOf = (id: string, own: readonly string[], names: readonly string[]): Side => ({
  reach: {
    uid: uid(id),
    other: { domain: "other.cells.internal", path: elementPath("other/vm") },
    networks: own.map(cidr),
    placed: [],
    openings: [],
  },
  names,
});
const meet = (some: readonly string[], others: readonly string[]): boolean => {
  const parsed = (texts: readonly string[]): readonly Network[] => texts.flatMap((text) => parseNetwork(text) ?? []);
  return parsed(some).some((a) => parsed(others).some((b) => a.first <= b.last && b.first <= a.last));
};
const nothing = (): void => {};

test("property: every rule that names, and is named by, another one is found, as rules come, change and go", () => {
  const network = fc
    .record({ last: fc.nat(15), length: fc.constantFrom(0, 8, 28, 29, 30, 31, 32) })
    .map(({ last, length }) => {
      const block = parseNetwork(`10.64.0.${last}/${length}`);
      return block === null ? "" : formatNetwork(block);
    });
  const networks = fc.array(network, { maxLength: 3 });
  const step = fc.record({ id: fc.nat(7), own: networks, names: networks, gone: fc.boolean() });
  let found = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), networks, networks, (steps, own, names) => {
      const sides = new Sides();
      const known = new Map<Uid, Side>();
      for (const each of steps) {
        const side = sideOf(`r-${each.id}`, each.own, each.names);
        if (each.gone) sides.delete(side.reach.uid);
        else sides.set(side.reach.uid, side);
        if (each.gone) known.delete(side.reach.uid);
        else known.set(side.reach.uid, side);
      }
      const asked = sideOf("mine", own, names);
      const counterparts = new Map(sides.counterpartsOf(asked, nothing).map((each) => [each.uid, each.side]));
      for (const [id, side] of known) {
        if (!meet(own, side.names) || !meet(side.reach.networks, names)) continue;
        found += 1;
        assert.equal(counterparts.get(id), side, `${id} is no counterpart`);
      }
      for (const id of counterparts.keys()) assert.ok(known.has(id), `${id} has gone`);
      for (const id of known.keys()) sides.delete(id);
      assert.ok(sides.isEmpty && sides.counterpartsOf(asked, nothing).length === 0);
    }),
    { numRuns: 500 },
  );
  assert.ok(found > 0, "some met");
});

test("who has one end in common with many is found by the other end", () => {
  const sides = new Sides();
  for (let at = 0; at < 200; at += 1)
    sides.set(uid(`r-${at}`), sideOf(`r-${at}`, [`10.64.1.${at}/32`], ["10.64.0.1/32"]));
  let looked = 0;
  const counterparts = sides.counterpartsOf(sideOf("mine", ["10.64.0.1/32"], ["10.64.1.7/32"]), () => {
    looked += 1;
  });
  assert.deepEqual(
    counterparts.map((each) => each.uid),
    ["r-7"],
  );
  assert.ok(looked <= 4, `${looked} were looked at`);
});
