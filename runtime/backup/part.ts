import { createHash, createPublicKey, type KeyObject, sign, verify, type X509Certificate } from "node:crypto";
import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { createDeflateRaw, createInflateRaw } from "node:zlib";
import { BackupFault, ByteReader, frameOf, objectIn } from "./frames.ts";
import { certificateIn, type Order } from "./order.ts";
import { openChunks, readChunks, type SealedChunk, sealTo } from "./sealing.ts";

/**
 * What one process gives: its store and the files beside it, sealed before they leave the process and signed with the key of
 * its own certificate. So whoever carries a part (gateway, storage server, network) can neither read it nor put another in its
 * place, and a process can speak for its own store alone.
 *
 *   header     {part: 1, name, role, order: <SHA-256 of the order's text>, ephemeral, certificate}
 *   chunks     sealed; inside, deflated: a manifest, then the files of the manifest one after the other
 *   signature  over the header and the chunks as they are
 */
export interface PartHeader {
  readonly part: 1;
  /** Peer name; `supervisor` for a testbed's. */
  readonly name: string;
  readonly role: string;
  readonly order: string;
  readonly ephemeral: string;
  /** PEM, of the process; the authority's own where it is the supervisor that signs. */
  readonly certificate: string;
}
export interface PartFile {
  /** Below the process's directory, with `/` in between. */
  readonly path: string;
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
  /** `store` and `sqlite` are databases of SQLite; the store is the one of state distribution. */
  readonly kind: "store" | "sqlite" | "file";
}
/** Where a store is in its history, as `Mark` in `core/distribution/node/history.ts`. */
export interface HistoryMark {
  readonly start: string;
  readonly count: number;
}
export interface PartManifest {
  readonly format: 1;
  readonly name: string;
  readonly role: string;
  /** ISO 8601. */
  readonly taken: string;
  /** Null: the store keeps none. */
  readonly history: HistoryMark | null;
  readonly files: readonly PartFile[];
}

export const mostFiles = 64;
export const largestFileBytes = 4 * 1024 ** 3;
const longestHeader = 16 * 1024;
const longestManifest = 64 * 1024;
const longestSignature = 256;
const signedBytes = (header: Buffer, chunks: Buffer): Buffer =>
  Buffer.concat([Buffer.from("cells backup part 1\n"), createHash("sha256").update(header).digest(), chunks]);

const partPath = /^(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]{1,64}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]{1,64}){0,3}$/;
/** A path that stays below the directory that it is joined to. */
export const isPartPath = (path: unknown): path is string => typeof path === "string" && partPath.test(path);

export interface PartSource {
  readonly name: string;
  readonly role: string;
  readonly order: Order;
  readonly orderHash: string;
  /** PEM. */
  readonly certificate: string;
  readonly privateKey: KeyObject;
  readonly manifest: PartManifest;
  /** Where the manifest's files are, in its order. */
  readonly files: readonly string[];
}

async function* plainOf({ manifest, files }: PartSource): AsyncGenerator<Buffer> {
  yield frameOf(Buffer.from(JSON.stringify(manifest)));
  for (const [index, file] of files.entries()) {
    const bytes = manifest.files[index]?.bytes ?? 0;
    if (bytes > 0) yield* createReadStream(file, { end: bytes - 1 }) as AsyncIterable<Buffer>;
  }
}

/** The part's bytes, made as they are asked for. */
export async function* writePart(source: PartSource): AsyncGenerator<Buffer> {
  const { name, role, order, orderHash, certificate, privateKey } = source;
  const { ephemeral, seal } = sealTo(order.recipient);
  const header: PartHeader = { part: 1, name, role, order: orderHash, ephemeral, certificate };
  const headerBytes = Buffer.from(JSON.stringify(header));
  yield frameOf(headerBytes);
  const deflated = Readable.from(plainOf(source)).pipe(createDeflateRaw());
  const chunks = createHash("sha256");
  for await (const chunk of seal(headerBytes, deflated)) {
    chunks.update(chunk);
    yield chunk;
  }
  yield frameOf(sign("sha256", signedBytes(headerBytes, chunks.digest()), privateKey));
}

/** Where the files of a part go, while they are read: nothing of it counts before the signature was read. */
export interface PartSink {
  /** Called once, before any file. */
  begin(manifest: PartManifest): Promise<void>;
  /** Bytes of the file of this index, in order. */
  write(index: number, bytes: Buffer): Promise<void>;
}
export interface ReadPart {
  readonly header: PartHeader;
  /** Null: it was not opened. */
  readonly manifest: PartManifest | null;
}
export interface PartTrust {
  readonly authority: X509Certificate;
  readonly orderHash: string;
  readonly order: Order;
  /** Null: seals stay closed, and only signatures are looked at. */
  readonly privateKey: KeyObject | null;
}

const headerIn = (bytes: Buffer, at: number): PartHeader => {
  const read = objectIn(bytes, at, "a part's header");
  const { part, name, role, order, ephemeral, certificate } = read;
  const texts = [name, role, order, ephemeral, certificate].every((value) => typeof value === "string");
  if (part !== 1 || !texts) throw new BackupFault(at, "a part's header has not the form that this version knows");
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(String(name)) || !/^[A-Za-z0-9_-]{43}$/.test(String(ephemeral)))
    throw new BackupFault(at, "a part's header names nobody who could have written it");
  return read as unknown as PartHeader;
};

