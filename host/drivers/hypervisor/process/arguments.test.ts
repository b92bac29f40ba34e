import assert from "node:assert/strict";
import { test } from "node:test";
import type { DesiredDisk, DesiredInterface } from "../../../../core/documents/vocabulary.ts";
import { elementPath, ipv4, mac, uid } from "../../../../model/cell/identifiers.ts";
import type { ComposedDisk } from "../../storage/driver.ts";
import type { MachineSpecification } from "../driver.ts";
import { seedFiles } from "../guest/seed.ts";
import { savedForm, savedMachineArguments } from "../resume/saved-machine.ts";
import { bootSequence, diskArguments, launchPrefix, machineArguments, machineUuid } from "./arguments.ts";

const disk = (connection: string, desired: Partial<DesiredDisk> = {}): ComposedDisk => ({
  desired: {
    connection: uid(connection),
    busType: "virtio",
    busNumber: null,
    busSlot: null,
    bootOrder: null,
    readOnly: false,
    attachment: { volume: uid("v"), epoch: 1, sizeMiB: 1, layers: [], boot: null },
    ...desired,
  },
  objects: [`{"qom-type":"tls-creds-psk","id":"${connection}-t"}`],
  blockdevs: [`{"node-name":"${connection}-n"}`],
  node: `${connection}-n`,
  boot: null,
  secretDirectories: [],
});
const machine = (disks: readonly ComposedDisk[]): MachineSpecification => ({
  vm: uid("a-1"),
  incarnation: 7,
  name: "web",
  memoryMiB: 128,
  cpus: 2,
  disks,
  interfaces: [],
  data: null,
});
const nic: DesiredInterface = {
  uid: uid("a-4"),
  path: elementPath("shop/nic"),
  mac: mac("52:54:00:00:00:01"),
  address: ipv4("10.64.0.2"),
  prefixLength: 24,
  gateway: ipv4("10.64.0.1"),
  nameServer: ipv4("10.64.0.1"),
  hostName: "web",
  domain: "shop.cells.internal",
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
  audience: [],
};
const places = {
  qmpSocket: "/r/qmp",
  agentSocket: "/r/agent",
  serialSocket: "/r/serial",
  displaySocket: "/r/display",
  seedImage: "/r/seed.iso",
  tapDescriptors: [],
  kernelDescriptor: 3,
  initrdDescriptor: 4,
};
const devices = (args: readonly string[]): readonly Record<string, unknown>[] =>
  args.flatMap((arg, index) => (args[index - 1] === "-device" ? [JSON.parse(arg) as Record<string, unknown>] : []));

test("disks: explicit slots come first, boot order becomes bootindex, errors stop the guest", () => {
  const found = devices(
    diskArguments([
      disk("d1", { bootOrder: 5 }),
      disk("d2", { busSlot: 17, bootOrder: 2 }),
      disk("d3", { busType: "scsi", busSlot: 4 }),
      disk("d4", { busType: "ide", busSlot: 0 }),
      disk("d5", { busType: "ide" }),
    ]),
  );
  assert.deepEqual(
    found.map((device) => device.id),
    ["piix", "scsi", "disk-d2", "disk-d3", "disk-d4", "disk-d1", "disk-d5"],
  );
  const byId = new Map(found.map((device) => [device.id, device]));
  assert.equal(byId.get("disk-d2")?.addr, "11");
  assert.equal(byId.get("disk-d2")?.bootindex, 1);
  assert.equal(byId.get("disk-d1")?.bootindex, 2);
  assert.equal(byId.get("disk-d3")?.["scsi-id"], 4);
  assert.deepEqual([byId.get("disk-d5")?.bus, byId.get("disk-d5")?.unit], ["piix.0", 1]);
  assert.ok(found.slice(2).every((device) => device.werror === "stop" && device.rerror === "stop"));
});

test("disks: a guest's first disk is the one it is booted from, however they were declared", () => {
  const found = devices(
    diskArguments([disk("data"), disk("second", { bootOrder: 1 }), disk("boot", { bootOrder: 0 }), disk("more")]),
  );
  assert.deepEqual(
    found.map((device) => device.id),
    ["disk-boot", "disk-second", "disk-data", "disk-more"],
  );
});

test("disks: what a bus cannot carry is refused with a sentence", () => {
  assert.throws(
    () => diskArguments([disk("d", { busType: "ide", readOnly: true })]),
    /an ide disk cannot be read-only/,
  );
  assert.throws(() => diskArguments([disk("d", { busNumber: 3 })]), /virtio disks are on bus 0/);
  assert.throws(
    () => diskArguments(["a", "b", "c", "d", "e"].map((name) => disk(name, { busType: "ide" }))),
    /none is left/,
  );
});

