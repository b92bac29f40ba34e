import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** A way from one tap to another, as `packets.c` wants it; from one guest's sockets to another's where the taps are "-". */
export interface PacketPath {
  readonly from: { readonly pid: number; readonly tap: string; readonly mac: string; readonly address: string };
  readonly to: { readonly pid: number; readonly tap: string; readonly address: string };
  /** To whom the sender's frames are addressed: the receiver, or its gateway. */
  readonly nextMac: string;
}

/** `packets.c`, compiled into a directory of its own, running with its taps open. */
export class PacketProgram {
  readonly #directory: string;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #answers: AsyncIterator<string>;

  /** `cpu`: the one that does all the work. */
  constructor(paths: readonly PacketPath[], cpu: number) {
    this.#directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
    const program = join(this.#directory, "packets");
    execFileSync("clang", ["-O2", "-o", program, join(import.meta.dirname, "packets.c")]);
    const args = paths.flatMap(({ from, to, nextMac }) =>
      [from.pid, from.tap, to.pid, to.tap, from.mac, nextMac, from.address, to.address].map(String),
    );
    this.#child = spawn(program, [String(cpu), ...args], { stdio: ["pipe", "pipe", "inherit"] });
    this.#answers = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }
  /** CPU time in nanoseconds per packet that arrived. Throws when not all did, or not so many `copies` of each at other taps. */
  async cost(path: number, packets: number, copies = 0): Promise<number> {
    this.#child.stdin.write(`${path} ${packets}\n`);
    const { value, done } = await this.#answers.next();
    const [spent = 0, received = 0, others = 0] = done === true ? [] : String(value).split(" ").map(Number);
    if (received < packets) throw new Error(`of ${packets} packets on path ${path} only ${received} arrived`);
    if (others !== packets * copies)
      throw new Error(`of ${packets} packets on path ${path} others got ${others} copies, and not ${packets * copies}`);
    return spent / packets;
  }
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, "exit");
      this.#child.kill("SIGKILL");
      await ended;
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
