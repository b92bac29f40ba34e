import type { KeyObject, X509Certificate } from "node:crypto";
import { createReadStream } from "node:fs";
import { fingerprintOf } from "../transport/fingerprint.ts";
import { BackupFault, ByteReader, frameOf, objectIn } from "./frames.ts";
import {
  certificateIn,
  hashOfOrder,
  longestOrder,
  type Order,
  openOrder,
  readSignedOrder,
  type SignedOrder,
} from "./order.ts";
import { nextPart, type PartSink, type ReadPart, readPart } from "./part.ts";
import { type LockedKey, readLockedKey, unlockKey } from "./sealing.ts";

/**
 * A backup of the management in one file: the order that it follows, then the parts as their processes gave them.
 *
 *   "cells backup 1\n"
 *   header   {order: SignedOrder, key: LockedKey | null, missing: [{name, why}]}
 *   parts    see `part.ts`, one after the other, and an end mark
 *
 * `key` is there if a passphrase opens the backup; otherwise the operator's own private key does. Nothing in the header is
 * trusted unchecked: the order is signed, the key must match the order, and `missing` is only shown to people.
 */
const magic = Buffer.from("cells backup 1\n");
const longestHeader = 4 * longestOrder;
const mostMissing = 4096;

export interface MissingPart {
  readonly name: string;
  readonly why: string;
}
export interface ContainerHeader {
  readonly order: SignedOrder;
  readonly key: LockedKey | null;
  /** Processes that did not answer when it was made. */
  readonly missing: readonly MissingPart[];
}

/** The bytes before the parts. */
export const containerStart = (header: ContainerHeader): Buffer =>
  Buffer.concat([magic, frameOf(Buffer.from(JSON.stringify(header)))]);
/** The bytes after the parts. */
export const containerEnd = (): Buffer => Buffer.alloc(4);

export interface OpenContainer {
  readonly order: Order;
  readonly orderHash: string;
  readonly authority: X509Certificate;
  /** SHA-256 (hexadecimal) of the authority's public key. */
  readonly fingerprint: string;
  readonly key: LockedKey | null;
  readonly missing: readonly MissingPart[];
}
/** What a reader knows in advance about the origin of a backup. */
export interface ReaderTrust {
  /** PEM of the installation's authority; null: the one in the backup is taken, and its fingerprint is to be compared. */
  readonly authority: string | null;
}

const missingIn = (read: readonly unknown[]): readonly MissingPart[] =>
  read.slice(0, mostMissing).flatMap((each) => {
    const { name, why } = (each ?? {}) as Partial<Record<keyof MissingPart, unknown>>;
    return typeof name === "string" && typeof why === "string"
      ? [{ name: name.slice(0, 64), why: why.slice(0, 500) }]
      : [];
  });

/** Reads up to the first part. Throws a `BackupFault`. */
export const openContainer = async (reader: ByteReader, trust: ReaderTrust): Promise<OpenContainer> => {
  const first = await reader.upTo(magic.length);
  if (!first.equals(magic)) throw new BackupFault(0, "this is no backup that this version of Cells can read");
  const at = reader.position;
  const header = objectIn((await reader.frame(longestHeader, "the header")) ?? Buffer.alloc(0), at, "the header");
  if (Object.keys(header).sort().join() !== "key,missing,order" || !Array.isArray(header.missing))
    throw new BackupFault(at, "the header has not the form that this version knows");
  const signed = readSignedOrder(header.order);
  const authority = certificateIn(trust.authority ?? signed.authority, "the authority's certificate");
  const order = openOrder(signed, authority, null);
  const key = header.key === null ? null : readLockedKey(header.key);
  if (key !== null && key.recipient !== order.recipient)
    throw new BackupFault(at, "the locked key in the header is not the one to which the parts are sealed");
  return {
    order,
    authority,
    key,
    orderHash: hashOfOrder(signed),
    fingerprint: fingerprintOf(authority.publicKey),
    missing: missingIn(header.missing),
  };
};

/** Asks for the secret that opens a backup: one of the two is called, once. */
export interface Opener {
  passphrase(): Promise<string>;
  /** Of the operator's key file. */
  privateKey(recipient: string): Promise<KeyObject>;
}

export const keyFor = async ({ key, order }: OpenContainer, opener: Opener): Promise<KeyObject> =>
  key === null ? opener.privateKey(order.recipient) : (await unlockKey(key, await opener.passphrase())).privateKey;

export interface ReadContainer extends OpenContainer {
  readonly parts: readonly ReadPart[];
  /** Processes whose part the order asked for, and that have none in the file. */
  readonly absent: readonly string[];
}

/** Reads a whole file, each part into the sink that `sinkFor` returns. Throws a `BackupFault` at the first fault. */
export const readContainer = async (
  file: string,
  trust: ReaderTrust,
  opener: Opener,
  sinkFor: (index: number) => PartSink,
): Promise<ReadContainer> => {
  const stream = createReadStream(file);
  try {
    const reader = new ByteReader(stream);
    const open = await openContainer(reader, trust);
    const privateKey = await keyFor(open, opener);
    const parts: ReadPart[] = [];
    for (;;) {
      const at = reader.position;
      const header = await nextPart(reader);
      if (header === null) break;
      const part = await readPart(reader, header, { ...open, privateKey }, sinkFor(parts.length));
      const { name } = part.header;
      if (parts.some((other) => other.header.name === name))
        throw new BackupFault(at, `there is a second part of "${name}"`);
      parts.push(part);
    }
    const at = reader.position;
    if ((await reader.upTo(1)).length > 0) throw new BackupFault(at, "something follows behind the end of the backup");
    const there = new Set(parts.map(({ header }) => header.name));
    return { ...open, parts, absent: open.order.peers.filter((peer) => !there.has(peer)) };
  } finally {
    stream.destroy();
  }
};
