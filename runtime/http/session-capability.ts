import { type SessionVerb, sessionVerbs } from "../../model/cell/session-messages.ts";

/**
 * What a cell's controller hands to a host for one stream: may be opened once, for this verb, into this incarnation, until
 * then. It travels in a header over mutual TLS; that its bearer is the controller is what the certificate says, so it
 * needs no signature of its own.
 */
export interface HostCapability {
  readonly vm: string;
  readonly incarnation: number;
  readonly verb: SessionVerb;
  /** Of `forward`. */
  readonly port?: number;
  /** Of `console`: what this incarnation has said before it ended, and nothing is typed. */
  readonly former?: true;
  /** Milliseconds since 1970. */
  readonly expiresMs: number;
  /** Unguessable, never used twice. */
  readonly nonce: string;
}
export const hostCapabilityHeader = "cells-capability";
/** From the minting to the opening. */
export const capabilityLifetimeMs = 60_000;

export const encodeCapability = (capability: HostCapability): string =>
  Buffer.from(JSON.stringify(capability)).toString("base64url");

/** Null for what is no capability. */
export const decodeCapability = (text: string): HostCapability | null => {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    if (typeof value !== "object" || value === null) return null;
    const { vm, incarnation, verb, port, former, expiresMs, nonce } = value as Readonly<Record<string, unknown>>;
    if (typeof vm !== "string" || typeof incarnation !== "number" || typeof expiresMs !== "number") return null;
    if (typeof nonce !== "string" || !/^[\w-]{16,64}$/.test(nonce)) return null;
    const known = sessionVerbs.find((each) => each === verb);
    const isPort = typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535;
    if (known === undefined || (known === "forward" ? !isPort : port !== undefined)) return null;
    if (former !== undefined && (former !== true || known !== "console")) return null;
    const of = { ...(isPort ? { port } : {}), ...(former === true ? ({ former: true } as const) : {}) };
    return { vm, incarnation, verb: known, ...of, expiresMs, nonce };
  } catch {
    return null;
  }
};

/** Clocks of two machines may differ by this much. */
const skewMs = 30_000;
const mostRemembered = 4096;

/**
 * A host's memory of the capabilities that were used. It is lost with its process, and nothing with it: only the cell's
 * own controller could present one again, and that may mint another any time.
 */
export class UsedCapabilities {
  readonly #now: () => number;
  /** Nonce → when it may be forgotten, oldest use first. */
  readonly #used = new Map<string, number>();

  /** `now`: milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Uses it up. A sentence when it does not hold, else null. */
  use({ expiresMs, nonce }: HostCapability): string | null {
    const now = this.#now();
    for (const [used, until] of this.#used) if (until < now) this.#used.delete(used);
    if (expiresMs + skewMs < now) return "the capability has expired: ask for a new one";
    if (expiresMs > now + capabilityLifetimeMs + skewMs)
      return `the capability is valid for too long: at most ${capabilityLifetimeMs / 1000} s, by this host's clock`;
    if (this.#used.has(nonce)) return "the capability was used before: each opens one session";
    if (this.#used.size >= mostRemembered)
      return "too many sessions were opened here in the last minute; try again in a minute";
    this.#used.set(nonce, expiresMs + skewMs);
    return null;
  }
}
