import { createHash } from "node:crypto";

/** Name space of what personalities number: UUIDs of one installation differ from those of another by what is named. */
const namespace = Buffer.from("5d0c6c2e2f0b5a5e9a0d6b1f7a3e4c10", "hex");

/**
 * UUID of version 5 (RFC 9562, section 5.5) of these words, the same whenever and wherever it is asked for. As JSON, so that no two
 * lists of words are one text.
 */
export function uuidOf(...words: readonly string[]): string {
  const hash = createHash("sha1").update(namespace).update(JSON.stringify(words)).digest().subarray(0, 16);
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = hash.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
