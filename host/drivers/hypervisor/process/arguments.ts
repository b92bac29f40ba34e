import { createHash } from "node:crypto";
import { machineShares } from "../../../../core/placer/machine-memory.ts";
import { mostViewers } from "../../../../model/cell/session-messages.ts";
import type { Json } from "../../../../model/json/json.ts";
import type { ComposedDisk } from "../../storage/driver.ts";
import type { Accelerator, MachineSpecification } from "../driver.ts";

/** Who QEMU runs as. No such user needs to exist; its numbers own nothing else on the machine. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/** Where a machine's files lie and under which numbers descriptors are handed to it. */
export interface MachinePlaces {
  readonly qmpSocket: string;
  readonly agentSocket: string;
  readonly serialSocket: string;
  readonly displaySocket: string;
  readonly seedImage: string;
  /** One per interface, in order. */
  readonly tapDescriptors: readonly number[];
  /** Descriptors of the recorded kernel, when the boot disk has one. */
  readonly kernelDescriptor: number | null;
  readonly initrdDescriptor: number | null;
}

/**
 * Translation cache of emulated code in MiB: QEMU's own choice takes 1.2 GiB per machine (measured). One that is full is
 * emptied, and everything is translated again: the start of four services in a machine of 320 MiB fills 64 MiB six times
 * and 128 MiB once (decision 40). Small machines run little code.
 */
export const translationCacheMiB = (memoryMiB: number): number => (machineShares(memoryMiB) === 1 ? 64 : 128);

/** The value of `-name`: by it, and by the start time, a machine is known again. */
export const machineName = (vm: string, incarnation: number): string => `guest=cells-${vm}-${incarnation}`;

/** Stable over all incarnations of a VM, as guests expect of their firmware. RFC 9562, version 8 (custom). */
export const machineUuid = (vm: string): string => {
  const hex = createHash("sha256").update(`cells vm ${vm}`).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16).padStart(2, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
};

/**
 * All that QEMU can emulate but the fast string instructions: who sees them copies and clears by `rep movsb` and `rep stosb`,
 * which are emulated byte by byte (decision 40: a file is written three times as fast without).
 */
export const emulatedProcessor = "max,-erms";

export const acceleratorArguments = (accelerator: Accelerator, memoryMiB: number): readonly string[] =>
  accelerator === "kvm"
    ? ["-accel", "kvm", "-cpu", "host"]
    : ["-accel", `tcg,thread=multi,tb-size=${translationCacheMiB(memoryMiB)}`, "-cpu", emulatedProcessor];

/** seccomp: no set-user-ID, no new processes, no change of limits. Privileges were dropped before, by `setpriv`. */
export const sandboxArguments: readonly string[] = [
  "-sandbox",
  "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
];

/** Between a machine and the management the kernel's OOM killer takes the machine (proc_pid_oom_score_adj(5)). */
const oomScoreAdjustment = 500;

/**
 * The command in front of QEMU: offers itself to the OOM killer, joins the cgroups (before the guest's memory is
 * allocated), then drops every privilege.
 * `kvmGroup` is kept only where the accelerator's device needs it.
 */
export const launchPrefix = (
  identity: Identity | null,
  kvmGroup: number | null,
  cgroupDirectories: readonly string[],
): readonly string[] => [
  "sh",
  "-c",
  `echo ${oomScoreAdjustment} > /proc/$$/oom_score_adj; n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; n=$((n-1)); done; exec "$@"`,
  "cells-launch",
  String(cgroupDirectories.length),
  ...cgroupDirectories,
  ...(identity === null
    ? []
    : [
        "setpriv",
        "--reuid",
        String(identity.uid),
        "--regid",
        String(identity.gid),
        ...(kvmGroup === null ? ["--clear-groups"] : ["--groups", String(kvmGroup)]),
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--no-new-privs",
      ]),
];

/** Disks in the order in which they are tried: by `bootOrder`, or as declared when none has one. */
export const bootSequence = (disks: readonly ComposedDisk[]): readonly ComposedDisk[] => {
  const ordered = disks
    .filter((disk) => disk.desired.bootOrder !== null)
    .sort((a, b) => (a.desired.bootOrder ?? 0) - (b.desired.bootOrder ?? 0));
  return ordered.length > 0 ? ordered : disks.slice(0, 1);
};

