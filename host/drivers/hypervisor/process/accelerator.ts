import { spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import type { Accelerator } from "../driver.ts";
import { acceleratorArguments, type Identity, launchPrefix, sandboxArguments } from "./arguments.ts";

/**
 * Which accelerator works here is found by using it: a boot sector that the firmware must load and that writes one byte to
 * QEMU's debug-exit port after it did in 64-bit mode what every kernel does. That /dev/kvm exists, or that a guest reaches
 * its boot sector, says too little: where KVM runs without hardware support (PVM), it ends a guest at the first CMPXCHG16B
 * or XRSTOR of its kernel. `probe.S` is its source, `accelerator.test.ts` compares.
 */
export const probeCode = [
  "+jHAjtiOwI7QvAB8/L8AEGYxwLkADGbzq8cGABADIMcGACADMMcGADCDAGa4ABAAAA8i2Ga4AQAAAA+iZonNZrsgBgAAZg+65Rpz",
  "B2aBywAABAAPIuNmuYAAAMAPMmYNAAEAAA8wDwEW8HxmuAMAAIAPIsDqeXwIALgQAAAAjtiOwI7QvwBgAAAPrgcPrg8PuuUacxAx",
  "yQ8B0L8AcAAAD64nD64vD7rlDXMkMcAx0rsBAAAAuQIAAAC/AFAAAEiJB0iJRwjwSA/HD4M/AXUEsBXm9PTr/WaQAAAAAAAAAAAA",
  "AAAAAJogAAAAAAAAkgAAFwDYfA==",
].join("");
/** What the code writes when all of it worked. */
const signalByte = 0x15;
/** isa-debug-exit ends QEMU with (value << 1) | 1. */
const expectedExit = (signalByte << 1) | 1;

const bootSector = (): Buffer => {
  // SeaBIOS cannot read a disk that has only one sector.
  const sector = Buffer.alloc(1024 * 1024);
  Buffer.from(probeCode, "base64").copy(sector);
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

const answerOf = (accelerator: Accelerator): string =>
  `${JSON.stringify({ accelerator, asked: probeCode, kernel: release() })}\n`;

/**
 * Answers from `<directory>/accelerator.json` if the same was asked before, of the same kernel. Rejects with a sentence when
 * not even emulation works. `directory` must be reachable by the unprivileged user.
 */
export const probeAccelerator = async (directory: string, identity: Identity | null): Promise<Accelerator> => {
  const file = join(directory, "accelerator.json");
  const remembered = await readFile(file, "utf8").catch(() => null);
  for (const accelerator of ["kvm", "tcg"] as const) if (remembered === answerOf(accelerator)) return accelerator;
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
    await writeFile(`${file}.new`, answerOf(accelerator));
    await rename(`${file}.new`, file);
    return accelerator;
  } finally {
    await rm(disk, { force: true });
  }
};