test("the recorded kernel of the first boot disk is booted, of another disk never", () => {
  const boot = { kernel: "/k", initrd: "/i", commandLine: "console=ttyS0 root=/dev/vda" };
  const withKernel = { ...disk("d1", { bootOrder: 1 }), boot };
  const args = machineArguments(machine([disk("d2", { bootOrder: 2 }), withKernel]), "tcg", places);
  assert.equal(args[args.indexOf("-kernel") + 1], "/proc/self/fd/3");
  assert.equal(args[args.indexOf("-append") + 1], boot.commandLine);
  assert.ok(!machineArguments(machine([disk("d0"), withKernel]), "tcg", places).includes("/r/none"));
  assert.equal(bootSequence([disk("d0"), disk("d1")]).length, 1);
  const other = machineArguments(machine([disk("d2", { bootOrder: 0 }), withKernel]), "tcg", places);
  assert.ok(!other.includes("-kernel"));
});

test("QEMU gets no privilege and joins its cgroups first", () => {
  const bare = launchPrefix(null, null, []);
  assert.deepEqual([bare[0], ...bare.slice(3)], ["sh", "cells-launch", "0"]);
  assert.match(bare[2] ?? "", /^echo 500 > \/proc\/\$\$\/oom_score_adj; /);
  const prefix = launchPrefix({ uid: 1, gid: 2 }, null, ["/c/a"]);
  assert.equal(prefix[0], "sh");
  assert.ok(prefix.includes("--clear-groups") && prefix.includes("--no-new-privs"));
  assert.ok(prefix.indexOf("/c/a") < prefix.indexOf("setpriv"));
});

test("a VM keeps its UUID over incarnations, and its seed names the incarnation", () => {
  assert.equal(machineUuid("a-1"), machineUuid("a-1"));
  assert.match(machineUuid("a-1"), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const files = seedFiles(machine([]));
  assert.deepEqual(JSON.parse(files["meta-data"] ?? ""), { "instance-id": "a-1", "local-hostname": "web" });
  assert.equal(files["network-config"], undefined);
});

test("an emulated machine of 256 MiB or more has room for twice the translated code", () => {
  const cacheOf = (memoryMiB: number): string | undefined =>
    machineArguments({ ...machine([]), memoryMiB }, "tcg", places).find((argument) => argument.startsWith("tcg,"));
  assert.deepEqual([64, 255, 256, 4096].map(cacheOf), [
    "tcg,thread=multi,tb-size=64",
    "tcg,thread=multi,tb-size=64",
    "tcg,thread=multi,tb-size=128",
    "tcg,thread=multi,tb-size=128",
  ]);
});

test("an emulated processor has no string instructions that are fast elsewhere, a real one is the host's own", () => {
  const processorOf = (accelerator: "tcg" | "kvm"): string | undefined => {
    const args = machineArguments(machine([]), accelerator, places);
    return args[args.indexOf("-cpu") + 1];
  };
  assert.deepEqual([processorOf("tcg"), processorOf("kvm")], ["max,-erms", "host"]);
});

/** Drivers of `-device` and types of `-object`, written as JSON or as `type,key=value`. */
const kindsOf = (args: readonly string[]): ReadonlySet<unknown> =>
  new Set(
    args.flatMap((arg, index) => {
      const option = args[index - 1];
      if (option !== "-device" && option !== "-object") return [];
      if (!arg.startsWith("{")) return arg.split(",").slice(0, 1);
      const { driver, "qom-type": type } = JSON.parse(arg) as Record<string, unknown>;
      return [option === "-device" ? driver : type];
    }),
  );

/** What a machine that goes on from a saved state has in another way or not at all, and why. */
const notSaved = {
  "virtio-net-pci": "plugged in by resume.ts, once the guest is itself",
  "tls-creds-psk": "of a disk: resume.ts puts them in front of the saved form",
  "virtio-scsi-pci": "refused by resumeObstacle: such a machine boots",
  "scsi-hd": "refused by resumeObstacle: such a machine boots",
  "piix3-ide": "refused by resumeObstacle: such a machine boots",
  "ide-hd": "refused by resumeObstacle: such a machine boots",
};

test("what every machine has, one that goes on from a saved state has too", () => {
  const boot = { kernel: "/k", initrd: "/i", commandLine: "quiet" };
  const disks = [
    { ...disk("d1", { bootOrder: 0 }), boot },
    disk("d2", { busType: "scsi" }),
    disk("d3", { busType: "ide" }),
  ];
  const whole = { ...machine(disks), interfaces: [{ tap: "t1", desired: nic }] };
  const here = kindsOf(machineArguments(whole, "tcg", { ...places, tapDescriptors: [5] }));
  const saved = kindsOf(
    savedMachineArguments(savedForm, "tcg", {
      ...places,
      identitySocket: "/r/identity",
      memoryFile: "/r/memory",
      shared: false,
      kernel: "/k",
      initrd: "/i",
      commandLine: "quiet",
      bootNode: "boot",
      seedNode: "seed",
      bootDevice: "disk-boot",
      bootSerial: "boot",
    }),
  );
  const lacking = [...here].filter((kind) => !saved.has(kind));
  assert.deepEqual(
    lacking.sort(),
    Object.keys(notSaved).sort(),
    "add it to resume/saved-machine.ts, or say here why not",
  );
});
