import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { promisify } from "node:util";
import type { Json } from "../../../../model/json/json.ts";
import type { Accelerator } from "../driver.ts";
import { acceleratorArguments } from "../process/arguments.ts";

/**
 * The machine whose state is saved with an image and from which machines go on. QEMU gives a state back only to a
 * machine of the very same form, so this file is the one place that says what that form is, for `image/` that saves and
 * for the host that resumes; `formOf` names it. Devices have fixed places, and whatever a VM has of its own beyond its
 * boot disk and its seed is plugged into one of the free ports afterwards. Decision 18.
 */
export interface SavedForm {
  readonly memoryMiB: number;
  readonly cpus: number;
  /** As in `SavedState`. */
  readonly readsOnly?: true;
}

/** Sizes of the machine that the tiny image is saved with. */
export const savedForm: SavedForm = { memoryMiB: 128, cpus: 1 };
/** Free ports, for network cards and further disks. */
export const plugPorts = 8;
/**
 * The seed volume's size: a guest that is resumed believes that its disks have the size that they had. That of a service VM
 * holds the stores that it is born with, some 10 MiB; what is not written takes no room.
 */
export const seedBytesOf = ({ readsOnly }: Pick<SavedForm, "readsOnly">): number =>
  (readsOnly === true ? 64 : 4) * 1024 * 1024;

export interface SavedMachinePlaces {
  readonly qmpSocket: string;
  readonly agentSocket: string;
  readonly serialSocket: string;
  /** Where the guest waits to be told who it is; see `identity-port.ts`. */
  readonly identitySocket: string;
  /** The guest's memory; `shared`: what the guest writes goes into the file. */
  readonly memoryFile: string;
  readonly shared: boolean;
  readonly kernel: string;
  readonly initrd: string;
  readonly commandLine: string;
  /** Nodes of the boot disk and of the seed; both are defined by further arguments. */
  readonly bootNode: string;
  readonly seedNode: string;
  /** The boot disk's name in QEMU and for the guest (`/dev/disk/by-id/virtio-…`). */
  readonly bootDevice: string;
  readonly bootSerial: string;
}

const device = (properties: { readonly [key: string]: Json }): readonly string[] => [
  "-device",
  JSON.stringify(properties),
];

/** QEMU's arguments for the saved form, CPUs stopped. Names of files and nodes are no part of the form. */
export const savedMachineArguments = (
  { memoryMiB, cpus: processors }: SavedForm,
  accelerator: Accelerator,
  places: SavedMachinePlaces,
): readonly string[] => [
  "-machine",
  "q35,vmport=off,graphics=off,memory-backend=ram",
  "-object",
  JSON.stringify({
    "qom-type": "memory-backend-file",
    id: "ram",
    size: memoryMiB * 1024 * 1024,
    "mem-path": places.memoryFile,
    share: places.shared,
  }),
  ...acceleratorArguments(accelerator, memoryMiB),
  "-m",
  `size=${memoryMiB}M`,
  "-smp",
  String(processors),
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
  ...device({ driver: "pvpanic" }),
  "-kernel",
  places.kernel,
  "-initrd",
  places.initrd,
  "-append",
  places.commandLine,
  ...device({
    driver: "virtio-blk-pci",
    id: places.bootDevice,
    addr: "2",
    drive: places.bootNode,
    serial: places.bootSerial,
    werror: "stop",
    rerror: "stop",
    bootindex: 1,
  }),
  ...device({ driver: "virtio-blk-pci", id: "seed-disk", addr: "3", drive: places.seedNode }),
  ...device({ driver: "virtio-serial-pci", id: "channels", addr: "4" }),
  "-chardev",
  `socket,id=agent,path=${places.agentSocket},server=on,wait=off`,
  ...device({ driver: "virtserialport", bus: "channels.0", chardev: "agent", name: "org.qemu.guest_agent.0" }),
  "-chardev",
  `socket,id=identity,path=${places.identitySocket},server=on,wait=off`,
  ...device({ driver: "virtserialport", bus: "channels.0", chardev: "identity", name: "cells.identity" }),
  "-object",
  "rng-builtin,id=entropy",
  ...device({ driver: "virtio-rng-pci", rng: "entropy", addr: "5" }),
  ...Array.from({ length: plugPorts }, (_, index) =>
    device({
      driver: "pcie-root-port",
      id: `port${index}`,
      chassis: index + 1,
      addr: (0x10 + index).toString(16),
    }),
  ).flat(),
];

/** SHA-256 (hexadecimal) of the form: a state saved with another one cannot be given to this machine. */
export const formOf = (form: SavedForm, accelerator: Accelerator): string => {
  const nothing = {
    qmpSocket: "",
    agentSocket: "",
    serialSocket: "",
    identitySocket: "",
    memoryFile: "",
    shared: false,
    kernel: "",
    initrd: "",
    commandLine: "",
    bootNode: "",
    seedNode: "",
    bootDevice: "",
    bootSerial: "",
  };
  const args = savedMachineArguments(form, accelerator, nothing);
  return createHash("sha256")
    .update(JSON.stringify([args, seedBytesOf(form)]))
    .digest("hex");
};

const run = promisify(execFile);

/**
 * What a state depends on beyond the machine's form: QEMU to its package version, and the processor that the guest saw,
 * which is QEMU's own when emulated and this machine's otherwise. Takes some 30 ms.
 */
export const engineOf = async (accelerator: Accelerator): Promise<string> => {
  const { stdout } = await run("qemu-system-x86_64", ["--version"]);
  const version = stdout.split("\n")[0]?.replace(/^QEMU emulator version /, "") ?? "";
  return accelerator === "tcg" ? `QEMU ${version}, emulated` : `QEMU ${version}, ${await processor()}`;
};

const processor = async (): Promise<string> => {
  const flags = /^flags\s*:(.*)$/m.exec(await readFile("/proc/cpuinfo", "utf8"))?.[1] ?? "";
  const hash = createHash("sha256").update(flags.trim()).digest("hex").slice(0, 16);
  return `${cpus()[0]?.model ?? "unknown processor"} (features ${hash})`;
};
