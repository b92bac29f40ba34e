import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { DesiredDisk } from "../../../core/documents/vocabulary.ts";
import { uid } from "../../../model/cell/identifiers.ts";
import { createQemuDriver } from "./qemu.ts";
import { Viewer } from "./viewer.testing.ts";

/** A boot sector, real mode: waits for a key by the BIOS (INT 16h), writes it to COM1, and again. */
const echo = [0x31, 0xc0, 0xcd, 0x16, 0xba, 0xf8, 0x03, 0xee, 0xeb, 0xf6];

test("two viewers are at one screen, both type, neither ends the other, and nothing listens at a port", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cells-vnc-"));
  await chmod(directory, 0o711);
  const run = join(directory, "run");
  const driver = createQemuDriver({ runDirectory: run });
  const vm = uid("c1-70");
  t.after(async () => {
    await driver.stop(vm, 0);
    await driver.close();
    await rm(directory, { recursive: true, force: true });
  });
  const sector = Buffer.alloc(1024 * 1024);
  Buffer.from(echo).copy(sector);
  sector.writeUInt16LE(0xaa55, 510);
  const file = join(directory, "echo.img");
  await writeFile(file, sector);
  await chmod(file, 0o666);
  const attachment = { volume: uid("c1-8"), epoch: 1, sizeMiB: 1, layers: [], boot: null };
  const desired: DesiredDisk = {
    connection: uid("c1-9"),
    busType: "virtio",
    busNumber: null,
    busSlot: null,
    bootOrder: null,
    readOnly: false,
    attachment,
  };
  const blockdev = JSON.stringify({ driver: "raw", "node-name": "root", file: { driver: "file", filename: file } });
  const disk = { desired, objects: [], blockdevs: [blockdev], node: "root", boot: null, secretDirectories: [] };
  const machine = {
    vm,
    incarnation: 1,
    name: "screen",
    memoryMiB: 32,
    cpus: 1,
    disks: [disk],
    interfaces: [],
    data: {},
  };
  await driver.start(machine);
  assert.equal(driver.display(vm), null, "one without `x.display` has none");
  await driver.stop(vm, 0);
  await driver.start({ ...machine, incarnation: 2, display: "vga" });

  const [found] = await driver.list();
  const listening = (await readFile(`/proc/${found?.pid}/net/tcp`, "utf8"))
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === "0A")
    .map((fields) => fields[1]?.split(":")[1]);
  const vnc = Array.from({ length: 100 }, (_, at) => (5900 + at).toString(16).toUpperCase().padStart(4, "0"));
  assert.deepEqual(
    listening.filter((port) => vnc.includes(port ?? "")),
    [],
  );

  const viewers: Viewer[] = [];
  for (let n = 0; n < 2; n += 1) {
    const socket = driver.display(vm)?.connect() ?? assert.fail("it has a display");
    await once(socket, "connect");
    t.after(() => socket.destroy());
    const viewer = new Viewer(socket);
    viewers.push(viewer);
    const { width, height } = await viewer.shakeHands();
    assert.ok(width >= 320 && height >= 200, `${width} × ${height}`);
    const [seen = 0] = await viewer.look(width, height);
    assert.ok(seen > 0);
  }
  const console = join(run, "vms", vm, "console.log");
  const typed = async (viewer: Viewer, key: string): Promise<void> => {
    for (let tries = 0; tries < 200; tries += 1) {
      viewer.key(key.charCodeAt(0));
      await sleep(100);
      if ((await readFile(console, "latin1").catch(() => "")).includes(key)) return;
    }
    assert.fail(`the guest has not read ${key}: ${await readFile(console, "latin1").catch(String)}`);
  };
  const [one, two] = viewers;
  assert.ok(one !== undefined && two !== undefined);
  await typed(one, "q");
  await typed(two, "z");
  assert.ok(one.isOpen && two.isOpen, "the second has not ended the first");
  assert.ok(((await driver.diskOctets()).get(vm) ?? 0) >= 512, "its boot sector was read");

  const later = createQemuDriver({ runDirectory: run });
  await driver.close();
  await later.list();
  assert.equal(later.display(vm)?.incarnation, 2, "a new Host Manager finds it again");
  await later.stop(vm, 0);
  assert.equal(later.display(vm), null);
  await later.close();
});
