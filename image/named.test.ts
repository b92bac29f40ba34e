import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { isServiceImageName, nameImage } from "./named.ts";

test("a service image keeps its name when `service` has become another one, and no name is another image's", async () => {
  const images = await mkdtemp(join(tmpdir(), "cells-named-"));
  try {
    const build = async (digest: string): Promise<void> => {
      await mkdir(join(images, `service-${digest}`));
      await writeFile(join(images, `service-${digest}`, "disk.qcow2"), `disk ${digest}`);
      await writeFile(join(images, `service-${digest}`, "inputs"), "…");
      await writeFile(join(images, `service-${digest}`, "manifest.json"), JSON.stringify({ name: "service", digest }));
      await rm(join(images, "service"), { force: true });
      await symlink(`service-${digest}`, join(images, "service"));
    };
    await build("aa");
    const named = await nameImage(join(images, "service"), "service-2");
    assert.deepEqual((await readdir(named)).sort(), ["disk.qcow2", "manifest.json"]);
    assert.deepEqual(JSON.parse(await readFile(join(named, "manifest.json"), "utf8")), {
      name: "service-2",
      digest: "aa",
    });
    assert.equal(await nameImage(join(images, "service"), "service-2"), named, "once more");
    await build("bb");
    assert.equal(await readFile(join(named, "disk.qcow2"), "utf8"), "disk aa");
    await assert.rejects(nameImage(join(images, "service"), "service-2"), /another image "service-2" already/);
    assert.deepEqual(
      (await readdir(images)).filter((name) => name.startsWith(".")),
      [],
    );
  } finally {
    await rm(images, { recursive: true, force: true });
  }
  for (const [name, is] of [
    ["service", true],
    ["service-2026.11", true],
    ["services", false],
    ["service-", false],
    ["service-../x", false],
  ] as const)
    assert.equal(isServiceImageName(name), is, name);
});
