import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { CellPolicy, CompiledRule } from "../../../../../core/documents/vocabulary.ts";
import type { RuleCounters } from "../../driver.ts";
import { hosts, Installation, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";

const seed = Number(process.env.CELLS_SEED ?? randomInt(2 ** 31));
/** A small generator of numbers below a limit, the same for the same seed. */
function numbers(start: number): (limit: number) => number {
  let state = start >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/**
 * What is in force after many changes must be what the last policy says, compiled as a whole. A driver that starts anew
 * compares just that: it takes over what it finds only if every entry is right, so it is asked.
 */
describe(`rules of a cell in the kernel (CELLS_SEED=${seed})`, { skip: !canRun() }, () => {
  const installation = new Installation();
  const below = numbers(seed);
  before(() => installation.start());
  after(() => installation.stop());

  const apply = async (...policies: readonly CellPolicy[]): Promise<boolean> =>
    (await installation.apply([], policies)).a.changes.securityGroup;
  /** A new driver on the maps of the old one. */
  const startAnew = () => installation.drivers.a.call("init", { device: "eth0", address: hosts.a[0], mac: hosts.a[1] });

  const someRule = (id: number): CompiledRule => {
    const [one, other] = [below(2000), below(2000)];
    const ports = { from: Math.min(one, other), to: Math.max(one, other) };
    return rule(id, 10 + below(4), 20 + below(4), (["any", "tcp", "udp", "icmp"] as const)[below(4)]!, below(3000), {
      ...(below(2) === 0 ? { ports } : {}),
      path: `shop/rules/r${below(3)}`,
    });
  };

  test("changes one after another are as right as the whole at once", async () => {
    let rules: CompiledRule[] = [];
    let [version, changed, ids] = [1, 0, 0];
    const networks = [
      ["10.9.0.0/16", 50],
      ["10.9.1.0/24", 51],
    ] as const;
    const next = () => {
      rules = rules.filter(() => below(8) > 0);
      for (let more = below(6); more > 0; more--) rules.splice(below(rules.length + 1), 0, someRule(++ids));
      if (rules.length > 0 && below(2) === 0) rules[below(rules.length)] = someRule(++ids);
      return policy(1, version++, rules, networks.slice(below(2), 1 + below(2)));
    };
    for (let round = 0; round < 12; round++) {
      let last = next();
      if (await apply(last)) changed += 1;
      for (let more = below(8); more > 0; more--) {
        last = next();
        if (await apply(last)) changed += 1;
      }
      assert.equal(await apply(last), false, "the same document once more is no change");
      await startAnew();
      assert.equal(await apply(last), false, `a new driver finds round ${round} in force, every entry and name of it`);
    }
    assert.ok(changed >= 12, `${changed} changes`);
    await startAnew();
    const other = policy(1, version - 1, [...rules, someRule(++ids)]);
    assert.equal(await apply(other), true, "and it notices one rule too many");
  });

  test("a cell that cannot be compiled keeps its rules, and another's change goes through", async () => {
    const good = policy(1, 100, [rule(1, 10, 11, "tcp", 80)]);
    const tooMany = Array.from({ length: 9 }, (_, at) =>
      rule(10 + at, 10, 11, "tcp", 80, { sourcePorts: { from: at * 10, to: at * 10 + 5 } }),
    );
    assert.equal(await apply(good, policy(2, 1, [])), true);
    assert.equal(await apply(policy(1, 101, tooMany), policy(2, 2, [rule(1, 1, 2, "tcp", 1)])), true);
    await startAnew();
    assert.equal(await apply(good, policy(2, 2, [rule(1, 1, 2, "tcp", 1)])), false);
  });

  test("a cell that goes takes its rules, names and counters along", async () => {
    assert.equal(await apply(policy(2, 3, [])), true);
    await startAnew();
    assert.equal(await apply(policy(2, 3, [])), false);
    const { rules } = await installation.drivers.a.call<{ rules: readonly RuleCounters[] }>("counters");
    assert.ok(rules.every(({ cellNumber }) => cellNumber !== 1));
    assert.equal(await apply(policy(2, 3, []), policy(1, 100, [rule(1, 10, 11, "tcp", 80)])), true);
  });
});
