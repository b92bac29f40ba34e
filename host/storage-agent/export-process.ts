import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { chmod, chown, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExportAccess } from "../../core/storage/agent/work.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import {
  identify,
  isAlive,
  type ProcessControl,
  type ProcessIdentity,
  processControl,
} from "../drivers/hypervisor/process/process.ts";
import { connectQmp, type Qmp } from "../drivers/hypervisor/qmp.ts";
import { setprivArguments, storageIdentity } from "../drivers/unix-users.ts";
import { listenAt } from "./listening-socket.ts";
import { ExportNotGone, PortTaken, type RunningExport } from "./machinery.ts";

/**
 * One `qemu-storage-daemon` (QSD) per export: a writable NBD export is not exclusive by itself, so a lease gets a process,
 * a port, a name and a key of its own, and all of them end with it. The process outlives the agent; it is found again by
 * its working directory `<exports>/<uid>@<epoch>`, and by the note `<uid>@<epoch>.process` beside that: one that was killed
 * and hangs in the kernel with a write has no working directory any more, and its write may still land.
 *
 * It runs as a user with nothing but that directory and one descriptor, the volume's file, so that no path to the
 * server's bytes has to be open to it. QSD 7.2 has no `--sandbox`; leaving every capability away is all there is.
 * The export's name and key never stand in the argument list: the key is in a file, the name comes over QMP.
 */
export type ExportProcess = RunningExport;

const exportId = (epoch: number): string => `lease-${epoch}`;
const keysFile = "keys.psk";
const socketFile = "qmp";

export const exportDirectory = (exportsDirectory: string, volume: Uid, epoch: number): string =>
  join(exportsDirectory, `${volume}@${epoch}`);

const noteFile = (exportsDirectory: string, volume: Uid, epoch: number): string =>
  `${exportDirectory(exportsDirectory, volume, epoch)}.process`;

/** Every QSD under this directory, whoever started it, also one that was killed and is not gone yet. */
export function findExports(exportsDirectory: string): readonly ExportProcess[] {
  const found = new Map<number, ExportProcess>();
  const add = (name: string, identity: ProcessIdentity | null): void => {
    const match = /^([A-Za-z0-9-]+)@(\d+)$/.exec(name);
    if (match === null || identity === null || !isAlive(identity)) return;
    found.set(identity.pid, { volume: match[1] as Uid, epoch: Number(match[2]), process: identity });
  };
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    const place = isDaemon(pid) ? workingDirectory(pid) : null;
    if (place !== null && dirname(place) === exportsDirectory) add(basename(place), identify(pid));
  }
  for (const name of existsSync(exportsDirectory) ? readdirSync(exportsDirectory) : []) {
    if (!name.endsWith(".process")) continue;
    const noted = readNote(join(exportsDirectory, name));
    if (noted !== null && isDaemon(noted.pid)) add(name.slice(0, -".process".length), noted);
  }
  return [...found.values()];
}

/** The program may still be `setpriv`, about to become the daemon. One that is leaving the kernel has no command line. */
function isDaemon(pid: number): boolean {
  try {
    const program = basename(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0] ?? "");
    return /^(qemu-storage-daemon|setpriv|)$/.test(program);
  } catch {
    return false;
  }
}

function workingDirectory(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}

function readNote(file: string): ProcessIdentity | null {
  try {
    const { pid, startTime } = JSON.parse(readFileSync(file, "utf8")) as Partial<ProcessIdentity>;
    return typeof pid === "number" && typeof startTime === "string" ? { pid, startTime } : null;
  } catch {
    return null;
  }
}

/**
 * Connections that one export's daemon takes, those that have shown no key among them: QSD bounds neither these nor how long
 * they stay so. Each costs some tens of KiB. One VM writes, over one connection, and connects anew where that breaks; an
 * origin is read by all VMs with a copy of it. Further ones wait in the socket's queue.
 */
export const mostConnections = { writable: 256, readers: 4096 } as const;

export interface StartExport {
  readonly exportsDirectory: string;
  readonly volume: Uid;
  readonly epoch: number;
  readonly file: string;
  readonly writable: boolean;
  readonly address: string;
  readonly access: ExportAccess;
}

