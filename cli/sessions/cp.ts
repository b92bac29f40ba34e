import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Client } from "../connection/client.ts";
import { type Context, printJson } from "../context/context.ts";
import { CommandFailure, exitCodes, usage } from "../terminal/failure.ts";
import { type Ran, type RunBounds, run } from "./run-in-guest.ts";

/**
 * `cells cp`: one file into a guest or out of it, by commands that every guest with a shell has. It has its name
 * only when all of it is there and its digest is right. A guest that never ends its file fills no disk here: how much is taken is bounded.
 */
interface GuestFile {
  readonly vm: string;
  readonly path: string;
}

/** `shop/web/vm:/etc/motd`; null: a file here. A path here that has a `:` is written as `./a:b`. */
export const guestFileOf = (text: string): GuestFile | null => {
  const colon = text.indexOf(":");
  if (colon < 0 || /^[./]/.test(text)) return null;
  const [vm, path] = [text.slice(0, colon), text.slice(colon + 1)];
  if (!vm.includes("/")) throw usage(`${vm} is no path of a VM: write for example shop/web/vm:/etc/motd`);
  if (path === "") throw usage(`which file in ${vm}? for example ${vm}:/etc/motd`);
  return { vm, path };
};

const must = async (what: string, running: Promise<Ran>): Promise<void> => {
  const { exitCode, said } = await running;
  if (exitCode !== 0) throw new CommandFailure(exitCodes.refused, `${what}: ${said || `exit code ${exitCode}`}`);
};
/** The name is an argument and never part of the script. */
const shell = (script: string, ...names: readonly string[]): readonly string[] => ["sh", "-c", script, "sh", ...names];

/** Of what says little and is done at once. */
const small: RunBounds = { limitMs: 60_000, mostBytes: 4096 };
/** A guest that is emulated on a busy machine digests so much at least. */
const slowestBytesPerSecond = 1024 * 1024;

/** It says an empty line now and then: of 16 GiB a digest lasts for hours, and a guest that is gone is noticed all the same. */
const digest =
  '(while sleep 20 > /dev/null 2>&1; do echo; done) & life=$!; sha256sum < "$1"; code=$?; kill $life; exit $code';

const digestIn = async (client: Client, { vm, path }: GuestFile, bytes: number): Promise<string> => {
  const told: Buffer[] = [];
  const output = (piece: Buffer): null => {
    told.push(piece);
    return null;
  };
  const limitMs = 60_000 + Math.ceil((bytes / slowestBytesPerSecond) * 1000);
  await must(`${vm}:${path}`, run(client, vm, shell(digest, path), { output, ...small, limitMs }));
  return /[0-9a-f]{64}/.exec(Buffer.concat(told).toString("latin1"))?.[0] ?? "";
};
const differs = (from: string, to: string): CommandFailure =>
  new CommandFailure(
    exitCodes.refused,
    `${to} is not what ${from} was: it changed on the way, or while it was read. Nothing was kept`,
  );

const into = async (client: Client, file: string, { vm, path }: GuestFile): Promise<number> => {
  const found = await stat(file).catch((error: Error) => {
    throw usage(`cannot read ${file}: ${error.message}`);
  });
  if (!found.isFile()) throw usage(`${file} is no regular file: \`tar\` makes one of a directory`);
  const target = path.endsWith("/") ? `${path}${basename(file)}` : path;
  const draft = `${target}.${randomBytes(4).toString("hex")}.part`;
  const hash = createHash("sha256");
  let bytes = 0;
  await must(`${vm}:${target}`, run(client, vm, shell('test ! -d "$1" && : > "$2"', target, draft), small));
  try {
    const pieces = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of createReadStream(file)) {
        const piece = chunk as Buffer;
        hash.update(piece);
        bytes += piece.length;
        yield piece;
      }
    };
    await must(`${vm}:${draft}`, run(client, vm, shell('cat > "$1"', draft), { input: pieces() }));
    if ((await digestIn(client, { vm, path: draft }, bytes)) !== hash.digest("hex"))
      throw differs(file, `${vm}:${target}`);
    const mode = (found.mode & 0o777).toString(8);
    const named = shell('chmod "$1" "$2" && mv "$2" "$3"', mode, draft, target);
    await must(`${vm}:${target}`, run(client, vm, named, small));
  } catch (error) {
    await run(client, vm, ["rm", "-f", draft], small).catch(() => undefined);
    throw error;
  }
  return bytes;
};

const outOf = async (client: Client, source: GuestFile, file: string, most: number): Promise<number> => {
  const isDirectory = await stat(file).then(
    (found) => found.isDirectory(),
    () => false,
  );
  const target = isDirectory ? join(file, basename(source.path)) : file;
  const draft = `${target}.${randomBytes(4).toString("hex")}.part`;
  const handle = await open(draft, "wx").catch((error: Error) => {
    throw usage(`cannot write ${target}: ${error.message}`);
  });
  const hash = createHash("sha256");
  let bytes = 0;
  const output = async (piece: Buffer): Promise<void> => {
    bytes += piece.length;
    if (bytes > most * 1024 * 1024)
      throw new CommandFailure(
        exitCodes.refused,
        `${source.vm}:${source.path} is more than ${most} MiB. Nothing was kept; --most says how much is taken`,
      );
    hash.update(piece);
    await handle.appendFile(piece);
  };
  try {
    const named = `${source.vm}:${source.path}`;
    await must(named, run(client, source.vm, shell('cat < "$1"', source.path), { output }));
    await handle.close();
    if ((await digestIn(client, source, bytes)) !== hash.digest("hex")) throw differs(named, target);
    await rename(draft, target);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(draft, { force: true });
    throw error;
  }
  return bytes;
};

/** @param most taken out of a guest, in MiB */
export const copy = async (context: Context, from: string, to: string, most: number): Promise<void> => {
  const [source, target] = [guestFileOf(from), guestFileOf(to)];
  const client = context.client();
  let bytes: number;
  if (source === null && target !== null) bytes = await into(client, from, target);
  else if (source !== null && target === null) bytes = await outOf(client, source, to, most);
  else throw usage("one of the two is a file in a VM, as shop/web/vm:/etc/motd, and the other one a file here");
  if (context.json) printJson(context, { from, to, bytes });
  else context.terminal.print(`${from} → ${to}: ${bytes} bytes`);
};
