import type { KeyObject } from "node:crypto";
import { createWriteStream, existsSync } from "node:fs";
import { readFile, rm, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { printable } from "../../model/diagnostics/render-diagnostic.ts";
import type { LockedKey } from "../../runtime/backup/sealing.ts";
import type { Unpacked } from "../../runtime/backup/unpack.ts";
import { renameDurably } from "../../runtime/process/durable-files.ts";
import { readClientConfiguration } from "../connection/client-config.ts";
import { type Context, printJson } from "../context/context.ts";
import { readPassphrase } from "../secrets/passphrase.ts";
import { writeSecret } from "../secrets/secret-file.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { table } from "../terminal/terminal.ts";
import { failing } from "./hosts/host.ts";

/** `cells management`: what each of its commands does. */

/** Of all parts together, on this machine's disk. */
const mostBytes = 64 * 1024 ** 3;

export const backup = async (context: Context, file: string, passphraseFile: string | undefined): Promise<void> => {
  const { lockKey, newRecipientKey, shortestPassphrase } = await import("../../runtime/backup/sealing.ts");
  const { collectBackup } = await import("../../runtime/backup/collect.ts");
  const { terminal } = context;
  const client = context.client();
  const passphrase = await readPassphrase(terminal, { file: passphraseFile, shortest: shortestPassphrase });
  const key = newRecipientKey();
  const order = await client.backupOrder(key.recipient);
  const sealing = { order, key: await lockKey(key, passphrase), authority: client.authority ?? null, mostBytes };
  const ask = (name: string): Promise<AsyncIterable<Uint8Array>> => client.backupPart(name, order);
  const onPart = (name: string, size: number): void =>
    context.json ? undefined : terminal.print(`  ${name}: ${kibOf(size)}`);
  const { missing, bytes } = await failing(() => collectBackup(file, { ...sealing, ask, onPart }));
  // What cannot be read back is no backup.
  const unpacked = await unpack(file, { passphrase: async () => passphrase }, client.authority ?? null);
  await unpacked.remove();
  if (context.json) printJson(context, { file, bytes, ...summaryOf(unpacked) });
  else
    terminal.print(
      `${file} holds the stores of ${unpacked.parts.length} processes, ${kibOf(bytes)}. Keep it and the passphrase apart, and neither on these machines.`,
    );
  for (const { name, why } of missing) terminal.warn(`not in it: ${name}: ${why}`);
  if (missing.length > 0) throw notWhole(missing.length);
};

const kibOf = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;
const notWhole = (missing: number): CommandFailure =>
  new CommandFailure(exitCodes.notAsDeclared, `the backup is not complete: ${missing} stores are missing`);

const summaryOf = ({ issued, fingerprint, parts, missing }: Unpacked) => ({
  issued,
  authority: fingerprint,
  missing,
  parts: parts.map(({ manifest }) => manifest),
});

const unpack = async (
  file: string,
  { passphrase, key }: { readonly passphrase: () => Promise<string>; readonly key?: string | undefined },
  authority: string | null,
): Promise<Unpacked> => {
  const { unpackBackup } = await import("../../runtime/backup/unpack.ts");
  const privateKey = async (recipient: string): Promise<KeyObject> => {
    if (key === undefined) throw usage("this backup is sealed to an operator's key: name its file with --key");
    const locked = await lockedKeyIn(key);
    if (locked.recipient !== recipient)
      throw usage(`the backup is sealed to the key ${recipient}, and ${key} is ${locked.recipient}`);
    return (await (await import("../../runtime/backup/sealing.ts")).unlockKey(locked, await passphrase())).privateKey;
  };
  return failing(() => unpackBackup(file, { authority }, { passphrase, privateKey }));
};

const lockedKeyIn = async (file: string): Promise<LockedKey> => {
  const { readLockedKey } = await import("../../runtime/backup/sealing.ts");
  return failing(async () => {
    const read = JSON.parse(await readFile(file, "utf8")) as { readonly key?: unknown };
    return readLockedKey(read.key);
  });
};

export const makeKey = async (context: Context, file: string, passphraseFile: string | undefined): Promise<void> => {
  const { lockKey, newRecipientKey, shortestPassphrase } = await import("../../runtime/backup/sealing.ts");
  const { terminal } = context;
  if (existsSync(file)) throw usage(`${file} is there already: backups may be sealed to it, and it is not replaced`);
  const passphrase = await readPassphrase(terminal, { file: passphraseFile, shortest: shortestPassphrase });
  const key = await lockKey(newRecipientKey(), passphrase);
  await failing(async () => writeSecret(file, `${JSON.stringify({ kind: "cells management key", key }, null, 2)}\n`));
  if (context.json) return printJson(context, { file, publicKey: key.recipient });
  terminal.print(key.recipient);
  terminal.warn(
    `${file} holds its private half, locked with the passphrase. Without both nobody reads the backups. In the root specification: x.backup.publicKey "${key.recipient}";`,
  );
};

export const list = async (context: Context): Promise<void> => {
  const { terminal } = context;
  const kept = await context.client().keptBackups();
  if (context.json) return printJson(context, kept);
  if (kept.backups.length === 0)
    terminal.print("no backups are kept; `x.backup.publicKey` in the root specification has them made");
  for (const line of table(
    kept.backups.map(({ name, bytes, servers }) => [name, kibOf(bytes), `on ${servers.join(", ")}`]),
  ))
    terminal.print(line);
  for (const { server, why } of kept.missing) terminal.warn(printable(`not known of ${server}: ${why}`));
};

export const fetchBackup = async (context: Context, name: string, file: string): Promise<void> => {
  const body = await context.client().keptBackup(name);
  const draft = `${file}.${process.pid}.new`;
  await failing(async () => {
    try {
      await pipeline(body, createWriteStream(draft, { mode: 0o600, flags: "wx" }));
      await renameDurably(draft, file);
    } finally {
      await rm(draft, { force: true });
    }
  });
  if (context.json) printJson(context, { name, file });
  else context.terminal.print(`${file} is the backup ${name}; \`cells management verify\` says whether it is whole`);
};

export interface Opening {
  readonly passphraseFile: string | undefined;
  readonly key: string | undefined;
  readonly authority: string | undefined;
}
export const openBackup = async (
  context: Context,
  file: string,
  { passphraseFile, key, authority }: Opening,
): Promise<Unpacked> => {
  const known =
    authority === undefined
      ? (readClientConfiguration()?.authority ?? null)
      : await failing(() => readFile(authority, "utf8"));
  const passphrase = () => readPassphrase(context.terminal, { file: passphraseFile });
  const unpacked = await unpack(file, { passphrase, key }, known);
  if (known === null)
    context.terminal.warn(
      `it is of the authority ${unpacked.fingerprint}: compare that with what you have written down, or give --authority`,
    );
  return unpacked;
};

const showParts = ({ terminal }: Context, { parts }: Unpacked): void => {
  const rows = parts.map(({ manifest: { name, taken, history, files } }) => [
    `  ${name}`,
    kibOf(files.reduce((sum, { bytes }) => sum + bytes, 0)),
    taken,
    history === null ? "" : `start ${history.start.slice(0, 12)}, ${history.count} commits`,
  ]);
  for (const line of table(rows)) terminal.print(line);
};

export const verify = async (context: Context, file: string, opening: Opening): Promise<void> => {
  const unpacked = await openBackup(context, file, opening);
  await unpacked.remove();
  const { terminal } = context;
  if (context.json) printJson(context, { file, ...summaryOf(unpacked) });
  else {
    showParts(context, unpacked);
    terminal.print(
      `${file}, of ${unpacked.issued}: every seal, signature, digest and database of ${unpacked.parts.length} parts is right`,
    );
  }
  for (const { name, why } of unpacked.missing) terminal.warn(`not in it: ${name}: ${why}`);
  if (unpacked.missing.length > 0) throw notWhole(unpacked.missing.length);
};

export const restore = async (
  context: Context,
  file: string,
  options: Opening & {
    readonly directory: string | undefined;
    readonly only: string | undefined;
    readonly yes: boolean;
  },
): Promise<void> => {
  const { restoreTestbed } = await import("./up.ts");
  const { terminal } = context;
  const unpacked = await openBackup(context, file, options);
  try {
    const age = Math.round((Date.now() - Date.parse(unpacked.issued)) / 60_000);
    const question = `The stores of ${unpacked.issued} (${age} minutes ago) take the place of those that are there. What the cloud was told since then is in none of them. Go on?`;
    if (!options.yes && !(terminal.canAsk && (await terminal.ask(question))))
      throw new CommandFailure(exitCodes.refused, "nothing was restored; --yes does not ask");
    const only = options.only?.split(",").map((name) => name.trim());
    const { restored, left, anew } = await failing(() =>
      restoreTestbed({ unpacked, only, ...(options.directory === undefined ? {} : { directory: options.directory }) }),
    );
    if (context.json) return printJson(context, { restored, left, anew, missing: unpacked.missing });
    for (const name of restored) terminal.print(`  restored ${name}`);
    if (left.length > 0)
      terminal.print(`left as they are: ${left.join(", ")}: what they have is newer, or is data (--only restores one)`);
    if (anew.length > 0) terminal.print(`begin anew: ${anew.join(", ")}: what they need the others tell them`);
    terminal.print(
      "`cells up` starts them. Where hosts and storage servers hold newer things of one, nothing of these is taken back: `cells orphans list` names them, and whose store is older.",
    );
    for (const { name, why } of unpacked.missing) terminal.warn(`not in the backup: ${name}: ${why}`);
  } finally {
    await unpacked.remove();
  }
};

export const returnStore = async (
  context: Context,
  file: string,
  service: string,
  options: Opening & { readonly yes: boolean },
): Promise<void> => {
  const { terminal } = context;
  const cell = /^controller\.(.+)$/.exec(service)?.[1];
  if (cell === undefined)
    throw usage(
      `"${printable(service)}" is no cell's controller, such as controller.root; other services find back by themselves`,
    );
  const unpacked = await openBackup(context, file, options);
  try {
    const part = unpacked.parts.find(({ manifest }) => manifest.name === service);
    const store = part?.files.get("state.sqlite");
    if (part === undefined || store === undefined)
      throw new CommandFailure(
        exitCodes.refused,
        `${file} has no store of ${printable(service)}; \`cells management verify\` shows what it has`,
      );
    const question = `${service} goes on with its store of ${part.manifest.taken}. What it was told since then is not in it. Go on?`;
    if (!options.yes && !(terminal.canAsk && (await terminal.ask(question))))
      throw new CommandFailure(exitCodes.refused, "nothing was given back; --yes does not ask");
    const answer = await context.client().returnStore(cell, store, (await stat(store)).size);
    if (context.json) return printJson(context, { ...answer, taken: part.manifest.taken });
    terminal.print(
      `${service} starts again with its store of ${part.manifest.taken}. If others hold newer things of it, it stands still until you have looked (\`cells orphans list\`) and say \`cells orphans release ${service}\``,
    );
  } finally {
    await unpacked.remove();
  }
};
