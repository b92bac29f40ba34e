import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { Worker } from "node:worker_threads";

/*
 * What a specification could try that had broken out of QuickJS and WebAssembly into the process's own JavaScript. In the
 * place of `process.ts` it meets the outer walls; run alone, all of it works. Input: `{port, path, file, write}`.
 */
interface Targets {
  readonly port: number;
  /** A Unix socket, a file that everybody may read, one to be written. */
  readonly path: string;
  readonly file: string;
  readonly write: string;
}
const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const targets = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Targets;

const connected = (where: { port: number; host: string } | { path: string }): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(where, () => {
      socket.destroy();
      resolve("connected");
    });
    socket.once("error", reject);
  });
const attempts: Readonly<Record<string, () => unknown>> = {
  "read a file": () => readFileSync(targets.file, "utf8"),
  "list a directory": () => readdirSync("/").length,
  "write a file": () => writeFileSync(targets.write, "x"),
  "connect over TCP": () => connected({ port: targets.port, host: "127.0.0.1" }),
  "connect to a Unix socket": () => connected({ path: targets.path }),
  "send a datagram": () =>
    new Promise((resolve, reject) => {
      const socket = createSocket("udp4");
      socket.once("error", reject);
      socket.send("x", targets.port, "127.0.0.1", (error) => {
        socket.close();
        if (error) reject(error);
        else resolve("sent");
      });
    }),
  "start a program": () => execFileSync("/bin/true"),
  "start a thread": () =>
    new Promise((resolve, reject) => {
      const worker = new Worker("0", { eval: true });
      worker.once("exit", resolve);
      worker.once("error", reject);
    }),
  "signal its parent": () => process.kill(process.ppid, 0),
  "find a variable of its parent": () => {
    if (process.env.HOME === undefined && process.env.CELLS_SECRET === undefined) throw new Error("there is none");
  },
};

const outcome: Record<string, string> = {};
for (const [what, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcome[what] = "done";
  } catch (error) {
    outcome[what] = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
}
process.stdout.write(JSON.stringify({ outcome, uid: process.getuid?.(), status: status() }));

function status(): string {
  try {
    return readFileSync("/proc/self/status", "utf8");
  } catch (error) {
    return (error as Error).message;
  }
}
