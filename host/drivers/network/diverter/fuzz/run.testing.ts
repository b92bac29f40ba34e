import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { FuzzReport } from "./fuzz-process.testing.ts";

const run = promisify(execFile);
const fuzzProcess = join(import.meta.dirname, "fuzz-process.testing.ts");

export interface FuzzOptions {
  readonly seed: number;
  readonly frames: number;
  /** Frames in one world, and changes in a thousand of them; absent: as the process has them. */
  readonly episode?: number;
  readonly changes?: number;
  /** Compiled program to be tried; absent: the committed one. */
  readonly object?: string;
  /** A failure is told as it came up, which takes no time. */
  readonly whole?: boolean;
}
/** Runs the fuzz in namespaces of its own, which take along whatever it made. Needs root. */
export async function fuzz({ seed, frames, episode, changes, object, whole }: FuzzOptions): Promise<FuzzReport> {
  const words = ["--seed", String(seed), "--frames", String(frames)];
  if (episode !== undefined) words.push("--episode", String(episode));
  if (changes !== undefined) words.push("--changes", String(changes));
  if (object !== undefined) words.push("--object", object);
  if (whole === true) words.push("--whole");
  const command = [
    "--net",
    "--mount",
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    fuzzProcess,
    ...words,
  ];
  const { stdout } = await run("unshare", command, { maxBuffer: 2 ** 28 });
  return JSON.parse(stdout) as FuzzReport;
}
