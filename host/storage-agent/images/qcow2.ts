import { execFile } from "node:child_process";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { setprivArguments, storageIdentity } from "../../drivers/unix-users.ts";

const run = promisify(execFile);
export const MiB = 1024 * 1024;

/** Header fields of the qcow2 format (QEMU, docs/interop/qcow2.txt). */
export interface Qcow2Header {
  readonly virtualBytes: number;
}

/**
 * Reads a qcow2 header and refuses everything that would make QEMU open another file or trust a damaged one: hosts write
 * these files' bytes, so a header is not believed. Throws a sentence.
 */
export async function readHeader(path: string): Promise<Qcow2Header> {
  const file = await open(path, "r");
  try {
    const header = Buffer.alloc(104);
    const { bytesRead } = await file.read(header, 0, header.length, 0);
    if (bytesRead < 72 || header.readUInt32BE(0) !== 0x514649fb) throw new Error(`${path} is no qcow2 file`);
    const version = header.readUInt32BE(4);
    if (version !== 2 && version !== 3) throw new Error(`${path} has qcow2 version ${version}; 2 and 3 are known`);
    if (header.readBigUInt64BE(8) !== 0n) throw new Error(`${path} names a backing file; a volume must not`);
    if (header.readUInt32BE(32) !== 0) throw new Error(`${path} is encrypted; a volume must not be`);
    const features = version === 3 && bytesRead >= 80 ? header.readBigUInt64BE(72) : 0n;
    if ((features & 0b10n) !== 0n) throw new Error(`${path} is marked as corrupt: repair or restore it`);
    if ((features & 0b100n) !== 0n) throw new Error(`${path} keeps its data in another file; a volume must not`);
    return { virtualBytes: Number(header.readBigUInt64BE(24)) };
  } finally {
    await file.close();
  }
}

/**
 * Length of the file that holds `virtualBytes` and all of qcow2's tables. NBD's size is fixed, so whatever the guest's
 * writes may need must be there before; it stays a hole until then. L2 tables take 1/8192 and reference counts 1/32768
 * with clusters of 64 KiB; the rest is for relocated L1 and reference tables.
 */
export const servedLength = (virtualBytes: number): number => virtualBytes + Math.ceil(virtualBytes / 2048) + 16 * MiB;

/** Beyond it a file is as long as its disk needs: some file systems have no longer files. */
const mostRoomBytes = 4 * 1024 * 1024 * MiB;

/** The disk's size up to which a file is made long enough: what is not written stays a hole and costs nothing. */
const roomFor = (virtualBytes: number): number =>
  Math.max(virtualBytes, Math.min(mostRoomBytes, Math.max(4 * virtualBytes, virtualBytes + 64 * 1024 * MiB)));

/**
 * Length of a file whose disk may grow while it is exported, and the size in MiB up to which it may, of a file of that length.
 * The double of what the disk itself needs: clusters of an image that the disk was made from may lie there unused, and they
 * take no more than the disk. So the length alone says how much room there is; a file of an earlier version has none.
 */
export const lengthWithRoom = (virtualBytes: number): number => {
  const room = roomFor(virtualBytes);
  return room > virtualBytes ? 2 * servedLength(room) : servedLength(virtualBytes);
};
export const roomMiBOf = (fileBytes: number): number =>
  Math.max(0, Math.floor(((fileBytes / 2 - 17 * MiB) * 2048) / 2049 / MiB));

/** `qemu-img` without privileges. `directory` is its working directory, so no path above has to be open to it. */
export async function qemuImg(directory: string, parameters: readonly string[]): Promise<void> {
  const command = [...setprivArguments(storageIdentity), "qemu-img", ...parameters];
  try {
    await run("setpriv", command, { cwd: directory });
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim();
    throw new Error(said || `qemu-img ${parameters[0]} failed: ${(error as Error).message}`);
  }
}