/**
 * Starts the daemon and its export. Rejects with a sentence (`PortTaken` for a port in use), and then nothing of it runs;
 * with `ExportNotGone` where its process was killed and is still there.
 */
export async function startExport(
  wanted: StartExport,
  processes: ProcessControl = processControl,
): Promise<ExportProcess> {
  const directory = exportDirectory(wanted.exportsDirectory, wanted.volume, wanted.epoch);
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const keys = join(directory, keysFile);
  await writeFile(keys, `${wanted.access.pskIdentity}:${wanted.access.pskHex}\n`, { mode: 0o600 });
  await chmod(keys, 0o400);
  await chown(keys, storageIdentity.uid, storageIdentity.gid);
  await chown(directory, storageIdentity.uid, storageIdentity.gid);

  const child = launch(directory, wanted);
  const pid = child.pid;
  if (pid === undefined) throw new Error("cannot start setpriv: is util-linux installed?");
  const identity = identify(pid);
  if (identity === null) throw new Error(`the export's process ended at once: ${await lastWords(directory)}`);
  const started: ExportProcess = { volume: wanted.volume, epoch: wanted.epoch, process: identity };
  try {
    writeFileSync(noteFile(wanted.exportsDirectory, wanted.volume, wanted.epoch), JSON.stringify(identity), {
      mode: 0o600,
    });
    const qmp = await openControl(directory, identity);
    try {
      await offer(qmp, wanted);
    } finally {
      qmp.close();
    }
    return started;
  } catch (error) {
    processes.signal(identity, "SIGKILL");
    const why = `the export of ${wanted.volume} did not start: ${(error as Error).message}`;
    if (await processes.waitGone(identity, 10_000)) throw new Error(why);
    throw new ExportNotGone(`${why}; its process ${pid} does not end when killed: is its disk stuck?`, started);
  }
}

function launch(directory: string, wanted: StartExport): ChildProcess {
  const socket = listenAt(wanted.address, wanted.access.port);
  if (socket === null) throw new PortTaken(`port ${wanted.access.port} is in use`);
  let file: number;
  try {
    file = openSync(wanted.file, wanted.writable ? "r+" : "r");
  } catch (error) {
    closeSync(socket);
    throw error;
  }
  const log = openSync(join(directory, "log"), "a", 0o600);
  // QEMU's default cache: through the page cache, flushed when the guest flushes. The host's end: drivers/storage/block-chain.ts.
  const node = {
    driver: "file",
    "node-name": "file",
    // The descriptor this process was given; opened anew by the daemon under its own user.
    filename: "/proc/self/fd/3",
    "read-only": !wanted.writable,
    locking: "on",
    discard: "unmap",
  };
  const connections = wanted.writable ? mostConnections.writable : mostConnections.readers;
  const daemon = [
    "qemu-storage-daemon",
    "--chardev",
    `socket,id=control,path=${socketFile},server=on,wait=off`,
    "--monitor",
    "chardev=control",
    "--object",
    "tls-creds-psk,id=key,dir=.,endpoint=server",
    "--blockdev",
    JSON.stringify(node),
    "--nbd-server",
    `addr.type=fd,addr.str=4,tls-creds=key,max-connections=${connections}`,
  ];
  try {
    const child = spawn("setpriv", [...setprivArguments(storageIdentity), ...daemon], {
      cwd: directory,
      detached: true,
      stdio: ["ignore", log, log, file, socket],
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    });
    child.on("error", () => undefined);
    child.unref();
    return child;
  } finally {
    closeSync(socket);
    closeSync(file);
    closeSync(log);
  }
}

async function offer(qmp: Qmp, wanted: StartExport): Promise<void> {
  await qmp.execute("block-export-add", {
    type: "nbd",
    id: exportId(wanted.epoch),
    "node-name": "file",
    name: wanted.access.exportName,
    writable: wanted.writable,
  });
}

