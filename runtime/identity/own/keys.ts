import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  KeyObject,
  randomBytes,
  sign,
  webcrypto,
} from "node:crypto";
import { readFile } from "node:fs/promises";
import { fail, ok, type Result } from "../../../model/result.ts";
import { replaceFile } from "../../process/replace-file.ts";
import { fingerprintOf, fingerprintOfSpki } from "../../transport/fingerprint.ts";

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

/** DER (X.690): tag, length of the contents, contents. */
const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const contents = Buffer.concat(parts);
  const { length } = contents;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), contents]);
};
const sequence = 0x30;
/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2 (RFC 5758, section 3.2). */
const ecdsaWithSha256 = der(sequence, der(0x06, Buffer.from("2a8648ce3d040302", "hex")));

/**
 * A request for a certificate over this key, PEM (RFC 2986, section 4). It names nobody: the token or the old certificate
 * says who it is for.
 */
export const certificateRequest = async ({ keys }: OwnKey): Promise<string> => {
  const privateKey = KeyObject.from(keys.privateKey);
  const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const [version, nobody, noAttributes] = [der(0x02, Buffer.of(0)), der(sequence), der(0xa0)];
  const info = der(sequence, version, nobody, spki, noAttributes);
  const signature = der(0x03, Buffer.of(0), sign("sha256", info, privateKey));
  const request = der(sequence, info, ecdsaWithSha256, signature);
  const lines = request.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE REQUEST-----", ...lines, "-----END CERTIFICATE REQUEST-----", ""].join("\n");
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
