import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, chown, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExportAccess } from "../../core/storage/agent-work.ts";
import type { Uid } from "../../model/identifiers.ts";
import { identify, isAlive, type ProcessIdentity, signal, waitGone } from "../drivers/hypervisor/process.ts";
import { connectQmp, type Qmp } from "../drivers/hypervisor/qmp.ts";
import { setprivArguments, storageIdentity } from "../identity.ts";
import { listenAt } from "./listening-socket.ts";
import { PortTaken, type RunningExport } from "./machinery.ts";

/**
 * One `qemu-storage-daemon` (QSD) per export: a writable NBD export is not exclusive by itself, so a lease gets a process,
 * a port, a name and a key of its own, and all of them end with it. The process outlives the agent; its working
 * directory `<exports>/<uid>@<epoch>` is how it is found again.
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

/** Every QSD under this directory, whoever started it. */
export function findExports(exportsDirectory: string): readonly ExportProcess[] {
  const found: ExportProcess[] = [];
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid)) continue;
    const identity = identify(pid);
    const place = workingDirectory(pid);
    if (identity === null || place === null || dirname(place) !== exportsDirectory || !isAlive(identity)) continue;
    const match = /^([A-Za-z0-9-]+)@(\d+)$/.exec(basename(place));
    if (match !== null) found.push({ volume: match[1] as Uid, epoch: Number(match[2]), process: identity });
  }
  return found;
}

function workingDirectory(pid: number): string | null {
  try {
    // The program may still be `setpriv`, about to become the daemon.
    const program = basename(readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0] ?? "");
    return /^(qemu-storage-daemon|setpriv)$/.test(program) ? readlinkSync(`/proc/${pid}/cwd`) : null;
  } catch {
    return null;
  }
}

export interface StartExport {
  readonly exportsDirectory: string;
  readonly volume: Uid;
  readonly epoch: number;
  readonly file: string;
  readonly writable: boolean;
  readonly address: string;
  readonly access: ExportAccess;
}

/** Starts the daemon and its export. Rejects with a sentence (`PortTaken` for a port in use), and then nothing of it runs. */
export async function startExport(wanted: StartExport): Promise<ExportProcess> {
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
    const qmp = await openControl(directory, identity);
    try {
      await offer(qmp, wanted);
    } finally {
      qmp.close();
    }
    return started;
  } catch (error) {
    signal(identity, "SIGKILL");
    await waitGone(identity, 10_000);
    throw new Error(`the export of ${wanted.volume} did not start: ${(error as Error).message}`);
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
  const node = {
    driver: "file",
    "node-name": "file",
    // The descriptor this process was given; opened anew by the daemon under its own user.
    filename: "/proc/self/fd/3",
    "read-only": !wanted.writable,
    locking: "on",
    discard: "unmap",
  };
  const daemon = [
    "qemu-storage-daemon",
    ...["--chardev", `socket,id=control,path=${socketFile},server=on,wait=off`],
    ...["--monitor", "chardev=control"],
    ...["--object", "tls-creds-psk,id=key,dir=.,endpoint=server"],
    ...["--blockdev", JSON.stringify(node)],
    ...["--nbd-server", "addr.type=fd,addr.str=4,tls-creds=key"],
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
 * Ends an export so that no write through it can land any more. The order is what was measured (STORAGE): a hard
 * `block-export-del` answers at once while accepted writes still land until `BLOCK_EXPORT_DELETED`; the process is then
 * ended as well, and this resolves when it is confirmed gone. A dead process needs no more than that last confirmation.
 */
export async function endExport(exportsDirectory: string, found: ExportProcess): Promise<void> {
  const directory = exportDirectory(exportsDirectory, found.volume, found.epoch);
  if (isAlive(found.process)) await withdraw(directory, found).catch(() => undefined);
  // What its system calls had begun ends with its last thread, which is what `waitGone` waits for.
  signal(found.process, "SIGKILL");
  if (!(await waitGone(found.process, 60_000)))
    throw new Error(`process ${found.process.pid}, which exports ${found.volume}, cannot be ended: is its disk stuck?`);
  await rm(directory, { recursive: true, force: true });
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
    await waitGone(found.process, 5_000);
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
