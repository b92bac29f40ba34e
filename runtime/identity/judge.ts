import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TLSSocket } from "node:tls";
import { mayConnect, type Pins, type Presented, type Verdict } from "../../core/identity/may-connect.ts";
import { type PeerName, peerName } from "../../model/identifiers.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { fingerprintOf } from "./fingerprint.ts";

/**
 * From a TLS connection to the decision about it (`mayConnect`): reads what the other end presented, and whose signature
 * it bears. Not from OpenSSL's verdict: where dates may have passed, the last of its errors hides those before it.
 */
const serverAndClient = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"];

/** The one common name; null when there is none, or several. */
const commonName = (certificate: X509Certificate): PeerName | null => {
  const name: unknown = certificate.toLegacyObject().subject?.CN;
  return typeof name === "string" && name !== "" ? peerName(name) : null;
};

/** The authority issues to peers directly, so a chain is one signature long. */
const isSigned = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  !certificate.ca &&
  authority.ca &&
  certificate.checkIssued(authority) &&
  certificate.verify(authority.publicKey) &&
  serverAndClient.every((use) => certificate.keyUsage?.includes(use));

/** Null for no certificate. What cannot be read is of no authority, whatever it says: it may come from anybody. */
export const presented = (certificate: X509Certificate | undefined, authority: X509Certificate): Presented | null => {
  if (certificate === undefined) return null;
  try {
    if (isSigned(certificate, authority))
      return {
        name: commonName(certificate),
        signed: true,
        key: fingerprintOf(certificate.publicKey),
        validFromMs: certificate.validFromDate.getTime(),
        validToMs: certificate.validToDate.getTime(),
      };
  } catch {
    // A key of a kind that nobody here knows, say.
  }
  return { name: null, signed: false, key: "", validFromMs: 0, validToMs: 0 };
};

/** Pins of a file as `ProcessConfiguration` describes it. One that is missing or damaged pins nobody. */
export const readPins = (file: string | undefined): Pins => {
  if (file === undefined) return new Map();
  try {
    const { pins } = JSON.parse(readFileSync(file, "utf8")) as { readonly pins: Readonly<Record<string, string>> };
    return new Map(Object.entries(pins).map(([name, key]) => [peerName(name), key]));
  } catch {
    return new Map();
  }
};

/** May this peer be at the other end? `peer` null: it called. */
export type Judge = (socket: TLSSocket, peer: PeerName | null) => Verdict;

/**
 * Decides over the connections of one process. `pinned`: a pinned key may make up for dates; the connection must then
 * have been made without OpenSSL's own check, and nothing may be said on it before the verdict. Otherwise that check is
 * demanded as well. Throws when the authority's certificate cannot be read.
 */
export const createJudge = (configuration: ProcessConfiguration, pinned: boolean): Judge => {
  const authority = new X509Certificate(readFileSync(configuration.certificate.caFile));
  // A connection that was let in goes on when its certificate has ended.
  const known = new WeakMap<TLSSocket, Verdict>();
  return (socket, peer) => {
    const before = known.get(socket);
    if (before !== undefined) return before;
    const pins = pinned ? readPins(configuration.pinsFile) : new Map<PeerName, string>();
    const shown = presented(socket.getPeerX509Certificate(), authority);
    const found = mayConnect(shown, { self: configuration.name, peer }, pins, Date.now());
    const doubtful = found.ok && !pinned && !socket.authorized;
    const verdict: Verdict = doubtful
      ? {
          ok: false,
          because: "foreign",
          why: `the certificate of "${found.name}" is not right: ${socket.authorizationError}`,
        }
      : found;
    known.set(socket, verdict);
    return verdict;
  };
};
