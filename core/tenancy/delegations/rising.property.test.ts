import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { matches, type Rule, reaches } from "../../../model/contract/tenancy/rules.ts";
import type { AskName } from "../asks.ts";
import type { UserRecord } from "../records.ts";
import { accountPath, roleOf } from "../state.ts";
import { type Bench, operator, settled } from "../tenancy.testing.ts";

/*
 * Whatever users do to users, roles and accounts: nobody rises. What one may is counted out here over all verbs there are, and some
 * that there are not, without the functions that the service decides by.
 */
const verbs = [
  "cell.read",
  "cell.change",
  "vm.exec",
  "user.add",
  "user.change",
  "role.add",
  "role.change",
  "later.made",
];
const may = (rules: readonly Rule[], verb: string): boolean =>
  rules.find((rule) => matches(rule.verb, verb))?.effect === "allow";

interface Power {
  readonly verbs: ReadonlySet<string>;
  readonly reach: number;
  readonly account: string;
  readonly password: string | null;
  readonly state: string;
}
const powerOf = ({ state }: Bench, user: UserRecord): Power => {
  const role = roleOf(state, user.role);
  return {
    verbs: new Set(verbs.filter((verb) => may(role?.rules ?? [], verb))),
    reach: reaches.indexOf(role?.reach ?? "account"),
    account: accountPath(state, user.account),
    password: user.password,
    state: user.state,
  };
};
const powers = (bench: Bench): ReadonlyMap<string, Power> =>
  new Map([...bench.state.tables.user].map(([uid, user]) => [uid, powerOf(bench, user)]));
const isWithin = (one: Power, other: Power): boolean =>
  one.reach >= other.reach && [...one.verbs].every((verb) => other.verbs.has(verb));
/** The account of whom it was done to, seen from the account of who did it. */
const isReached = ({ reach, account }: Power, other: string): boolean =>
  reaches[reach] === "installation" ||
  (reaches[reach] === "domain" ? other.startsWith(account.slice(0, account.lastIndexOf("/") + 1)) : other === account);
const isSame = (one: Power | undefined, other: Power | undefined): boolean =>
  JSON.stringify(one, keep) === JSON.stringify(other, keep);
const keep = (_key: string, value: unknown): unknown => (value instanceof Set ? [...value] : value);

const people = ["ann", "bob", "dora", "lea", "rita", "new0", "new1", "new2"] as const;
const accounts = ["ROOT/acme/dev", "ROOT/acme/ops", "ROOT/acme/sub/lab", "ROOT/others"] as const;
const roles = ["root-admin", "domain-admin", "account-admin", "user", "reader", "made0", "made1"] as const;
const rules = fc.array(
  fc.record({
    verb: fc.constantFrom("*", "cell.*", "user.*", "role.*", "later.*", ...verbs),
    effect: fc.constantFrom("allow" as const, "deny" as const),
  }),
  { maxLength: 3 },
);
const act = fc.record({
  by: fc.constantFrom(...people),
  what: fc.constantFrom<AskName>(
    "addUser",
    "changeUser",
    "changeUser",
    "deleteUser",
    "addRole",
    "changeRole",
    "deleteRole",
  ),
  whom: fc.constantFrom(...people),
  account: fc.constantFrom(...accounts),
  role: fc.constantFrom(...roles),
  reach: fc.constantFrom(...reaches),
  domain: fc.constantFrom("ROOT", "ROOT/acme", "ROOT/acme/sub"),
  rules,
  change: fc.constantFrom("role", "password", "state"),
});

/** Some have roles of the domain's own, which others may change. */
const withRoles = (): Bench => {
  const bench = settled();
  const uidOf = (name: string): string =>
    [...bench.state.tables.user.values()].find((user) => user.name === name)?.uid ?? "";
  const all = (...given: readonly string[]): readonly Rule[] => given.map((verb) => ({ verb, effect: "allow" }));
  const [high, low] = [all("role.*", "user.*", "cell.read"), all("cell.read")];
  bench.ask(operator, "addRole", { name: "made0", domain: "ROOT/acme", reach: "domain", rules: high });
  bench.ask(operator, "addRole", { name: "made1", domain: "ROOT/acme", reach: "account", rules: low });
  bench.ask(operator, "changeUser", { role: "made0" }, { uid: uidOf("bob") });
  bench.ask(operator, "changeUser", { role: "made1" }, { uid: uidOf("lea") });
  return bench;
};

test("nobody gives a right that he has not, nor takes one from somebody stronger, nor reaches beyond his own", () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.array(act, { minLength: 1, maxLength: 25 }), (acts) => {
      const bench = withRoles();
      const { user: users, role: made, account: places } = bench.state.tables;
      for (const { by, what, whom, account, role, reach, domain, rules: list, change } of acts) {
        const actor = [...users.values()].find(({ name, state }) => name === by && state === "enabled");
        if (actor === undefined) continue;
        bench.ms += 120_000;
        const home = bench.state.tables.account.get(actor.account)?.domain ?? "";
        const path = accountPath(bench.state, actor.account);
        assert.ok(places.has(actor.account) && home !== "");
        const session = bench.logIn(
          by,
          path.slice(0, path.lastIndexOf("/")),
          actor.password?.slice("phc ".length) ?? "",
        );
        if (session === null) continue;
        const before = powers(bench);
        const own = before.get(actor.uid);
        const uid = what.endsWith("Role")
          ? ([...made.values()].find(({ name }) => name === role)?.uid ?? "")
          : ([...users.values()].find(({ name }) => name === whom)?.uid ?? "");
        const changes = { role: { role }, password: { password: `by ${by}` }, state: { state: "disabled" } } as Record<
          string,
          object
        >;
        const body = {
          addUser: { name: whom, account, role, password: "new" },
          changeUser: changes[change],
          addRole: { name: role, domain, reach, rules: list },
          changeRole: { rules: list },
        } as Record<string, object | undefined>;
        const { status } = bench.ask({ session }, what, body[what] ?? {}, { uid });
        if (status === 200) accepted += 1;
        const after = powers(bench);
        assert.ok(own !== undefined);
        for (const each of new Set([...before.keys(), ...after.keys()])) {
          const [was, is] = [before.get(each), after.get(each)];
          if (isSame(was, is)) continue;
          const told: string = `${by} ${what} ${whom} ${role}: ${JSON.stringify({ own, was, is }, keep)}`;
          assert.equal(status, 200, told);
          for (const power of [was, is])
            if (power !== undefined) assert.ok(isWithin(power, own) && isReached(own, power.account), told);
        }
      }
    }),
    { numRuns: 400 },
  );
  assert.ok(accepted > 100, `only ${accepted} were accepted: nothing was tried`);
});
