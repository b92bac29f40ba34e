import { createHash, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ProcessConfiguration } from "../installation.ts";

/** SHA-256 (hexadecimal) of a SubjectPublicKeyInfo in DER: what pins are made of (RFC 7469, section 2.4). */
export const fingerprintOfSpki = (spki: Uint8Array): string => createHash("sha256").update(spki).digest("hex");

export const fingerprintOf = (key: KeyObject): string =>
  fingerprintOfSpki(key.export({ type: "spki", format: "der" }) as Buffer);

/** Of the key in a certificate, PEM. */
export const fingerprintOfCertificate = (pem: string): string => fingerprintOf(new X509Certificate(pem).publicKey);

/**
 * What a machine is (`Service.instance`): its key, which is made where it joins and renewed with no certificate. Another
 * machine that joins under the name has another one. Services get a key with each start of their VM, and are not told so.
 */
export const machineInstance = async ({
  certificate,
}: ProcessConfiguration): Promise<{ readonly instance: string }> => ({
  instance: fingerprintOfCertificate(await readFile(certificate.certFile, "utf8")),
});
