import { spawn } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { bounds } from "./bounds.ts";
import { searchPath, walled } from "./wall.ts";

export type Ended =
  | { readonly how: "answer"; readonly text: string }
  | { readonly how: "too-long" | "aborted" | "too-large" }
  /** Nothing was run: the walls cannot be built here; `why` is a sentence. */
  | { readonly how: "no-walls"; readonly why: string }
  /** It ended without an answer; `said` are the last words of it. */
  | { readonly how: "broken"; readonly said: string };

export interface LaunchOptions {
  readonly signal?: AbortSignal;
  /** What the process writes to standard error, as it comes. */
  readonly said?: (text: string) => void;
  /** Another program in the place of `process.ts`, and another time: for tests of the walls. */
  readonly program?: string;
  readonly wallMs?: number;
  /** Where the programs are with which the walls are built, for the same. */
  readonly searchPath?: string;
}

/** Empty in the service image: its one file of JavaScript has no others beside it, and no process to evaluate in. */
const here = import.meta.dirname ?? "";
const repository = join(here, "../../..");
/** Directories of a package that is found from here, as it is and as a link leads to it. */
const packageOf = (name: string): readonly string[] => {
  for (let directory = here; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name);
    if (existsSync(found)) return [found, realpathSync(found)];
    if (directory === dirname(directory)) throw new Error(`${name} is not installed: run npm install`);
  }
};

/** What the process may read: its own code, and nothing else. */
export function readableByProcess(): readonly string[] {
  const packages = [
    "quickjs-emscripten-core",
    "@jitl/quickjs-ffi-types",
    "@jitl/quickjs-ng-wasmfile-release-sync",
  ].flatMap(packageOf);
  return [here, join(repository, "model"), join(repository, "package.json"), ...packages];
}

function nodeCommand(program: string): readonly string[] {
  return [
    process.execPath,
    "--permission",
    ...readableByProcess().map((path) => `--allow-fs-read=${path}`),
    // Links need no look at what they lead to, so only what was named above is ever read.
    "--preserve-symlinks",
    "--preserve-symlinks-main",
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=SecurityWarning",
    "--disable-proto=delete",
    "--disallow-code-generation-from-strings",
    "--no-addons",
    "--no-experimental-websocket",
    `--max-old-space-size=${bounds.heapMiB}`,
    "--max-semi-space-size=4",
    `--stack-size=${bounds.stackKiB}`,
    program,
  ];
}

/** Runs the evaluating process to its end with that input. Rejects only if it cannot be started at all. */
export function launch(input: string, options: LaunchOptions = {}): Promise<Ended> {
  if (here === "") return Promise.resolve({ how: "no-walls", why: "a service VM has no room for what evaluates it" });
  const { program = join(here, "process.ts"), signal, said = () => {}, wallMs = bounds.wallMs } = options;
  const walls = walled(nodeCommand(program), [process.execPath, program, ...readableByProcess()], options.searchPath);
  if (!walls.ok) return Promise.resolve({ how: "no-walls", why: walls.error });
  const command = walls.value;
  return new Promise((resolve, reject) => {
    const child = spawn(command[0] ?? "", command.slice(1), {
      cwd: "/",
      stdio: ["pipe", "pipe", "pipe"],
      // Nothing of ours: where programs are found, for the walls alone.
      env: { PATH: searchPath },
    });
    const chunks: Buffer[] = [];
    let [size, heard, last] = [0, 0, ""];
    type How = Exclude<Ended["how"], "no-walls">;
    let how: How = "answer";
    const kill = (why: How): void => {
      if (how === "answer") how = why;
      child.kill("SIGKILL");
    };
    const timer = setTimeout(() => kill("too-long"), wallMs);
    const abort = (): void => kill("aborted");
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    child.stdout.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > bounds.answerBytes) kill("too-large");
      else chunks.push(chunk);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (heard < 2 * bounds.saidBytes) said(text);
      heard += text.length;
      last = `${last}${text}`.slice(-2000);
    });
    // It may end before it has read everything.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    const settled = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    };
    child.once("error", (error) => {
      settled();
      reject(new Error(`cannot start the process that evaluates specifications: ${error.message}`));
    });
    child.once("close", (exitCode) => {
      settled();
      if (how !== "answer" && how !== "broken") resolve({ how });
      else if (exitCode === 0) resolve({ how: "answer", text: Buffer.concat(chunks).toString("utf8") });
      else resolve({ how: "broken", said: last });
    });
  });
}
