import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";

/** When an answer came, by a line of `ping -D`; null: it tells of none. */
export function answeredAtMs(line: string): number | null {
  const [, at] = /^\[(\d+\.\d+)\] \d+ bytes from /.exec(line) ?? [];
  return at === undefined ? null : Number(at) * 1000;
}

/** Asks an address for an answer over and over, and knows when each came. */
export class Pinging {
  readonly #child: ChildProcess;
  /** By `Date.now()`, to the microsecond. */
  readonly answersMs: number[] = [];

  constructor(from: Machine, address: string, everyMs: number) {
    const [command, args] = from.inside(["ping", "-D", "-n", "-i", String(everyMs / 1000), address]);
    this.#child = spawn(command, [...args], { stdio: ["ignore", "pipe", "ignore"] });
    let rest = "";
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const at = answeredAtMs(line);
        if (at !== null) this.answersMs.push(at);
      }
    });
  }
  /** The first answer that came after that time; undefined: none has. */
  firstAfter(ms: number): number | undefined {
    return this.answersMs.find((at) => at > ms);
  }
  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}
/** As a ping says it. */
export const nowMs = (): number => performance.timeOrigin + performance.now();
