import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * Codes of a second factor by time (TOTP, RFC 6238): HMAC-SHA1, steps of 30 s, six digits, as every app on a telephone has it. And recovery
 * codes, of which each opens once.
 */
const [stepMs, digits, secretBytes] = [30_000, 6, 20];

/** RFC 4226, section 5.3. */
export function codeOf(secret: Buffer, step: number, length = digits): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac("sha1", secret).update(counter).digest();
  const at = (hash.at(-1) ?? 0) & 0xf;
  const number = hash.readUInt32BE(at) & 0x7fff_ffff;
  return String(number % 10 ** length).padStart(length, "0");
}
export const stepAt = (wallMs: number): number => Math.floor(wallMs / stepMs);

/** The step of which this is the code: that of now, the one before or the one after; null: of none. All are looked at. */
export function stepOf(secret: Buffer, code: string, wallMs: number): number | null {
  const now = stepAt(wallMs);
  let found: number | null = null;
  for (const step of [now - 1, now, now + 1]) {
    const right = Buffer.from(codeOf(secret, step));
    const given = Buffer.from(code);
    if (given.length === right.length && timingSafeEqual(given, right)) found = step;
  }
  return found;
}

export const newSecret = (): Buffer => randomBytes(secretBytes);

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/** RFC 4648, without padding. */
export function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? []).map((part) => alphabet[Number.parseInt(part.padEnd(5, "0"), 2)]).join("");
}
/** As apps read it from a picture or a link. */
export const uriOf = (label: string, secret: Buffer): string =>
  `otpauth://totp/${encodeURIComponent(`Cells:${label}`)}?secret=${base32(secret)}&issuer=Cells&algorithm=SHA1&digits=${digits}&period=${stepMs / 1000}`;

const recoveryCodes = 10;
/** 60 bits each, in groups that people can copy. */
export const newRecoveryCodes = (): readonly string[] =>
  Array.from({ length: recoveryCodes }, () =>
    (
      [...randomBytes(12)]
        .map((byte) => alphabet[byte & 31])
        .join("")
        .match(/.{4}/g) ?? []
    ).join("-"),
  );
/** However it was typed. */
export const hashOfRecovery = (code: string): string =>
  createHash("sha256")
    .update(code.toUpperCase().replace(/[^A-Z2-7]/g, ""))
    .digest("hex");
