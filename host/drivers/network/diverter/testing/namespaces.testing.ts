import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * Machines for tests: a network and mount namespace each, without a name, held by one process that waits for its
 * standard input to end, as it does with this process. Then the kernel takes everything: devices, filters, mounts, pins.
 */
export class Machine {
  readonly #holder: ChildProcess;
  readonly pid: number;

  private constructor(holder: ChildProcess, pid: number) {
    this.#holder = holder;
    this.pid = pid;
  }
  static async start(): Promise<Machine> {
    const holder = spawn("unshare", ["--net", "--mount", "cat"], { stdio: ["pipe", "ignore", "ignore"] });
    await once(holder, "spawn");
    const pid = holder.pid ?? 0;
    const outside = readlinkSync("/proc/self/ns/mnt");
    for (;;) {
      const inside = readlinkSync(`/proc/${pid}/ns/mnt`);
      if (inside !== outside && readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("cat")) break;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const machine = new Machine(holder, pid);
    machine.run("ip", "link", "set", "lo", "up");
    return machine;
  }
  inside(command: readonly string[]): readonly [string, readonly string[]] {
    return ["nsenter", ["-t", String(this.pid), "-n", "-m", "--", ...command]];
  }
  run(...command: readonly string[]): string {
    const [program, args] = this.inside(command);
    return execFileSync(program, [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }
  /** Did the command end well? */
  succeeds(...command: readonly string[]): boolean {
    try {
      this.run(...command);
      return true;
    } catch {
      return false;
    }
  }
  /** One end of a cable in this machine, the other in another one. Neither says anything by itself, as IPv6 would. */
  cable(name: string, other: Machine, otherName: string, otherMac?: string): void {
    const address = otherMac === undefined ? [] : ["address", otherMac];
    const peer = ["peer", "name", otherName, ...address, "netns", String(other.pid)];
    this.run("ip", "link", "add", name, "type", "veth", ...peer);
    this.run("ip", "link", "set", name, "addrgenmode", "none", "up");
    other.run("ip", "link", "set", otherName, "addrgenmode", "none", "up");
  }
  /** A tap that was just opened swallows what is sent to it until the kernel has noticed that it has a carrier. */
  async untilUp(device: string): Promise<void> {
    for (;;) {
      const [link] = JSON.parse(this.run("ip", "-j", "link", "show", "dev", device)) as {
        readonly operstate: string;
      }[];
      if (link?.operstate === "UP") return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
  async stop(): Promise<void> {
    const ended = once(this.#holder, "exit");
    this.#holder.kill("SIGKILL");
    await ended;
  }
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}
/** A process of ours inside a machine: calls go in as lines of JSON, answers come back the same way. */
export class Agent {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #next = 1;

  constructor(machine: Machine, file: string, ...args: readonly string[]) {
    const [program, all] = machine.inside([process.execPath, join(import.meta.dirname, file), ...args]);
    this.#child = spawn(program, [...all], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: this.#child.stdout! }).on("line", (line) => {
      const answer = JSON.parse(line) as Answer;
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if (answer.error === undefined) waiting?.resolve(answer.value);
      else waiting?.reject(new Error(answer.error));
    });
  }
  call<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: (value) => resolve(value as T), reject });
      this.#child.stdin!.write(`${JSON.stringify({ id, method, args })}\n`);
    });
  }
  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

/** What these tests need of the machine: root, namespaces, eBPF and a few programs. */
export const canRun = (): boolean =>
  process.getuid?.() === 0 &&
  existsSync("/dev/net/tun") &&
  ["/usr/bin/busybox", "/bin/busybox"].some((p) => existsSync(p));
