import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { serviceRoles } from "../core/documents/service-roles.ts";
import { sha256 } from "./parts.ts";
import { compileInit, initSources, makeBundle, packInitramfs, packRoot } from "./service.ts";

const run = promisify(execFile);
const here = join(import.meta.dirname, "service");
const names = ["service", "authority", "gateway"];

const inDirectory = async (use: (directory: string) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), "cells-service-image-"));
  try {
    await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

/** The same files, written in the order of `names`, at whatever time it is now. */
const tree = async (root: string, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), `${name}\n`.repeat(2000));
    await chmod(join(root, name), name.endsWith("sh") ? 0o755 : 0o644);
  }
  await symlink("a/one", join(root, "link"));
  await utimes(join(root, names[0] ?? ""), Math.random() * 1e9, Math.random() * 1e9);
};

test("the same files give the same root file system and the same initial RAM file system, whenever and wherever", () =>
  inDirectory(async (directory) => {
    const names = ["a/one", "a/two.sh", "b/three", "zeta"];
    const digests: string[][] = [];
    for (const [place, order] of [
      ["first", names],
      ["second/and/deeper", names.toReversed()],
    ] as const) {
      const root = join(directory, place);
      await tree(root, order);
      const [packed, archive] = [
        join(directory, `${digests.length}.root`),
        join(directory, `${digests.length}.initrd`),
      ];
      await packRoot(root, packed);
      await packInitramfs(root, archive);
      digests.push([await sha256(packed), await sha256(archive)]);
      // File times are whole seconds there.
      await sleep(1100);
    }
    assert.deepEqual(digests[0], digests[1]);
    // A difference shows: the digests do not agree because nothing was packed.
    await writeFile(join(directory, "first/zeta"), "another");
    await packRoot(join(directory, "first"), join(directory, "3.root"));
    await packInitramfs(join(directory, "first"), join(directory, "3.initrd"));
    assert.notEqual(await sha256(join(directory, "3.root")), digests[0]?.[0]);
    assert.notEqual(await sha256(join(directory, "3.initrd")), digests[0]?.[1]);
  }));

test("bundle, compiled code and first process are the same bytes each time, and name nothing of this machine", () =>
  inDirectory(async (directory) => {
    const digests: string[][] = [];
    for (const place of ["one", "two/deeper"]) {
      const out = join(directory, place);
      await mkdir(out, { recursive: true });
      await makeBundle(out);
      await compileInit(join(out, "init"));
      const bundles = names.flatMap((name) => [`${name}.js`, `${name}.cache`]);
      const files = [...bundles, "init"].map((name) => join(out, name));
      digests.push(await Promise.all(files.map(sha256)));
      for (const file of files)
        for (const mine of [directory, dirname(import.meta.dirname)])
          assert.ok(!(await readFile(file, "latin1")).includes(mine), `${file} names ${mine}`);
    }
    assert.deepEqual(digests[0], digests[1]);
    assert.equal(new Set(digests[0]).size, 7);
  }));

test("V8 takes the compiled code, and the bundle has what the guest calls", () =>
  inDirectory(async (directory) => {
    await makeBundle(directory);
    const program = `
      const { readFileSync } = require("node:fs"), { Script } = require("node:vm");
      const code = (name) => readFileSync(process.argv[1] + "/" + process.argv[2] + name);
      const script = new Script(code(".js").toString("latin1"), { cachedData: code(".cache"), filename: "x" });
      const bundle = { exports: {} };
      script.runInThisContext()(require, bundle, bundle.exports);
      console.log(script.cachedDataRejected, Object.keys(bundle.exports).sort().join());`;
    for (const name of names) {
      // Read byte for byte, it is what it was as UTF-8.
      assert.doesNotMatch(await readFile(join(directory, `${name}.js`), "latin1"), /[^\t\n\r -~]/);
      const { stdout } = await run(process.execPath, ["-e", program, directory, name]);
      assert.equal(stdout.trim(), "false load,serve");
    }
  }));

test("the first process is one static program, and starts no shell", () =>
  inDirectory(async (directory) => {
    const init = join(directory, "init");
    await compileInit(init);
    const { stdout } = await run("readelf", ["-l", "-d", init]);
    assert.match(stdout, /LOAD/);
    assert.doesNotMatch(stdout, /INTERP|NEEDED/);
    const sources = initSources.map((name) => readFile(join(here, name), "utf8"));
    const source = (await Promise.all(sources)).join("\n");
    assert.doesNotMatch(source, /\b(system|popen)\(|bin\/(sh|bash|busybox)/);
    const started = [...source.matchAll(/"(\/(?:usr\/)?s?bin\/[^"]+)"/g)].map((match) => match[1]);
    assert.deepEqual([...new Set(started)].sort(), ["/sbin/e2fsck", "/sbin/mke2fs", "/usr/bin/node"]);
  }));

test("every role has a user of its own, and so has what roles share; none is root, and nobody has a password or a shell", async () => {
  const lines = (await readFile(join(here, "passwd"), "utf8")).trim().split("\n");
  const users = lines.map((line) => line.split(":"));
  const services = users.filter(([name]) => name !== "root");
  assert.deepEqual(services.map(([name]) => name).sort(), [...Object.keys(serviceRoles), "services"].sort());
  const numbers = services.flatMap(([, , user, group]) => [`u${user}`, `g${group}`]);
  assert.equal(new Set(numbers).size, numbers.length);
  assert.ok(services.every(([, , user, group]) => Number(user) > 0 && Number(group) > 0));
  for (const [name, password, , , , , shell] of users) assert.deepEqual([password, shell], ["x", ""], name);
});
