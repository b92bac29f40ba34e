import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { isExiting, type ProcessControl, type ProcessIdentity, signal, statFields, waitGone } from "./process.ts";

/** Its first thread has left; another one goes on, as one that hangs in a write does after the process was killed. */
const halfGone = `
  const { Worker } = require("node:worker_threads");
  new Worker("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", { eval: true }).on("online", () =>
    require("koffi").load("libc.so.6").func("long syscall(long, ...)")(60, "long", 0),
  );
`;

/** A process that is not gone, although it has neither a command line nor a working directory any more. */
export const startHalfGone = async (cwd: string): Promise<{ child: ChildProcess; identity: ProcessIdentity }> => {
  const child = spawn(process.execPath, ["-e", halfGone], {
    cwd,
    stdio: "ignore",
    env: { NODE_PATH: `${import.meta.dirname}/../../../../node_modules` },
  });
  await new Promise((resolve, reject) => child.once("spawn", resolve).once("error", reject));
  const pid = child.pid ?? 0;
  const identity = { pid, startTime: statFields(pid)?.[19] ?? "" };
  while (!isExiting(identity)) {
    if (child.exitCode !== null) throw new Error("it ended as a whole");
    await sleep(10);
  }
  return { child, identity };
};

/** A machine whose disk hangs: while `stuck`, a process that is killed stays. */
export const stuckProcesses = (): ProcessControl & { stuck: boolean } => {
  const control = {
    stuck: true,
    signal: (target: ProcessIdentity, name: NodeJS.Signals): void => {
      if (!control.stuck) signal(target, name);
    },
    waitGone: (target: ProcessIdentity, timeoutMs: number): Promise<boolean> =>
      waitGone(target, control.stuck ? 20 : timeoutMs),
  };
  return control;
};