/** Whose certificate it is. The supervisor, and nobody else, signs with the authority's own key. */
const checkSigner = ({ name, certificate: pem }: PartHeader, authority: X509Certificate, at: number): KeyObject => {
  const certificate = certificateIn(pem, `the certificate of "${name}"`);
  if (name === "supervisor") {
    if (certificate.fingerprint256 === authority.fingerprint256) return authority.publicKey;
    throw new BackupFault(at, "the supervisor's part is not of this installation's authority");
  }
  const issued = !certificate.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
  const common: unknown = certificate.toLegacyObject().subject?.CN;
  if (!issued || common !== name)
    throw new BackupFault(at, `the certificate in the part of "${name}" is not that of "${name}" in this installation`);
  return createPublicKey(certificate.publicKey.export({ type: "spki", format: "pem" }));
};

/** Throws a `BackupFault` for one that is not of this process, or not of the form that this version knows. */
export const manifestIn = (bytes: Buffer, { name, role }: Pick<PartHeader, "name" | "role">): PartManifest => {
  const read = objectIn(bytes, 0, `the manifest of "${name}"`) as unknown as PartManifest;
  const files: unknown = read.files;
  const fits = (file: PartFile): boolean =>
    isPartPath(file?.path) &&
    Number.isSafeInteger(file.bytes) &&
    file.bytes >= 0 &&
    file.bytes <= largestFileBytes &&
    /^[0-9a-f]{64}$/.test(String(file.sha256)) &&
    ["store", "sqlite", "file"].includes(file.kind);
  const { history } = read;
  if (history !== null && (typeof history?.start !== "string" || !Number.isSafeInteger(history.count)))
    throw new BackupFault(null, `the manifest of "${name}" says nothing of its store's history`);
  if (
    read.format !== 1 ||
    typeof read.taken !== "string" ||
    read.name !== name ||
    read.role !== role ||
    !Array.isArray(files)
  )
    throw new BackupFault(null, `the manifest of "${name}" has not the form that this version knows`);
  const paths = new Set(files.map((file: PartFile) => file?.path));
  if (files.length > mostFiles || paths.size !== files.length || !files.every(fits))
    throw new BackupFault(null, `the manifest of "${name}" names a file that no part may hold`);
  return read;
};

/** Opens what is sealed and gives it to the sink, file by file, each checked against the manifest. */
const openPart = async (
  chunks: AsyncIterable<SealedChunk>,
  { header, headerBytes, privateKey }: { header: PartHeader; headerBytes: Buffer; privateKey: KeyObject },
  sink: PartSink,
): Promise<PartManifest> => {
  const inflated = createInflateRaw();
  const opened = Readable.from(openChunks(chunks, { privateKey, ephemeral: header.ephemeral, header: headerBytes }));
  opened.on("error", (error) => inflated.destroy(error));
  const reader = new ByteReader(opened.pipe(inflated));
  try {
    const bytes = await reader.frame(longestManifest, `the manifest of "${header.name}"`);
    const manifest = manifestIn(bytes ?? Buffer.alloc(0), header);
    await sink.begin(manifest);
    for (const [index, { path, bytes: length, sha256 }] of manifest.files.entries()) {
      const hash = createHash("sha256");
      for (let left = length; left > 0; ) {
        const piece = await reader.take(Math.min(left, 256 * 1024), `"${path}" of "${header.name}"`);
        hash.update(piece);
        await sink.write(index, piece);
        left -= piece.length;
      }
      if (hash.digest("hex") !== sha256)
        throw new BackupFault(null, `"${path}" of "${header.name}" is not what its manifest says: other SHA-256`);
    }
    if ((await reader.upTo(1)).length > 0)
      throw new BackupFault(null, `the part of "${header.name}" holds more than its manifest names`);
    return manifest;
  } catch (error) {
    if (error instanceof BackupFault) throw error;
    throw new BackupFault(null, `the part of "${header.name}" cannot be unpacked: ${(error as Error).message}`);
  } finally {
    opened.destroy();
    inflated.destroy();
  }
};

/**
 * Reads one part, whose header's frame has been read. Throws a `BackupFault` for one that is not of this order, is changed, or
 * is of somebody else than it says.
 */
export const readPart = async (
  reader: ByteReader,
  headerBytes: Buffer,
  { authority, order, orderHash, privateKey }: PartTrust,
  sink: PartSink,
): Promise<ReadPart> => {
  const at = reader.position;
  const header = headerIn(headerBytes, at);
  const signer = checkSigner(header, authority, at);
  const { name } = header;
  if (header.order !== orderHash) throw new BackupFault(at, `the part of "${name}" belongs to another backup`);
  if (!order.peers.includes(name)) throw new BackupFault(at, `the order of this backup does not name "${name}"`);
  const hash = createHash("sha256");
  const seen = async function* (): AsyncGenerator<SealedChunk> {
    for await (const chunk of readChunks(reader)) {
      hash.update(frameOf(chunk.bytes));
      yield chunk;
    }
    hash.update(Buffer.alloc(4));
  };
  let manifest: PartManifest | null = null;
  const chunks = seen();
  if (privateKey !== null) manifest = await openPart(chunks, { header, headerBytes, privateKey }, sink);
  else for await (const _ of chunks);
  const signatureAt = reader.position;
  const signature = await reader.frame(longestSignature, "a part's signature");
  if (signature === null || !verify("sha256", signedBytes(headerBytes, hash.digest()), signer, signature))
    throw new BackupFault(signatureAt, `the part of "${name}" is not signed by "${name}"`);
  return { header, manifest };
};

/** The header's frame of the next part; null at the end of the parts. */
export const nextPart = (reader: ByteReader): Promise<Buffer | null> =>
  reader.frame(longestHeader, "the header of a part");
