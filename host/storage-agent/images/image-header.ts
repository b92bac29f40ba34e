import { type FileHandle, open } from "node:fs/promises";
import { MiB } from "./qcow2.ts";

/**
 * Our own look at an upload, before any tool of QEMU's sees it: everything in a qcow2 header that leads to another file,
 * or to more work and memory than its size explains, is refused by name. Fields and limits are those of QEMU's
 * docs/interop/qcow2.txt; what that document leaves open and no tool of ours writes is refused too.
 */
export type ImageFormat = "raw" | "qcow2";
export interface ImageShape {
  readonly virtualBytes: number;
}
/** What an image must not be; the message is a clause about it: "it names a backing file, …". */
export class HostileImage extends Error {}
const refuse = (why: string): never => {
  throw new HostileImage(why);
};

const rewrite = "write it anew with `qemu-img convert -O qcow2 OLD NEW`";
const megabyte = BigInt(MiB);

/** Looks at a file that was declared to be `format`. Throws `HostileImage`; other errors are of the reading itself. */
export async function inspectImage(
  path: string,
  format: ImageFormat,
  limits: { readonly virtualBytes: number },
): Promise<ImageShape> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    if (size === 0) refuse("it is empty");
    return format === "raw" ? await inspectRaw(file, size, limits) : await inspectQcow2(file, size, limits);
  } finally {
    await file.close();
  }
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

// --- raw ---------------------------------------------------------------------------------------------------------

const sector = 512;

/** Bytes are bytes, and nobody ever probes them again; but whoever sends another format as raw does not mean it. */
async function inspectRaw(file: FileHandle, size: number, limits: { virtualBytes: number }): Promise<ImageShape> {
  const other = await foreignFormat(file, size);
  if (other !== null)
    refuse(`it begins as ${other}, and was declared raw; declare what it is, or unpack or convert it to raw or qcow2`);
  const virtualBytes = Math.ceil(size / sector) * sector;
  checkVirtualSize(BigInt(virtualBytes), limits);
  return { virtualBytes };
}

const signatures: readonly (readonly [name: string, offset: number, bytes: Buffer])[] = [
  ["a qcow2 image", 0, Buffer.from("QFI\xfb", "latin1")],
  ["a QED image", 0, Buffer.from("QED\0", "latin1")],
  ["a VMDK image", 0, Buffer.from("KDMV")],
  ["a VMDK image", 0, Buffer.from("COWD")],
  ["a VMDK descriptor, which names other files", 0, Buffer.from("# Disk DescriptorFile")],
  ["a VHDX image", 0, Buffer.from("vhdxfile")],
  ["a VHD image", 0, Buffer.from("conectix")],
  ["a VDI image", 0x40, Buffer.from([0x7f, 0x10, 0xda, 0xbe])],
  ["an encrypted LUKS volume", 0, Buffer.from("LUKS\xba\xbe", "latin1")],
  ["a Parallels image", 0, Buffer.from("WithoutFreeSpace")],
  ["a Parallels image", 0, Buffer.from("WithouFreSpacExt")],
  ["a Bochs image", 0, Buffer.from("Bochs Virtual HD Image")],
  ["a cloop image", 0, Buffer.from("#!/bin/sh\n#V2.0 Format\n")],
  ["a file packed with gzip", 0, Buffer.from([0x1f, 0x8b, 0x08])],
  ["a file packed with xz", 0, Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00])],
  ["a file packed with zstd", 0, Buffer.from([0x28, 0xb5, 0x2f, 0xfd])],
  ["a file packed with bzip2", 0, Buffer.from("BZh")],
  ["a zip archive", 0, Buffer.from("PK\u0003\u0004")],
];

