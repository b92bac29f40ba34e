import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { ExportAccess } from "../../core/storage/agent/work.ts";
import { uid } from "../../model/cell/identifiers.ts";
import { freePort } from "../../runtime/process/free-port.testing.ts";
import { startHalfGone, stuckProcesses } from "../drivers/hypervisor/process/process.testing.ts";
import { isAlive, waitGone } from "../drivers/hypervisor/process/process.ts";
import {
  endExport,
  findExports,
  isServing,
  mostConnections,
  movedBy,
  type StartExport,
  startExport,
} from "./export-process.ts";
import { endExports } from "./exports.testing.ts";
import { ExportNotGone } from "./machinery.ts";
import { putOutStrangers } from "./strangers.ts";

let base = "";
before(async () => {
  base = await mkdtemp(join(tmpdir(), "cells-export-"));
  // The daemon's user must pass through.
  await chmod(base, 0o711);
});
after(() => endExports(base));

const desire = async (changes: Partial<ExportAccess>): Promise<StartExport> => {
  const exportsDirectory = join(base, "exports");
  await mkdir(exportsDirectory, { recursive: true, mode: 0o700 });
  const file = join(base, "volume");
  await writeFile(file, Buffer.alloc(1024 * 1024));
  await chmod(file, 0o666);
  const access = { exportName: "x1", pskIdentity: "i1", pskHex: "ab".repeat(32), port: await freePort(), ...changes };
  return { exportsDirectory, volume: uid("c1-1"), epoch: 3, file, writable: true, address: "127.0.0.1", access };
};

test("an export that did not start and whose process does not end is told of, found again, and ended later", async () => {
  const processes = stuckProcesses();
  // A name that the daemon refuses: it runs, and its export is not there.
  const wanted = await desire({ exportName: "x".repeat(5000) });
  const error = await startExport(wanted, processes).then(
    () => assert.fail("it started"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ExportNotGone, String(error));
  assert.match(error.message, /does not end when killed: is its disk stuck\?/);
  assert.ok(isAlive(error.found.process));
  assert.deepEqual(findExports(wanted.exportsDirectory), [error.found]);
  processes.stuck = false;
  await endExport(wanted.exportsDirectory, error.found, processes);
  assert.deepEqual(findExports(wanted.exportsDirectory), []);
  assert.equal(existsSync(join(wanted.exportsDirectory, "c1-1@3.process")), false);
  await assert.rejects(startExport(wanted, processes), (gone) => !(gone instanceof ExportNotGone));
});

/** How many connections to its port a process has taken. */
const connectionsOf = async (pid: number, port: number): Promise<number> => {
  const directory = `/proc/${pid}/fd`;
  const names = await readdir(directory);
  // A descriptor may be closed between the list and the look at it.
  const open = new Set(await Promise.all(names.map((name) => readlink(join(directory, name)).catch(() => ""))));
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const established = "01";
  return (await readFile("/proc/net/tcp", "utf8"))
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, from, , state]) => from?.endsWith(local) && state === established)
    .filter(([, , , , , , , , , inode]) => open.has(`socket:[${inode}]`)).length;
};

