import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  scrypt,
} from "node:crypto";
import { BackupFault, type ByteReader, frameOf } from "./frames.ts";

/**
 * Secrecy of a backup, in the manner of age (https://age-encryption.org/v1) and from the primitives of Node alone: a stream is
 * sealed to an X25519 public key under a key of its own (HKDF over the secret that an ephemeral key shares with it), in chunks
 * of ChaCha20-Poly1305 whose nonce counts and marks the last one, so that no chunk can be left out, moved or cut off.
 *
 * Where a person seals with a passphrase, the private key is drawn for that one backup and locked with it (scrypt). So there
 * is one way to seal, and whoever seals never needs to know the passphrase.
 */
const chunkBytes = 64 * 1024;
const tagBytes = 16;
const keyInfo = "cells backup part 1";
const cipher = "chacha20-poly1305";

/** An X25519 public key, 32 bytes in base64url. */
export const isRecipient = (text: unknown): text is string =>
  typeof text === "string" && /^[A-Za-z0-9_-]{43}$/.test(text);

export interface RecipientKey {
  readonly recipient: string;
  readonly privateKey: KeyObject;
}

export const newRecipientKey = (): RecipientKey => {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  return { recipient: rawOf(publicKey), privateKey };
};

const rawOf = (publicKey: KeyObject): string => String(publicKey.export({ format: "jwk" }).x);

const publicKeyOf = (recipient: string): KeyObject =>
  createPublicKey({ key: { kty: "OKP", crv: "X25519", x: recipient }, format: "jwk" });

const secretFor = (privateKey: KeyObject, publicKey: KeyObject, header: Buffer): Buffer => {
  const shared = diffieHellman({ privateKey, publicKey });
  const salt = createHash("sha256").update(header).digest();
  return Buffer.from(hkdfSync("sha256", shared, salt, keyInfo, 32));
};

const nonceOf = (index: number, last: boolean): Buffer => {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(index, 7);
  nonce[11] = last ? 1 : 0;
  return nonce;
};

/** Bytes in pieces of `size`, of which the last one may be shorter, also empty. */
async function* pieces(source: AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0);
  for await (const part of source) {
    held = Buffer.concat([held, part]);
    while (held.length > size) {
      yield held.subarray(0, size);
      held = held.subarray(size);
    }
  }
  yield held;
}

