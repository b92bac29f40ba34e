import { mostMarks } from "../../cell/tenants/dedication/marks.ts";
import { flavorPattern } from "../../cell/tenants/pools/flavors.ts";
import { dictionary, list, optional, pattern, record, text, time } from "../schema.ts";

/**
 * A machine that shall join the installation as `host.<name>`, or be set up anew. Whoever asks makes the one-time tokens and
 * keeps them; here are their hashes: SHA-256, hexadecimal.
 */
export interface HostJoin {
  /** On the underlay, IPv4. */
  readonly address: string;
  readonly host: string;
  /** It has a storage agent as well, `agent.<name>`. */
  readonly agent?: string;
  /** What the root cell's model says of it from now on, before it is there. Absent: a host like any other, of which nothing is written before. */
  readonly as?: JoinsAs;
}
/** At least one of it. */
export interface JoinsAs {
  /** Where it stands: "z1/p1/c1". */
  readonly cluster?: string;
  readonly tags?: readonly string[];
  readonly flavor?: string;
  /** Path of the domain that it is dedicated to, or of its account there. */
  readonly domain?: string;
  /** By name; only with `domain`. */
  readonly account?: string;
}
/** What the machine needs besides its tokens (`runtime/identity/join-token.ts`). */
export interface HostJoining {
  readonly authority: string;
  readonly fingerprint: string;
  readonly peers: Readonly<Record<string, string>>;
  /** When its tokens end, ISO 8601. */
  readonly ends: string;
  /** Peers that are there under its names: they are replaced when the tokens are used. */
  readonly replaces: readonly string[];
  /** What it joins as stands in the root cell's model. Absent: nothing was asked, or a version before did not read it. */
  readonly as?: JoinsAs;
}

const tokenHash = pattern(/^[0-9a-f]{64}$/, "the SHA-256 of a token, hexadecimal");
const most = 253;
const joinsAs = record<JoinsAs>(
  {
    cluster: optional(text(most)),
    tags: optional(list(text(most), { most: mostMarks })),
    flavor: optional(pattern(flavorPattern, "the name of a host flavour")),
    domain: optional(text(most)),
    account: optional(text(most)),
  },
  "JoinsAs",
);
export const hostJoin = record<HostJoin>(
  {
    address: pattern(/^\d{1,3}(?:\.\d{1,3}){3}$/, "an IPv4 address"),
    host: tokenHash,
    agent: optional(tokenHash),
    as: optional(joinsAs),
  },
  "HostJoin",
);
export const hostJoining = record<HostJoining>(
  {
    authority: text(),
    fingerprint: text(),
    peers: dictionary(text()),
    ends: time,
    replaces: list(text()),
    as: optional(joinsAs),
  },
  "HostJoining",
);
