import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  readSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";

/** Uploads as an attacker would make them, from what QEMU's own tools write and a few bytes changed. */
export const qemu = (...command: readonly string[]): string =>
  execFileSync(command[0] ?? "", command.slice(1), { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

export const pattern = 0x5a;
/** 8 MiB, of which the first and the last have a pattern. */
export function makeGood(path: string, options: readonly string[] = []): string {
  qemu("qemu-img", "create", "-q", "-f", "qcow2", ...options.flatMap((each) => ["-o", each]), path, "8M");
  const write = [`write -q -P ${pattern} 0 1M`, `write -q -P ${pattern} 7M 1M`].flatMap((each) => ["-c", each]);
  qemu("qemu-io", "-f", "qcow2", ...write, path);
  return path;
}

type Field = readonly [offset: number, bytes: 1 | 4 | 8, value: number | bigint];
/** A copy with fields of its header (big-endian) overwritten. */
export function patched(from: string, to: string, fields: readonly Field[]): string {
  copyFileSync(from, to);
  patch(to, fields);
  return to;
}
export function patch(path: string, fields: readonly Field[]): void {
  const file = openSync(path, "r+");
  try {
    for (const [offset, bytes, value] of fields) {
      const buffer = Buffer.alloc(bytes);
      if (bytes === 8) buffer.writeBigUInt64BE(BigInt(value));
      else if (bytes === 4) buffer.writeUInt32BE(Number(value));
      else buffer.writeUInt8(Number(value));
      writeSync(file, buffer, 0, bytes, offset);
    }
  } finally {
    closeSync(file);
  }
}
export function readNumber(path: string, offset: number): bigint {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(8);
  readSync(file, buffer, 0, 8, offset);
  closeSync(file);
  return buffer.readBigUInt64BE();
}

/** Where fields of the header are (QEMU, docs/interop/qcow2.txt). */
export const at = {
  version: 4,
  backingOffset: 8,
  backingLength: 16,
  clusterBits: 20,
  virtualSize: 24,
  encryption: 32,
  l1Size: 36,
  l1Offset: 40,
  refcountOffset: 48,
  refcountClusters: 56,
  snapshots: 60,
  incompatible: 72,
  autoclear: 88,
  refcountOrder: 96,
  headerLength: 100,
  compressionType: 104,
} as const;

/** One whose header names another file to read from, written straight into the bytes: nobody has to find that file. */
export function withBackingFile(directory: string, good: string, name: string, url: string): string {
  const path = join(directory, name);
  copyFileSync(good, path);
  const text = Buffer.from(url);
  const file = openSync(path, "r+");
  writeSync(file, text, 0, text.length, 0x400);
  closeSync(file);
  patch(path, [
    [at.backingOffset, 8, 0x400],
    [at.backingLength, 4, text.length],
  ]);
  return path;
}

/** One that reads its guest's data from `target`. Made beside a file of the same name length, then pointed elsewhere. */
export function withDataFile(directory: string, name: string, target: string): string {
  const path = join(directory, name);
  const stand = join(directory, `${name}.data`);
  qemu("qemu-img", "create", "-q", "-f", "qcow2", "-o", `data_file=${stand},data_file_raw=on`, path, "64k");
  qemu("qemu-io", "-f", "qcow2", "-c", "write -q -P 1 0 64k", path);
  const bytes = readFileSync(path);
  const where = bytes.indexOf(stand);
  const text = Buffer.alloc(stand.length);
  text.write(target);
  if (where < 0 || target.length > stand.length) throw new Error("the header is not as expected");
  text.copy(bytes, where);
  bytes.writeUInt32BE(target.length, where - 4);
  // Shorter by whole padded bytes: what follows must move up, or it is read as another extension.
  const padded = (length: number): number => Math.ceil(length / 8) * 8;
  const after = bytes.subarray(where + padded(stand.length), 65536);
  Buffer.from(after).copy(bytes, where + padded(target.length));
  writeFileSync(path, bytes);
  return path;
}

/** 64 GiB of one compressed cluster that a few KiB hold, all reference counts as they should be. */
export function decompressionBomb(directory: string, name: string, content: Buffer): string {
  const path = join(directory, name);
  const raw = join(directory, `${name}.raw`);
  const clusterBytes = 2 ** 21;
  const references = 2 ** 15;
  const virtual = BigInt(clusterBytes) * BigInt(references);
  // Hardly compressible, so that the cluster has room for any other stream; sparse behind it.
  writeFileSync(raw, Buffer.from(Array.from({ length: clusterBytes }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff)));
  truncateSync(raw, Number(virtual));
  const options = ["-o", "cluster_size=2M,refcount_bits=64"];
  qemu("qemu-img", "convert", "-c", "-f", "raw", "-O", "qcow2", ...options, raw, path);
  truncateSync(raw, 0);
  const l2 = readNumber(path, Number(readNumber(path, at.l1Offset))) & 0x00fffffffffffe00n;
  const entry = readNumber(path, Number(l2));
  if ((entry & (1n << 62n)) === 0n) throw new Error("the first cluster is not compressed");
  // Descriptor of a compressed cluster: x = 62 - (cluster_bits - 8) bits of offset, then the number of further sectors.
  const offset = entry & ((1n << (62n - 13n)) - 1n);
  const stream = deflateRawSync(content, { level: 9, windowBits: 12 });
  const bytes = readFileSync(path);
  stream.copy(bytes, Number(offset));
  for (let index = 0; index < references; index += 1) bytes.writeBigUInt64BE(entry, Number(l2) + 8 * index);
  const block = Number(bytes.readBigUInt64BE(Number(bytes.readBigUInt64BE(at.refcountOffset))));
  const sectors = Number((entry >> 49n) & 0x1fffn);
  const first = Number(offset);
  const last = (first & ~511) + 512 * (sectors + 1) - 1;
  for (let cluster = Math.floor(first / clusterBytes); cluster <= Math.floor(last / clusterBytes); cluster += 1)
    bytes.writeBigUInt64BE(BigInt(references), block + 8 * cluster);
  writeFileSync(path, bytes);
  return path;
}
