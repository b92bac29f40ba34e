import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, closeSync, lchownSync, mkdirSync, openSync, readdirSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Accelerator, MachineEnd, MachineSpecification } from "./driver.ts";
import {
  bootSequence,
  type Identity,
  launchPrefix,
  type MachinePlaces,
  machineArguments,
} from "./process/arguments.ts";
import { asRecord } from "./process/lines.ts";
import { identify, type ProcessIdentity } from "./process/process.ts";
import { openTap } from "./process/tap.ts";
import { resumeArguments } from "./resume/resume.ts";

/**
 * Files of one machine below the run directory. All that we read or write lies in a directory of our own: where QEMU's
 * user could put a link in the place of a file, a guest that took its QEMU over would read and write as we do.
 */
export interface MachineFiles {
  readonly directory: string;
  /** The only place where QEMU may make anything: its sockets. */
  readonly sockets: string;
  readonly record: string;
  readonly qmp: string;
  readonly agent: string;
  readonly serial: string;
  /** Only of a machine with a screen. */
  readonly display: string;
  /** Only of a machine that goes on from a saved state. */
  readonly identity: string;
  readonly console: string;
  readonly seed: string;
  readonly log: string;
}
export const machineFiles = (machinesDirectory: string, vm: string): MachineFiles => {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(vm)) throw new Error(`"${vm}" is no UID: letters, digits and "-" only`);
  const directory = join(machinesDirectory, vm);
  // Short: a socket's path has at most 107 bytes.
  const sockets = join(directory, "s");
  return {
    directory,
    sockets,
    record: join(directory, "record.json"),
    qmp: join(sockets, "qmp"),
    agent: join(sockets, "agent"),
    serial: join(sockets, "serial"),
    display: join(sockets, "display"),
    identity: join(sockets, "identity"),
    console: join(directory, "console.log"),
    seed: join(directory, "seed.iso"),
    log: join(directory, "qemu.log"),
  };
};

/** What finds a machine again. `unfinished`: its guest goes on from a saved state and may not be itself yet. */
export const writeRecord = async (
  files: Pick<MachineFiles, "record">,
  { incarnation, cell }: Pick<MachineSpecification, "incarnation" | "cell">,
  process: ProcessIdentity | null,
  unfinished: boolean,
): Promise<void> => {
  const record = { incarnation, process, unfinished, ...(cell === undefined ? {} : { cell }) };
  await writeFile(`${files.record}.new`, JSON.stringify(record), { mode: 0o600 });
  await rename(`${files.record}.new`, files.record);
};
/** Null: there is none, or it says of no incarnation. */
export const readMachineRecord = async (files: Pick<MachineFiles, "record">) => {
  const record = asRecord(JSON.parse(await readFile(files.record, "utf8").catch(() => "null")));
  const { incarnation, cell, unfinished } = record;
  if (typeof incarnation !== "number") return null;
  const { pid, startTime } = asRecord(record.process);
  const process = typeof pid === "number" && typeof startTime === "string" ? { pid, startTime } : null;
  return { incarnation, process, unfinished: unfinished === true, cell: typeof cell === "string" ? cell : null };
};

/** Makes the directory of the sockets and lets QEMU's user, and nobody else, read the seed. */
export const handOver = (files: MachineFiles, identity: Identity | null): void => {
  chmodSync(files.directory, 0o711);
  mkdirSync(files.sockets, { mode: 0o700 });
  chmodSync(files.seed, 0o440);
  if (identity === null) return;
  chownSync(files.seed, process.getuid?.() ?? 0, identity.gid);
  chownSync(files.sockets, identity.uid, identity.gid);
};

/** Gives the files in a directory of ours, which stays ours, to QEMU's user. */
export const handOverSecrets = (directory: string, identity: Identity | null): void => {
  if (identity === null) return;
  for (const name of readdirSync(directory)) lchownSync(join(directory, name), identity.uid, identity.gid);
  chmodSync(directory, 0o711);
};

export interface LaunchOptions {
  readonly machine: MachineSpecification;
  readonly files: MachineFiles;
  readonly accelerator: Accelerator;
  readonly identity: Identity | null;
  readonly kvmGroup: number | null;
  readonly cgroupDirectories: readonly string[];
  /** Go on from a saved state: its memory, sealed and kept open by the caller, and the path of the devices' state. */
  readonly resume: { readonly memory: number; readonly state: string } | null;
}
/** Under which numbers QEMU finds a saved memory and state. */
const memoryDescriptor = 3;
export const stateDescriptor = 4;

