import { X509Certificate } from "node:crypto";
import { fail, ok, type Result } from "../../../model/result.ts";

/** A certificate of one's own and those that vouch for it: what is wrong with it is found before anything is put in its place. */
export interface Chain {
  /** The page's own first, each vouched for by the next. */
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
  readonly pem: string;
}

export const longestChain = 64 * 1024;
const mostCertificates = 8;
const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

/** The certificates of a PEM text, in its order. The error is a sentence. */
export function readChain(pem: string): Result<Chain, string> {
  if (pem.length > longestChain)
    return fail(`the chain has ${pem.length} characters, and at most ${longestChain} are read`);
  const found: string[] = [];
  for (const [text, kind = ""] of pem.matchAll(block)) {
    if (kind.endsWith("PRIVATE KEY"))
      return fail("the file has a private key in it: put in certificates alone, and take that key for known to others");
    if (kind === "CERTIFICATE") found.push(text);
    else return fail(`the file has a block "${kind}" in it: certificates alone are read (BEGIN CERTIFICATE)`);
  }
  if (found.length > mostCertificates)
    return fail(`the file has ${found.length} certificates, and a chain has at most ${mostCertificates}`);
  const certificates: X509Certificate[] = [];
  for (const text of found) {
    try {
      certificates.push(new X509Certificate(text));
    } catch {
      return fail(`certificate ${certificates.length + 1} of the file cannot be read`);
    }
  }
  const [own, ...others] = certificates;
  return own === undefined
    ? fail("the file has no certificate in it (PEM, -----BEGIN CERTIFICATE-----)")
    : ok({ certificates: [own, ...others], pem: `${found.join("\n")}\n` });
}

/** Names that a certificate is for, as browsers read them. */
export const namesOf = ({ subjectAltName = "" }: Pick<X509Certificate, "subjectAltName">): readonly string[] =>
  subjectAltName
    .split(", ")
    .filter((each) => each.startsWith("DNS:"))
    .map((each) => each.slice("DNS:".length).toLowerCase());

/** Browsers read no common name. */
export const isFor = (certificate: X509Certificate, name: string): boolean =>
  certificate.checkHost(name, { subject: "never" }) !== undefined;

export interface Expected {
  /** That it was asked for. */
  readonly names: readonly string[];
  /** The installation's certificate is for this name, so its clients know the gateway by that one there. */
  readonly isOwnName: (name: string) => boolean;
  /** The key at the gateway is the one of this certificate. */
  readonly hasKey: (certificate: X509Certificate) => boolean;
  readonly nowMs: number;
}

const serverAuthentication = "1.3.6.1.5.5.7.3.1";
const called = ({ subject }: X509Certificate): string => `"${subject.replaceAll("\n", ", ")}"`;

/** Why browsers would not take the page by it, or the installation's clients no longer; null: nothing stands against it. */
export function chainFault({ certificates }: Chain, expected: Expected): string | null {
  const [own] = certificates;
  if (own.ca) return `the first certificate, ${called(own)}, is an authority's: the page's own comes first`;
  if (!expected.hasKey(own))
    return "it is not over the key that the gateway has: only the answer to its last request is, and with a new request the key is a new one";
  const missing = expected.names.filter((name) => !isFor(own, name));
  if (missing.length > 0)
    return `it is not for ${missing.join(", ")}, which it was asked for, but for ${namesOf(own).join(", ") || "no name"}`;
  const taken = namesOf(own).find((name) => expected.isOwnName(name));
  if (taken !== undefined)
    return `it is for ${taken}, by which clients know the gateway with the installation's own certificate: ask for another name`;
  if (own.keyUsage !== undefined && !own.keyUsage.includes(serverAuthentication))
    return "it is for no server: its extended key usage lacks serverAuth";
  return datesFault(certificates, expected.nowMs) ?? linksFault(certificates);
}

function datesFault(certificates: readonly X509Certificate[], nowMs: number): string | null {
  for (const certificate of certificates) {
    const now = `by the gateway's clock, which shows ${new Date(nowMs).toISOString()}`;
    if (certificate.validToDate.getTime() <= nowMs)
      return `${called(certificate)} has expired on ${certificate.validToDate.toISOString()}, ${now}`;
    if (certificate.validFromDate.getTime() > nowMs)
      return `${called(certificate)} is valid from ${certificate.validFromDate.toISOString()} on only, ${now}`;
  }
  return null;
}

function linksFault(certificates: readonly X509Certificate[]): string | null {
  for (const [index, certificate] of certificates.entries()) {
    const next = certificates[index + 1];
    if (next === undefined) break;
    if (!next.ca) return `${called(next)}, certificate ${index + 2} of the chain, is no authority's`;
    if (!certificate.checkIssued(next) || !certificate.verify(next.publicKey))
      return `${called(certificate)} is not signed by ${called(next)}, which comes next: each is vouched for by the next one`;
  }
  const last = certificates.at(-1);
  const vouched = certificates.length > 1 || last?.checkIssued(last) === true;
  return vouched
    ? null
    : "nobody vouches for it: put the certificates of those who signed it behind it, as your authority gives them";
}
