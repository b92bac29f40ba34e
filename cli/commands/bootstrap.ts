import { readFile, watch } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setDefaultCACertificates } from "node:tls";
import { fileURLToPath } from "node:url";
import { type BootstrapProgress, progressFile } from "../../host/bootstrap/bootstrap.ts";
import type { Bootstrapped } from "../../host/machine/first-machine.ts";
import type { MachineRestore } from "../../host/machine/restore.ts";
import {
  type ClientConfiguration,
  clientConfigurationFile,
  readClientConfiguration,
  writeClientConfiguration,
} from "../connection/client-config.ts";
import { type Context, printJson } from "../context/context.ts";
import { imagesFor } from "../machine-images.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { failing, type MachineArguments, sayTo } from "./hosts/host.ts";

/** `cells bootstrap`: the first machine of an installation, and the cloud that comes to run in itself on it. */
export interface BootstrapArguments extends MachineArguments {
  readonly name: string;
  readonly address: string | undefined;
  readonly profile: "small" | "large";
  readonly specification: string | undefined;
  /** A backup of the management, to go on from; undefined: a new cloud. */
  readonly backup: string | undefined;
  readonly passphraseFile: string | undefined;
  readonly key: string | undefined;
  readonly authority: string | undefined;
  /** Names with commas in between. */
  readonly poweredOff: string | undefined;
  readonly lostServers: string | undefined;
}
const pauseMs = 1000;
const answerTimeoutMs = 5000;

export const bootstrap = async (context: Context, options: BootstrapArguments): Promise<void> => {
  const { name, address, profile, storage = "/var/lib/cells/storage", timeoutMs } = options;
  const specification =
    options.specification ?? fileURLToPath(new URL(`../../examples/root/${profile}.sf`, import.meta.url));
  const say = sayTo(context);
  const { bootstrapMachine } = await import("../../host/machine/first-machine.ts");
  const restore = await restoreOf(context, options);
  let made: Bootstrapped;
  try {
    const images = await failing(() => imagesFor(options.images, say));
    const machine = { name, address, interface: options.interface, storage, images, specification, say, timeoutMs };
    made = await failing(() => bootstrapMachine({ ...machine, restore }));
  } finally {
    await restore?.unpacked.remove();
  }
  const client: ClientConfiguration = { url: made.url, credential: made.credential, authority: made.authority };
  if (readClientConfiguration(clientConfigurationFile())?.credential !== client.credential) {
    writeClientConfiguration(client);
    say("the operator's credential is in your configuration for `cells`, and is printed nowhere");
  }
  for (const { name: other, file, isServer } of made.returning)
    say(
      `${other} comes back with the token in ${file}: on it, \`cells host join${isServer ? " --storage DIR" : ""} --token-file FILE\`${isServer ? `. Until it has said what is on its disk no volume is made anew` : ""}`,
    );
  await untilBorn(made, client, timeoutMs, say);
  if (context.json) printJson(context, { url: client.url });
  else
    context.terminal.print(
      `up: the gateway is at ${client.url}. More machines join with \`cells host token NAME --address A\``,
    );
};

const namesIn = (text: string | undefined): readonly string[] =>
  (text ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

/** The backup, opened; null: none was named. */
const restoreOf = async (context: Context, options: BootstrapArguments): Promise<MachineRestore | null> => {
  const { backup, poweredOff, lostServers } = options;
  if (backup === undefined) {
    for (const name of ["key", "passphraseFile", "authority", "poweredOff", "lostServers"] as const)
      if (options[name] !== undefined)
        throw usage(
          `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is about a backup: say which, --backup FILE`,
        );
    return null;
  }
  const { openBackup } = await import("./management.ts");
  const unpacked = await openBackup(context, backup, options);
  for (const { name, why } of unpacked.missing) context.terminal.warn(`not in the backup: ${name}: ${why}`);
  return { unpacked, poweredOff: namesIn(poweredOff), lostServers: namesIn(lostServers) };
};

const progressOf = async (file: string): Promise<BootstrapProgress | null> => {
  try {
    return JSON.parse(await readFile(file, "utf8")) as BootstrapProgress;
  } catch {
    return null;
  }
};

/** Shows each step of the birth as it is done, until the gateway answers. A new try of the command goes on showing. */
const untilBorn = async (
  { directory }: Bootstrapped,
  client: ClientConfiguration,
  timeoutMs: number,
  say: (line: string) => void,
): Promise<void> => {
  const file = progressFile(directory);
  const end = performance.now() + timeoutMs;
  setDefaultCACertificates([client.authority ?? ""]);
  let shown = 0;
  let told: string | null = null;
  for (;;) {
    const progress = await progressOf(file);
    for (const { text } of progress?.steps.slice(shown) ?? []) say(text);
    shown = progress?.steps.length ?? 0;
    if (progress !== null && progress.trouble !== told) {
      told = progress.trouble;
      if (told !== null) say(`waiting: ${told}`);
    }
    if (progress?.stage === "done" && (await gatewayAnswers(client))) return;
    if (performance.now() > end)
      throw new CommandFailure(
        exitCodes.notAsDeclared,
        `the gateway at ${client.url} does not answer yet${told === null ? "" : `: ${told}`}. The birth goes on by itself; the same command shows it again, \`journalctl -u cells-host\` all of it`,
      );
    await changed(dirname(file));
  }
};

/** Resolves when something in the directory changes, or after a while. */
const changed = async (directory: string): Promise<void> => {
  const signal = AbortSignal.timeout(pauseMs);
  try {
    for await (const _event of watch(directory, { signal })) return;
  } catch (error) {
    // It is not there yet.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") await sleep(pauseMs);
  }
};

const gatewayAnswers = async ({ url, credential }: ClientConfiguration): Promise<boolean> => {
  try {
    const headers = { authorization: `Bearer ${credential}` };
    const response = await fetch(`${url}/cells`, { headers, signal: AbortSignal.timeout(answerTimeoutMs) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
};
