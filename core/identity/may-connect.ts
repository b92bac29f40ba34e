import type { PeerName } from "../../model/cell/identifiers.ts";
import { isoTime } from "../../model/cell/iso-time.ts";
import { type CurrentKeys, supersededFault } from "./current-keys.ts";
import { isHost, isMachine, type Presented, rootController } from "./presented.ts";

/*
 * Who is at the other end, and may it be there? The one decision behind every authenticated connection; what it is given
 * was read from the certificate that the other end presented, after TLS proved that it holds the certificate's key.
 *
 * A certificate counts: signed by the installation's authority, with the expected name, within its dates. Dates alone may
 * be made up for, and by one thing alone: a key that this machine pinned while hosts joined, between two hosts, or a machine
 * (its Host Manager, its storage agent) and the root controller. That is what brings back an installation that was dark past the end of all its certificates,
 * when nobody is there yet who could issue new ones (decision 29). A pin never stands in for the signature or the name, nor
 * for a key that the name has no more (decision 58).
 */

export interface Expected {
  /** Who asks. */
  readonly self: PeerName;
  /** Whom it wanted to reach; null: it was called, by anybody of the installation. */
  readonly peer: PeerName | null;
}
/** Key of each peer that was pinned, as a fingerprint. */
export type Pins = ReadonlyMap<PeerName, string>;
/** What this process knows of others' keys. */
export interface Known {
  readonly pins: Pins;
  /** From the authority's book of peers. */
  readonly keys: CurrentKeys;
}

export type Verdict =
  | { readonly ok: true; readonly name: PeerName; readonly by: "certificate" }
  /** `why`: what is the matter with its dates, for the log. */
  | { readonly ok: true; readonly name: PeerName; readonly by: "pin"; readonly why: string }
  | { readonly ok: false; readonly because: Refusal; readonly why: string };
export type Refusal = "no-certificate" | "foreign" | "nameless" | "another" | "superseded" | "dates" | "another-key";

const pinned = (self: PeerName, other: PeerName): boolean =>
  (isHost(self) && isHost(other)) ||
  (isMachine(self) && rootController.has(other)) ||
  (rootController.has(self) && isMachine(other));

const units = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1000],
] as const;
/** `3 days`, `1 hour`: in the largest unit of which there is one. */
export const span = (ms: number): string => {
  const [unit, size] = units.find(([, each]) => ms >= each) ?? ["second", 1000];
  const count = Math.max(1, Math.floor(ms / size));
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
};

/** What is wrong with the dates of a certificate by this machine's clock, as a sentence; null: nothing. */
export const datesFault = (
  whose: string,
  { validFromMs, validToMs }: { readonly validFromMs: number; readonly validToMs: number },
  nowMs: number,
): string | null => {
  if (nowMs < validFromMs)
    return (
      `the certificate of "${whose}" begins at ${isoTime(validFromMs)}, ${span(validFromMs - nowMs)} after what this machine's clock shows: ` +
      "this clock is slow, or the authority's was fast when it issued it; set the clocks"
    );
  if (nowMs > validToMs)
    return (
      `the certificate of "${whose}" ended at ${isoTime(validToMs)}, ${span(nowMs - validToMs)} before what this machine's clock shows: ` +
      "it was not renewed in time, or this clock is fast; look whether the authority answers, and set the clocks"
    );
  return null;
};

const refused = (because: Refusal, why: string): Verdict => ({ ok: false, because, why });

/**
 * @param presented null: the other end showed no certificate
 * @param nowMs this machine's wall clock; the only thing that rests on it (decision 29, Clocks)
 */
export function mayConnect(
  presented: Presented | null,
  expected: Expected,
  { pins, keys }: Known,
  nowMs: number,
): Verdict {
  if (presented === null) return refused("no-certificate", "the other end showed no certificate");
  const { name } = presented;
  if (!presented.signed)
    return refused(
      "foreign",
      `the certificate of ${name === null ? "the other end" : `"${name}"`} was not signed by this installation's authority for a service`,
    );
  if (name === null) return refused("nameless", "the certificate of the other end does not name exactly one peer");
  if (expected.peer !== null && name !== expected.peer)
    return refused("another", `the server at this address is "${name}", not "${expected.peer}"`);
  const superseded = supersededFault(presented, keys, nowMs);
  if (superseded !== null) return refused("superseded", superseded);
  const fault = datesFault(name, presented, nowMs);
  if (fault === null) return { ok: true, name, by: "certificate" };
  const pin = pins.get(name);
  if (pin === undefined || !pinned(expected.self, name)) return refused("dates", fault);
  if (pin !== presented.key)
    return refused("another-key", `${fault}; and its key is not the one that was pinned for "${name}" when it joined`);
  return { ok: true, name, by: "pin", why: fault };
}
