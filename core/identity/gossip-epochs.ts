import type { PeerName } from "../../model/identifiers.ts";
import type { Json } from "../../model/json.ts";
import { isObject, log, type Outbox, write } from "../outbox.ts";
import { firstRing, isSettled, nextRing, type Ring, readRing } from "../presence/gossip-ring.ts";
import type { AuthorityAnswer, AuthorityState } from "./authority.ts";

/**
 * The authority leads the change of the key under which hosts' datagrams are sealed: whenever a host has left or its name
 * has another key. It knows numbers alone; the edge derives the keys.
 */
export interface GossipEpochs {
  ring: Ring;
  /** Another host left meanwhile, which has seen the newest. */
  again: boolean;
  /** What hosts said that they have, since this start. */
  readonly had: Map<PeerName, Ring>;
  /** As it was last logged. */
  waits: string;
}
const record = "gossip";
/** One that is further ahead made its number up: an authority that was set back has missed some. */
const mostAhead = 64;

export function restoreGossip(records: ReadonlyMap<string, Json>): GossipEpochs {
  const kept = records.get(record);
  const ring = isObject(kept) ? readRing(kept.ring) : null;
  return { ring: ring ?? firstRing, again: isObject(kept) && kept.again === true, had: new Map(), waits: "" };
}

const set = (outbox: Outbox, state: GossipEpochs, ring: Ring, again: boolean): void => {
  state.ring = ring;
  state.again = again;
  write(outbox, record, { ring, again });
};

/** Whoever had the key until now is to read nothing any more. */
export function rotateGossip(outbox: Outbox, state: GossipEpochs): void {
  const { ring } = state;
  if (!isSettled(ring)) set(outbox, state, ring, true);
  else set(outbox, state, { ...ring, newest: ring.newest + 1 }, false);
}

/** A host says what it has. @returns whether everybody is to hear of another ring */
function hearRing(outbox: Outbox, state: GossipEpochs, host: PeerName, has: Ring): boolean {
  state.had.set(host, has);
  const { ring } = state;
  if (has.newest <= ring.newest || has.newest > ring.newest + mostAhead) return false;
  set(outbox, state, { ...ring, newest: has.newest }, state.again);
  return true;
}

/** @param awaited hosts that are there, as far as anybody knows. @returns whether everybody is to hear of another ring */
function advanceGossip(outbox: Outbox, state: GossipEpochs, awaited: readonly PeerName[]): boolean {
  const { ring, waitsFor } = nextRing(state.ring, state.had, awaited);
  const waits = waitsFor.slice(0, 16).join(", ");
  if (waits !== state.waits && waits !== "")
    log(outbox, "gossip/waits", { epoch: state.ring.newest, hosts: waitsFor.length, reason: `for ${waits}` });
  state.waits = waits;
  if (ring === state.ring) return false;
  if (isSettled(ring)) log(outbox, "gossip/rotated", { epoch: ring.newest });
  const { again } = state;
  set(outbox, state, ring, again);
  if (again && isSettled(ring)) rotateGossip(outbox, state);
  return true;
}

/** A question of a host, or the edge's turn. */
export function answerGossip(
  state: AuthorityState,
  asked: { readonly [name: string]: Json | undefined },
): AuthorityAnswer {
  const has = asked.kind === "gossip" && typeof asked.host === "string" ? readRing(asked.has) : null;
  // What it said before, of keys that it has no more.
  if (has === null && typeof asked.host === "string") state.gossip.had.delete(asked.host as PeerName);
  if (has !== null && hearRing(state.outbox, state.gossip, asked.host as PeerName, has)) state.book = null;
  if (asked.kind === "gossip-turn" && state.book !== null) {
    const gone = new Set(Array.isArray(asked.gone) ? asked.gone : []);
    const hosts = Object.keys(state.book.peers).filter((name) => name.startsWith("host.") && !gone.has(name));
    if (advanceGossip(state.outbox, state.gossip, hosts as PeerName[])) state.book = null;
  }
  return { kind: "gossip", gossip: state.gossip.ring };
}
