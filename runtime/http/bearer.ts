import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * Bearer credentials (RFC 6750). One of a cell is `<cell>.<id>.<secret>`, where a child cell's name has dots itself: whose it
 * is can be read off it, so that the gateway turns away what cannot fit; whether it is right, the cell's controller alone says, which keeps its hash.
 */
const cellCredential = /^([a-z0-9](?:[a-z0-9.-]{0,51}[a-z0-9])?)\.([0-9a-f]{8})\.[A-Za-z0-9_-]{43}$/;

/** What `Authorization: Bearer …` carries; null for anything else. */
export const bearerOf = (authorization: string | undefined): string | null =>
  /^Bearer +(\S{1,512})$/i.exec(authorization ?? "")?.[1] ?? null;

/** SHA-256 (hex) of a secret, as `credentialHashes` in a configuration holds it. */
export const hashCredential = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/**
 * Does an `Authorization` header hold a credential with one of these hashes? Every hash is compared, in constant time, so
 * that the answer's delay tells nothing of them.
 */
export function isAuthorized(authorization: string | undefined, hashes: readonly string[]): boolean {
  const credential = bearerOf(authorization);
  if (credential === null) return false;
  const digest = Buffer.from(hashCredential(credential), "hex");
  let known = false;
  for (const hash of hashes) {
    const expected = Buffer.from(hash, "hex");
    if (expected.length === digest.length && timingSafeEqual(expected, digest)) known = true;
  }
  return known;
}

/** The cell that a credential says it is of; null for the operator's and for what is none. */
export const cellOf = (credential: string): string | null => cellCredential.exec(credential)?.[1] ?? null;

export function newCredential(cell: string): { readonly id: string; readonly credential: string } {
  const id = randomBytes(4).toString("hex");
  return { id, credential: `${cell}.${id}.${randomBytes(32).toString("base64url")}` };
}
