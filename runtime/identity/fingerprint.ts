import { createHash, type KeyObject, X509Certificate } from "node:crypto";

/** SHA-256 (hexadecimal) of a SubjectPublicKeyInfo in DER: what pins are made of (RFC 7469, section 2.4). */
export const fingerprintOfSpki = (spki: Uint8Array): string => createHash("sha256").update(spki).digest("hex");

export const fingerprintOf = (key: KeyObject): string =>
  fingerprintOfSpki(key.export({ type: "spki", format: "der" }) as Buffer);

/** Of the key in a certificate, PEM. */
export const fingerprintOfCertificate = (pem: string): string => fingerprintOf(new X509Certificate(pem).publicKey);
