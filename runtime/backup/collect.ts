import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, open, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { renameDurably } from "../process/durable-files.ts";
import { containerEnd, containerStart, type MissingPart, openContainer } from "./container.ts";
import { BackupFault, ByteReader } from "./frames.ts";
import type { SignedOrder } from "./order.ts";
import { nextPart, readPart } from "./part.ts";
import type { LockedKey } from "./sealing.ts";

/** Gathers the parts of a backup into one file. Whoever does that needs to be trusted with nothing: it sees only what is sealed. */
export interface Collecting {
  readonly order: SignedOrder;
  /** Null: the operator's own key opens it. */
  readonly key: LockedKey | null;
  /** Null: the authority in the order is taken, as by whoever has just been given it. */
  readonly authority: string | null;
  /** Of all parts together. Where they come to more, the largest is left out, and no other because of it. */
  readonly mostBytes: number;
  /** Of one part; as many as of all if absent. */
  readonly mostPartBytes?: number;
  /** Asks a process; rejects when it does not answer, or not with a part. */
  readonly ask: (name: string) => Promise<AsyncIterable<Uint8Array>>;
  readonly onPart?: (name: string, bytes: number) => void;
}
export interface Collected {
  readonly names: readonly string[];
  readonly missing: readonly MissingPart[];
  readonly bytes: number;
}

const tooLarge = (what: string, most: number): BackupFault =>
  new BackupFault(null, `${what} would be larger than ${most} bytes`);

/** At most so many bytes pass. */
const bounded = (name: string, most: number): Transform => {
  let seen = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      seen += chunk.length;
      if (seen > most) done(tooLarge(`the part of "${name}"`, most));
      else done(null, chunk);
    },
  });
};

/**
 * Writes the file as a whole, mode 0600, in place of one that is there. A process that does not answer is named in `missing`,
 * and the rest is kept. Rejects when nobody answers, or the disk is full.
 */
export const collectBackup = async (file: string, what: Collecting): Promise<Collected> => {
  const directory = await mkdtemp(join(dirname(file), `.${basename(file)}-`));
  try {
    const opened = await openContainer(
      new ByteReader(Readable.from([containerStart({ order: what.order, key: what.key, missing: [] })])),
      { authority: what.authority },
    );
    const parts: GatheredPart[] = [];
    const missing: MissingPart[] = [];
    const mostBytes = Math.min(what.mostBytes, what.mostPartBytes ?? what.mostBytes);
    for (const [index, name] of opened.order.peers.entries()) {
      const to = join(directory, String(index));
      try {
        const bytes = await takePart(name, to, { ...what, open: opened, mostBytes });
        parts.push({ name, file: to, bytes });
        what.onPart?.(name, bytes);
      } catch (error) {
        await rm(to, { force: true });
        missing.push({ name, why: (error as Error).message });
      }
      missing.push(...(await leaveOutLargest(parts, what.mostBytes)));
    }
    if (parts.length === 0)
      throw new BackupFault(null, `nobody gave a copy of its store: ${missing[0]?.why ?? "nobody was asked"}`);
    const bytes = await assemble(
      join(directory, "whole"),
      { ...what, missing },
      parts.map((part) => part.file),
    );
    await renameDurably(join(directory, "whole"), file);
    return { names: parts.map(({ name }) => name), missing, bytes };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

interface GatheredPart {
  readonly name: string;
  readonly file: string;
  readonly bytes: number;
}

/** Until they come to no more than `most`, so that whoever pads its own part loses that one and shuts nobody else out. */
const leaveOutLargest = async (parts: GatheredPart[], most: number): Promise<readonly MissingPart[]> => {
  const left: MissingPart[] = [];
  let bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  while (bytes > most) {
    const largest = parts.reduce((one, other) => (other.bytes > one.bytes ? other : one));
    parts.splice(parts.indexOf(largest), 1);
    await rm(largest.file, { force: true });
    left.push({ name: largest.name, why: tooLarge("with its part the backup", most).message });
    bytes -= largest.bytes;
  }
  return left;
};

/** Takes one part down, and looks whether it is one: its form, whose it is and its signature. */
const takePart = async (
  name: string,
  to: string,
  {
    ask,
    open: trust,
    mostBytes,
  }: Pick<Collecting, "ask" | "mostBytes"> & { open: Awaited<ReturnType<typeof openContainer>> },
): Promise<number> => {
  await pipeline(Readable.from(await ask(name)), bounded(name, mostBytes), createWriteStream(to, { mode: 0o600 }));
  const stream = createReadStream(to);
  try {
    const reader = new ByteReader(stream);
    const header = await nextPart(reader);
    if (header === null) throw new BackupFault(0, `"${name}" answered with nothing`);
    const sink = { begin: async () => undefined, write: async () => undefined };
    const part = await readPart(reader, header, { ...trust, privateKey: null }, sink);
    if (part.header.name !== name)
      throw new BackupFault(0, `"${name}" answered with the part of "${part.header.name}"`);
    if ((await reader.upTo(1)).length > 0) throw new BackupFault(reader.position, `"${name}" sent more than a part`);
    return reader.position;
  } finally {
    stream.destroy();
  }
};

const assemble = async (
  to: string,
  header: Parameters<typeof containerStart>[0],
  files: readonly string[],
): Promise<number> => {
  const whole = async function* (): AsyncGenerator<Buffer> {
    yield containerStart({ order: header.order, key: header.key, missing: header.missing });
    for (const file of files) yield* createReadStream(file) as AsyncIterable<Buffer>;
    yield containerEnd();
  };
  const handle = await open(to, "wx", 0o600);
  try {
    let bytes = 0;
    for await (const chunk of whole()) {
      await handle.writeFile(chunk);
      bytes += chunk.length;
    }
    await handle.sync();
    return bytes;
  } finally {
    await handle.close();
  }
};
