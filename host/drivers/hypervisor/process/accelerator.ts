import { spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Accelerator } from "../driver.ts";
import { acceleratorArguments, type Identity, launchPrefix, sandboxArguments } from "./arguments.ts";

/**
 * Which accelerator works here is found by using it: a 512-byte boot sector that the firmware must load and that writes
 * one byte to QEMU's debug-exit port. On the test machine /dev/kvm exists, yet its guests never leave the firmware.
 */
const signalByte = 0x15;
/** isa-debug-exit ends QEMU with (value << 1) | 1. */
const expectedExit = (signalByte << 1) | 1;

const bootSector = (): Buffer => {
  // SeaBIOS cannot read a disk that has only one sector.
  const sector = Buffer.alloc(1024 * 1024);
  // mov al, signal; out 0xf4, al; hlt; jmp -3
  Buffer.from([0xb0, signalByte, 0xe6, 0xf4, 0xf4, 0xeb, 0xfd]).copy(sector);
  sector.writeUInt16LE(0xaa55, 510);
  return sector;
};

const deadlineMs: Readonly<Record<Accelerator, number>> = { kvm: 5000, tcg: 30_000 };

/** Group that may open the device, where the unprivileged user is in need of it. */
export const kvmGroup = async (accelerator: Accelerator): Promise<number | null> =>
  accelerator === "kvm"
    ? stat("/dev/kvm").then(
        (status) => status.gid,
        () => null,
      )
    : null;

const works = async (accelerator: Accelerator, identity: Identity | null, disk: string): Promise<boolean> => {
  const [program, ...args] = [
    ...launchPrefix(identity, await kvmGroup(accelerator), []),
    "qemu-system-x86_64",
    ...sandboxArguments,
    "-machine",
    "q35",
    ...acceleratorArguments(accelerator, 32),
    ...["-m", "32M", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"],
    "-blockdev",
    JSON.stringify({
      driver: "raw",
      "node-name": "probe",
      "read-only": true,
      file: { driver: "file", filename: disk, "read-only": true },
    }),
    ...["-device", "virtio-blk-pci,drive=probe,bootindex=0"],
    ...["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"],
  ];
  return new Promise((resolve) => {
    const child = spawn(program ?? "", args, { stdio: "ignore" });
    const timer = setTimeout(() => child.kill("SIGKILL"), deadlineMs[accelerator]);
    const finish = (answer: boolean): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    child.on("error", () => finish(false));
    child.on("exit", (code) => finish(code === expectedExit));
  });
};

/**
 * Answers from `<directory>/accelerator.json` if it was asked before. Rejects with a sentence when not even emulation
 * works. `directory` must be reachable by the unprivileged user.
 */
export const probeAccelerator = async (directory: string, identity: Identity | null): Promise<Accelerator> => {
  const file = join(directory, "accelerator.json");
  const remembered = await readFile(file, "utf8").catch(() => null);
  if (remembered === '"kvm"\n') return "kvm";
  if (remembered === '"tcg"\n') return "tcg";
  await mkdir(directory, { recursive: true });
  const disk = join(directory, `probe-${process.pid}.img`);
  await writeFile(disk, bootSector(), { mode: 0o644 });
  try {
    const hasKvm = (await kvmGroup("kvm")) !== null;
    const accelerator =
      hasKvm && (await works("kvm", identity, disk)) ? "kvm" : (await works("tcg", identity, disk)) ? "tcg" : null;
    if (accelerator === null)
      throw new Error(
        `QEMU cannot boot a 512-byte payload, neither with KVM nor emulated: check that qemu-system-x86 is installed and that user ${identity?.uid ?? "root"} may read ${directory}`,
      );
    await writeFile(`${file}.new`, `${JSON.stringify(accelerator)}\n`);
    await rename(`${file}.new`, file);
    return accelerator;
  } finally {
    await rm(disk, { force: true });
  }
};
