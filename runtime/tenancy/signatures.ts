import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Signed } from "../../model/contract/signatures/sigv4.ts";

/** Signatures of requests, by the secret of an access key: made by clients, and compared where the secret is kept. */
const hmac = (algorithm: "sha1" | "sha256", key: string | Buffer, text: string): Buffer =>
  createHmac(algorithm, key).update(text).digest();

/** @param stringToSign its third line is the scope: date, region, service and `aws4_request` */
export function sigV4Signature(secret: string, stringToSign: string): string {
  const [, , scope = ""] = stringToSign.split("\n", 3);
  let key: string | Buffer = `AWS4${secret}`;
  for (const part of scope.split("/")) key = hmac("sha256", key, part);
  return hmac("sha256", key, stringToSign).toString("hex");
}
export const cloudStackSignature = (secret: string, stringToSign: string): string =>
  hmac("sha1", secret, stringToSign).toString("base64");

/** What no key has. */
const decoy = randomBytes(32).toString("base64url");

/** In constant time. @param secret null: of an unknown key, and the work is done all the same */
export function isSignature(secret: string | null, { scheme, stringToSign, signature }: Signed): boolean {
  const right = (scheme === "sigv4" ? sigV4Signature : cloudStackSignature)(secret ?? decoy, stringToSign);
  const [one, other] = [Buffer.from(right), Buffer.from(signature)];
  return one.length === other.length && timingSafeEqual(one, other) && secret !== null;
}
