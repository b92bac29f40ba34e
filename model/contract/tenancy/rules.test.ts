import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { verbPattern } from "../../cell/tenants/rules.ts";
import { allows, beyond, builtInRoles, decide, isWithinReach, matches, type Rule, reaches } from "./rules.ts";

const words = ["a", "b", "c"];
const verb = fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 3 }).map((parts) => parts.join("."));
const pattern = fc.oneof(
  verb,
  verb.map((text) => `${text}.*`),
  fc.constant("*"),
);
const rules: fc.Arbitrary<readonly Rule[]> = fc.array(
  fc.record({ verb: pattern, effect: fc.constantFrom("allow" as const, "deny" as const) }),
  { maxLength: 6 },
);
/** Every verb of these words, and some that no pattern can name. */
const all: readonly string[] = (() => {
  const parts = [...words, "z"];
  const one = parts;
  const two = one.flatMap((a) => parts.map((b) => `${a}.${b}`));
  const three = two.flatMap((a) => parts.map((b) => `${a}.${b}`));
  const four = three.flatMap((a) => parts.map((b) => `${a}.${b}`));
  return [...one, ...two, ...three, ...four];
})();

test("the first rule that has the verb decides, and none is a no", () => {
  fc.assert(
    fc.property(rules, verb, (list, asked) => {
      const expected = list.find((rule) => matches(rule.verb, asked));
      assert.equal(decide(list, asked).allowed, expected?.effect === "allow");
      assert.equal(allows([{ verb: asked, effect: "deny" }, ...list], asked), false);
      assert.equal(allows([{ verb: "*", effect: "allow" }, ...list], asked), true);
    }),
  );
  assert.equal(allows([], "cell.read"), false);
});

test("what a role may be given by is what every verb says, also those that nobody has named", () => {
  fc.assert(
    fc.property(rules, rules, (given, giver) => {
      const more = all.filter((each) => allows(given, each) && !allows(giver, each));
      const found = beyond(given, giver);
      assert.equal(found !== null, more.length > 0, `${JSON.stringify({ given, giver })}: ${found}, ${more[0]}`);
    }),
    { numRuns: 2000 },
  );
});

test("nobody gives himself more by any order of rules", () => {
  fc.assert(fc.property(rules, (list) => assert.equal(beyond(list, list), null)));
});

test("a pattern has a kind as a whole, and no verb that only begins alike", () => {
  assert.ok(matches("cell.*", "cell.change"));
  assert.ok(!matches("cell.*", "cells.change"));
  assert.ok(!matches("cell.*", "cell"));
  assert.ok(!matches("cell", "cell.change"));
  for (const bad of ["", "Cell", "cell.", ".cell", "cell*", "**", "cell.*.read", "cell. read", `${"a".repeat(3)}\n`])
    assert.ok(!verbPattern.test(bad), JSON.stringify(bad));
});

test("built-in roles are each within the one before, in what they allow and where", () => {
  for (const [index, { name, rules: own, reach }] of builtInRoles.entries()) {
    const above = builtInRoles[index - 1];
    if (above === undefined) continue;
    assert.equal(beyond(own, above.rules), null, name);
    assert.ok(isWithinReach(reach, above.reach), name);
  }
  assert.deepEqual(reaches, ["installation", "domain", "account"]);
});
