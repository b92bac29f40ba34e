import assert from "node:assert/strict";
import { test } from "node:test";
import type { SavedState } from "../../../../core/documents/saved-state.ts";
import type { Attachment } from "../../../../core/documents/vocabulary.ts";
import { ipv4, uid } from "../../../../model/cell/identifiers.ts";
import type { ComposedDisk } from "../../storage/driver.ts";
import type { MachineSpecification } from "../driver.ts";
import type { MachinePlaces } from "../process/arguments.ts";
import { Resumption, resumeArguments, resumeObstacle } from "./resume.ts";
import { formOf, savedForm, savedMachineArguments } from "./saved-machine.ts";

const here = { engine: "QEMU 7.2, emulated", form: formOf(savedForm, "tcg") };
const saved: SavedState = {
  ...savedForm,
  ...here,
  diskMiB: 64,
  memorySha256: "",
  stateSha256: "",
};
const attachment = (changes: Partial<Attachment> = {}, state: Partial<SavedState> = {}): Attachment => ({
  volume: uid("c1-8"),
  epoch: 1,
  sizeMiB: 64,
  layers: [],
  pristine: true,
  boot: {
    digest: "d",
    address: ipv4("10.0.2.1"),
    port: 1,
    commandLine: "quiet",
    saved: { ...saved, ...state },
  },
  ...changes,
});
const disk = (
  desired: Partial<ComposedDisk["desired"]> = {},
  files: NonNullable<ComposedDisk["boot"]>["saved"] = { memory: "/m", state: "/s" },
): ComposedDisk => ({
  desired: {
    connection: uid("c1-9"),
    busType: "virtio",
    busNumber: null,
    busSlot: null,
    bootOrder: 0,
    readOnly: false,
    attachment: attachment(),
    ...desired,
  },
  objects: ['{"id":"keys"}'],
  blockdevs: ['{"node-name":"root"}'],
  node: "root",
  secretDirectories: [],
  boot: { kernel: "/k", initrd: "/i", commandLine: "quiet", saved: files },
});
const machine = (changes: Partial<MachineSpecification> = {}): MachineSpecification => ({
  vm: uid("c1-1"),
  incarnation: 1,
  name: "web1",
  memoryMiB: 128,
  cpus: 1,
  disks: [disk()],
  interfaces: [],
  data: null,
  start: "resume",
  ...changes,
});

test("a machine goes on from a saved state only where everything is as it was, and says what is not", () => {
  assert.equal(resumeObstacle(machine(), here), null);
  const { boot: _, ...plain } = attachment();
  const cases: readonly (readonly [MachineSpecification, RegExp])[] = [
    [machine({ disks: [] }), /no disk to boot from/],
    [machine({ disks: [{ ...disk({ attachment: { ...plain, boot: null } }), boot: null }] }), /no saved state/],
    [machine({ disks: [disk({ attachment: { ...plain, boot: attachment().boot, sizeMiB: 65 } })] }), /of 64 MiB/],
    [machine({ memoryMiB: 256 }), /x\.memory 128 and x\.cpus 1, and it has 256 and 1/],
    [machine({ cpus: 2 }), /it has 128 and 2/],
    [machine({ disks: [disk({ attachment: attachment({}, { engine: "QEMU 9" }) })] }), /saved by QEMU 9, and .* 7\.2/],
    [machine({ disks: [disk({ attachment: attachment({}, { form: "other" }) })] }), /another release/],
    [machine({ disks: [disk({ readOnly: true })] }), /read-only/],
    [machine({ disks: [disk({ busType: "scsi" })] }), /boot disk must be on the bus "virtio"/],
    [machine({ disks: [disk({ busSlot: 7 })] }), /without a slot/],
    [machine({ disks: [disk(), disk({ connection: uid("c1-7"), bootOrder: null, busType: "ide" })] }), /disks must be/],
    [machine({ interfaces: Array(9).fill({ tap: "t", desired: {} }) }), /9 further disks and .* 8 can be plugged in/],
    [machine({ disks: [disk({}, { missing: "storage server s1 did not hand it out" })] }), /s1 did not hand it out/],
  ];
  for (const [wanted, why] of cases) assert.match(resumeObstacle(wanted, here) ?? "none", why);
  const { pristine: __, ...written } = attachment();
  assert.match(
    resumeObstacle(machine({ disks: [disk({ attachment: written })] }), here) ?? "",
    /may have been written/,
  );
});

