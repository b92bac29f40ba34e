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
