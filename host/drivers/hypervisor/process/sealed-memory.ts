import { closeSync, openSync, readSync, statSync, writeSync } from "node:fs";
import koffi from "koffi";

// <linux/memfd.h>, <linux/fcntl.h>
const closeOnExec = 0x1;
const allowSealing = 0x2;
const addSeals = 1033;
const sealSeal = 0x1;
const sealShrink = 0x2;
const sealGrow = 0x4;
const sealWrite = 0x8;

const libc = koffi.load("libc.so.6");
const memfdCreate = libc.func("int memfd_create(const char *name, unsigned int flags)");
const fcntl = libc.func("int fcntl(int descriptor, int command, int argument)");
const ftruncate = libc.func("int ftruncate(int descriptor, int64_t length)");

const chunkBytes = 1024 * 1024;
const pageBytes = 4096;
const zeros = Buffer.alloc(pageBytes);

/**
 * A saved guest memory that nobody can change any more, as a descriptor. QEMU opens its memory for writing also where it
 * maps it privately, so a plain file would have to be writable by QEMU's user, and with it what all other machines of that
 * image go on from. This file is sealed: private mappings are all that can be made of it. Its pages are shared by all
 * machines that have not written theirs; zeros take no memory. memfd_create(2), fcntl(2).
 */
export const sealMemory = (path: string): number => {
  const { size } = statSync(path);
  const memory: number = memfdCreate("cells-saved-memory", closeOnExec | allowSealing);
  if (memory < 0) throw new Error("the system gave no anonymous file (memfd_create) for a saved memory");
  const source = openSync(path, "r");
  try {
    if (ftruncate(memory, size) !== 0) throw new Error(`no anonymous file of ${size} bytes can be made`);
    const chunk = Buffer.alloc(chunkBytes);
    for (let at = 0; at < size; at += chunkBytes) {
      const length = readSync(source, chunk, 0, chunkBytes, at);
      writePages(memory, chunk.subarray(0, length), at);
    }
    if (fcntl(memory, addSeals, sealSeal | sealShrink | sealGrow | sealWrite) !== 0)
      throw new Error("a saved memory cannot be sealed (F_ADD_SEALS)");
    return memory;
  } catch (error) {
    closeSync(memory);
    throw error;
  } finally {
    closeSync(source);
  }
};

/** Runs of pages that hold something, each in one go. */
const writePages = (into: number, chunk: Buffer, at: number): void => {
  let begin = -1;
  for (let page = 0; page <= chunk.length; page += pageBytes) {
    const some = page < chunk.length && zeros.compare(chunk, page, Math.min(page + pageBytes, chunk.length)) !== 0;
    if (some && begin < 0) begin = page;
    if (some || begin < 0) continue;
    writeSync(into, chunk, begin, Math.min(page, chunk.length) - begin, at + begin);
    begin = -1;
  }
};
