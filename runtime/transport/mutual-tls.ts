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
 * The same for whoever dials, read by OpenSSL once for as long as the files are what they are: reading keys and certificates
 * costs an emulated processor more than all else of a connection.
 */
export const secureContextOf = (configuration: ProcessConfiguration): SecureContext =>
  clientCredentials(configuration).secureContext;

/** For an HTTPS agent, which tells connections apart by what they were made with, and what OpenSSL made of that. */
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
  "it was not renewed in time, or a clock is wrong; look whether the authority answers, and set the clocks";

/** Why a handshake failed, as a sentence where OpenSSL's own does not tell a person what to do. */
export const tlsFault = (error: NodeJS.ErrnoException): string => {
  const code = error.code ?? "";
  const now = `by this machine's clock, which shows ${new Date().toISOString()}`;
  if (code === "CERT_HAS_EXPIRED") return `the other end's certificate has ended ${now}: ${clocks}`;
  if (code === "CERT_NOT_YET_VALID") return `the other end's certificate has not begun ${now}: ${clocks}`;
  if (code.endsWith("ALERT_CERTIFICATE_EXPIRED"))
    return `the other end says that the certificate of this process has ended: ${clocks}`;
  return error.message;
};

/** Who serves with a certificate that is renewed, by the certificate's file. */
const followers = new Map<string, Set<(credentials: Credentials) => void>>();

/**
 * Told of each new certificate of this process: what listens takes it for its new connections (those that are there go
 * on), what dials reads it anyway. Returns how to be told no more.
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

/** The certificate in this process' file is a new one. */
export const announceCredentials = (configuration: ProcessConfiguration): void => {
  const all = followers.get(configuration.certificate.certFile);
  if (all === undefined) return;
  const credentials = readCredentials(configuration);
  for (const take of all) take(credentials);
};