test("strangers are taken up to a bound, and make room when they go", async () => {
  const wanted = await desire({});
  const started = await startExport(wanted);
  const sockets: Socket[] = [];
  let greeted = 0;
  const call = (): Socket => {
    const socket = connect(wanted.access.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.once("data", () => {
      greeted += 1;
    });
    sockets.push(socket);
    return socket;
  };
  try {
    const open = () => connectionsOf(started.process.pid, wanted.access.port);
    for (let count = 0; count < mostConnections.writable; count += 1) call();
    while (greeted < mostConnections.writable) await sleep(20);
    const further = Array.from({ length: 20 }, call);
    await Promise.all(further.map((socket) => once(socket, "connect")));
    // A signal that it has looked at its sockets since: its control socket answers.
    assert.equal(await isServing(wanted.exportsDirectory, started, wanted.access), true);
    assert.equal(await open(), mostConnections.writable, "what is beyond the bound waits outside");
    assert.equal(greeted, mostConnections.writable);
    for (const socket of sockets.slice(0, mostConnections.writable)) socket.destroy();
    while (greeted < mostConnections.writable + further.length) await sleep(20);
  } finally {
    for (const socket of sockets) socket.destroy();
    await endExport(wanted.exportsDirectory, started);
  }
});

test("whoever holds all places is put out, and the host that the export is for gets in", async () => {
  const wanted = await desire({});
  const started = await startExport(wanted);
  const sockets: Socket[] = [];
  const counts = { greeted: 0, ended: 0, holder: 0 };
  const call = (localAddress: string, greeted: () => void): Socket => {
    const socket = connect({ port: wanted.access.port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    socket.once("data", greeted);
    sockets.push(socket);
    return socket;
  };
  const { volume } = wanted;
  const guarded = {
    volume,
    port: wanted.access.port,
    places: mostConnections.writable,
    from: async () => ["127.0.0.3"],
  };
  try {
    assert.deepEqual([...(await putOutStrangers([guarded]))], []);
    for (let count = 0; count < mostConnections.writable; count += 1)
      call(`127.0.0.${10 + (count % 5)}`, () => {
        counts.greeted += 1;
      }).once("close", () => {
        counts.ended += 1;
      });
    while (counts.greeted < mostConnections.writable) await sleep(20);
    const own = call("127.0.0.3", () => {
      counts.holder += 1;
    });
    await once(own, "connect");
    assert.equal(await isServing(wanted.exportsDirectory, started, wanted.access), true);
    assert.equal(counts.holder, 0, "there is no place for it");
    assert.deepEqual(
      [...(await putOutStrangers([{ ...guarded, from: async () => [] }]))],
      [],
      "who it is for is not known",
    );
    assert.deepEqual([...(await putOutStrangers([guarded]))], [[volume, mostConnections.writable]]);
    while (counts.holder === 0 || counts.ended < mostConnections.writable) await sleep(20);
    assert.equal(own.destroyed, false);
  } finally {
    for (const socket of sockets) socket.destroy();
    await endExport(wanted.exportsDirectory, started);
  }
});

test("what a daemon has moved grows by its requests, and hardly by who only connects", async () => {
  const wanted = await desire({});
  const started = await startExport(wanted);
  const run = promisify(execFile);
  const keys = join(base, "client");
  await mkdir(keys, { recursive: true });
  await writeFile(join(keys, "keys.psk"), `${wanted.access.pskIdentity}:${wanted.access.pskHex}\n`);
  const { pskIdentity, exportName, port } = wanted.access;
  const write = (command: string) =>
    run("qemu-io", [
      "--object",
      `tls-creds-psk,id=key,dir=${keys},username=${pskIdentity},endpoint=client`,
      "--image-opts",
      `driver=nbd,host=127.0.0.1,port=${port},export=${exportName},tls-creds=key`,
      "-c",
      command,
    ]);
  const log = `/proc/${started.process.pid}/fd/2`;
  try {
    const before = movedBy(started) ?? assert.fail("it is not known");
    const sockets = Array.from({ length: 5 }, () => connect(port, "127.0.0.1"));
    await Promise.all(sockets.map((socket) => once(socket, "data")));
    for (const socket of sockets) socket.destroy();
    while ((await readFile(log, "utf8")).split("negotiation failed").length <= sockets.length) await sleep(20);
    const called = movedBy(started) ?? assert.fail("it is not known");
    assert.ok(called - before < 512, `five strangers moved ${called - before} bytes`);
    await write("write 0 4k");
    const written = movedBy(started) ?? assert.fail("it is not known");
    assert.ok(written - called >= 4096, `a write of 4 KiB moved ${written - called} bytes`);
    await write("read 0 512");
    const read = movedBy(started) ?? assert.fail("it is not known");
    assert.ok(read - written >= 512, `a read of a sector moved ${read - written} bytes`);
  } finally {
    await endExport(wanted.exportsDirectory, started);
  }
  assert.equal(movedBy(started), null, "of a process that has ended nothing is known");
});

test("a daemon of which one thread alone is left, in the midst of a write, is found by its note", async () => {
  const { exportsDirectory } = await desire({});
  const directory = join(exportsDirectory, "c1-2@4");
  await mkdir(directory);
  const { child, identity } = await startHalfGone(directory);
  try {
    await writeFile(`${directory}.process`, JSON.stringify(identity));
    assert.deepEqual(findExports(exportsDirectory), [{ volume: "c1-2", epoch: 4, process: identity }]);
  } finally {
    child.kill("SIGKILL");
    await waitGone(identity, 10_000);
  }
  assert.deepEqual(findExports(exportsDirectory), []);
});
