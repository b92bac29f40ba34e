import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attachment, DesiredDisk, DesiredInterface, Layer } from "../../core/documents/vocabulary.ts";
import { createQemuDriver } from "../../host/drivers/hypervisor/qemu.ts";
import { createDiverter } from "../../host/drivers/network/diverter/diverter.ts";
import { tapName } from "../../host/drivers/network/diverter/taps/devices.ts";
import { policy, rule } from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import { serve } from "../../host/drivers/network/diverter/testing/serve.testing.ts";
import { createStorageDriver } from "../../host/drivers/storage/driver-nbd.ts";
import { type ExportProcess, endExport, startExport } from "../../host/storage-agent/export-process.ts";
import { bootRecord } from "../../host/storage-agent/images/images.ts";
import { VolumeFiles } from "../../host/storage-agent/volume-files.ts";
import { ipv4, mac, peerName, type Uid, uid } from "../../model/cell/identifiers.ts";
import type { ImageManifest, ProcessConfiguration } from "../../runtime/installation.ts";

/**
 * One host and one storage server in a machine of their own: the real drivers, the disk over NBD with TLS, the guest's
 * network through the Diverter. Arguments: a directory, the cache of images.
 */
const [directory = "", cache = ""] = process.argv.slice(2);
const image = join(cache, "images", "tiny");
const manifest = JSON.parse(readFileSync(join(image, "manifest.json"), "utf8")) as ImageManifest;
const server = { address: ipv4("127.0.0.1"), firstPort: 20000 };
const files = new VolumeFiles({
  directory,
  imagesDirectory: join(cache, "images"),
  address: server.address,
  httpPort: 1,
});
const exportsDirectory = join(directory, "exports");
const runDirectory = join(directory, "run");
const hypervisor = createQemuDriver({ runDirectory });
const network = createDiverter({ directory: join(directory, "network"), runDirectory });
const golden = uid("bench-golden");
const exported: ExportProcess[] = [];
let port = server.firstPort;

async function offer(volume: Uid, epoch: number): Promise<Layer> {
  const access = {
    exportName: randomBytes(8).toString("hex"),
    pskIdentity: randomBytes(4).toString("hex"),
    pskHex: randomBytes(32).toString("hex"),
    port: port++,
  };
  const writable = epoch > 0;
  exported.push(
    await startExport({ exportsDirectory, volume, epoch, file: files.path(volume), writable, ...server, access }),
  );
  return { volume, address: server.address, ...access, writable };
}

let goldenLayer: Layer;
async function prepare(): Promise<void> {
  for (const each of [exportsDirectory, runDirectory, join(directory, "network"), join(directory, "boot")])
    mkdirSync(each, { recursive: true, mode: 0o711 });
  writeFileSync(join(directory, "peers.json"), '{"peers":{}}');
  // As if the host had fetched them before, which it does once for each image.
  const kept = join(directory, "boot", manifest.digest);
  for (const [into, names] of [
    [kept, ["kernel", "initrd"]],
    [`${kept}-saved`, ["memory", "state"]],
  ] as const) {
    mkdirSync(into, { recursive: true });
    for (const name of names) execFileSync("cp", ["--sparse=always", join(image, name), into]);
  }
  await files.prepare();
  await files.create(golden, { kind: "image", image: "tiny" }, null);
  goldenLayer = await offer(golden, 0);
  execFileSync("ip", ["link", "add", "up0", "type", "veth", "peer", "name", "up1"]);
  for (const device of ["up0", "up1"]) execFileSync("ip", ["link", "set", device, "up"]);
  const underlay = { address: ipv4("10.0.1.1"), mac: mac("02:00:00:00:01:01") };
  execFileSync("ip", ["addr", "add", `${underlay.address}/16`, "dev", "up0"]);
  await network.init({ device: "up0", ...underlay });
  await hypervisor.accelerator();
}

const configuration = { name: peerName("host.h1"), directory, runDirectory, peersFile: join(directory, "peers.json") };
const storage = createStorageDriver({ configuration: configuration as unknown as ProcessConfiguration });

