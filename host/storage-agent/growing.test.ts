import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, open, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { ExportAccess } from "../../core/storage/agent/work.ts";
import { ipv4, uid } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { connectQmp } from "../drivers/hypervisor/qmp.ts";
import { createStorageDriver } from "../drivers/storage/driver-nbd.ts";
import { endExport, startExport } from "./export-process.ts";
import { endExports } from "./exports.testing.ts";
import { servedLength } from "./images/qcow2.ts";
import { VolumeFiles } from "./volume-files.ts";

/** A volume's file, its daemon, and a QEMU that has the chain open as a VM's host has. Needs root and QEMU. */
const run = promisify(execFile);
const volume = uid("c1-1");
const address = ipv4("127.0.0.1");
let base = "";
let files: VolumeFiles;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "cells-grow-"));
  await chmod(base, 0o711);
  files = new VolumeFiles({ directory: base, imagesDirectory: join(base, "images"), address, httpPort: 1 });
  await files.prepare();
});
after(() => endExports(base));

/** What a host does with a lease, until `work` has ended: the chain is open in QEMU and can be written at a socket. */
async function leased(
  epoch: number,
  work: (grow: (sizeMiB: number) => Promise<void>, io: (...commands: string[]) => Promise<void>) => Promise<void>,
): Promise<void> {
  const port = await freePort();
  const access: ExportAccess = { exportName: `x${epoch}`, pskIdentity: "i1", pskHex: "ab".repeat(32), port };
  const exportsDirectory = join(base, "exports");
  await mkdir(exportsDirectory, { recursive: true, mode: 0o700 });
  const served = await startExport({
    exportsDirectory,
    volume,
    epoch,
    file: files.path(volume),
    writable: true,
    address,
    access,
  });
  const place = join(base, `qemu-${epoch}`);
  await mkdir(place);
  const layer = { volume, address, writable: true, ...access };
  const attachment = { volume, epoch, sizeMiB: 64, layers: [layer], boot: null };
  const configuration = { directory: place, runDirectory: place, peersFile: "" } as unknown as ProcessConfiguration;
  const storage = createStorageDriver({ configuration });
  const disk = {
    connection: uid("c1-2"),
    readOnly: false,
    attachment,
    busType: "virtio" as const,
    busNumber: null,
    busSlot: null,
    bootOrder: null,
  };
  const composed = await storage.compose(disk);
  assert.equal(storage.node(disk), composed.node);
  const qemu = spawn("qemu-system-x86_64", [
    "-machine",
    "none",
    "-nodefaults",
    "-display",
    "none",
    "-qmp",
    `unix:${join(place, "qmp")},server=on,wait=off`,
    ...composed.objects.flatMap((object) => ["-object", object]),
    ...composed.blockdevs.flatMap((node) => ["-blockdev", node]),
  ]);
  const ended = once(qemu, "exit");
  try {
    const nothing = () => undefined;
    const connect = () => connectQmp(join(place, "qmp"), nothing, nothing).catch(() => null);
    let connected = await connect();
    for (; connected === null && qemu.exitCode === null; connected = await connect()) await sleep(10);
    const qmp = connected ?? assert.fail("QEMU has ended");
    const socket = join(place, "disk");
    await qmp.execute("nbd-server-start", { addr: { type: "unix", data: { path: socket } } });
    const size = { "node-name": composed.node };
    await work(
      async (sizeMiB) => void (await qmp.execute("block_resize", { ...size, size: sizeMiB * 1024 * 1024 })),
      async (...commands) => {
        await qmp.execute("block-export-add", { type: "nbd", id: "e", ...size, name: "disk", writable: true });
        const image = `nbd+unix:///disk?socket=${socket}`;
        const { stdout } = await run("qemu-io", ["-f", "raw", ...commands.flatMap((each) => ["-c", each]), image]);
        assert.doesNotMatch(stdout, /failed/i);
        await qmp.execute("block-export-del", { id: "e" });
      },
    );
    await qmp.execute("quit");
    qmp.close();
  } finally {
    if (qemu.exitCode === null) qemu.kill("SIGTERM");
    await ended;
    await endExport(exportsDirectory, served);
  }
}

test("a file grows while it is exported, as far as it has room, and every byte of the new size can be written", async () => {
  const made = await files.create(volume, { kind: "empty" }, 64);
  assert.equal(made.sizeMiB, 64);
  assert.ok(made.roomMiB >= 4096, `room for ${made.roomMiB} MiB`);
  await leased(1, async (grow, io) => {
    await io("write -P 0x11 63M 1M", "flush");
    await grow(4096);
    await io("read -P 0x11 63M 1M", "read -P 0 64M 1M", "write -P 0x22 4095M 1M", "flush");
    // Its server sees that by the file alone, and whoever is asked does no harm to what is exported.
    assert.deepEqual(await files.ready(volume, null), { sizeMiB: 4096, roomMiB: made.roomMiB });
  });
  await leased(2, async (_grow, io) => io("read -P 0x11 63M 1M", "read -P 0x22 4095M 1M"));
  const { blocks } = await stat(files.path(volume));
  assert.ok(blocks * 512 < 64 * 1024 * 1024, "what nobody wrote takes no room");
});

test("a file of an earlier version has no room before its next export; one that nobody has open grows where it is", async () => {
  const { roomMiB } = await files.ready(volume, null);
  await truncate(files.path(volume), servedLength(4096 * 1024 * 1024) + 32 * 1024 * 1024);
  assert.ok((await files.ready(volume, null)).roomMiB < 4096);
  const grown = await files.ready(volume, 5000);
  assert.equal(grown.sizeMiB, 5000);
  assert.ok(grown.roomMiB >= Math.min(roomMiB, 5000));
  assert.deepEqual(await files.ready(volume, 5000), grown);
  await leased(3, async (_grow, io) => io("read -P 0x22 4095M 1M", "write -P 0x33 4999M 1M"));
});

test("how long a file is follows the size that was ordered, not the one that a host wrote into its header", async () => {
  const forged = uid("c1-3");
  await files.create(forged, { kind: "empty" }, 5000);
  const bytes = async (): Promise<number> => (await stat(files.path(forged))).size;
  const writeHeader = async (sizeMiB: number): Promise<void> => {
    const file = await open(files.path(forged), "r+");
    const field = Buffer.alloc(8);
    field.writeBigUInt64BE(BigInt(sizeMiB) * 1024n * 1024n);
    await file.write(field, 0, 8, 24);
    await file.close();
  };
  const before = await bytes();
  await writeHeader(500 * 1024);
  await files.ready(forged, 5000);
  assert.equal(await bytes(), before);
  // Nor does it become longer each time that a header says less.
  for (let again = 0; again < 3; again += 1) {
    await writeHeader(64);
    assert.equal((await files.ready(forged, 5000)).sizeMiB, 5000);
    assert.ok((await bytes()) <= before, `${await bytes()} bytes instead of ${before}`);
  }
});
