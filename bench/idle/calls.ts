import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** Calls of a function by process, from now until it is stopped. */
export interface CallCounter {
  /** In the order of the processes; null: it was gone, or could not be counted. */
  stop(): Promise<readonly (number | null)[]>;
}

/** `calls.c`, which counts calls of this function of that program in these processes. Rejects with what it says is wrong. */
export async function countCalls(file: string, symbol: string, processes: readonly number[]): Promise<CallCounter> {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
  const program = join(directory, "calls");
  let child: ChildProcessByStdio<Writable, Readable, Readable> | null = null;
  try {
    execFileSync("clang", ["-O2", "-Wall", "-o", program, join(import.meta.dirname, "calls.c")]);
    const started = spawn(program, [file, symbol, ...processes.map(String)], { stdio: ["pipe", "pipe", "pipe"] });
    child = started;
    let wrong = "";
    started.stderr.setEncoding("utf8").on("data", (text: string) => {
      wrong += text;
    });
    const closed = once(started, "close");
    const lines = createInterface({ input: started.stdout })[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.done === true) {
      await closed;
      throw new Error(`calls of ${symbol} cannot be counted: ${wrong.trim()}`);
    }
    return {
      stop: async () => {
        started.stdin.end();
        const counts: (number | null)[] = [];
        for (let line = await lines.next(); line.done !== true; line = await lines.next())
          counts.push(Number(line.value) < 0 ? null : Number(line.value));
        rmSync(directory, { recursive: true, force: true });
        return counts;
      },
    };
  } catch (error) {
    child?.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}
