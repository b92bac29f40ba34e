import { spawn } from "node:child_process";

/** A program that is run with arguments and an input; never a shell. Answers what it printed; fails with what it said. */
export type Run = (program: string, args: readonly string[], input?: string) => Promise<string>;

const mostOutput = 64 * 1024 * 1024;
const longestMs = 30_000;

/** @param before a program and arguments that enter where it is run, as `nsenter` does */
export const runner =
  (before: readonly string[] = []): Run =>
  (program, args, input = "") =>
    new Promise((resolve, reject) => {
      const [first = program, ...rest] = [...before, program, ...args];
      const child = spawn(first, rest, { stdio: ["pipe", "pipe", "pipe"], timeout: longestMs });
      let [out, error] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => {
        out += chunk.toString();
        if (out.length > mostOutput) child.kill();
      });
      child.stderr.on("data", (chunk: Buffer) => {
        error = (error + chunk.toString()).slice(-2000);
      });
      child.stdin.on("error", () => {});
      child.on("error", ({ message }) => reject(new Error(`${program} does not run: ${message}`)));
      child.on("close", (code) =>
        code === 0 ? resolve(out) : reject(new Error(`${program} ended with ${code}: ${error.trim()}`)),
      );
      child.stdin.end(input);
    });

/**
 * Programs that are asked for at once, one after the other by one process: to start one from a process of this size costs more than most of them
 * take. What a shell reads are words of the code alone: one that is more than a word is run by itself.
 */
export function gathered(run: Run): Run {
  let waiting: Asked[] = [];
  const start = (): void => {
    const all = waiting;
    waiting = [];
    const [only, ...others] = all;
    if (only === undefined) return;
    if (others.length === 0) {
      run(...only.command).then(only.resolve, only.reject);
      return;
    }
    const commands = all.map(({ command: [program, args] }) => [program, ...args].join(" "));
    // By its own name the shell says what runs in it.
    run("sh", ["-c", scriptOf(commands), all.map(({ command: [program] }) => program).join(" or ")]).then(
      (out) => {
        const said = out.split("\0");
        for (const [at, { resolve }] of all.entries()) resolve(said[at] ?? "");
      },
      (error: Error) => {
        for (const { reject } of all) reject(error);
      },
    );
  };
  return (program, args, input) => {
    if (input !== undefined || ![program, ...args].every((word) => /^[\w./-]+$/.test(word)))
      return run(program, args, input);
    return new Promise((resolve, reject) => {
      if (waiting.length === 0) queueMicrotask(start);
      waiting.push({ command: [program, args], resolve, reject });
    });
  };
}
/** Whoever ends the shell ends what runs in it: what went on would keep its answer open. */
export const scriptOf = (commands: readonly string[]): string =>
  [
    "trap 'kill $p' TERM",
    commands.map((command) => `{ ${command} & p=$!; wait $p; }`).join(" && printf '\\0' && "),
  ].join("; ");
interface Asked {
  readonly command: readonly [program: string, args: readonly string[]];
  readonly resolve: (out: string) => void;
  readonly reject: (error: Error) => void;
}

/** Programs of Debian's packages, of which a machine lacks some: each with the package that has it. */
export const needed = [
  { program: "iptables-restore", package: "iptables" },
  { program: "ebtables-nft", package: "iptables" },
  { program: "ipset", package: "ipset" },
  { program: "conntrack", package: "conntrack" },
  { program: "ip", package: "iproute2", asks: "-V" },
  { program: "arping", package: "iputils-arping", asks: "-V" },
  { program: "dnsmasq", package: "dnsmasq-base" },
  { program: "sysctl", package: "procps" },
] as const;
export async function missingPrograms(run: Run): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const { program, package: name, ...more } of needed) {
    const asks = "asks" in more ? more.asks : "--version";
    await run(program, [asks]).catch(() => missing.push(`${program} is not on this machine: install ${name}`));
  }
  return missing;
}
