import { spawn } from "node:child_process";
import { defaultDirectory, type Places, places } from "./places.ts";
import { firstProcesses } from "./supervisor/first-process.ts";
import { enterOutside } from "./supervisor/namespaces.ts";

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end; a code other than 0 is an answer and no error. */
export const runCommand = (
  command: string,
  args: readonly string[],
  options: { readonly environment?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...options.environment },
    });
    const output = { stdout: "", stderr: "" };
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
    child.stdin.on("error", () => undefined).end(options.input ?? "");
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? 255, ...output }));
  });

/** Runs it in the namespaces of a testbed's first process. */
export const runInside = ({ tag }: Places, command: readonly string[]): Promise<Ended> => {
  const [init] = firstProcesses(tag).init;
  if (init === undefined) throw new Error("the testbed is not up");
  return runCommand("nsenter", ["--target", String(init.pid), "--mount", "--net", "--pid", "--", ...command]);
};

/** Runs it on the network outside of a testbed, where the upstream router is. */
export const runOutside = (command: readonly string[], directory?: string): Promise<Ended> =>
  runInside(places(directory || defaultDirectory()), [...enterOutside, ...command]);
