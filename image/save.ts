import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { SavedState } from "../core/documents/saved-state.ts";
import type { Accelerator } from "../host/drivers/hypervisor/driver.ts";
import { createGuestAgent } from "../host/drivers/hypervisor/guest/guest-agent.ts";
import { openIdentityPort } from "../host/drivers/hypervisor/guest/identity-port.ts";
import { probeAccelerator } from "../host/drivers/hypervisor/process/accelerator.ts";
import { asRecord } from "../host/drivers/hypervisor/process/lines.ts";
import { connectQmp, type Qmp } from "../host/drivers/hypervisor/qmp.ts";
import {
  engineOf,
  formOf,
  type SavedForm,
  savedForm,
  savedMachineArguments,
  seedBytesOf,
} from "../host/drivers/hypervisor/resume/saved-machine.ts";
import type { ImageManifest } from "../runtime/installation.ts";

const run = promisify(execFile);

const bootNode = "boot";
const seedNode = "seed";
const bootLimitMs = 120_000;
const migrationLimitMs = 60_000;

/** One state of an image. */
export interface Saving {
  readonly form: SavedForm;
  /** Of the kernel, behind the image's own. */
  readonly options: string;
  /** Names of the two files. */
  readonly part: (name: "memory" | "state") => string;
}
const tinySaving: Saving = { form: savedForm, options: "", part: (name) => name };

/** What saved states of these forms would depend on here, as one text: part of an image's identity. */
export async function savingInputs(forms: readonly SavedForm[] = [savedForm]): Promise<string> {
  const accelerator = await hereAccelerator();
  return `${forms.map((form) => formOf(form, accelerator)).join(" ")} ${await engineOf(accelerator)}`;
}

/**
 * Boots the image once without a network card and with an empty seed volume, and writes what it then is: `memory`, the
 * guest's memory with holes where it is zero, and `state`, the state of its devices. The guest has no identity yet and
 * has only read its disk, which is checked; so the disk that belongs to that memory is the image's own, unwritten.
 * Rejects with a sentence when the guest does not come up or cannot be saved.
 */
export async function saveState(
  directory: string,
  image: ImageManifest,
  { form, options, part }: Saving = tinySaving,
): Promise<SavedState> {
  if (image.boot === null) throw new Error(`image "${image.name}" has no recorded kernel to be saved with`);
  const accelerator = await hereAccelerator();
  // Not below the cache: paths of sockets end at 107 bytes.
  const work = await mkdtemp(join(tmpdir(), "cells-save-"));
  let child: ChildProcess | null = null;
  try {
    const [memory, state] = [join(directory, part("memory")), join(directory, part("state"))];
    const overlay = join(work, "overlay.qcow2");
    await run("qemu-img", ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", join(directory, image.disk), overlay]);
    const boot = { ...image.boot, commandLine: `${image.boot.commandLine}${options}` };
    child = await startMachine(work, directory, overlay, memory, boot, accelerator, form);
    await saveRunning(work, state, image.boot.agent === true);
    await ended(child);
    const { stdout } = await run("qemu-img", ["map", "--output=json", overlay]);
    if ((JSON.parse(stdout) as readonly { readonly depth: number; readonly data: boolean }[]).some(isWritten))
      throw new Error("the guest wrote to its disk before it had an identity: its state belongs to no image");
    await run("fallocate", ["--dig-holes", memory]);
    return {
      ...form,
      diskMiB: image.sizeMiB,
      engine: await engineOf(accelerator),
      form: formOf(form, accelerator),
      memorySha256: await sha256(memory),
      stateSha256: await sha256(state),
    };
  } catch (error) {
    const words = (await readFile(join(work, "log"), "utf8").catch(() => "")).trim().split("\n").at(-1) ?? "";
    throw new Error(`${error instanceof Error ? error.message : error}${words === "" ? "" : `; QEMU said: ${words}`}`);
  } finally {
    child?.kill("SIGKILL");
    await rm(work, { recursive: true, force: true });
  }
}

const isWritten = ({ depth, data }: { readonly depth: number; readonly data: boolean }): boolean => depth === 0 && data;

const hereAccelerator = async (): Promise<Accelerator> =>
  (await probeAccelerator(join(tmpdir(), "cells-accelerator"), null)).accelerator;

async function startMachine(
  work: string,
  directory: string,
  overlay: string,
  memory: string,
  boot: NonNullable<ImageManifest["boot"]>,
  accelerator: Accelerator,
  form: SavedForm,
): Promise<ChildProcess> {
  const seed = join(work, "seed");
  await writeFile(seed, "");
  await truncate(seed, seedBytesOf(form));
  await rm(memory, { force: true });
  const args = [
    // Else the state says "paused", and a host's `cont` that arrives while it is being loaded would be forgotten.
    "-global",
    "migration.store-global-state=off",
    "-blockdev",
    JSON.stringify({ driver: "qcow2", "node-name": bootNode, file: fileNode(overlay) }),
    "-blockdev",
    JSON.stringify({ driver: "raw", "node-name": seedNode, "read-only": true, file: fileNode(seed) }),
    ...savedMachineArguments(form, accelerator, {
      qmpSocket: join(work, "qmp"),
      agentSocket: join(work, "agent"),
      serialSocket: join(work, "serial"),
      identitySocket: join(work, "identity"),
      memoryFile: memory,
      shared: true,
      bootNode,
      seedNode,
      bootDevice: "boot-disk",
      bootSerial: "",
      kernel: join(directory, boot.kernel),
      initrd: join(directory, boot.initrd),
      commandLine: boot.commandLine,
    }),
  ];
  const child = spawn("sh", ["-c", 'exec qemu-system-x86_64 "$@" 2>"$0"', join(work, "log"), ...args], {
    stdio: "ignore",
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => resolve(child));
  });
}