/**
 * Starts QEMU so that it outlives this process: its own session, no pipe to us. Taps and kernels are opened here and
 * handed over as descriptors, since QEMU's user may neither configure the network nor walk our directories.
 */
export const launch = (options: LaunchOptions): ChildProcess => {
  const { machine, files } = options;
  const opened: number[] = [];
  const hand = (descriptor: number): number => {
    opened.push(descriptor);
    return 3 + (options.resume === null ? 0 : 1) + opened.length - 1;
  };
  const log = openSync(files.log, "a", 0o600);
  try {
    const boot = bootSequence(machine.disks)[0]?.boot ?? null;
    const saved = options.resume === null ? [] : [options.resume.memory];
    if (options.resume !== null) opened.push(openSync(options.resume.state, "r"));
    const places: MachinePlaces = {
      qmpSocket: files.qmp,
      agentSocket: files.agent,
      serialSocket: files.serial,
      displaySocket: files.display,
      seedImage: files.seed,
      tapDescriptors: machine.interfaces.map(({ tap }) => hand(openTap(tap))),
      kernelDescriptor: boot === null ? null : hand(openSync(boot.kernel, "r")),
      initrdDescriptor: boot === null ? null : hand(openSync(boot.initrd, "r")),
    };
    const args = [
      ...launchPrefix(options.identity, options.kvmGroup, options.cgroupDirectories),
      ...(options.resume === null
        ? machineArguments(machine, options.accelerator, places)
        : resumeArguments(machine, options.accelerator, places, memoryDescriptor, files.identity)),
    ];
    const child = spawn(args[0] ?? "", args.slice(1), {
      detached: true,
      stdio: ["ignore", log, log, ...saved, ...opened],
      cwd: "/",
      // Nothing of ours: whoever takes over a QEMU may read its environment.
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
    });
    child.unref();
    return child;
  } finally {
    closeSync(log);
    for (const descriptor of opened) closeSync(descriptor);
  }
};

/** Resolves when the process exists; rejects when it could not be made. */
export const processOf = (child: ChildProcess): Promise<ProcessIdentity> =>
  new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => {
      const identity = child.pid === undefined ? null : identify(child.pid);
      if (identity === null) reject(new Error("QEMU ended at once"));
      else resolve(identity);
    });
  });

/**
 * QEMU's last words, as part of a sentence. A failed assertion has no name of a program in front and is what it ended by;
 * warnings are of before.
 */
export const lastWords = async (files: Pick<MachineFiles, "log">): Promise<string> => {
  const text = await readFile(files.log, "utf8").catch(() => "");
  const lines = text.trim().split("\n");
  const said = lines.filter((line) => !/^qemu-system\S*: warning: /.test(line));
  const last =
    said.findLast((line) => /qemu-system|^ERROR:|assertion/i.test(line)) ?? said.at(-1) ?? lines.at(-1) ?? "";
  return last.replace(/^qemu-system-x86_64: /, "").slice(0, 500) || "it left no message";
};

/** What the guest's kernel wrote about its own end, as the rest of a sentence; "" when it wrote nothing. A guest's words. */
const panicWords = async (files: MachineFiles): Promise<string> => {
  const text = await readFile(files.console, "latin1").catch(() => "");
  const line = text.split("\n").findLast((candidate) => candidate.includes("Kernel panic"));
  if (line === undefined) return "";
  const words = line.slice(line.indexOf("Kernel panic")).replace(/[^ -~]/g, "");
  return `: ${words.slice(0, 200)}`;
};

/** How a machine ended whose process is gone, and a sentence. */
export async function howItEnded(seen: {
  readonly stopping: boolean;
  readonly guestOff: boolean;
  readonly dead: string | null;
  readonly files: MachineFiles;
}): Promise<Pick<MachineEnd, "ended" | "detail">> {
  if (seen.stopping) return { ended: "stopped", detail: "stopped on request" };
  if (seen.guestOff) return { ended: "exited", detail: "the guest powered itself off" };
  if (seen.dead !== null) return { ended: "crashed", detail: `${seen.dead}${await panicWords(seen.files)}` };
  return { ended: "crashed", detail: `its QEMU process ended unexpectedly: ${await lastWords(seen.files)}` };
}
