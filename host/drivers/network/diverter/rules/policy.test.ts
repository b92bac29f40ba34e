import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { CellPolicy, CompiledRule } from "../../../../../core/documents/vocabulary.ts";
import { cellName, ipv4, mac } from "../../../../../model/cell/identifiers.ts";
import { policyEntry, policyKey, sourceRange } from "../program/layout.ts";
import { protocolNumbers } from "../program/protocol-numbers.ts";
import { compilePolicy, prefixesOf } from "./policy.ts";

const policyOf = (rules: readonly CompiledRule[]): CellPolicy => ({
  cell: cellName("shop"),
  cellNumber: 7,
  version: 1,
  rules,
  networks: [],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:00:01"), identity: 99 },
  hosts: [],
});
function compile(rules: readonly CompiledRule[]) {
  const compiled = compilePolicy(policyOf(rules));
  assert.ok(compiled.ok);
  return { entries: compiled.value };
}
const range = (limit: number) =>
  fc.tuple(fc.nat(limit), fc.nat(limit)).map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }));
const port = fc.oneof(fc.nat(40), fc.constant(65535), fc.nat(65535));
const ports = fc.oneof(range(40), range(65535), fc.constant({ from: 0, to: 65535 }));

test("prefixes cover a range of ports exactly", () => {
  fc.assert(
    fc.property(range(65535), port, ({ from, to }, probe) => {
      const hits = prefixesOf({ from, to }).filter(({ port, bits }) => probe >> (16 - bits) === port >> (16 - bits));
      assert.equal(hits.length, probe >= from && probe <= to ? 1 : 0);
    }),
  );
});

/** What the kernel's trie answers: the longest prefix that matches. */
function lookUp(entries: ReturnType<typeof compile>["entries"], protocol: number, probe: number, source: number) {
  const best = entries
    .map(({ key, value }) => ({ key: policyKey.decode(key), value: policyEntry.decode(value) }))
    .filter(({ key }) => key.protocol === protocol)
    .filter(({ key }) => probe >> (112 - key.prefix_length) === key.port >> (112 - key.prefix_length))
    .sort((a, b) => b.key.prefix_length - a.key.prefix_length)[0];
  if (best === undefined) return false;
  return Array.from({ length: best.value.count }, (_, index) =>
    sourceRange.decode(best.value.ranges.subarray(index * sourceRange.size)),
  ).some(({ first, last }) => source >= first && source <= last);
}

test("the trie admits what some rule admits, and nothing else", () => {
  const rule = fc.record({
    protocol: fc.constantFrom("any", "tcp", "udp", "icmp"),
    ports,
    sourcePorts: ports,
  }) as fc.Arbitrary<Pick<CompiledRule, "protocol" | "ports" | "sourcePorts">>;
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 7 }),
      fc.constantFrom("tcp", "udp"),
      port,
      port,
      (some, asked, to, from) => {
        const rules = some.map((part, id) => ({ ...part, id, path: `r${id}`, from: 1, to: 2 }));
        const { entries } = compile(rules);
        const expected = rules.some(
          (r) =>
            (r.protocol === asked || r.protocol === "any") &&
            r.ports.from <= to &&
            r.ports.to >= to &&
            r.sourcePorts.from <= from &&
            r.sourcePorts.to >= from,
        );
        const actual =
          lookUp(entries, protocolNumbers[asked as "tcp"], to, from) || lookUp(entries, protocolNumbers.any, to, from);
        assert.equal(actual, expected);
      },
    ),
  );
});

test("rules scale by identities: one rule without a range is one entry", () => {
  const rule: CompiledRule = {
    id: 1,
    path: "shop/rules/web",
    from: 1,
    to: 2,
    protocol: "tcp",
    ports: { from: 80, to: 80 },
    sourcePorts: { from: 0, to: 65535 },
  };
  assert.equal(compile([rule]).entries.length, 1);
});

test("more source ranges than an entry holds are refused with a sentence", () => {
  const rules = Array.from({ length: 9 }, (_, id) => ({
    id,
    path: `r${id}`,
    from: 1,
    to: 2,
    protocol: "tcp" as const,
    ports: { from: 80, to: 80 },
    sourcePorts: { from: id * 10, to: id * 10 + 5 },
  }));
  const compiled = compilePolicy(policyOf(rules));
  assert.ok(!compiled.ok);
  assert.match(compiled.error, /at most 8 are possible/);
});
