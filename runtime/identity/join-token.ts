import { parseIpv4 } from "../../model/addresses/addresses.ts";
import { fail, ok, type Result } from "../../model/result.ts";
import { parsePeerAddress } from "../transport/peers.ts";

/**
 * All that a machine needs to know to become a host of an installation (decision 32), as one line of text that an
 * operator carries over: where the authority is and by which key it is known, who the machine will be, and one-time
 * tokens. It is a secret until it is used; the cloud keeps no more than hashes of its tokens.
 */
export interface JoinToken {
  /** `<name>` of `host.<name>` and `agent.<name>`. */
  readonly name: string;
  /** Of the machine on the underlay, IPv4. */
  readonly address: string;
  /** `<address>:<port>` of the authority, where machines enrol. */
  readonly authority: string;
  /** SHA-256 (hexadecimal) of the authority's public key. */
  readonly fingerprint: string;
  /** Where the machine finds others at first; the authority tells it the rest. Entries as in `PeerBook`. */
  readonly peers: Readonly<Record<string, string>>;
  readonly host: string;
  /** Absent: the machine has no storage agent. */
  readonly agent?: string;
  /** It is of a restored cloud: what the machine was as a host before counts for nothing. Absent: it may go on. */
  readonly anew?: true;
  /** From then on its tokens are good for nothing. Milliseconds since 1970. */
  readonly endsAtMs: number;
}

const prefix = "cells-join.";
const longest = 8192;
const patterns = {
  // With `agent.` before it, it fits a certificate.
  name: /^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$/,
  fingerprint: /^[0-9a-f]{64}$/,
  token: /^[A-Za-z0-9_-]{43}$/,
} as const;

/** May a machine have this name? It becomes a part of a peer's name. */
export const isMachineName = (name: string): boolean => patterns.name.test(name);
const isIpv4 = (address: string): boolean => parseIpv4(address) !== null;

export const writeJoinToken = (token: JoinToken): string =>
  `${prefix}${Buffer.from(JSON.stringify(token), "utf8").toString("base64url")}`;

/** Reads what `writeJoinToken` wrote, with white space around it. The error is a sentence, and quotes nothing of it. */
export const readJoinToken = (text: string): Result<JoinToken, string> => {
  const trimmed = text.trim();
  const what = "it is one line that begins with `cells-join.`, as `cells host token` printed it";
  if (trimmed === "") return fail(`there is no token to read: ${what}`);
  if (!trimmed.startsWith(prefix) || trimmed.length > longest || /\s/.test(trimmed))
    return fail(`this is no token to join with: ${what}`);
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(trimmed.slice(prefix.length), "base64url").toString("utf8"));
  } catch {
    return fail(`this token was cut off or changed on its way: ${what}`);
  }
  return isJoinToken(read) ? ok(read) : fail(`this token was made by another version, or changed on its way: ${what}`);
};

const isJoinToken = (read: unknown): read is JoinToken => {
  if (typeof read !== "object" || read === null) return false;
  const { name, address, authority, fingerprint, peers, host, agent, anew, endsAtMs } = read as Partial<JoinToken>;
  const at = typeof authority === "string" ? authority.split(":") : [];
  return (
    typeof name === "string" &&
    isMachineName(name) &&
    typeof address === "string" &&
    isIpv4(address) &&
    at.length === 2 &&
    isIpv4(at[0] ?? "") &&
    Number(at[1]) > 0 &&
    typeof fingerprint === "string" &&
    patterns.fingerprint.test(fingerprint) &&
    typeof peers === "object" &&
    peers !== null &&
    Object.values(peers).every((entry) => typeof entry === "string" && parsePeerAddress(entry).ok) &&
    typeof host === "string" &&
    patterns.token.test(host) &&
    (agent === undefined || (typeof agent === "string" && patterns.token.test(agent))) &&
    (anew === undefined || anew === true) &&
    typeof endsAtMs === "number"
  );
};