test("an image whose guest only reads its disk has a state for each size, right for every start and on a larger disk", () => {
  const size = { memoryMiB: 256, cpus: 2 };
  const means = { ...here, form: formOf({ ...size, readsOnly: true }, "tcg") };
  const state: SavedState = { ...saved, ...means, ...size, readsOnly: true };
  const { pristine: _, boot, ...written } = attachment();
  const { saved: __, ...record } = boot ?? assert.fail();
  const service = (changes: Partial<Attachment>, wanted: Partial<MachineSpecification> = size): MachineSpecification =>
    machine({
      disks: [disk({ attachment: { ...written, boot: { ...record, savedSizes: [state] }, ...changes } })],
      ...wanted,
    });
  assert.equal(resumeObstacle(service({}), means), null);
  assert.equal(resumeObstacle(service({ sizeMiB: 192 }), means), null);
  assert.match(resumeObstacle(service({ sizeMiB: 63 }), means) ?? "", /of 64 MiB, and its disk has 63/);
  assert.match(
    resumeObstacle(service({}, { memoryMiB: 160 }), here) ?? "",
    /no state for x\.memory 160 and x\.cpus 1, but for 256 and 2/,
  );
  const args = resumeArguments(
    service({}),
    "tcg",
    {
      qmpSocket: "/q",
      agentSocket: "/a",
      serialSocket: "/c",
      displaySocket: "/d",
      seedImage: "/seed",
      tapDescriptors: [],
      kernelDescriptor: 6,
      initrdDescriptor: 7,
    },
    3,
    "/i",
  );
  assert.equal(args[args.indexOf("-m") + 1], "size=256M");
  assert.equal(args[args.indexOf("-smp") + 1], "2");
});

test("a VM boots once after a guest that went on from a state ended by itself", async () => {
  const resumption = new Resumption();
  const vm = machine();
  const isDoubted = async (): Promise<boolean> => /ended by itself/.test((await resumption.obstacle(vm, "tcg")) ?? "");
  resumption.began(vm);
  resumption.ended(vm.vm, vm.incarnation, false);
  assert.equal(await isDoubted(), false, "whoever ends it says nothing about its state");
  resumption.ended(vm.vm, vm.incarnation, true);
  assert.equal(await isDoubted(), false, "one that booted, too");
  resumption.began(vm);
  resumption.ended(vm.vm, vm.incarnation, true);
  assert.equal(await isDoubted(), true);
  assert.equal(await isDoubted(), false);
});

test("the machine that waits for a state has the saved form, and what is its own is not plugged in yet", () => {
  const places: MachinePlaces = {
    qmpSocket: "/q",
    agentSocket: "/a",
    serialSocket: "/c",
    displaySocket: "/d",
    seedImage: "/seed",
    tapDescriptors: [5],
    kernelDescriptor: 6,
    initrdDescriptor: 7,
  };
  const nic = { tap: "t", desired: { mac: "52:54:00:00:00:01" } } as unknown as MachineSpecification["interfaces"][0];
  const data: ComposedDisk = {
    ...disk({ connection: uid("c1-7"), bootOrder: null }),
    blockdevs: ['{"node-name":"more"}'],
    node: "more",
    boot: null,
  };
  const args = resumeArguments(machine({ interfaces: [nic], disks: [disk(), data] }), "tcg", places, 3, "/i");
  const devices = args.flatMap((argument, index) => (args[index - 1] === "-device" ? [JSON.parse(argument)] : []));
  assert.ok(
    devices.every(({ driver }) => driver !== "virtio-net-pci"),
    "a guest that is nobody has no network card",
  );
  assert.ok(devices.every(({ drive }) => drive !== "more"));
  assert.ok(args.includes("tap,id=net0,fd=5,vhost=off"));
  assert.ok(args.includes('{"node-name":"more"}'));
  const memory = args.find((argument) => argument.includes("memory-backend-file")) ?? "";
  assert.equal(JSON.parse(memory)["mem-path"], "/proc/self/fd/3");
  assert.equal(JSON.parse(memory).share, false, "what the guest writes is its own");
  assert.ok(args.includes("on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"));
  const form = savedMachineArguments(savedForm, "tcg", {
    qmpSocket: "/q",
    agentSocket: "/a",
    serialSocket: "/c",
    identitySocket: "/i",
    memoryFile: "/proc/self/fd/3",
    shared: false,
    kernel: "/proc/self/fd/6",
    initrd: "/proc/self/fd/7",
    commandLine: "quiet",
    bootNode: "root",
    seedNode: "seed",
    bootDevice: "disk-c1-9",
    bootSerial: "c1-9",
  });
  assert.ok(args.join("\n").includes(form.join("\n")), "the form is one piece, the one that the image was saved with");
  assert.notEqual(formOf(savedForm, "tcg"), formOf({ ...savedForm, memoryMiB: 256 }, "tcg"));
});