export interface Started {
  /** From the order to start, and from the moment at which the machine was said to run, to its answer to a ping. */
  readonly orderedMs: number;
  /** From the order to the driver's word that it runs. */
  readonly runsMs: number;
  /** What the driver had to say. */
  readonly remark: string | null;
}

/** Starts the n-th machine on a new disk, waits for the answer to an echo request of its gateway, and takes it away. */
async function start(how: "boot" | "resume", number: number): Promise<Started> {
  const [vm, volume, card] = [uid(`bench-v${number}`), uid(`bench-d${number}`), uid(`bench-i${number}`)];
  await files.create(volume, { kind: "overlay" }, manifest.sizeMiB);
  const layers = [await offer(volume, 1), goldenLayer];
  const boot = bootRecord({ directory: image, manifest, provided: true }, server.address, 1);
  const attachment: Attachment = { volume, epoch: 1, sizeMiB: manifest.sizeMiB, layers, boot, pristine: true };
  const disk: DesiredDisk = {
    connection: uid(`bench-c${number}`),
    busType: "virtio",
    busNumber: null,
    busSlot: null,
    bootOrder: 0,
    readOnly: false,
    attachment,
  };
  const desired = cardOf(card, number);
  const global = {
    policies: [policy(1, number + 1, [rule(1, 2, 2, "icmp")])],
    interfaces: [{ vm, memoryMiB: 128, cellNumber: 1, desired }],
    locations: [],
  };
  await network.implementNetwork(global);
  await network.implementSecurityGroup(global);
  await network.implementAddressing(global);
  try {
    const began = performance.now();
    const disks = [await storage.compose(disk, how === "resume" ? { memoryMiB: 128, cpus: 1 } : undefined)];
    const machine = { vm, incarnation: 1, name: `m${number}`, memoryMiB: 128, cpus: 1, disks, data: null, start: how };
    const running = hypervisor.start({ ...machine, interfaces: [{ tap: tapName(card), desired }] });
    const answered = untilAnswered(card);
    // It may be over before the machine is said to run; then that is told below.
    answered.catch(() => undefined);
    const remark = await running;
    const runsMs = performance.now() - began;
    await answered;
    return { orderedMs: performance.now() - began, runsMs, remark };
  } finally {
    await hypervisor.stop(vm, 0);
    await storage.release(disk);
    await network.flush();
    const last = exported.pop();
    if (last !== undefined) await endExport(exportsDirectory, last);
    await files.remove(volume, { about: null, overlay: true, manager: null });
  }
}

/** Asks again and again, without waiting for answers, until there is one. */
async function untilAnswered(card: Uid): Promise<void> {
  let answered = false;
  const end = performance.now() + 60_000;
  while (!answered) {
    if (performance.now() > end) throw new Error("the guest did not answer within a minute");
    network.probe(card, { protocol: "icmp", port: null }, 100).then(
      (did) => {
        answered ||= did;
      },
      () => undefined,
    );
    await sleep(10);
  }
}

const cardOf = (card: Uid, number: number): DesiredInterface => ({
  uid: card,
  path: "bench/interface" as DesiredInterface["path"],
  mac: mac("02:00:00:00:aa:01"),
  address: ipv4("10.64.0.5"),
  prefixLength: 24,
  gateway: ipv4("10.64.0.1"),
  nameServer: ipv4("10.64.0.1"),
  hostName: `m${number}`,
  domain: "bench.cells.internal",
  identity: 2,
  vmIdentity: 3,
  subnetIdentity: 4,
  audience: [],
});

async function stop(): Promise<void> {
  await hypervisor.close();
  for (const each of exported.splice(0)) await endExport(exportsDirectory, each);
}

serve((method, args) => {
  switch (method) {
    case "prepare":
      return prepare();
    case "start":
      return start(args[0] === "resume" ? "resume" : "boot", Number(args[1]));
    case "stop":
      return stop();
    default:
      throw new Error(`no method ${method}`);
  }
});