/** What QEMU's own probing (or a person's eye) would take these bytes for; null: for a disk. */
async function foreignFormat(file: FileHandle, size: number): Promise<string | null> {
  const head = await readAt(file, 0, 4096);
  for (const [name, offset, bytes] of signatures)
    if (head.subarray(offset, offset + bytes.length).equals(bytes)) return name;
  // A VMDK descriptor may begin with comments and empty lines.
  if (/^(?:[ \t]*(?:#[^\n\0]*)?\r?\n)*version[ \t]*=/i.test(head.toString("latin1")))
    return "a VMDK descriptor, which names other files";
  // A fixed VHD and a DMG have their mark at the end.
  const tail = await readAt(file, Math.max(0, size - sector), sector);
  if (tail.subarray(0, 8).equals(Buffer.from("conectix"))) return "a VHD image (by its last sector)";
  return tail.subarray(0, 4).equals(Buffer.from("koly")) ? "a DMG image (by its last sector)" : null;
}

function checkVirtualSize(bytes: bigint, limits: { readonly virtualBytes: number }): void {
  if (bytes === 0n) refuse("its disk has a size of 0");
  if (bytes > BigInt(limits.virtualBytes))
    refuse(
      `its disk has ${bytes / megabyte} MiB, and at most ${Math.floor(limits.virtualBytes / MiB)} MiB are accepted here`,
    );
}

// --- qcow2 -------------------------------------------------------------------------------------------------------

/** QEMU's own bounds of the two tables that it reads as a whole. */
const largestL1Bytes = 32 * MiB;
const largestRefcountTableBytes = 8 * MiB;
const shortestHeader = { 2: 72, 3: 104 } as const;
const features = { dirty: 1n, corrupt: 2n, externalData: 4n, compressionType: 8n, extendedL2: 16n };

async function inspectQcow2(file: FileHandle, size: number, limits: { virtualBytes: number }): Promise<ImageShape> {
  const header = await readAt(file, 0, 112);
  if (header.length < 4 || header.readUInt32BE(0) !== 0x514649fb) {
    const other = await foreignFormat(file, size);
    refuse(`it is no qcow2 image${other === null ? "" : `: it begins as ${other}`}; declare raw if it is a plain disk`);
  }
  if (header.length < shortestHeader[2]) refuse("its header is cut off");
  const version = header.readUInt32BE(4);
  if (version !== 2 && version !== 3) return refuse(`its qcow2 version is ${version}; 2 and 3 are known`);
  if (header.length < shortestHeader[version]) refuse("its header is cut off");
  if (header.readBigUInt64BE(8) !== 0n || header.readUInt32BE(16) !== 0)
    refuse(`it names a backing file, another file that it would read; ${rewrite} where that file is`);
  if (header.readUInt32BE(32) !== 0) refuse(`it is encrypted; ${rewrite} with its key`);
  const clusterBits = header.readUInt32BE(20);
  if (clusterBits < 9 || clusterBits > 21) refuse(`its clusters have 2^${clusterBits} bytes; 2^9 to 2^21 are possible`);
  if (header.readUInt32BE(60) !== 0)
    refuse(`it holds ${header.readUInt32BE(60)} snapshots, which an image does not need; ${rewrite}`);
  const { extendedL2, headerLength } =
    version === 3 ? readVersion3(header, clusterBits) : { extendedL2: false, headerLength: shortestHeader[2] };
  const virtual = header.readBigUInt64BE(24);
  checkVirtualSize(virtual, limits);
  checkTables(header, { size, clusterBits, virtual, extendedL2 });
  checkExtensions(await readAt(file, 0, Math.min(size, 2 ** clusterBits)), headerLength);
  return { virtualBytes: Number(virtual) };
}

function readVersion3(header: Buffer, clusterBits: number): { extendedL2: boolean; headerLength: number } {
  const incompatible = header.readBigUInt64BE(72);
  const has = (feature: bigint): boolean => (incompatible & feature) !== 0n;
  if (has(features.externalData)) refuse(`it keeps its data in another file, which it names; ${rewrite}`);
  if (has(features.corrupt)) refuse("it is marked as corrupt; repair it with `qemu-img check -r all`");
  if (has(features.dirty))
    refuse("it was not closed properly (marked as dirty); repair it with `qemu-img check -r all`");
  const unknown = incompatible & ~0b11111n;
  if (unknown !== 0n) refuse(`it needs features that are not known here (bits 0x${unknown.toString(16)})`);
  const autoclear = header.readBigUInt64BE(88);
  if (autoclear !== 0n)
    refuse(`it has persistent bitmaps or raw external data (autoclear bits 0x${autoclear.toString(16)}); ${rewrite}`);
  if (header.readUInt32BE(96) > 6) refuse("its reference counts are wider than 64 bits");
  const headerLength = header.readUInt32BE(100);
  if (headerLength < shortestHeader[3] || headerLength % 8 !== 0 || headerLength > Math.min(4096, 2 ** clusterBits))
    refuse(`its header claims ${headerLength} bytes`);
  const compression = headerLength > 104 && header.length > 104 ? header.readUInt8(104) : 0;
  if (compression > 1) refuse(`its compression is of type ${compression}; 0 (zlib) and 1 (zstd) are known`);
  if ((compression !== 0) !== has(features.compressionType)) refuse("its header contradicts itself about compression");
  if (has(features.extendedL2) && clusterBits < 14) refuse("its subclusters are smaller than a sector");
  return { extendedL2: has(features.extendedL2), headerLength };
}

interface Tables {
  readonly size: number;
  readonly clusterBits: number;
  readonly virtual: bigint;
  readonly extendedL2: boolean;
}
/** Both tables must lie in the file, aligned, and be as large as the disk explains and QEMU would take. */
function checkTables(header: Buffer, { size, clusterBits, virtual, extendedL2 }: Tables): void {
  const cluster = 1n << BigInt(clusterBits);
  const fileEnd = ((BigInt(size) + cluster - 1n) / cluster) * cluster;
  const inside = (what: string, offset: bigint, bytes: bigint): void => {
    if (offset % cluster !== 0n || offset < cluster) refuse(`its ${what} begins at byte ${offset}, inside a cluster`);
    if (offset + bytes > fileEnd) refuse(`its ${what} lies behind the end of the file: is the file cut off?`);
  };
  const l1Entries = header.readUInt32BE(36);
  const bytesOfOneL2 = (cluster / (extendedL2 ? 16n : 8n)) * cluster;
  const needed = (virtual + bytesOfOneL2 - 1n) / bytesOfOneL2;
  if (BigInt(l1Entries) < needed) refuse(`its L1 table has ${l1Entries} entries, and its disk needs ${needed}`);
  if (l1Entries * 8 > largestL1Bytes) refuse(`its L1 table claims ${l1Entries} entries; its disk needs ${needed}`);
  inside("L1 table", header.readBigUInt64BE(40), BigInt(l1Entries) * 8n);
  const refcountClusters = header.readUInt32BE(56);
  const refcountBytes = BigInt(refcountClusters) * cluster;
  if (refcountClusters === 0) refuse("it has no reference count table");
  if (refcountBytes > BigInt(largestRefcountTableBytes))
    refuse(`its reference count table claims ${refcountBytes / megabyte} MiB; at most 8 MiB are possible`);
  inside("reference count table", header.readBigUInt64BE(48), refcountBytes);
}

const extensionNames: Readonly<Record<number, string>> = {
  3799591626: `it names the format of a backing file; ${rewrite}`,
  1145132097: `it names another file for its data; ${rewrite}`,
  595929205: `it has persistent bitmaps; ${rewrite}`,
  87539319: "it is encrypted (LUKS header); convert it with its key",
};
/** Names of feature bits, for people: the one extension that an ordinary image has. */
const featureNames = 0x6803f857;

/** Header extensions: type and length (4 bytes each), data padded to 8, until type 0 or the end of the first cluster. */
function checkExtensions(first: Buffer, headerLength: number): void {
  for (let at = headerLength; at + 8 <= first.length; ) {
    const type = first.readUInt32BE(at);
    const length = first.readUInt32BE(at + 4);
    if (type === 0) return;
    const known = extensionNames[type];
    if (known !== undefined) refuse(known);
    if (type !== featureNames) refuse(`it has a header extension 0x${type.toString(16)} that is not known; ${rewrite}`);
    if (length > first.length - at - 8) refuse("a header extension is longer than its cluster");
    at += 8 + Math.ceil(length / 8) * 8;
  }
}
