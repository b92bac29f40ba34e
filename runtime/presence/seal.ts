import { createHmac, timingSafeEqual } from "node:crypto";
import { type Seal, tagBytes } from "../../core/presence/swim/codec.ts";

/** Sealed with the first key; whatever one of them sealed is read. */
export interface SealRing extends Seal {
  set(keys: readonly Uint8Array[]): void;
}
export const createSealRing = (keys: readonly Uint8Array[]): SealRing => {
  let seals = keys.map(createSeal);
  return {
    set: (next) => {
      seals = next.map(createSeal);
    },
    sign: (bytes, length) => seals[0]?.sign(bytes, length),
    verify: (bytes, length) => seals.some((seal) => seal.verify(bytes, length)),
  };
};

/** HMAC-SHA-256 with the installation's gossip key (at least 16 bytes), shortened to the length of a tag (RFC 2104, section 5). */
export const createSeal = (key: Uint8Array): Seal => {
  if (key.length < 16) throw new Error(`the gossip key has ${key.length} bytes; it needs 16 at least`);
  const tagOf = (bytes: Uint8Array, length: number): Uint8Array =>
    createHmac("sha256", key).update(bytes.subarray(0, length)).digest().subarray(0, tagBytes);
  return {
    sign: (bytes, length) => bytes.set(tagOf(bytes, length), length),
    verify: (bytes, length) => {
      const given = bytes.subarray(length);
      return given.length === tagBytes && timingSafeEqual(tagOf(bytes, length), given);
    },
  };
};
