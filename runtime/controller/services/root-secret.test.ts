import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { uid } from "../../../model/cell/identifiers.ts";
import { hashOfToken } from "../../identity/own/keys.ts";
import { rootSecret, tokenOf } from "./root-secret.ts";

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), `cells-root-secret-${process.pid}-`));
});
after(() => rm(directory, { recursive: true, force: true }));

test("the secret is made once, for its owner alone, and a file that holds none is not replaced", async () => {
  const secret = await rootSecret(directory);
  assert.equal(secret.length, 32);
  assert.deepEqual(await rootSecret(directory), secret);
  const file = join(directory, "root-secret");
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  await writeFile(file, "half of it");
  await assert.rejects(rootSecret(directory), /holds no secret of 32 bytes.*backup/);
  assert.equal(await readFile(file, "utf8"), "half of it");
});

test("a token follows from VM, incarnation, role and secret, and is one that the authority takes", () => {
  const [secret, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const of = tokenOf(secret);
  const [vm, later] = [uid("c0ffee-1"), uid("c0ffee-11")];
  const first = of(vm, 1, "placer");
  assert.deepEqual(of(vm, 1, "placer"), first);
  assert.equal(hashOfToken(first.token), first.hash);
  const all = [first, of(vm, 2, "placer"), of(vm, 1, "presence"), of(vm, 11, "p"), of(later, 1, "p")];
  all.push(of(vm, 1, ""), tokenOf(other)(vm, 1, "placer"));
  assert.equal(new Set(all.map(({ token }) => token)).size, all.length);
});
