import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Does an `Authorization` header hold a credential with one of these SHA-256 hashes (hexadecimal)? Every hash is compared,
 * in constant time, so that the answer's delay tells nothing of them.
 */
export function isAuthorized(header: string | undefined, hashes: readonly string[]): boolean {
  const credential = /^Bearer +(\S+)$/i.exec(header ?? "")?.[1];
  if (credential === undefined) return false;
  const digest = createHash("sha256").update(credential).digest();
  let known = false;
  for (const hash of hashes) {
    const expected = Buffer.from(hash, "hex");
    if (expected.length === digest.length && timingSafeEqual(expected, digest)) known = true;
  }
  return known;
}
