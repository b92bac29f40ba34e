import assert from "node:assert/strict";
import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { AccountSummary, DelegationSummary, UserSummary } from "../../model/contract/tenancy/tenancy.ts";
import { eventually, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { Asking } from "./reads-apart.testing.ts";

/**
 * An account is deleted with a cell that has a machine, with a user, his key and what it gives and is given: what that is was shown before, and nothing of
 * it is left in the store of any service, but in their audits.
 *
 * @param user of the account, with his session
 * @param hostsDo what hosts would do meanwhile
 */
export async function accountGoes(
  { installation, operator, said, ask }: Asking & { readonly installation: TestInstallation },
  path: string,
  { name, session, cell }: { readonly name: string; readonly session: string; readonly cell: string },
  hostsDo: () => Promise<void>,
): Promise<void> {
  const all = async <T>(what: string): Promise<readonly T[]> =>
    (await ask("GET", what, undefined, operator)).json as unknown as readonly T[];
  const account = (await all<AccountSummary>("/accounts")).find((each) => each.path === path) ?? assert.fail(path);
  const user =
    (await all<UserSummary>("/users")).find((each) => each.name === name && each.account === path) ?? assert.fail(name);
  assert.ok((await ask("POST", "/keys", { note: "of one who goes" }, session)).status < 300);
  const others = (await all<AccountSummary>("/accounts")).find((each) => each.path === "ROOT/dev") ?? assert.fail();
  for (const [from, to] of [
    [path, others.path],
    [others.path, path],
  ] as const)
    assert.ok((await ask("POST", "/delegations", { account: from, to, role: "reader" }, operator)).status < 300);
  const of = `/accounts/${account.uid}`;
  const lost = account.cells.map((each) => `allowDestroy=${each}`).join("&");
  const refused = await ask("DELETE", of, undefined, operator);
  assert.equal(refused.status, 409, JSON.stringify(refused.json));
  const shown = await ask("DELETE", `${of}?${lost}&dryRun=true`, undefined, operator);
  const plan = ((shown.json as unknown as AccountSummary).plan ?? []).join("\n");
  for (const what of [/session/, /key/, new RegExp(cell), /delegation/, new RegExp(name)]) assert.match(plan, what);
  assert.equal((await ask("GET", `/cells/${cell}/model`, undefined, session)).status, 200, "it was only shown");
  const kept = await storesWith(installation.directory, [account.uid, user.uid]);
  assert.ok(kept.length > 2, "a positive control");

  const begun = await ask("DELETE", `${of}?${lost}`, undefined, operator);
  assert.ok(begun.status < 300, JSON.stringify(begun.json));
  assert.equal((await ask("GET", "/whoami", undefined, session)).status, 401, "he is out at once");
  await hostsDo();
  await eventually(`the account has gone\n${said()}`, async () => {
    const paths = (await all<AccountSummary>("/accounts")).map((each) => each.path);
    return !paths.includes(path);
  });
  assert.ok(!(await all<UserSummary>("/users")).some((each) => each.uid === user.uid));
  const given = await all<DelegationSummary>("/delegations");
  assert.ok(!given.some((each) => each.account === path || each.to === path));
  let left: readonly string[] = [];
  await eventually("nothing of it is in any store", async () => {
    left = await storesWith(installation.directory, [account.uid, user.uid, `"${path}"`]);
    return left.length === 0;
  }).catch(() => assert.fail(left.join("\n")));
}

/** What names one of these, of each service that runs: `<service> <key>`. Who did what stays, and so do usage, marks of histories, and for a day what was answered. */
async function storesWith(directory: string, names: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const service of await readdir(directory)) {
    const files = await readdir(join(directory, service)).catch((): string[] => []);
    if (!files.includes("state.sqlite")) continue;
    const copy = await mkdtemp(join(tmpdir(), "cells-store-"));
    try {
      // Its owner has it locked. What has no log ends with the file.
      for (const file of files.filter((each) => /^state\.sqlite(-wal)?$/.test(each)))
        await copyFile(join(directory, service, file), join(copy, file));
      const database = new DatabaseSync(join(copy, "state.sqlite"));
      const rows = database.prepare("SELECT key, value FROM entries").all() as { key: string; value: string }[];
      database.close();
      for (const { key, value } of rows)
        if (!/^own\/(?:usage|answer)\//.test(key) && names.some((name) => key.includes(name) || value.includes(name)))
          found.push(`${service} ${key}`);
    } finally {
      await rm(copy, { recursive: true });
    }
  }
  return found;
}
