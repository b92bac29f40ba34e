import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../../process/replace-file.ts";

/**
 * Secrets in a store, sealed by AES-256-GCM under a key of the process's own directory: whoever has a copy of the store alone has no
 * secret. Each is sealed for its id, and is nothing under another.
 */
const [keyBytes, ivBytes, tagBytes] = [32, 12, 16];
/** In the directory of the process; a backup has it beside the store. */
export const sealFile = "seal-key";

/** The key of `tenancy` in `<directory>/seal-key`, mode 0600, made at the first start. Rejects for a file that holds none. */
export async function readSealKey(directory: string): Promise<Buffer> {
  const file = join(directory, sealFile);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    return null;
  });
  if (text !== null) {
    const key = Buffer.from(text.trim(), "hex");
    if (key.length === keyBytes) return key;
    throw new Error(
      `${file} holds no key of ${keyBytes} bytes in hexadecimal: put it back from a backup, or remove it; access keys of before then open nothing, and their users make others`,
    );
  }
  const made = randomBytes(keyBytes);
  await replaceFile(file, `${made.toString("hex")}\n`);
  return made;
}

/** What one service seals with a key of a file of its own, which no backup has: in `<directory>/<file>`, mode 0600, made when it is needed first. */
export interface Seal {
  seal(secret: string): string;
  /** Null: it was sealed elsewhere. */
  open(sealed: string): string | null;
}
export async function openSeal(directory: string, file: string, id: string): Promise<Seal> {
  const path = join(directory, file);
  await writeFile(path, randomBytes(keyBytes), { mode: 0o600, flag: "wx", flush: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    },
  );
  const key = await readFile(path);
  return { seal: (secret) => seal(key, id, secret), open: (sealed) => unseal(key, id, sealed) };
}

export function seal(key: Buffer, id: string, secret: string): string {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv("aes-256-gcm", key, iv, { authTagLength: tagBytes }).setAAD(Buffer.from(id));
  const sealed = Buffer.concat([cipher.update(secret, "utf8"), cipher.final()]);
  return Buffer.concat([iv, sealed, cipher.getAuthTag()]).toString("base64url");
}
/** Null: it was sealed by another key, for another id, or was altered. */
export function unseal(key: Buffer, id: string, sealed: string): string | null {
  const bytes = Buffer.from(sealed, "base64url");
  if (bytes.length < ivBytes + tagBytes) return null;
  const [iv, end] = [bytes.subarray(0, ivBytes), bytes.length - tagBytes];
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: tagBytes }).setAAD(Buffer.from(id));
    decipher.setAuthTag(bytes.subarray(end));
    return Buffer.concat([decipher.update(bytes.subarray(ivBytes, end)), decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}
