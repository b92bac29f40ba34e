import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { CellPolicy, CompiledRule } from "../../../../../core/documents/vocabulary.ts";
import { cellName, cidr, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import { compilePolicy, type PolicyEntry } from "./policy.ts";
import { changedRules, changeOf } from "./policy-change.ts";

const policyOf = (rules: readonly CompiledRule[], networks: CellPolicy["networks"] = []): CellPolicy => ({
  cell: cellName("shop"),
  cellNumber: 7,
  version: 1,
  rules,
  networks,
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:00:01"), identity: 99 },
  hosts: [],
});
const ports = fc.oneof(
  fc.constant({ from: 0, to: 65535 }),
  fc.tuple(fc.nat(30), fc.nat(30)).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) })),
);
/** Few identities and few numbers, so that rules meet each other and come back. */
const rule = fc.record({
  id: fc.integer({ min: 1, max: 12 }),
  path: fc.constantFrom("shop/rules/a", "shop/rules/b"),
  from: fc.integer({ min: 1, max: 2 }),
  to: fc.integer({ min: 1, max: 2 }),
  protocol: fc.constantFrom("any", "tcp", "udp", "icmp"),
  sourcePorts: ports,
  ports,
}) as fc.Arbitrary<CompiledRule>;
const networks = fc.uniqueArray(
  fc.record({ cidr: fc.constantFrom(...["10.1.0.0/16", "10.1.2.0/24", "0.0.0.0/0"].map(cidr)), identity: fc.nat(9) }),
  { selector: ({ cidr }) => cidr },
);

/** A map as the kernel has it, with the entries of one policy. */
const mapOf = (entries: readonly PolicyEntry[]): Map<string, string> =>
  new Map(entries.map(({ key, value }) => [key.toString("hex"), value.toString("hex")]));
const compiled = (policy: CellPolicy): Map<string, string> => {
  const entries = compilePolicy(policy);
  assert.ok(entries.ok);
  return mapOf(entries.value);
};

test("changes one after another lead to what compiling the last policy gives", () => {
  // Kept of the rules before; new ones; whether the list is turned round.
  const steps = fc.array(
    fc.record({
      keep: fc.array(fc.boolean(), { maxLength: 12 }),
      more: fc.array(rule, { maxLength: 5 }),
      turned: fc.boolean(),
      networks,
    }),
    { minLength: 1, maxLength: 12 },
  );
  let changes = 0;
  fc.assert(
    fc.property(steps, (some) => {
      let policy = policyOf([]);
      const map = compiled(policy);
      for (const { keep, more, turned, networks } of some) {
        const kept = policy.rules.filter((_, at) => keep[at] ?? true);
        const rules = [...kept.slice(0, 2), ...more, ...kept.slice(2)];
        const next = policyOf(structuredClone(turned ? rules.reverse() : rules), networks);
        const change = changeOf(policy, next);
        assert.equal(change.ok, compilePolicy(next).ok);
        if (!change.ok) continue;
        for (const key of change.value.remove) assert.ok(map.delete(key.toString("hex")), "what goes was there");
        for (const { key, value } of change.value.put) {
          assert.notEqual(map.get(key.toString("hex")), value.toString("hex"), "what is put was not there");
          map.set(key.toString("hex"), value.toString("hex"));
        }
        assert.deepEqual(new Map([...map].sort()), new Map([...compiled(next)].sort()));
        changes += change.value.put.length;
        policy = next;
      }
    }),
  );
  assert.ok(changes > 100, `${changes} entries were put`);
});

test("one rule among many is one entry, whatever becomes of the others' places", () => {
  const many = Array.from({ length: 3000 }, (_, index) => ({
    id: index + 1,
    path: "shop/rules/r",
    from: 10 + (index % 50),
    to: 1000 + Math.floor(index / 50),
    protocol: "tcp" as const,
    sourcePorts: { from: 0, to: 65535 },
    ports: { from: 80, to: 80 },
  }));
  const more = { ...many[0]!, id: 9999, to: 7 };
  const grown = [...many.slice(0, 1500), more, ...many.slice(1500)];
  const added = changeOf(policyOf(many), policyOf(structuredClone(grown)));
  assert.ok(added.ok);
  assert.deepEqual([added.value.put.length, added.value.remove.length], [1, 0]);
  const gone = changeOf(policyOf(grown), policyOf(structuredClone(many).reverse()));
  assert.ok(gone.ok);
  assert.deepEqual([gone.value.put.length, gone.value.remove.length], [0, 1]);
});

test("a rule that only has another name changes no entry, but is a change", () => {
  const [before, after] = ["shop/rules/a", "shop/rules/b"].map((path) => [
    {
      id: 1,
      path,
      from: 1,
      to: 2,
      protocol: "icmp" as const,
      sourcePorts: { from: 0, to: 9 },
      ports: { from: 0, to: 9 },
    },
  ]);
  const { added, removed } = changedRules(before!, after!);
  assert.deepEqual([removed, added], [before, after]);
  const change = changeOf(policyOf(before!), policyOf(after!));
  assert.ok(change.ok);
  assert.deepEqual(change.value, { put: [], remove: [] });
});