/** Does it serve, and with this key? One that was cut off half-way through its start does not. */
export async function isServing(
  exportsDirectory: string,
  found: ExportProcess,
  access: ExportAccess,
): Promise<boolean> {
  const directory = exportDirectory(exportsDirectory, found.volume, found.epoch);
  const keys = await readFile(join(directory, keysFile), "utf8").catch(() => "");
  if (keys.trim() !== `${access.pskIdentity}:${access.pskHex}`) return false;
  try {
    const qmp = await openControl(directory, found.process);
    try {
      return (await listed(qmp)).includes(exportId(found.epoch));
    } finally {
      qmp.close();
    }
  } catch {
    return false;
  }
}

/**
 * What the daemon has read from the volume's file and written to it, in bytes (proc(5), `io`). QEMU counts nothing of an NBD export; what goes
 * through sockets is not in these counters, and a thread that wakes another one moves eight bytes. The line about each caller without a key,
 * 119 bytes in QEMU 7.2, is taken off: it stands in the daemon's log.
 */
export function movedBy({ process }: ExportProcess): number | null {
  if (!isAlive(process)) return null;
  try {
    const counters = readFileSync(`/proc/${process.pid}/io`, "utf8");
    const [, read] = /^rchar: (\d+)$/m.exec(counters) ?? [];
    const [, written] = /^wchar: (\d+)$/m.exec(counters) ?? [];
    const { size: logged } = statSync(`/proc/${process.pid}/fd/2`);
    return read === undefined || written === undefined ? null : Number(read) + Number(written) - logged;
  } catch {
    return null;
  }
}

/**
 * Ends an export so that no write through it can land any more. The order is what was measured (QEMU 7.2): a hard
 * `block-export-del` answers at once while accepted writes still land until `BLOCK_EXPORT_DELETED`; the process is then
 * ended as well, and this resolves when it is confirmed gone. A dead process needs no more than that last confirmation.
 */
export async function endExport(
  exportsDirectory: string,
  found: ExportProcess,
  processes: ProcessControl = processControl,
): Promise<void> {
  const directory = exportDirectory(exportsDirectory, found.volume, found.epoch);
  if (isAlive(found.process)) await withdraw(directory, found).catch(() => undefined);
  // What its system calls had begun ends with its last thread, which is what `waitGone` waits for.
  processes.signal(found.process, "SIGKILL");
  if (!(await processes.waitGone(found.process, 60_000)))
    throw new Error(`process ${found.process.pid}, which exports ${found.volume}, cannot be ended: is its disk stuck?`);
  await rm(directory, { recursive: true, force: true });
  await rm(noteFile(exportsDirectory, found.volume, found.epoch), { force: true });
}

async function withdraw(directory: string, found: ExportProcess): Promise<void> {
  const id = exportId(found.epoch);
  let deleted = false;
  const qmp = await openControl(directory, found.process, (event, subject) => {
    if (event === "BLOCK_EXPORT_DELETED" && subject === id) deleted = true;
  });
  try {
    // Refused when it is gone, or going since an earlier attempt: the list below tells.
    await qmp.execute("block-export-del", { id, mode: "hard" }).catch(() => undefined);
    const until = performance.now() + 60_000;
    while (!deleted && (await listed(qmp)).includes(id)) {
      if (performance.now() > until) return;
      await sleep(5);
    }
    await qmp.execute("quit");
    await processControl.waitGone(found.process, 5_000);
  } finally {
    qmp.close();
  }
}

async function listed(qmp: Qmp): Promise<readonly string[]> {
  const answer = (await qmp.execute("query-block-exports")) as readonly { readonly id: string }[];
  return answer.map(({ id }) => id);
}

/** Connects to the control socket as soon as it answers; rejects when the process ends or stays silent. */
async function openControl(
  directory: string,
  process: ProcessIdentity,
  onEvent: (event: string, subject: unknown) => void = () => undefined,
): Promise<Qmp> {
  const until = performance.now() + 20_000;
  for (;;) {
    try {
      return await connectQmp(
        join(directory, socketFile),
        ({ event, data }) => onEvent(event, data.id),
        () => undefined,
      );
    } catch (error) {
      if (!isAlive(process)) throw new Error(await lastWords(directory));
      if (performance.now() > until) throw error;
    }
    await sleep(10);
  }
}

async function lastWords(directory: string): Promise<string> {
  const text = await readFile(join(directory, "log"), "utf8").catch(() => "");
  return text.trim().split("\n").at(-1) || "its process ended without a word";
}
