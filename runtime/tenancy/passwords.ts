import { argon2, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * Passwords by argon2id (RFC 9106), kept as PHC strings: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>`. A string says with which costs
 * it was made, so the costs may grow with the next login.
 */
export interface Costs {
  /** KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly lanes: number;
}
export const costs: Costs = { memory: 19_456, passes: 2, lanes: 1 };
const [saltBytes, hashBytes] = [16, 32];

const form = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/;

/** The hash of a password. `associated`, `secret`: of RFC 9106; used by its vectors alone. */
export function derive(
  password: string | Buffer,
  salt: Buffer,
  { memory, passes, lanes }: Costs,
  tagLength: number,
  more: { readonly secret?: Buffer; readonly associatedData?: Buffer } = {},
): Promise<Buffer> {
  const parameters = { message: password, nonce: salt, parallelism: lanes, tagLength, memory, passes, ...more };
  return new Promise((resolve, reject) => {
    argon2("argon2id", parameters, (error, hash) => (error === null ? resolve(hash) : reject(error)));
  });
}

const encode = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, salt, costs, hashBytes);
  return phcOf(salt, hash);
}
const phcOf = (salt: Buffer, hash: Buffer): string =>
  `$argon2id$v=19$m=${costs.memory},t=${costs.passes},p=${costs.lanes}$${encode(salt)}$${encode(hash)}`;

/** For users that are not there: the work is the same, and nothing fits. */
const decoy = phcOf(randomBytes(saltBytes), randomBytes(hashBytes));

export interface Verified {
  readonly matched: boolean;
  /** The same password with the costs of today; null: it has them, or did not match. */
  readonly grown: string | null;
}
/** @param phc null: there is no such user, which is answered after as much work */
export async function verifyPassword(password: string, phc: string | null): Promise<Verified> {
  const [, memory = "", passes = "", lanes = "", salt = "", hash = ""] = form.exec(phc ?? decoy) ?? [];
  const known = Buffer.from(hash, "base64");
  const own = { memory: Number(memory), passes: Number(passes), lanes: Number(lanes) };
  if (known.length === 0) return { matched: false, grown: null };
  const found = await derive(password, Buffer.from(salt, "base64"), own, known.length);
  const matched = timingSafeEqual(found, known) && phc !== null;
  const isCheaper = own.memory < costs.memory || own.passes < costs.passes;
  return { matched, grown: matched && isCheaper ? await hashPassword(password) : null };
}
