import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { uid } from "../../../../model/cell/identifiers.ts";
import type { MachineSpecification } from "../driver.ts";
import { seedFiles, writeSeed } from "./seed.ts";

const machine = (files?: Readonly<Record<string, Buffer>>): MachineSpecification => ({
  vm: uid("c1-1"),
  incarnation: 1,
  name: "core",
  memoryMiB: 64,
  cpus: 1,
  disks: [],
  interfaces: [],
  data: { format: 2 },
  ...(files === undefined ? {} : { files }),
});

test("stores that a machine is born with lie on its seed volume as they are, and nowhere else", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-seed-"));
  try {
    const image = join(directory, "seed.iso");
    const store = randomBytes(100_000);
    await writeSeed(
      machine({ "birth/controller/state.sqlite": store, "birth/authority/authority/key.pem": store }),
      image,
    );
    const read = (path: string): Buffer =>
      execFileSync("isoinfo", ["-R", "-i", image, "-x", path], {
        maxBuffer: 1 << 24,
        stdio: ["ignore", "pipe", "ignore"],
      });
    assert.deepEqual(read("/birth/controller/state.sqlite"), store);
    assert.deepEqual(read("/birth/authority/authority/key.pem"), store);
    assert.equal(read("/data/format").toString(), "2\n");
    assert.deepEqual(await readdir(directory), ["seed.iso"]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("data of more entries than there may be makes no volume, and the most that there may be makes a small one", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-seed-"));
  const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`name${at}`, at]));
  try {
    const image = join(directory, "seed.iso");
    const many = { ...machine(), data: entries(3000) };
    await assert.rejects(writeSeed(many, image), /its data has 3000 attributes and items, and 1000 are allowed/);
    await assert.rejects(
      writeSeed({ ...machine(), data: { text: "x".repeat(1 << 17) } }, image),
      /131083 bytes as JSON/,
    );
    assert.deepEqual(await readdir(directory), []);
    await writeSeed({ ...machine(), data: entries(1000) }, image);
    assert.ok((await stat(image)).size < 4 * 1024 * 1024);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("no file leaves the volume or takes the place of what the host says", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cells-seed-"));
  try {
    for (const path of ["../key", "/etc/passwd", "birth//key", "birth/./key", ""])
      await assert.rejects(
        writeSeed(machine({ [path]: Buffer.from("secret") }), join(directory, "a")),
        /is no path on/,
      );
    for (const path of ["data/roles/placer/token", "data.json", "interfaces", "meta-data/x"])
      await assert.rejects(
        writeSeed(machine({ [path]: Buffer.from("secret") }), join(directory, "a")),
        /the host's own/,
      );
    assert.deepEqual(await readdir(directory), []);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("a guest is told which of its VM's nice wishes are so, and what it has by them; one without such nothing", () => {
  const files = seedFiles({ ...machine(), memoryMiB: 2048, nice: ["fast", "roomy"] });
  assert.equal(files.nice, "fast\nroomy\n");
  const { nice } = JSON.parse(files["data.json"] ?? "");
  assert.deepEqual(nice, { so: ["fast", "roomy"], memoryMiB: 2048, cpus: 1 });
  const without = seedFiles(machine());
  assert.equal(without.nice, undefined);
  assert.equal("nice" in JSON.parse(without["data.json"] ?? ""), false);
});
