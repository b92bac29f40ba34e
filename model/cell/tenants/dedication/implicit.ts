/*
 * Implicit dedication: a host is an account's because of what runs there. A VM that asks for it `strict` stands only where nobody else's is,
 * one that asks for it `preferred` rather stands there. Nobody says whose such a host is, and with its last VM it is everybody's again.
 */
export const implicitModes = ["strict", "preferred"] as const;
export type ImplicitMode = (typeof implicitModes)[number];

/** A VM at a host. */
export interface Neighbour {
  /** Path of its account; null: it is the system's, or nobody knows whose. */
  readonly account: string | null;
  readonly mode: ImplicitMode | null;
  /** One of the cloud's own, or nobody has said whose it is: it is no stranger at what is dedicated. */
  readonly isSystem?: true;
}
/**
 * What a host is to an account. `own`: all that is there is this account's, and asked for implicit dedication; `strangers`: somebody else's
 * VM there bears no other; `mixed`: anything else that is not empty.
 */
export type Standing = "empty" | "own" | "strangers" | "mixed";
export function standingOf(there: Iterable<Neighbour>, account: string | null): Standing {
  let [isEmpty, isOwn] = [true, true];
  for (const neighbour of there) {
    const isMine = account !== null && neighbour.account === account;
    if (neighbour.mode === "strict" && !isMine) return "strangers";
    isEmpty = false;
    if (!isMine || neighbour.mode === null) isOwn = false;
  }
  return isEmpty ? "empty" : isOwn ? "own" : "mixed";
}

/** The less the better; null: it must not stand there at all. */
export function preferenceOf(standing: Standing, mode: ImplicitMode | null): number | null {
  if (standing === "strangers") return null;
  // Shared ones first: a host that is held by what runs there is not to lose that for a VM which asks for nothing.
  if (mode === null) return standing === "own" ? 1 : 0;
  if (standing === "mixed") return mode === "strict" ? null : 2;
  return standing === "own" ? 0 : 1;
}