const device = (properties: { readonly [key: string]: Json }): readonly string[] => [
  "-device",
  JSON.stringify(properties),
];

/**
 * Devices of the disks. Those with a slot of their own come first, since QEMU gives out free slots in command-line order;
 * then those that are booted from, in their order, so that a guest's first disk is the one that it came from.
 * Throws a sentence where a bus cannot carry what is asked.
 */
export const diskArguments = (disks: readonly ComposedDisk[]): readonly string[] => {
  const sequence = bootSequence(disks);
  const ideTaken = new Set(
    disks
      .filter((disk) => disk.desired.busType === "ide")
      .flatMap((disk) =>
        disk.desired.busSlot === null ? [] : [`${disk.desired.busNumber ?? 0}.${disk.desired.busSlot}`],
      ),
  );
  const args: string[] = [];
  if (disks.some((disk) => disk.desired.busType === "ide")) args.push(...device({ driver: "piix3-ide", id: "piix" }));
  if (disks.some((disk) => disk.desired.busType === "scsi"))
    args.push(...device({ driver: "virtio-scsi-pci", id: "scsi" }));
  const others = disks.filter((disk) => !sequence.includes(disk));
  const onTheBus = [
    ...disks.filter((disk) => disk.desired.busSlot !== null),
    ...[...sequence, ...others].filter((disk) => disk.desired.busSlot === null),
  ];
  for (const disk of onTheBus) {
    for (const object of disk.objects) args.push("-object", object);
    for (const blockdev of disk.blockdevs) args.push("-blockdev", blockdev);
    const boot = sequence.indexOf(disk);
    args.push(
      ...device({
        ...busProperties(disk, ideTaken),
        id: `disk-${disk.desired.connection}`,
        drive: disk.node,
        // A guest finds its volumes under this name whatever the order: /dev/disk/by-id/virtio-<connection>.
        serial: disk.desired.connection.slice(0, 20),
        werror: "stop",
        rerror: "stop",
        ...(boot < 0 ? {} : { bootindex: boot + 1 }),
      }),
    );
  }
  return args;
};

const busProperties = (disk: ComposedDisk, ideTaken: Set<string>): { readonly [key: string]: Json } => {
  const { busType, busNumber, busSlot, connection, readOnly } = disk.desired;
  const refuse = (why: string): Error => new Error(`connection ${connection} cannot be made: ${why}`);
  switch (busType) {
    case "virtio": {
      if (busNumber !== null && busNumber !== 0)
        throw refuse(`virtio disks are on bus 0, not ${busNumber}; leave x.busNumber out`);
      if (busSlot !== null && (busSlot < 1 || busSlot > 30))
        throw refuse(`slot ${busSlot} is not free for disks on a virtio bus; use 1 to 30 or leave x.busSlot out`);
      return { driver: "virtio-blk-pci", ...(busSlot === null ? {} : { addr: busSlot.toString(16) }) };
    }
    case "scsi": {
      if (busNumber !== null && busNumber !== 0)
        throw refuse(`there is one scsi bus, number 0, not ${busNumber}; leave x.busNumber out`);
      return { driver: "scsi-hd", bus: "scsi.0", ...(busSlot === null ? {} : { "scsi-id": busSlot, lun: 0 }) };
    }
    case "ide": {
      // q35's own ide-hd hangs off AHCI, which the Debian cloud kernel cannot drive; it sees a PIIX3 (measured).
      if (readOnly) throw refuse('an ide disk cannot be read-only; use x.busType "virtio" or "scsi"');
      const channels = [0, 1].filter((channel) => busNumber === null || channel === busNumber);
      const places = channels.flatMap((channel) => [0, 1].map((unit) => ({ channel, unit })));
      const place =
        busSlot === null
          ? places.find(({ channel, unit }) => !ideTaken.has(`${channel}.${unit}`))
          : places.find(({ channel, unit }) => unit === busSlot && channel === (busNumber ?? 0));
      if (place === undefined) throw refuse("ide has two buses (0, 1) with two slots (0, 1) each, and none is left");
      ideTaken.add(`${place.channel}.${place.unit}`);
      return { driver: "ide-hd", bus: `piix.${place.channel}`, unit: place.unit };
    }
  }
};

