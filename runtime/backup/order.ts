import { createHash, verify, webcrypto, X509Certificate } from "node:crypto";
import { BackupFault } from "./frames.ts";
import { isRecipient } from "./sealing.ts";

/**
 * Who may have a copy of every store? Only who holds the operator's credential, and no service but the root cell's controller
 * knows that. So it, or the supervisor of a testbed, has an *order* signed with the authority's key: which processes are asked
 * and to whose public key they seal. Every process has the authority's certificate, and takes nobody else's word; who passes
 * an order on, or repeats it, gets what it cannot read. The list of peers in it is what the set must have to be complete.
 */
export interface Order {
  readonly format: 1;
  /** X25519 public key, base64url. */
  readonly recipient: string;
  /** Who keeps a store; sorted. */
  readonly peers: readonly string[];
  /** ISO 8601. */
  readonly issued: string;
  /** Processes do not follow it any more then. ISO 8601. */
  readonly ends: string;
}
export interface SignedOrder {
  /** The order as JSON, to the byte. */
  readonly text: string;
  /** ECDSA by the authority's key over SHA-256, IEEE P1363, base64url. */
  readonly signature: string;
  /** Certificate of the authority, PEM. Who reads decides whether it is the right one. */
  readonly authority: string;
}

export const orderLifetimeMs = 60 * 60 * 1000;
export const longestOrder = 512 * 1024;
export const mostPeers = 4096;
/** No certificate (DER), no TLS handshake (spaces) and no other text of Cells begins like that. */
const signedText = (text: string): Buffer => Buffer.from(`cells backup order 1\n${text}`);

/**
 * Parts are taken in this order. Whoever has seen something of a controller that is not in the controller's own copy takes it for
 * older, and it desires things of all the others: so it comes last.
 */
const inOrder = (one: string, other: string): number =>
  Number(one.startsWith("controller.")) - Number(other.startsWith("controller.")) || (one < other ? -1 : 1);

/** Who signs: the installation's authority (`identity/certificates.ts`). */
export interface OrderSigner {
  readonly certificate: { toString(format: "pem"): string };
  readonly key: webcrypto.CryptoKey;
}
/** @param peers all that keep a store */
export const signOrder = async (
  authority: OrderSigner,
  {
    recipient,
    peers,
    nowMs,
  }: { readonly recipient: string; readonly peers: readonly string[]; readonly nowMs: number },
): Promise<SignedOrder> => {
  if (!isRecipient(recipient)) throw new BackupFault(null, "the recipient is no X25519 public key in base64url");
  if (peers.length > mostPeers) throw new BackupFault(null, `a backup is of at most ${mostPeers} stores`);
  const [issued, ends] = [nowMs, nowMs + orderLifetimeMs].map((ms) => new Date(ms).toISOString());
  const text = JSON.stringify({ format: 1, recipient, peers: [...peers].sort(inOrder), issued, ends });
  const algorithm = { name: "ECDSA", hash: "SHA-256" };
  const signature = await webcrypto.subtle.sign(algorithm, authority.key, signedText(text));
  return {
    text,
    signature: Buffer.from(signature).toString("base64url"),
    authority: `${authority.certificate.toString("pem")}\n`,
  };
};

export const readSignedOrder = (read: unknown): SignedOrder => {
  const { text, signature, authority } = (read ?? {}) as { readonly [name in keyof SignedOrder]?: unknown };
  if (typeof text !== "string" || typeof signature !== "string" || typeof authority !== "string")
    throw new BackupFault(null, "the order is not {text, signature, authority}");
  if (text.length > longestOrder || signature.length > 256 || authority.length > 8192)
    throw new BackupFault(null, `the order is longer than ${longestOrder} characters`);
  return { text, signature, authority };
};

const isTime = (value: unknown): value is string => typeof value === "string" && !Number.isNaN(Date.parse(value));

/**
 * The order, when the authority with this certificate signed it. Throws a `BackupFault`.
 * @param nowMs wall clock; null: whether it has ended does not matter, as for whoever reads a backup later
 */
export const openOrder = (
  { text, signature }: SignedOrder,
  authority: X509Certificate,
  nowMs: number | null,
): Order => {
  const key = { key: authority.publicKey, dsaEncoding: "ieee-p1363" } as const;
  if (!verify("sha256", signedText(text), key, Buffer.from(signature, "base64url")))
    throw new BackupFault(null, "the order is not signed by the authority of this installation");
  const { format, recipient, peers, issued, ends } = JSON.parse(text) as { readonly [name in keyof Order]?: unknown };
  const named = Array.isArray(peers) && peers.length <= mostPeers && peers.every((peer) => typeof peer === "string");
  if (format !== 1 || !isRecipient(recipient) || !named || !isTime(issued) || !isTime(ends))
    throw new BackupFault(null, "the order has not the form that this version knows");
  if (nowMs !== null && Date.parse(ends) < nowMs)
    throw new BackupFault(null, `the order ended at ${ends}: ask for a new one, and look at the clocks`);
  return { format, recipient, peers: peers as readonly string[], issued, ends };
};

/** By which a part says what it belongs to. */
export const hashOfOrder = ({ text }: SignedOrder): string => createHash("sha256").update(text).digest("hex");

/** Reads a certificate from PEM; throws a `BackupFault` with what it is of. */
export const certificateIn = (pem: string, what: string): X509Certificate => {
  try {
    return new X509Certificate(pem);
  } catch {
    throw new BackupFault(null, `${what} is no certificate`);
  }
};