export interface Sealing {
  /** For the header. Whoever reads needs it. */
  readonly ephemeral: string;
  /** Frames of sealed chunks with an end mark. `header` is bound to them: another header opens nothing. */
  seal(header: Buffer, source: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer>;
}

/** Throws for what is no public key. */
export const sealTo = (recipient: string): Sealing => {
  const own = newRecipientKey();
  return {
    ephemeral: own.recipient,
    seal: async function* (header, source) {
      const key = secretFor(own.privateKey, publicKeyOf(recipient), header);
      let index = 0;
      let waiting: Buffer | null = null;
      const sealed = (chunk: Buffer, last: boolean): Buffer => {
        const sealing = createCipheriv(cipher, key, nonceOf(index, last), { authTagLength: tagBytes });
        index += 1;
        return frameOf(Buffer.concat([sealing.update(chunk), sealing.final(), sealing.getAuthTag()]));
      };
      for await (const chunk of pieces(source, chunkBytes)) {
        if (waiting !== null) yield sealed(waiting, false);
        waiting = chunk;
      }
      yield sealed(waiting ?? Buffer.alloc(0), true);
      yield Buffer.alloc(4);
    },
  };
};

/** One sealed chunk as it lies in a file, without its length. */
export interface SealedChunk {
  readonly bytes: Buffer;
  readonly position: number;
}

/** Reads the chunks of one stream up to its end mark. */
export async function* readChunks(reader: ByteReader): AsyncGenerator<SealedChunk> {
  for (;;) {
    const position = reader.position;
    const bytes = await reader.frame(chunkBytes + tagBytes, "a sealed chunk");
    if (bytes === null) return;
    if (bytes.length < tagBytes) throw new BackupFault(position, "a sealed chunk is shorter than its seal");
    yield { bytes, position };
  }
}

/** The bytes that were sealed. Throws a `BackupFault` where a chunk was changed, moved or left out, and for another key. */
export async function* openChunks(
  chunks: AsyncIterable<SealedChunk>,
  {
    privateKey,
    ephemeral,
    header,
  }: { readonly privateKey: KeyObject; readonly ephemeral: string; readonly header: Buffer },
): AsyncGenerator<Buffer> {
  const key = secretFor(privateKey, publicKeyOf(ephemeral), header);
  let index = 0;
  let waiting: SealedChunk | null = null;
  const opened = ({ bytes, position }: SealedChunk, last: boolean): Buffer => {
    const opening = createDecipheriv(cipher, key, nonceOf(index, last), { authTagLength: tagBytes });
    index += 1;
    opening.setAuthTag(bytes.subarray(-tagBytes));
    try {
      return Buffer.concat([opening.update(bytes.subarray(0, -tagBytes)), opening.final()]);
    } catch {
      throw new BackupFault(position, "the seal of this chunk is broken: it was changed, or it is for another key");
    }
  };
  for await (const chunk of chunks) {
    if (waiting !== null) yield opened(waiting, false);
    waiting = chunk;
  }
  if (waiting === null) throw new BackupFault(null, "a sealed stream holds no chunk");
  yield opened(waiting, true);
}

/** A private key under a passphrase. */
export interface LockedKey {
  readonly recipient: string;
  readonly kdf: "scrypt";
  /** Parameters of scrypt (RFC 7914); N is 2 to the power of this. */
  readonly logN: number;
  readonly r: number;
  readonly p: number;
  /** base64url. */
  readonly salt: string;
  readonly sealed: string;
}

/** 128 MiB and about half a second, for whoever knows the passphrase and for each guess. */
const scryptCost = { logN: 17, r: 8, p: 1 } as const;
/** A file from outside may not ask for more: 1 GiB. */
const dearest = { logN: 20, r: 8, p: 4 } as const;
const cheapest = { logN: 15, r: 8, p: 1 } as const;
const saltBytes = 16;
/** Below this, a stolen file is opened by trying. */
export const shortestPassphrase = 12;

const stretched = (
  passphrase: string,
  salt: Buffer,
  { logN, r, p }: { logN: number; r: number; p: number },
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const N = 2 ** logN;
    scrypt(passphrase.normalize("NFC"), salt, 32, { N, r, p, maxmem: 256 * N * r }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });

const lockedFields = (recipient: string): Buffer => Buffer.from(`cells backup key 1\n${recipient}`);

export const lockKey = async ({ recipient, privateKey }: RecipientKey, passphrase: string): Promise<LockedKey> => {
  const salt = randomBytes(saltBytes);
  // The salt is drawn for this key alone, so the nonce may be the same for all.
  const sealing = createCipheriv(cipher, await stretched(passphrase, salt, scryptCost), Buffer.alloc(12), {
    authTagLength: tagBytes,
  });
  sealing.setAAD(lockedFields(recipient), { plaintextLength: 32 });
  const secret = Buffer.from(String(privateKey.export({ format: "jwk" }).d), "base64url");
  const sealed = Buffer.concat([sealing.update(secret), sealing.final(), sealing.getAuthTag()]);
  return {
    recipient,
    kdf: "scrypt",
    ...scryptCost,
    salt: salt.toString("base64url"),
    sealed: sealed.toString("base64url"),
  };
};

const within = (value: unknown, least: number, most: number): value is number =>
  Number.isInteger(value) && Number(value) >= least && Number(value) <= most;

/** Throws a `BackupFault` for what is no locked key, or one that costs more to open than is borne. */
export const readLockedKey = (read: unknown): LockedKey => {
  const { recipient, kdf, logN, r, p, salt, sealed } = (read ?? {}) as { readonly [name in keyof LockedKey]?: unknown };
  const fits =
    within(logN, cheapest.logN, dearest.logN) && within(r, cheapest.r, dearest.r) && within(p, cheapest.p, dearest.p);
  if (!isRecipient(recipient) || kdf !== "scrypt" || typeof salt !== "string" || typeof sealed !== "string")
    throw new BackupFault(null, "the locked key has not the form that this version writes");
  if (!fits) throw new BackupFault(null, "the locked key asks for another cost of scrypt than this version bears");
  if (!/^[A-Za-z0-9_-]{22}$/.test(salt) || !/^[A-Za-z0-9_-]{64}$/.test(sealed))
    throw new BackupFault(null, "the locked key's salt or seal has another length than this version writes");
  return { recipient, kdf, logN, r, p, salt, sealed };
};

/** Throws a `BackupFault` for another passphrase. */
export const unlockKey = async (locked: LockedKey, passphrase: string): Promise<RecipientKey> => {
  const salt = Buffer.from(locked.salt, "base64url");
  const sealed = Buffer.from(locked.sealed, "base64url");
  const opening = createDecipheriv(cipher, await stretched(passphrase, salt, locked), Buffer.alloc(12), {
    authTagLength: tagBytes,
  });
  opening.setAAD(lockedFields(locked.recipient), { plaintextLength: 32 });
  opening.setAuthTag(sealed.subarray(-tagBytes));
  try {
    const d = Buffer.concat([opening.update(sealed.subarray(0, -tagBytes)), opening.final()]).toString("base64url");
    const jwk = { kty: "OKP", crv: "X25519", d, x: locked.recipient };
    return { recipient: locked.recipient, privateKey: createPrivateKey({ key: jwk, format: "jwk" }) };
  } catch {
    throw new BackupFault(null, "this is not the passphrase with which it was locked, or the locked key was changed");
  }
};
