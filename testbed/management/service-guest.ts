import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { type Frame, protocolVersion } from "../../core/distribution/node/frames.ts";
import { savedPart } from "../../core/documents/saved-state.ts";
import type { BootRecord, DesiredInterface } from "../../core/documents/vocabulary.ts";
import type { MachineSpecification } from "../../host/drivers/hypervisor/driver.ts";
import { createQemuDriver } from "../../host/drivers/hypervisor/qemu.ts";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";
import type { ComposedDisk } from "../../host/drivers/storage/driver.ts";
import { unpackMemory } from "../../host/drivers/storage/packed-memory.ts";
import { ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { issueCertificate } from "../../runtime/identity/certificates.ts";
import { type ImageManifest, ports } from "../../runtime/installation.ts";
import { createFrameReader, encodeFrame } from "../../runtime/transport/frame-codec.ts";
import { guestAddress, hostAddress } from "./service-authority.ts";

/**
 * One service VM in the network namespace of this process, run by the host's own hypervisor driver: the image's disk as a
 * copy, a data volume that outlives it, a tap. Arguments: a directory, the image's directory. For tests and measuring.
 */
const [directory = "", image = ""] = process.argv.slice(2);
const run = promisify(execFile);
const vm = uid("service-1");
const runDirectory = join(directory, "run");
const hypervisor = createQemuDriver({ runDirectory });
let incarnation = 0;

export interface GuestStart {
  readonly memoryMiB: number;
  readonly data: Json;
  /** False: returns without an answer. */
  readonly awaitAnswer: boolean;
  /** Absent: "boot". */
  readonly how?: "boot" | "resume";
  /** Absent: 1. */
  readonly cpus?: number;
  /** Nothing is on its boot disk. */
  readonly emptied?: boolean;
  /** `MachineSpecification.files`, base64. */
  readonly files?: Readonly<Record<string, string>>;
}
export interface GuestStarted {
  /** From the order to start to the answer to an echo request. */
  readonly answeredMs: number;
  /** CPU time of QEMU until then. */
  readonly cpuMs: number;
  /** From the order to the driver's word that it runs, and what that had to say. */
  readonly runsMs: number;
  readonly remark: string | null;
}

const desired: DesiredInterface = {
  uid: uid("service-i1"),
  path: "service/interface" as DesiredInterface["path"],
  mac: mac("02:00:0a:00:00:0d"),
  address: ipv4(guestAddress),
  prefixLength: 16,
  gateway: ipv4("0.0.0.0"),
  nameServer: ipv4(hostAddress),
  hostName: "service",
  domain: "cells.internal",
  identity: 2,
  vmIdentity: 3,
  subnetIdentity: 4,
  audience: [],
};

function prepare(): void {
  mkdirSync(runDirectory, { recursive: true, mode: 0o711 });
  const ip = (...args: readonly string[]): void => void execFileSync("ip", args);
  ip("tuntap", "add", "tap0", "mode", "tap", "vnet_hdr");
  ip("addr", "add", `${hostAddress}/16`, "dev", "tap0");
  ip("link", "set", "tap0", "up");
  // Else ping would be told that nobody has the address, and give up.
  ip("neigh", "add", guestAddress, "lladdr", desired.mac, "dev", "tap0", "nud", "permanent");
}

/** A file that QEMU's unprivileged user may write. */
const disk = (
  name: string,
  boot: ComposedDisk["boot"] = null,
  sizeMiB = 64,
  record: BootRecord | null = null,
): ComposedDisk => {
  const file = join(directory, `${name}.qcow2`);
  chmodSync(file, 0o666);
  const node = `${name}-node`;
  return {
    desired: {
      connection: uid(`service-${name}`),
      busType: "virtio",
      busNumber: null,
      busSlot: null,
      bootOrder: boot === null ? null : 0,
      readOnly: false,
      attachment: { volume: uid(`service-v${name}`), epoch: 1, sizeMiB, layers: [], boot: record },
    },
    objects: [],
    node,
    boot,
    secretDirectories: [],
    blockdevs: [
      JSON.stringify({
        driver: "qcow2",
        "node-name": node,
        discard: "unmap",
        file: { driver: "file", filename: file },
      }),
    ],
  };
};

async function start(wanted: GuestStart): Promise<GuestStarted> {
  const { memoryMiB, data, awaitAnswer, files = {}, how = "boot", cpus = 1, emptied = false } = wanted;
  const manifest = JSON.parse(readFileSync(join(image, "manifest.json"), "utf8")) as ImageManifest;
  if (manifest.boot === null) throw new Error("the image has no kernel");
  const base = ["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", join(image, manifest.disk)];
  await run("qemu-img", [
    ...(emptied ? base.slice(0, 4) : base),
    join(directory, "root.qcow2"),
    `${manifest.sizeMiB}M`,
  ]);
  if (!existsSync(join(directory, "data.qcow2")))
    await run("qemu-img", ["create", "-q", "-f", "qcow2", join(directory, "data.qcow2"), "256M"]);
  const { commandLine, savedSizes = [] } = manifest.boot;
  const size = { memoryMiB, cpus };
  const memory = join(directory, `memory-${memoryMiB}-${cpus}`);
  const packed = join(image, savedPart("memory", size));
  if (!existsSync(memory) && existsSync(packed)) await unpackMemory(packed, memory, memoryMiB * 1024 * 1024);
  const boot = {
    kernel: join(image, manifest.boot.kernel),
    initrd: join(image, manifest.boot.initrd),
    commandLine,
    saved: { memory, state: join(image, savedPart("state", size)) },
  };
  const record = { digest: manifest.digest, address: ipv4(hostAddress), port: 1, commandLine, savedSizes };
  incarnation += 1;
  const machine: MachineSpecification = {
    vm,
    incarnation,
    name: "service",
    memoryMiB,
    cpus,
    data,
    start: how,
    disks: [disk("root", boot, manifest.sizeMiB, record), disk("data")],
    interfaces: [{ tap: "tap0", desired }],
    files: Object.fromEntries(Object.entries(files).map(([path, text]) => [path, Buffer.from(text, "base64")])),
  };
  await hypervisor.accelerator();
  const began = performance.now();
  const remark = await hypervisor.start(machine);
  const runsMs = performance.now() - began;
  if (awaitAnswer) await answer(90);
  return { answeredMs: performance.now() - began, cpuMs: cpuMs(await pid()), runsMs, remark };
}

/** With a deadline (-w), ping goes on until it has so many answers (-c). */
async function answer(seconds: number): Promise<void> {
  const asked = ["-q", "-n", "-i", "0.02", "-W", "1", "-c", "1", "-w", String(seconds), guestAddress];
  const said = await run("ping", asked).catch(() => null);
  if (said === null) throw new Error(`the guest did not answer within ${seconds} s; its console:\n${consoleText()}`);
}

const consoleText = (): string => {
  const file = join(runDirectory, "vms", vm, "console.log");
  return existsSync(file) ? readFileSync(file, "latin1") : "";
};

async function pid(): Promise<number> {
  const found = (await hypervisor.list()).find((machine) => machine.vm === vm);
  if (found === undefined) throw new Error(`the guest's QEMU is gone; its console:\n${consoleText()}`);
  return found.pid;
}

const cpuMs = (process: number): number => {
  const fields = readFileSync(`/proc/${process}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

/** Memory of the host that the guest takes, in MiB, and the CPU time that it took so far. */
async function usage(): Promise<{ readonly memoryMiB: number; readonly cpuMs: number }> {
  const process = await pid();
  const kib = /^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${process}/smaps_rollup`, "utf8"))?.[1];
  return { memoryMiB: Number(kib ?? 0) / 1024, cpuMs: cpuMs(process) };
}

