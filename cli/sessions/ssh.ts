import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { constants } from "node:os";
import type { Client } from "../connection/client.ts";
import { knownHostsFile, writeOwn } from "../connection/client-config.ts";
import { type Context, cellOfPath, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { portsOf } from "./forward.ts";
import { run } from "./run-in-guest.ts";
import { granted } from "./session.ts";

/**
 * `cells ssh`: this machine's `ssh` over `cells forward`. Whom it speaks with it knows beforehand: the guest's agent, which is
 * reached through the VM's host and not over its network, reads the server's public keys, and they alone are believed.
 * `ssh` takes the first value of an option, so neither the user's configuration nor arguments behind ours undo that.
 */
export interface SshOptions {
  /** As written. */
  readonly port: string;
}

/** OpenSSH keeps public halves beside; dropbear says them of its own. Nothing secret is printed. */
const script = `cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null
for key in /etc/dropbear/dropbear_*_host_key; do
  test ! -f "$key" || dropbearkey -y -f "$key" 2>/dev/null
done; exit 0`;
const longestAnswerBytes = 64 * 1024;
/** Its agent has to have started. */
const longestReadingMs = 90_000;
const mostKeys = 16;
const keyTypes = /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Public keys in what a guest has printed, as `type base64`; a line that is none is left out, and so is its comment. */
export function hostKeysOf(printed: string): readonly string[] {
  const keys = new Set<string>();
  for (const line of printed.split("\n")) {
    const [type = "", blob = ""] = line.trim().split(/\s+/);
    if (!keyTypes.test(type) || !/^[A-Za-z0-9+/]{16,2000}={0,2}$/.test(blob)) continue;
    // RFC 4253, 6.6: the blob begins with the name of its own type.
    const bytes = Buffer.from(blob, "base64");
    if (bytes.readUInt32BE(0) === type.length && bytes.toString("latin1", 4, 4 + type.length) === type)
      keys.add(`${type} ${blob}`);
  }
  return [...keys].slice(0, mostKeys);
}

/** `USER@` and the path of a VM. Throws what would be right. */
export function destinationOf(text: string): { readonly user: string | null; readonly vm: string } {
  const [, user = null, path = ""] = /^(?:([A-Za-z0-9_][\w.-]{0,63})@)?([\w.][\w./-]{0,500})$/.exec(text) ?? [];
  const vm = path.split("/").filter(Boolean).join("/");
  if (vm.includes("/")) return { user, vm };
  throw usage(`"${text.slice(0, 60)}" is no VM to log in to: write for example root@shop/web/vm`);
}

export const ssh = async (
  context: Context,
  written: string,
  given: readonly string[],
  { port: portText }: SshOptions,
): Promise<void> => {
  const { user, vm } = destinationOf(written);
  const { here, there } = portsOf(portText);
  if (here !== there) throw usage(`--port is one port of the VM, not ${portText}`);
  const client = context.client();
  // Whether it may be done at all is told first. The capability is not used, and ends by itself.
  const { cell, path } = cellOfPath(vm);
  const { url } = await granted(client, cell, { vm: path, verb: "forward", port: there });
  const keys = await readHostKeys(client, vm);
  const knownHosts = knownHostsFile(createHash("sha256").update(`${url}\n${vm}`).digest("hex").slice(0, 32));
  // ssh compares names in small letters.
  const alias = vm.toLowerCase();
  writeOwn(knownHosts, keys.map((key) => `${alias} ${key}\n`).join(""));
  const proxyCommand = [...selfCommand(), "forward", "--stdio", vm, String(there)].map(quoted).join(" ");
  const command = [
    "ssh",
    ...optionsOf({ alias, knownHosts, proxyCommand }),
    user === null ? vm : `${user}@${vm}`,
    ...given,
  ];
  if (context.json) {
    printJson(context, { vm, user, port: there, knownHosts, proxyCommand, command });
    return;
  }
  process.exitCode = await runSsh(command);
};

async function readHostKeys(client: Client, vm: string): Promise<readonly string[]> {
  const printed: Buffer[] = [];
  const output = (piece: Buffer): null => {
    printed.push(piece);
    return null;
  };
  await run(client, vm, ["sh", "-c", script], { output, limitMs: longestReadingMs, mostBytes: longestAnswerBytes });
  const keys = hostKeysOf(Buffer.concat(printed).toString("latin1"));
  if (keys.length > 0) return keys;
  throw new CommandFailure(
    exitCodes.refused,
    `${vm} has no SSH server whose key its agent could read (in /etc/ssh or /etc/dropbear): install one in it, or use \`cells exec\` or \`cells console\``,
  );
}

interface Known {
  readonly alias: string;
  readonly knownHosts: string;
  readonly proxyCommand: string;
}
/** What makes ssh believe that file alone, and go that way alone. A shared connection would have been checked by another. */
function optionsOf({ alias, knownHosts, proxyCommand }: Known): readonly string[] {
  const options = {
    ProxyCommand: percent(proxyCommand),
    HostKeyAlias: alias,
    UserKnownHostsFile: `"${percent(knownHosts)}"`,
    GlobalKnownHostsFile: "/dev/null",
    KnownHostsCommand: "none",
    StrictHostKeyChecking: "yes",
    VerifyHostKeyDNS: "no",
    CheckHostIP: "no",
    UpdateHostKeys: "no",
    CanonicalizeHostname: "no",
    ControlPath: "none",
  };
  return Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}

/** This program, as another process starts it. What it asks is in the environment, or the user's own configuration. */
const selfCommand = (): readonly string[] => [process.execPath, ...process.execArgv, process.argv[1] ?? ""];
const quoted = (word: string): string => (/^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
/** ssh replaces what stands behind a `%`. */
const percent = (text: string): string => text.replaceAll("%", "%%");

/** The exit code of ssh, which is that of the command in the guest, or 255. */
const runSsh = ([program = "ssh", ...words]: readonly string[]): Promise<number> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, words, { stdio: "inherit" });
    // Ctrl-C is ssh's, and with it the guest's.
    const leave = (): void => undefined;
    process.on("SIGINT", leave);
    child.once("error", ({ message }) =>
      reject(usage(`\`ssh\` cannot be started on this machine (${message}): it is Debian's package openssh-client`)),
    );
    child.once("exit", (code, signal) => {
      process.off("SIGINT", leave);
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
