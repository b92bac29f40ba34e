import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { AccountSummary } from "../../model/contract/tenancy/tenancy.ts";
import type { Testbed } from "../harness.ts";
import { cells, until } from "../lab.testing.ts";

/*
 * An account of a cloud that runs in itself: it is given a cell with a guest, its user is let in, and it goes with both. Whether its name stands in any
 * service's store afterwards is looked at where those can be read (`gateway/cells/account-goes.testing.ts`).
 */
const account = "acme/dev";
const accounts = async (t: Testbed): Promise<readonly AccountSummary[]> =>
  JSON.parse(await cells(t, "account", "list", "--output", "json")) as readonly AccountSummary[];

/** @param vm of the cell that is given, whose guest has an agent. Returns the configuration of the user, who is let in. */
export const givesToAccount = async (t: Testbed, vm: string): Promise<string> => {
  const at = dirname(t.configFile);
  const [password, configuration] = [join(at, "ann.password"), join(at, "ann.json")];
  writeFileSync(password, "a horse of another colour\n", { mode: 0o600 });
  // Its machine may have come back a moment ago.
  await until(
    "the service of accounts answers",
    () => t.cells(["domain", "list"]),
    ({ code }) => code === 0,
  );
  await cells(t, "domain", "add", "acme");
  await cells(t, "account", "add", account);
  const who = ["--account", account, "--role", "account-admin", "--password-file", password];
  await cells(t, "user", "add", "ann", ...who);
  await cells(t, "login", "ann@acme", "--out", configuration, "--password-file", password);
  assert.equal((await t.cells(["exec", vm, "--", "true"], configuration)).code, 1, "it is not hers yet");
  await cells(t, "account", "give", account, vm.split("/")[0] ?? "");
  await until(
    "she is let in",
    () => t.cells(["exec", vm, "--", "true"], configuration),
    ({ code }) => code === 0,
  );
  return configuration;
};

/** It goes with its cell and its user, as was shown before, and who had none of its cells named is refused. */
export const accountGoes = async (
  t: Testbed,
  { cell, user, patience }: { readonly cell: string; readonly user: string; readonly patience: number },
): Promise<void> => {
  const refused = await t.cells(["account", "delete", account]);
  assert.deepEqual([refused.code, refused.stderr.includes(`--allow-destroy ${cell}`)], [1, true], refused.stderr);
  const plan = await cells(t, "account", "delete", account, "--plan");
  for (const what of [new RegExp(`\\b${cell}\\b`), /\bann\b/, /session/]) assert.match(plan, what);
  assert.equal((await t.cells(["whoami"], user)).code, 0, "it was only shown");

  await cells(t, "account", "delete", account, "--allow-destroy", cell);
  assert.equal((await t.cells(["whoami"], user)).code, 1, "she is out at once");
  await until(
    "the account has gone",
    () => accounts(t),
    (all) => !all.some(({ path }) => path === `ROOT/${account}`),
    patience,
  );
  assert.doesNotMatch(await cells(t, "user", "list", "--output", "json"), /"ann"/);
  assert.match(await cells(t, "audit", "verify", "--service", "tenancy"), /whole/);
};
