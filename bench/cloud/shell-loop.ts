import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createGuestAgent } from "../../host/drivers/hypervisor/guest/guest-agent.ts";
import { launchPrefix } from "../../host/drivers/hypervisor/process/arguments.ts";
import { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { qemuIdentity } from "../../host/drivers/unix-users.ts";
import { processesWith } from "./cloud.ts";

/**
 * The same machines without a cloud: QEMU's arguments are taken from the machines that the cloud runs, and changed only
 * where they name what the cloud made for them. Disks are local files instead of connections to storage servers, taps are
 * opened by name instead of handed over, and the CPUs run from the beginning.
 */
export interface LocalFiles {
  readonly kernel: string;
  readonly initrd: string;
  /** The image's disk; empty qcow2 files of so many bytes are laid over it. */
  readonly disk: string;
  readonly bytes: number;
}

const option = /^-/;
type Node = { readonly [key: string]: unknown };
const asNode = (text: string): Node => JSON.parse(text) as Node;

/** Pairs of an option and its value; an option without a value stands alone. */
function pairs(args: readonly string[]): readonly (readonly string[])[] {
  const result: string[][] = [];
  for (const arg of args) {
    const last = result.at(-1);
    if (last === undefined || option.test(arg) || last.length === 2) result.push([arg]);
    else last.push(arg);
  }
  return result;
}

/** Layer 0 of a volume is its own, the others are its origins'. */
function localDisk(node: Node, overlay: string, files: LocalFiles): Node {
  const own = String(node["node-name"]).endsWith("-0n");
  return {
    driver: "file",
    "node-name": node["node-name"],
    filename: own ? overlay : files.disk,
    "read-only": node["read-only"],
  };
}

/** What a QEMU of the cloud was started with, for a directory of one's own. */
export function localArguments(
  args: readonly string[],
  own: { readonly from: string; readonly to: string; readonly tap: string },
  files: LocalFiles,
): readonly string[] {
  const moved = pairs(args.map((arg) => arg.replaceAll(own.from, own.to)));
  return moved.flatMap(([name = "", value]): readonly string[] => {
    if (value === undefined) return name === "-S" ? [] : [name];
    if (name === "-object" && value.includes("tls-creds-psk")) return [];
    if (name === "-kernel") return [name, files.kernel];
    if (name === "-initrd") return [name, files.initrd];
    if (name === "-netdev") return [name, value.replace(/fd=\d+/, `ifname=${own.tap},script=no,downscript=no`)];
    if (name === "-blockdev" && asNode(value).driver === "nbd")
      return [name, JSON.stringify(localDisk(asNode(value), join(own.to, "disk.qcow2"), files))];
    return [name, value];
  });
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Directory of the machine's files, seen by its own QEMU, from its control socket, which lies one deeper. */
function directoryOf(args: readonly string[]): string {
  const socket = args.map((arg) => /^socket,id=qmp,path=([^,]+),/.exec(arg)?.[1]).find((path) => path !== undefined);
  if (socket === undefined) throw new Error("a machine's QEMU has no control socket in its arguments");
  return dirname(dirname(socket));
}

/** Everything but the processes, ready to be started again and again. `remove` takes all of it away. */
export class ShellLoop {
  readonly #directory: string;
  readonly #machine: Machine;
  readonly #machines: readonly string[];

  private constructor(directory: string, machine: Machine, machines: readonly string[]) {
    this.#directory = directory;
    this.#machine = machine;
    this.#machines = machines;
  }

  /** `pids`: the QEMUs to be imitated. They must still run. */
  static async like(pids: readonly number[], files: LocalFiles): Promise<ShellLoop> {
    const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
    const machine = await Machine.start();
    try {
      chmodSync(directory, 0o711);
      // The machine's own device may be root's alone; in the cloud the Host Manager opens it.
      const tun = join(directory, "tun");
      machine.run("sh", "-euc", 'mknod -m 666 "$1" c 10 200; mount --bind "$1" /dev/net/tun', "tun", tun);
      const commands: string[] = [];
      const machines: string[] = [];
      for (const [index, pid] of pids.entries()) {
        const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
        const own = { from: directoryOf(args), to: join(directory, `m${index}`), tap: `tap${index}` };
        mkdirSync(join(own.to, "s"), { recursive: true });
        copyFileSync(`/proc/${pid}/root${own.from}/seed.iso`, join(own.to, "seed.iso"));
        const { uid, gid } = qemuIdentity;
        machine.run(
          "ip",
          "tuntap",
          "add",
          own.tap,
          "mode",
          "tap",
          "vnet_hdr",
          "user",
          String(uid),
          "group",
          String(gid),
        );
        machine.run("ip", "link", "set", own.tap, "up");
        const command = [...launchPrefix(qemuIdentity, null, []), ...localArguments(args, own, files)];
        commands.push(`${command.map(quote).join(" ")} </dev/null >${quote(join(own.to, "qemu.log"))} 2>&1 &\n`);
        machines.push(own.to);
      }
      writeFileSync(join(directory, "start.sh"), commands.join(""));
      return new ShellLoop(directory, machine, machines);
    } catch (error) {
      await machine.stop();
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Runs the loop on fresh disks; resolves with the milliseconds until every guest agent answers. Ends them all then. */
  async measure(files: LocalFiles, timeoutMs: number): Promise<number> {
    for (const own of this.#machines) {
      const disk = join(own, "disk.qcow2");
      rmSync(disk, { force: true });
      execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", disk, String(files.bytes)]);
      for (const path of [own, disk, join(own, "s"), join(own, "seed.iso")])
        chownSync(path, qemuIdentity.uid, qemuIdentity.gid);
    }
    try {
      const start = performance.now();
      this.#machine.run("sh", join(this.#directory, "start.sh"));
      await Promise.all(this.#machines.map((own) => agentAnswers(join(own, "s", "agent"), timeoutMs)));
      return performance.now() - start;
    } finally {
      await this.#end();
    }
  }

  async #end(): Promise<void> {
    for (;;) {
      const left = processesWith(`path=${this.#directory}/`);
      if (left.length === 0) return;
      for (const pid of left) kill(pid);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async remove(): Promise<void> {
    await this.#end();
    await this.#machine.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

async function agentAnswers(socket: string, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const agent = createGuestAgent(socket);
    try {
      const { exitCode } = await agent.exec(["/bin/true"], Math.max(1000, end - performance.now()));
      if (exitCode === 0) return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } finally {
      agent.close();
    }
  }
}
