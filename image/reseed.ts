/**
 * The program `/usr/sbin/reseed` of the tiny image: writes its standard input (at most 256 bytes) into the kernel's pool of
 * entropy and has the kernel take new keys from it at once (RNDRESEEDCRNG, <linux/random.h>), which no program of busybox
 * can. Without that, guests of one saved state would go on drawing the same numbers for up to a minute. It ends with 0 or
 * the system's error number. As small as it is, it needs no compiler where the image is built; x86-64, System V ABI.
 */
const code = Buffer.from(
  [
    "31c0 31ff 488db42400feffff ba00010000 0f05", // read(0, below the stack, 256)
    "89c3", // the length
    "b802000000 488d3d35000000 be01000000 31d2 0f05", // open("/dev/urandom", O_WRONLY)
    "89c7",
    "b801000000 488db42400feffff 89da 0f05", // write(it, the bytes, the length)
    "b810000000 be07520000 31d2 0f05", // ioctl(it, RNDRESEEDCRNG, 0)
    "89c7 f7df b83c000000 0f05", // exit(- the result)
  ]
    .join("")
    .replaceAll(" ", ""),
  "hex",
);
const path = Buffer.from("/dev/urandom\0", "latin1");

const base = 0x400000n;
const headerBytes = 64 + 56;

/** An ELF file with one segment (ELF-64 Object File Format): header, program header, code, path. */
export const reseedProgram = (): Buffer => {
  const header = Buffer.alloc(headerBytes);
  const size = BigInt(headerBytes + code.length + path.length);
  // 64 bits, little endian, version 1; executable, x86-64.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1], 0);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(62, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(base + BigInt(headerBytes), 24);
  header.writeBigUInt64LE(64n, 32);
  for (const [at, value] of [
    [52, 64],
    [54, 56],
    [56, 1],
  ] as const)
    header.writeUInt16LE(value, at);
  // PT_LOAD, readable and executable, the whole file.
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(5, 68);
  header.writeBigUInt64LE(base, 80);
  header.writeBigUInt64LE(base, 88);
  header.writeBigUInt64LE(size, 96);
  header.writeBigUInt64LE(size, 104);
  header.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([header, code, path]);
};