const fileNode = (filename: string) => ({ driver: "file", filename });

/** `agent`: the guest is brought to rest by its agent; else it came to rest before it said that it waits. */
async function saveRunning(work: string, state: string, agent: boolean): Promise<void> {
  let told: (status: string) => void = () => undefined;
  const qmp = await connected(work, (event, data) => {
    if (event === "MIGRATION" && typeof data.status === "string") told(data.status);
  });
  const guest = createGuestAgent(join(work, "agent"));
  const port = await openIdentityPort(join(work, "identity"));
  try {
    await qmp.execute("cont");
    const said = await port.next(bootLimitMs);
    if (said !== "waiting") throw new Error(`the guest does not wait to be told who it is: ${said}`);
    if (agent) {
      const { exitCode, stderr } = await guest.exec(["/etc/cells/quiesce"], bootLimitMs);
      if (exitCode !== 0) throw new Error(`the guest could not come to rest: ${stderr.trim()}`);
    }
    await qmp.execute("stop");
    const capabilities = ["events", "x-ignore-shared"].map((capability) => ({ capability, state: true }));
    await qmp.execute("migrate-set-capabilities", { capabilities });
    const finished = new Promise<string>((resolve) => {
      told = (status) => {
        if (/^(completed|failed|cancelled)$/.test(status)) resolve(status);
      };
    });
    await qmp.execute("migrate", { uri: `exec:cat >'${state}'` });
    const status = await Promise.race([finished, sleep(migrationLimitMs, "still under way", { ref: false })]);
    if (status !== "completed")
      throw new Error(`saving is ${status}: ${JSON.stringify(await qmp.execute("query-migrate"))}`);
    await qmp.execute("quit");
  } finally {
    guest.close();
    port.close();
    qmp.close();
  }
}

async function connected(
  work: string,
  event: (name: string, data: Readonly<Record<string, unknown>>) => void,
): Promise<Qmp> {
  for (let tries = 200; ; tries -= 1) {
    try {
      return await connectQmp(
        join(work, "qmp"),
        (news) => event(news.event, asRecord(news.data)),
        () => undefined,
      );
    } catch (error) {
      if (tries <= 0) throw error;
      await sleep(50);
    }
  }
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once("exit", () => resolve());
  });

async function sha256(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