async function stop(graceMs: number): Promise<string> {
  let said = consoleText();
  const watch = setInterval(() => {
    said = consoleText() || said;
  }, 20);
  await hypervisor.stop(vm, graceMs).finally(() => clearInterval(watch));
  return said;
}

/**
 * Desires a document of the peer at that port over state distribution, as controller `test` with a certificate of the
 * authority in `authority`. The peer's name once it has said that the document is durable, or `failed:` and why not.
 */
async function desire(port: number, authority: string, key: string, value: Json): Promise<string> {
  const name = peerName("controller.test");
  const files = await issueCertificate(authority, name, [hostAddress]);
  const [cert, key_, ca] = [files.certFile, files.keyFile, files.caFile].map((file) => readFileSync(file, "utf8"));
  const own = { cert: cert ?? "", key: key_ ?? "", ca: ca ?? "", minVersion: "TLSv1.3" as const };
  return new Promise((resolve) => {
    const socket = connect({ ...own, host: guestAddress, port, checkServerIdentity: () => undefined });
    const reader = createFrameReader();
    const send = (frame: Frame): boolean => socket.write(encodeFrame(frame) ?? "");
    const finish = (result: string): void => {
      resolve(result);
      socket.destroy();
    };
    let peer = "";
    socket.setTimeout(15_000, () => finish("failed: silence"));
    socket.once("error", (error) => finish(`failed: ${error.message}`));
    socket.once("close", () => finish("failed: the connection was closed"));
    socket.once("secureConnect", () =>
      send({ frame: "hello", version: protocolVersion, generation: Date.now(), session: 1, name }),
    );
    socket.on("data", (chunk: Buffer) => {
      for (const frame of reader.read(chunk) as unknown as readonly Frame[]) {
        if (frame.frame === "hello") {
          peer = frame.name;
          send({ frame: "desire", key, seq: 1, value });
        }
        if (frame.frame === "ack" && frame.seq >= 1) finish(peer);
      }
    });
  });
}

