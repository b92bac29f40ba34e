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

/** With KVM it takes a tenth of a second; on a machine that is busy with its own boot, more than anybody likes to wait for. */
const deadlineMs = { kvm: 5000, tcg: 30_000, kvmAgain: 30_000 };
/** `late`: neither that it works nor that it does not. */
export type ProbeOutcome = "works" | "fails" | "late";
type Ask = (accelerator: Accelerator, withinMs: number) => Promise<ProbeOutcome>;
export interface Probed {
  readonly accelerator: Accelerator;
  /** Why it may be another: KVM is there and has not answered. Nothing is remembered then. */
  readonly doubt?: string;
}

/** Group that may open the device, where the unprivileged user is in need of it. */
export const kvmGroup = async (accelerator: Accelerator): Promise<number | null> =>
  accelerator === "kvm"
    ? stat("/dev/kvm").then(
        (status) => status.gid,
        () => null,
      )
    : null;

const ask = async (
  accelerator: Accelerator,
  withinMs: number,
  identity: Identity | null,
  disk: string,
): Promise<ProbeOutcome> => {
  const [program, ...args] = [
    ...launchPrefix(identity, await kvmGroup(accelerator), []),
    "qemu-system-x86_64",
    ...sandboxArguments,
    "-machine",
    "q35",
    ...acceleratorArguments(accelerator, 32),
    "-m",
    "32M",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-blockdev",
    JSON.stringify({
      driver: "raw",
      "node-name": "probe",
      "read-only": true,
      file: { driver: "file", filename: disk, "read-only": true },
    }),
    "-device",
    "virtio-blk-pci,drive=probe,bootindex=0",
    "-device",
    "isa-debug-exit,iobase=0xf4,iosize=0x04",
  ];
  return new Promise((resolve) => {
    const child = spawn(program ?? "", args, { stdio: "ignore" });
    let outcome: ProbeOutcome = "fails";
    const timer = setTimeout(() => {
      outcome = "late";
      child.kill("SIGKILL");
    }, withinMs);
    const finish = (answer: ProbeOutcome): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    child.on("error", () => finish("fails"));
    child.on("exit", (code) => finish(code === expectedExit ? "works" : outcome));
  });
};

const answerOf = (accelerator: Accelerator): string =>
  `${JSON.stringify({ accelerator, asked: probeCode, kernel: release() })}\n`;

/** Throws a sentence when not even emulation works. */
async function find(hasKvm: boolean, asked: Ask, whoReads: string): Promise<Probed> {
  const first = hasKvm ? await asked("kvm", deadlineMs.kvm) : "fails";
  if (first === "works") return { accelerator: "kvm" };
  const emulated = await asked("tcg", deadlineMs.tcg);
  // By now the machine may be less busy.
  const second = first === "late" ? await asked("kvm", deadlineMs.kvmAgain) : first;
  if (second === "works") return { accelerator: "kvm" };
  if (emulated !== "works")
    throw new Error(
      emulated === "late" || second === "late"
        ? "QEMU has not booted a 512-byte payload in time, neither with KVM nor emulated: this machine is too busy to run guests"
        : `QEMU cannot boot a 512-byte payload, neither with KVM nor emulated: check that qemu-system-x86 is installed and that ${whoReads}`,
    );
  if (second === "fails") return { accelerator: "tcg" };
  const waitedS = deadlineMs.kvmAgain / 1000;
  return {
    accelerator: "tcg",
    doubt: `KVM has not answered within ${waitedS} s, so guests are emulated for now; the next start of the Host Manager asks again`,
  };
}

/**
 * Answers from `<directory>/accelerator.json` if the same was asked before, of the same kernel; that nothing was heard in time is
 * no answer, and is not kept there. Rejects with a sentence when not even emulation works. `directory` must be reachable by the
 * unprivileged user.
 */
export const probeAccelerator = async (directory: string, identity: Identity | null, asking?: Ask): Promise<Probed> => {
  const file = join(directory, "accelerator.json");
  const remembered = await readFile(file, "utf8").catch(() => null);
  for (const accelerator of ["kvm", "tcg"] as const) if (remembered === answerOf(accelerator)) return { accelerator };
  await mkdir(directory, { recursive: true });
  const disk = join(directory, `probe-${process.pid}.img`);
  await writeFile(disk, bootSector(), { mode: 0o644 });
  try {
    const hasKvm = asking !== undefined || (await kvmGroup("kvm")) !== null;
    const asked: Ask = asking ?? ((accelerator, withinMs) => ask(accelerator, withinMs, identity, disk));
    const found = await find(hasKvm, asked, `user ${identity?.uid ?? "root"} may read ${directory}`);
    if (found.doubt === undefined) {
      await writeFile(`${file}.new`, answerOf(found.accelerator));
      await rename(`${file}.new`, file);
    }
    return found;
  } finally {
    await rm(disk, { force: true });
  }
};