const interfaceArguments = (machine: MachineSpecification, places: MachinePlaces): readonly string[] =>
  machine.interfaces.flatMap(({ desired }, index) => {
    const descriptor = places.tapDescriptors[index];
    if (descriptor === undefined) throw new Error(`the interface ${desired.path} has no open tap`);
    return [
      "-netdev",
      `tap,id=net${index},fd=${descriptor},vhost=off`,
      ...device({
        driver: "virtio-net-pci",
        id: `nic${index}`,
        netdev: `net${index}`,
        mac: desired.mac,
        romfile: "",
      }),
    ];
  });

const kernelArguments = (machine: MachineSpecification, places: MachinePlaces): readonly string[] => {
  const boot = bootSequence(machine.disks)[0]?.boot ?? null;
  if (boot === null || places.kernelDescriptor === null || places.initrdDescriptor === null) return [];
  return [
    "-kernel",
    `/proc/self/fd/${places.kernelDescriptor}`,
    "-initrd",
    `/proc/self/fd/${places.initrdDescriptor}`,
    "-append",
    boot.commandLine,
  ];
};

/**
 * A screen of VGA, and a pointer that says where it is, so that it is where the viewer's is. QEMU's VNC server listens at a unix socket in the directory of this
 * machine's user, and nowhere else: no other VM and nobody of the network reaches it, and what has a port asks for a password (decision 156).
 * `share=ignore`: whoever comes later ends nobody.
 */
const displayArguments = ({ display }: MachineSpecification, { displaySocket }: MachinePlaces): readonly string[] =>
  display === undefined
    ? []
    : [
        ...device({ driver: "VGA", id: "screen" }),
        ...device({ driver: "qemu-xhci", id: "usb" }),
        ...device({ driver: "usb-tablet", id: "pointer", bus: "usb.0" }),
        "-vnc",
        `unix:${displaySocket},share=ignore,connections=${mostViewers}`,
      ];

/**
 * QEMU's arguments for a machine. It starts with its CPUs stopped (`-S`), so that nothing of its console is missed, and
 * stays as a stopped process after the guest powered off (`-no-shutdown`), so that a Host Manager that was away at that
 * moment can still tell a power-off from a crash.
 *
 * A machine that goes on from a saved state has a list of its own, in `../resume/saved-machine.ts`: what every machine
 * shall have is added there too.
 */
export const machineArguments = (
  machine: MachineSpecification,
  accelerator: Accelerator,
  places: MachinePlaces,
): readonly string[] => [
  "qemu-system-x86_64",
  "-name",
  machineName(machine.vm, machine.incarnation),
  "-uuid",
  machineUuid(machine.vm),
  ...sandboxArguments,
  "-machine",
  `q35,vmport=off,graphics=${machine.display === undefined ? "off" : "on"}`,
  ...acceleratorArguments(accelerator, machine.memoryMiB),
  "-m",
  `size=${machine.memoryMiB}M`,
  "-smp",
  String(machine.cpus),
  "-nodefaults",
  "-no-user-config",
  "-display",
  "none",
  "-S",
  "-no-shutdown",
  "-chardev",
  `socket,id=qmp,path=${places.qmpSocket},server=on,wait=off`,
  "-mon",
  "chardev=qmp,mode=control",
  "-chardev",
  `socket,id=serial,path=${places.serialSocket},server=on,wait=off`,
  "-serial",
  "chardev:serial",
  // Takes no PCI slot. With -no-shutdown a panicked guest is kept as it is, also when its kernel would reboot at once.
  "-device",
  "pvpanic",
  ...diskArguments(machine.disks),
  ...kernelArguments(machine, places),
  ...interfaceArguments(machine, places),
  "-blockdev",
  JSON.stringify({
    driver: "raw",
    "node-name": "seed",
    "read-only": true,
    file: { driver: "file", filename: places.seedImage, "read-only": true },
  }),
  ...device({ driver: "virtio-blk-pci", id: "seed-disk", drive: "seed" }),
  ...device({ driver: "virtio-serial-pci", id: "channels" }),
  "-chardev",
  `socket,id=agent,path=${places.agentSocket},server=on,wait=off`,
  ...device({ driver: "virtserialport", bus: "channels.0", chardev: "agent", name: "org.qemu.guest_agent.0" }),
  "-object",
  "rng-builtin,id=entropy",
  ...device({ driver: "virtio-rng-pci", rng: "entropy" }),
  // Last, so that it takes no other device's slot: a guest names its network cards by them.
  ...displayArguments(machine, places),
];