/** Asks the guest's DNS server. */
async function lookUp(name: string): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: 3000, tries: 4 });
  resolver.setServers([guestAddress]);
  return resolver.resolve4(name).catch(() => []);
}

/** As by a power cut. Resolves when the process is gone. */
async function cut(): Promise<void> {
  const victim = await pid();
  process.kill(victim, "SIGKILL");
  await hypervisor.stop(vm, 0);
}

let authority: ChildProcess | null = null;

/** Runs an authority beside the guest, with this configuration. Resolves when it can be asked. */
async function startAuthority(configuration: string): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../runtime/main.ts"), configuration], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  authority = child;
  for (let tries = 300; !(await isOpen(hostAddress, ports.enrolment)); tries -= 1) {
    if (tries === 0 || child.exitCode !== null) throw new Error("the authority does not answer");
    await sleep(100);
  }
}
const isOpen = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTcp({ host, port });
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

/** As by a power cut. */
async function cutAuthority(): Promise<void> {
  const child = authority;
  authority = null;
  if (child === null || child.exitCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** The next start finds a blank data volume. */
const forget = (): void => rmSync(join(directory, "data.qcow2"), { force: true });

async function end(): Promise<void> {
  await cutAuthority();
  await hypervisor.stop(vm, 0).catch(() => undefined);
  await hypervisor.close();
  rmSync(join(directory, "root.qcow2"), { force: true });
}

serve((method, args) => {
  switch (method) {
    case "prepare":
      return prepare();
    case "start":
      return start(args[0] as GuestStart);
    case "answers":
      return answer(Number(args[0])).then(
        () => true,
        () => false,
      );
    case "console":
      return consoleText();
    case "desire":
      return desire(Number(args[0]), String(args[1]), String(args[2]), args[3] as Json);
    case "lookUp":
      return lookUp(String(args[0]));
    case "usage":
      return usage();
    case "stop":
      return stop(Number(args[0]));
    case "cut":
      return cut();
    case "authority":
      return startAuthority(String(args[0]));
    case "cutAuthority":
      return cutAuthority();
    case "forget":
      return forget();
    case "end":
      return end();
    default:
      throw new Error(`no method ${method}`);
  }
});
