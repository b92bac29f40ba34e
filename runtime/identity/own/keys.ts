import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  KeyObject,
  randomBytes,
  webcrypto,
} from "node:crypto";
import { readFile } from "node:fs/promises";
import { fail, ok, type Result } from "../../../model/result.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { fingerprintOf, fingerprintOfSpki } from "../../transport/fingerprint.ts";
import { requestFor } from "./request.ts";

/**
 * Keys, requests and tokens. A key is made where it is used and never leaves that directory; what leaves is a request
 * (PKCS#10, RFC 2986), whose signature proves that its sender holds the key. Every service does that at its start, so it
 * takes no library: loading one costs an emulated processor a second.
 */
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

export interface OwnKey {
  readonly keys: webcrypto.CryptoKeyPair;
  readonly fingerprint: string;
}

/** The key in this file (PKCS#8 PEM, mode 0600), made if it is not there. Rejects for a file that holds none. */
export const ownKey = async (keyFile: string): Promise<OwnKey> => {
  let text: string;
  try {
    text = await readFile(keyFile, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const made = generateKeyPairSync("ec", { namedCurve: algorithm.namedCurve });
    text = made.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    await replaceFile(keyFile, text);
  }
  const privateKey = readPrivateKey(text);
  if (privateKey === null)
    throw new Error(`${keyFile} holds no private key on the curve P-256: remove it, and enrol with a new token`);
  const publicKey = createPublicKey(privateKey);
  return {
    keys: {
      privateKey: privateKey.toCryptoKey(algorithm, true, ["sign"]),
      publicKey: publicKey.toCryptoKey(algorithm, true, ["verify"]),
    },
    fingerprint: fingerprintOf(publicKey),
  };
};

const readPrivateKey = (pem: string): KeyObject | null => {
  try {
    const key = createPrivateKey(pem);
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1" ? key : null;
  } catch {
    return null;
  }
};

/**
 * A request for a certificate over this key, PEM. It names nobody: the token or the old certificate says who it is for.
 */
export const certificateRequest = async ({ keys }: OwnKey): Promise<string> =>
  requestFor(KeyObject.from(keys.privateKey));

export interface AskedKey {
  readonly publicKey: webcrypto.CryptoKey;
  readonly fingerprint: string;
}
const longestRequest = 4096;

/** The key of a request whose signature is right. The error is a sentence. */
export const readRequest = async (pem: unknown): Promise<Result<AskedKey, string>> => {
  if (typeof pem !== "string" || pem.length > longestRequest)
    return fail("the certificate request is no short PEM text");
  // Only the authority reads them.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  x509.cryptoProvider.set(webcrypto);
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
