import { createPrivateKey, sign, verify, X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { readCredentials } from "../mutual-tls.ts";
import type { Proof } from "./control.ts";

/**
 * How a service shows on a link that others made that it holds its key: it signs what both ends of that TLS session and nobody
 * else can compute (RFC 8446, section 7.5; the label as RFC 5705, section 4, has them), with the two names, the channel and
 * whether it asked or answered. So a proof is of no use in another session, for another pair, another channel, or as the
 * answer to itself.
 */
export interface Claim {
  readonly channel: number;
  readonly by: "asks" | "answers";
  readonly self: PeerName;
  readonly other: PeerName;
}

const label = "EXPERIMENTAL-cells-link";

/** Of a session whose handshake is over, the same at both ends. */
export const sessionSecret = (socket: TLSSocket): Buffer => socket.exportKeyingMaterial(32, label, Buffer.alloc(0));

const textOf = (secret: Buffer, { channel, by, self, other }: Claim): Buffer =>
  Buffer.concat([secret, Buffer.from(JSON.stringify(["cells link", by, channel, self, other]))]);

/** Throws when certificate or key cannot be read. */
export const prove = (configuration: ProcessConfiguration, secret: Buffer, claim: Omit<Claim, "self">): Proof => {
  const { cert, key } = readCredentials(configuration);
  const text = textOf(secret, { ...claim, self: configuration.name });
  return {
    certificate: new X509Certificate(cert).raw.toString("base64"),
    signature: sign("sha256", text, createPrivateKey(key)).toString("base64"),
  };
};

/** The certificate whose key the other end holds; null: it does not. Whose it is, and whether it counts, is the judge's. */
export const provenCertificate = (
  { certificate, signature }: Proof,
  secret: Buffer,
  claim: Claim,
): X509Certificate | null => {
  try {
    const shown = new X509Certificate(Buffer.from(certificate, "base64"));
    const text = textOf(secret, claim);
    return verify("sha256", text, shown.publicKey, Buffer.from(signature, "base64")) ? shown : null;
  } catch {
    // No certificate, or a key of a kind that nobody here knows.
    return null;
  }
};
