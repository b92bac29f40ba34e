import { readFileSync } from "node:fs";
import { createSecureContext, type PeerCertificate, type SecureContext } from "node:tls";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";

/** What both ends of every connection between services present and demand: TLS 1.3 and a certificate of the authority. */
export interface Credentials {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca: Buffer;
  readonly minVersion: "TLSv1.3";
}

export const readCredentials = (configuration: ProcessConfiguration): Credentials => {
  const { certFile, keyFile, caFile } = configuration.certificate;
  return {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: readFileSync(caFile),
    minVersion: "TLSv1.3",
  };
};

const contexts = new Map<string, { readonly credentials: Credentials; readonly context: SecureContext }>();
const same = (one: Credentials, other: Credentials): boolean =>
  one.cert.equals(other.cert) && one.key.equals(other.key) && one.ca.equals(other.ca);

/**
 * For the client's end of a connection. OpenSSL reads key and certificates once, and again only when the files have changed:
 * on an emulated processor, reading them takes longer than the rest of the handshake.
 */
export const secureContextOf = (configuration: ProcessConfiguration): SecureContext =>
  clientCredentials(configuration).secureContext;

/** The texts as well as the context: an HTTPS agent compares the texts to tell whether a connection may be used again. */
export const clientCredentials = (
  configuration: ProcessConfiguration,
): Credentials & { readonly secureContext: SecureContext } => {
  const { certFile } = configuration.certificate;
  const credentials = readCredentials(configuration);
  const known = contexts.get(certFile);
  if (known !== undefined && same(known.credentials, credentials))
    return { ...known.credentials, secureContext: known.context };
  const context = createSecureContext(credentials);
  contexts.set(certFile, { credentials, context });
  return { ...credentials, secureContext: context };
};

/** For `checkServerIdentity`: a server is known by its common name, wherever it runs. */
export const expectPeer =
  (peer: PeerName) =>
  (_host: string, certificate: PeerCertificate): Error | undefined => {
    const text: unknown = certificate.subject?.CN;
    const name = typeof text === "string" ? peerName(text) : null;
    return name === peer ? undefined : new Error(`the server at this address is "${name}", not "${peer}"`);
  };

const clocks =
  "it was not renewed in time, or a clock is wrong; check that the authority answers and that the clocks are right";

/** Why a handshake failed, as a sentence where OpenSSL's own does not tell a person what to do. */
export const tlsFault = (error: NodeJS.ErrnoException): string => {
  const code = error.code ?? "";
  const now = `by this machine's clock, which shows ${new Date().toISOString()}`;
  if (code === "CERT_HAS_EXPIRED") return `the other end's certificate has expired ${now}: ${clocks}`;
  if (code === "CERT_NOT_YET_VALID") return `the other end's certificate is not valid yet ${now}: ${clocks}`;
  if (code.endsWith("ALERT_CERTIFICATE_EXPIRED"))
    return `the other end says that the certificate of this process has expired: ${clocks}`;
  return error.message;
};

/** Servers of this process that must be told of a renewed certificate, by the certificate's file. */
const followers = new Map<string, Set<(credentials: Credentials) => void>>();

/**
 * Calls `take` with each new certificate of this process. A server uses it for new connections; the present ones go on.
 * Clients need no call: they read the files for each connection. Returns a function that ends the subscription.
 */
export const followCredentials = (
  { certificate: { certFile } }: ProcessConfiguration,
  take: (credentials: Credentials) => void,
): (() => void) => {
  const all = followers.get(certFile) ?? new Set();
  followers.set(certFile, all.add(take));
  return () => {
    all.delete(take);
    if (all.size === 0 && followers.get(certFile) === all) followers.delete(certFile);
  };
};

/** To be called when the certificate's file was replaced. */
export const announceCredentials = (configuration: ProcessConfiguration): void => {
  const all = followers.get(configuration.certificate.certFile);
  if (all === undefined) return;
  const credentials = readCredentials(configuration);
  for (const take of all) take(credentials);
};
