import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { GuestAgent } from "./guest-agent.ts";

/** An agent whose guest is this machine, as far as commands need one; it answers as QEMU's does. */
export interface LocalAgent {
  readonly agent: GuestAgent;
  /** Of all commands that were started: how much input each was given. In bytes. */
  readonly inputs: readonly number[];
  /** Ends what still runs. */
  end(): Promise<void>;
}

interface Started {
  readonly child: ChildProcess;
  readonly out: Buffer[];
  closed: { readonly exitcode?: number; readonly signal?: number } | null;
}
const signals: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 };

export const localAgent = (): LocalAgent => {
  const processes = new Map<number, Started>();
  const files = new Map<number, FileHandle>();
  const inputs: number[] = [];
  let lastHandle = 0;
  let turn: Promise<unknown> = Promise.resolve();

  const execute = async (path: string, arg: readonly string[], data: unknown): Promise<{ pid: number }> => {
    const child = spawn(path, arg, { stdio: ["pipe", "pipe", "ignore"] });
    const started: Started = { child, out: [], closed: null };
    child.stdout?.on("data", (bytes: Buffer) => started.out.push(bytes));
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(typeof data === "string" ? Buffer.from(data, "base64") : undefined);
    if (typeof data === "string") inputs.push(Buffer.from(data, "base64").length);
    child.once("close", (code, signal) => {
      started.closed = code === null ? { signal: signals[signal ?? ""] ?? 9 } : { exitcode: code };
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", () => reject(new Error("the guest refuses: No such file or directory")));
    });
    const pid = child.pid ?? 0;
    processes.set(pid, started);
    return { pid };
  };
  const answer = async (command: string, asked: Readonly<Record<string, unknown>>) => {
    switch (command) {
      case "guest-exec":
        return execute(String(asked.path), asked.arg as readonly string[], asked["input-data"]);
      case "guest-exec-status": {
        const { closed, out } = processes.get(Number(asked.pid)) ?? { closed: { exitcode: 0 }, out: [] };
        return closed === null
          ? { exited: false }
          : { exited: true, ...closed, "out-data": Buffer.concat(out).toString("base64") };
      }
      case "guest-file-open": {
        const flags = asked.mode === "r+" ? constants.O_RDWR : constants.O_RDONLY;
        const file = await open(String(asked.path), flags | constants.O_NONBLOCK).catch(() => {
          throw new Error("the guest refuses: No such file or directory");
        });
        lastHandle += 1;
        files.set(lastHandle, file);
        return { value: lastHandle };
      }
      case "guest-file-close":
        await files.get(Number(asked.handle))?.close();
        files.delete(Number(asked.handle));
        return {};
      default:
        throw new Error(`no agent of a test has ${command}`);
    }
  };

  return {
    inputs,
    agent: {
      hasAnswered: () => true,
      exec: async () => {
        throw new Error("not asked for");
      },
      call: (command, parameters) => {
        const run = () => answer(command, parameters as Readonly<Record<string, unknown>>);
        const result = turn.then(run, run);
        turn = result.catch(() => undefined);
        return result;
      },
      close: () => undefined,
    },
    end: async () => {
      await turn;
      for (const { child } of processes.values()) child.kill("SIGKILL");
      for (const file of files.values()) await file.close();
    },
  };
};
