import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { JoinToken } from "../../runtime/identity/join-token.ts";
import { hashOfToken } from "../../runtime/identity/own/keys.ts";
import { makeDirectoryDurably, renameDurably } from "../../runtime/process/durable-files.ts";
import { replaceFile } from "../../runtime/process/replace-file.ts";
import { machineUsages } from "../drivers/hypervisor/usage.ts";
import { hostFile, places } from "./configuration.ts";

/**
 * After a restore a machine of then begins as a fresh one (decision 59): what its store says was told to it by a management
 * that is gone, and one of these things is to start the root controller's VM. Volumes, and the storage agent's store beside
 * them, stay as they are.
 */
export const hostDirectory = join(places.state, "host");

/** Rejects with a sentence that says what to do. */
export const requireNoHost = async (): Promise<void> => {
  const running = (await machineUsages(join(places.run, "host"))).length;
  const found = await readFile(hostFile, "utf8").catch(() => null);
  if (found === null && running === 0) return;
  const { name } = JSON.parse(found ?? '{"name":"a host"}') as { readonly name: string };
  const machines = running === 0 ? "" : `, and ${running} machines run on it`;
  throw new Error(
    `this machine is ${name} already${machines}: a restore takes machines that are none. \`cells host leave --force\` ends what runs here, and leaves the files of volumes where they are`,
  );
};

/** What it was as a host is kept beside, with its keys; the last one alone. */
export const setAsideHost = async (): Promise<void> => {
  for (const directory of [hostDirectory, join(places.state, "agent")]) {
    if (!existsSync(directory)) continue;
    const aside = `${directory}.before-restore`;
    await rm(aside, { recursive: true, force: true });
    await renameDurably(directory, aside);
  }
};

/** Before a machine joins with a token of a restore. Once for each token: it may be shown again, over the key that it made. */
export const beginAnew = async ({ host }: JoinToken): Promise<void> => {
  const mark = join(hostDirectory, "joined-anew");
  const hash = hashOfToken(host) ?? "";
  if ((await readFile(mark, "utf8").catch(() => "")) === hash) return;
  await requireNoHost();
  await setAsideHost();
  await makeDirectoryDurably(places.state, 0o755);
  await makeDirectoryDurably(hostDirectory, 0o700);
  await replaceFile(mark, hash);
};
