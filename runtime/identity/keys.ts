import "reflect-metadata";
import { createHash, randomBytes, webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import * as x509 from "@peculiar/x509";
import { fail, ok, type Result } from "../../model/result.ts";
import { fingerprintOfSpki } from "./fingerprint.ts";
import { replaceFile } from "./replace-file.ts";

/**
 * Keys, requests and tokens. A key is made where it is used and never leaves that directory; what leaves is a request
 * (PKCS#10, RFC 2986), whose signature proves that its sender holds the key.
 */
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

x509.cryptoProvider.set(webcrypto);

export interface OwnKey {
  readonly keys: webcrypto.CryptoKeyPair;
  readonly fingerprint: string;
}

const fingerprintOfPublic = async (key: webcrypto.CryptoKey): Promise<string> =>
  fingerprintOfSpki(new Uint8Array(await webcrypto.subtle.exportKey("spki", key)));

/** The key in this file (PKCS#8 PEM, mode 0600), made if it is not there. Rejects for a file that holds none. */
export const ownKey = async (keyFile: string): Promise<OwnKey> => {
  let text: string;
  try {
    text = await readFile(keyFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const made = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    text = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", made.privateKey), "PRIVATE KEY");
    await replaceFile(keyFile, `${text}\n`);
  }
  const [der] = x509.PemConverter.decode(text);
  if (der === undefined) throw new Error(`${keyFile} holds no private key: remove it, and enrol with a new token`);
  const privateKey = await webcrypto.subtle.importKey("pkcs8", der, algorithm, true, ["sign"]);
  // WebCrypto tells the public key of a private one only by way of its JWK.
  const { d: _secret, ...jwk } = await webcrypto.subtle.exportKey("jwk", privateKey);
  const publicKey = await webcrypto.subtle.importKey("jwk", { ...jwk, key_ops: ["verify"] }, algorithm, true, [
    "verify",
  ]);
  return { keys: { privateKey, publicKey }, fingerprint: await fingerprintOfPublic(publicKey) };
};

/** A request for a certificate over this key, PEM. It names nobody: the token or the old certificate says who it is for. */
export const certificateRequest = async ({ keys }: OwnKey): Promise<string> => {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: "CN=",
    keys,
    signingAlgorithm: algorithm,
  });
  return request.toString("pem");
};

export interface AskedKey {
  readonly publicKey: webcrypto.CryptoKey;
  readonly fingerprint: string;
}
const longestRequest = 4096;

/** The key of a request whose signature is right. The error is a sentence. */
export const readRequest = async (pem: unknown): Promise<Result<AskedKey, string>> => {
  if (typeof pem !== "string" || pem.length > longestRequest)
    return fail("the certificate request is no short PEM text");
  try {
    const request = new x509.Pkcs10CertificateRequest(pem);
    const publicKey = await request.publicKey.export(algorithm, ["verify"]);
    if (!(await request.verify())) return fail("the certificate request is not signed by the key that it names");
    return ok({ publicKey, fingerprint: fingerprintOfSpki(new Uint8Array(request.publicKey.rawData)) });
  } catch {
    return fail("the certificate request is no PKCS#10 request over an ECDSA key on the curve P-256");
  }
};

const tokenPattern = /^[A-Za-z0-9_-]{43}$/;

/** An enrolment token, 256 random bits, and what the authority may know of it. */
export const newToken = (): { readonly token: string; readonly hash: string } => {
  const token = randomBytes(32).toString("base64url");
  return { token, hash: createHash("sha256").update(token).digest("hex") };
};
/** SHA-256 (hexadecimal) of a token; null for what is none. */
export const hashOfToken = (token: unknown): string | null =>
  typeof token === "string" && tokenPattern.test(token) ? createHash("sha256").update(token).digest("hex") : null;
