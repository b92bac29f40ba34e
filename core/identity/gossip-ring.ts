import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { count, document, object } from "../../model/json/reader.ts";

/**
 * Under which keys hosts' datagrams are sealed, by epoch (decision 58). One key for all of them says "a host of this
 * installation", so whoever leaves takes it along, and the others need another. It changes in two steps, each only when
 * everybody has done the one before, since a host whose datagrams nobody reads counts as dead:
 *
 *     all the same     sealed and read under one epoch
 *     newest is later  everybody reads the newest, too; when all do,
 *     oldest is lower  everybody seals with it, and still reads the one before; when all do, that goes
 */
export interface Ring {
  readonly oldest: number;
  readonly send: number;
  readonly newest: number;
}
/** Its key is the one that hosts had before there were epochs. */
export const firstRing: Ring = { oldest: 0, send: 0, newest: 0 };

const reader = document(object<Ring>({ oldest: count, send: count, newest: count }));

/** Null: it is none. */
export function readRing(value: Json | undefined): Ring | null {
  const ring = reader.of(value);
  return ring !== null && ring.oldest <= ring.send && ring.send <= ring.newest ? ring : null;
}

export const epochsOf = ({ oldest, send, newest }: Ring): readonly number[] => [...new Set([send, newest, oldest])];
export const isSettled = ({ oldest, newest }: Ring): boolean => oldest === newest;
export const isSameRing = (a: Ring, b: Ring): boolean =>
  a.oldest === b.oldest && a.send === b.send && a.newest === b.newest;

/** Does a ring come after another? They only go on. */
export const isLaterRing = (a: Ring, b: Ring): boolean =>
  a.newest !== b.newest ? a.newest > b.newest : a.send !== b.send ? a.send > b.send : a.oldest > b.oldest;

/** @param had what each host said that it has. @returns the ring that follows, or for whom it waits */
export function nextRing(
  ring: Ring,
  had: ReadonlyMap<PeerName, Ring>,
  awaited: readonly PeerName[],
): { readonly ring: Ring; readonly waitsFor: readonly PeerName[] } {
  const { oldest, send, newest } = ring;
  if (isSettled(ring)) return { ring, waitsFor: [] };
  const seals = oldest < send;
  const waitsFor = awaited.filter((name) => {
    const has = had.get(name);
    return has === undefined || (seals ? has.send < send : has.newest < newest);
  });
  if (waitsFor.length > 0) return { ring, waitsFor };
  return { ring: seals ? { oldest: send, send, newest } : { oldest, send: newest, newest }, waitsFor };
}
