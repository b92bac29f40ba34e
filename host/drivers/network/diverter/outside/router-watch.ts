import type { Ipv4 } from "../../../../../model/cell/identifiers.ts";

/**
 * Where an upstream router is, asked again and again. Nobody can tell a true answer of ARP from a false one, but a router
 * that answers at the MAC where it was needs no other: so it alone is asked there, and everybody only when it has been silent
 * for a while. Pure; MACs are numbers, as in the maps, and 0n is none.
 */
export interface Router {
  readonly address: Ipv4;
  /** Where packets for it go, and come from. */
  readonly mac: bigint;
  /** Questions since its last answer. */
  readonly missed: number;
}
/** After so many questions without an answer another MAC may answer in its place. */
export const patience = 3;
export const askAgainMs = 1000;
export const askAnywayMs = 5000;

export const strange = (address: Ipv4, mac = 0n): Router => ({ address, mac, missed: mac === 0n ? patience : 0 });
export const answers = ({ mac, missed }: Router): boolean => mac !== 0n && missed < patience;
/** Whom to ask: the MAC that is known, or everybody (null). */
export const askedMac = ({ mac, missed }: Router): bigint | null => (mac === 0n || missed >= patience ? null : mac);

/** @param heard MAC of who answered the last question; 0n: nobody */
export const hear = (router: Router, heard: bigint): Router => {
  const { mac, missed } = router;
  if (heard !== 0n && (heard === mac || askedMac(router) === null)) return { ...router, mac: heard, missed: 0 };
  return { ...router, missed: Math.min(missed + 1, patience) };
};

/** The first that answers; where none does, the one that packets went to before, if it is still somewhere. */
export const preferred = (routers: readonly Router[], before: bigint): bigint =>
  routers.find(answers)?.mac ?? routers.find(({ mac }) => mac === before)?.mac ?? 0n;
export const nextQuestionMs = (routers: readonly Router[]): number =>
  routers.every((router) => answers(router) && router.missed === 0) ? askAnywayMs : askAgainMs;
