import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

/**
 * A text that opens under a secret alone. One secret gives a name and a key, neither of which says anything of the other: whoever has what is
 * kept, the name and the sealed text, has nothing that opens anything.
 */
export interface Sealed {
  readonly nonce: Buffer;
  readonly text: Buffer;
  readonly tag: Buffer;
}
const digest = (purpose: string, secret: string): Buffer =>
  createHash("sha256").update(`cells sign-in ${purpose} ${secret}`).digest();
/** By which it is found. */
export const hashOf = (purpose: "id", secret: string): string => digest(purpose, secret).toString("hex");

const cipher = "aes-256-gcm";
export function sealedWith(text: string, secret: string): Sealed {
  const nonce = randomBytes(12);
  const sealing = createCipheriv(cipher, digest("key", secret), nonce);
  return { nonce, text: Buffer.concat([sealing.update(text, "utf8"), sealing.final()]), tag: sealing.getAuthTag() };
}
export function unsealed({ nonce, text, tag }: Sealed, secret: string): string {
  const opening = createDecipheriv(cipher, digest("key", secret), nonce);
  opening.setAuthTag(tag);
  return Buffer.concat([opening.update(text), opening.final()]).toString("utf8");
}
