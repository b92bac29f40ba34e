import { readFileSync } from "node:fs";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { type PeerName, peerName } from "../model/identifiers.ts";
import type { ProcessConfiguration } from "./installation.ts";

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

/** The name a certificate was issued to; null when it has none, or several. */
const commonName = (certificate: PeerCertificate): PeerName | null => {
  const name: unknown = certificate.subject?.CN;
  return typeof name === "string" && name !== "" ? peerName(name) : null;
};

/** Authenticated name of the other end; null when its certificate is not of this installation. */
export const peerOf = (socket: TLSSocket): PeerName | null =>
  socket.authorized ? commonName(socket.getPeerCertificate()) : null;

/** For `checkServerIdentity`: a server is known by its common name, wherever it runs. */
export const expectPeer =
  (peer: PeerName) =>
  (_host: string, certificate: PeerCertificate): Error | undefined => {
    const name = commonName(certificate);
    return name === peer ? undefined : new Error(`the server at this address is "${name}", not "${peer}"`);
  };
