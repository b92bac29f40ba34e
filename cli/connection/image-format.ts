import { open } from "node:fs/promises";
import { fail, ok, type Result } from "../../model/result.ts";

/**
 * What a disk image is, by what stands in it. Only for convenience: what is found is declared to the cloud, which checks the
 * file for being that. A file that could be anything is not taken for raw bytes.
 */
export type ImageFormat = "raw" | "qcow2";

interface Sign {
  readonly at: number;
  readonly bytes: readonly number[] | string;
}
const gptSectors = [512, 4096] as const;
const isoDescriptor = 0x8001;
const extMagic = 1080;

const qcow2: Sign = { at: 0, bytes: "QFI\xfb" };
/** A boot sector, a GUID partition table, an ISO 9660 descriptor, an ext file system. */
const disks: readonly Sign[] = [
  { at: 510, bytes: [0x55, 0xaa] },
  ...gptSectors.map((at) => ({ at, bytes: "EFI PART" })),
  { at: isoDescriptor, bytes: "CD001" },
  { at: extMagic, bytes: [0x53, 0xef] },
];
const others: readonly (Sign & { readonly name: string; readonly convert?: true })[] = [
  { name: "a VMDK image", convert: true, at: 0, bytes: "KDMV" },
  { name: "a VMDK image", convert: true, at: 0, bytes: "# Disk DescriptorFile" },
  { name: "a VHDX image", convert: true, at: 0, bytes: "vhdxfile" },
  { name: "a VHD image", convert: true, at: 0, bytes: "conectix" },
  { name: "a VDI image", convert: true, at: 64, bytes: [0x7f, 0x10, 0xda, 0xbe] },
  { name: "compressed by gzip", at: 0, bytes: [0x1f, 0x8b] },
  { name: "compressed by xz", at: 0, bytes: "\xfd7zXZ\0" },
  { name: "compressed by zstd", at: 0, bytes: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: "compressed by bzip2", at: 0, bytes: "BZh" },
  { name: "a ZIP archive", at: 0, bytes: "PK\x03\x04" },
];
const headBytes = 64 * 1024;

const stands = (head: Buffer, { at, bytes }: Sign): boolean => {
  const wanted = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : Buffer.from(bytes);
  return head.subarray(at, at + wanted.length).equals(wanted);
};

/** By the file's first 64 KiB. The error is a sentence without its subject. */
export const formatOf = (head: Buffer): Result<ImageFormat, string> => {
  if (stands(head, qcow2)) return ok("qcow2");
  const other = others.find((sign) => stands(head, sign));
  if (other?.convert === true)
    return fail(`is ${other.name}: \`qemu-img convert -O qcow2\` makes one of it that is taken`);
  if (other !== undefined) return fail(`is ${other.name}: unpack it first`);
  if (disks.some((sign) => stands(head, sign))) return ok("raw");
  return fail("does not show what it is: if it holds a disk's bytes as they are, say --format raw");
};

export const readHead = async (file: string): Promise<Buffer> => {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
};
