import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { type CurrentKeys, readCurrentKeys, supersededFault } from "../../core/identity/current-keys.ts";
import { mayConnect, type Pins, type Verdict } from "../../core/identity/may-connect.ts";
import type { Presented } from "../../core/identity/presented.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { ProcessConfiguration } from "../installation.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { expectPeer } from "./mutual-tls.ts";
import { watchPeers } from "./peers-watch.ts";

/**
 * From a TLS connection to the decision about it (`core/identity/may-connect.ts`, with the reasons for a no): reads what the other end presented, and whose signature
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

/** Which key is whose, by the peers file. One that is missing or damaged, or of a version before, says so of nobody. */
export const readKeys = ({ peersFile }: Pick<ProcessConfiguration, "peersFile">): CurrentKeys => {
  try {
    const { keys } = JSON.parse(readFileSync(peersFile, "utf8")) as { readonly keys?: Json };
    return readCurrentKeys(keys) ?? new Map();
  } catch {
    return new Map();
  }
};

export interface Judge {
  /** May this peer be at the other end? `peer` null: it called. */
  of(socket: TLSSocket, peer: PeerName | null): Verdict;
  /**
   * The same of a certificate whose key the other end has shown to hold by other means; null: it has not.
   * @param channel stands for what it is let in to
   */
  ofProven(channel: object, proven: X509Certificate | null, peer: PeerName | null): Verdict;
  /** Of a socket or channel that was judged: a name may get another key meanwhile. */
  again(connection: object): Verdict;
  /** `changed` is told when verdicts may be others than they were. Returns how to end that. */
  follow(changed: () => void): () => void;
}

/**
 * Decides over the connections of one process. `pinned`: a pinned key may make up for dates; the connection must then
 * have been made without OpenSSL's own check, and nothing may be said on it before the verdict. Otherwise that check is
 * demanded as well. Throws when the authority's certificate cannot be read.
 */
export const createJudge = (configuration: ProcessConfiguration, pinned: boolean): Judge => {
  const authority = new X509Certificate(readFileSync(configuration.certificate.caFile));
  const known = new WeakMap<object, { readonly verdict: Verdict; readonly shown: Presented | null }>();
  let keys = readKeys(configuration);
  const follow = (changed: () => void): (() => void) => {
    const stop = watchPeers(configuration.peersFile, () => {
      keys = readKeys(configuration);
      changed();
    });
    keys = readKeys(configuration);
    return stop;
  };
  const judge = (
    connection: object,
    certificate: X509Certificate | undefined,
    peer: PeerName | null,
    doubt: (name: PeerName) => string | null,
  ): Verdict => {
    const pins = pinned ? readPins(configuration.pinsFile) : new Map<PeerName, string>();
    const shown = presented(certificate, authority);
    const found = mayConnect(shown, { self: configuration.name, peer }, { pins, keys }, Date.now());
    const doubtful = found.ok ? doubt(found.name) : null;
    const verdict: Verdict = doubtful === null ? found : { ok: false, because: "foreign", why: doubtful };
    known.set(connection, { verdict, shown });
    return verdict;
  };
  const again = (connection: object): Verdict => {
    const before = known.get(connection);
    if (before === undefined) return { ok: false, because: "no-certificate", why: "nobody was let in to it" };
    // A connection that was let in goes on when its certificate has ended, and not when its key is another's.
    const why = before.verdict.ok ? supersededFault(before.shown, keys, Date.now()) : null;
    return why === null ? before.verdict : { ok: false, because: "superseded", why };
  };
  return {
    follow,
    again,
    of: (socket, peer) => {
      if (known.has(socket)) return again(socket);
      return judge(socket, socket.getPeerX509Certificate(), peer, (name) =>
        pinned || socket.authorized
          ? null
          : `the certificate of "${name}" is not right: ${String(socket.authorizationError)}`,
      );
    },
    ofProven: (channel, proven, peer) =>
      proven === null
        ? { ok: false, because: "no-certificate", why: "it does not show that it holds the key of its certificate" }
        : judge(channel, proven, peer, () => null),
  };
};

/** For `checkServerIdentity`: that name, and not over a key that it has no more. */
export const expectCurrent =
  (configuration: ProcessConfiguration, peer: PeerName) =>
  (host: string, certificate: PeerCertificate): Error | undefined => {
    const another = expectPeer(peer)(host, certificate);
    if (another !== undefined) return another;
    const { publicKey, validFromDate } = new X509Certificate(certificate.raw);
    const [validFromMs, validToMs] = [validFromDate.getTime(), 0];
    const shown: Presented = { name: peer, signed: true, key: fingerprintOf(publicKey), validFromMs, validToMs };
    const why = supersededFault(shown, readKeys(configuration), Date.now());
    return why === null ? undefined : new Error(why);
  };
