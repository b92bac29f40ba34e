import type { PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { isObject, log, type Outbox, write } from "../../outbox.ts";
import { firstRing, isSettled, nextRing, type Ring, readRing } from "../gossip-ring.ts";
import type { AuthorityAnswer } from "./requests.ts";
import type { AuthorityState, GossipEpochs } from "./state.ts";

/*
 * The authority leads the change of the key under which hosts' datagrams are sealed: whenever a host has left or its name
 * has another key. It knows numbers alone; the edge derives the keys.
 */

export const gossipRecord = "gossip";

export function restoreGossip(records: ReadonlyMap<string, Json>): GossipEpochs {
  const kept = records.get(gossipRecord);
  const ring = isObject(kept) ? readRing(kept.ring) : null;
  return { ring: ring ?? firstRing, again: isObject(kept) && kept.again === true, had: new Map(), waits: "" };
}

const set = (outbox: Outbox, state: GossipEpochs, ring: Ring, again: boolean): void => {
  state.ring = ring;
  state.again = again;
  write(outbox, gossipRecord, { ring, again });
};

/** Whoever had the key until now is to read nothing any more. */
export function rotateGossip(outbox: Outbox, state: GossipEpochs): void {
  const { ring } = state;
  if (!isSettled(ring)) set(outbox, state, ring, true);
  else set(outbox, state, { ...ring, newest: ring.newest + 1 }, false);
}

/** An authority that was set back has missed some epochs. One host is enough: it has shown the key, which is nobody else's to make. */
const latestEpoch = ({ had }: GossipEpochs, hosts: readonly PeerName[]): number =>
  Math.max(0, ...hosts.map((name) => had.get(name)?.newest ?? 0));

/** @param awaited hosts that are there, as far as anybody knows. @returns whether everybody is to hear of another ring */
function advanceGossip(outbox: Outbox, state: GossipEpochs, awaited: readonly PeerName[]): boolean {
  const missed = latestEpoch(state, awaited);
  if (isSettled(state.ring) && missed > state.ring.newest) {
    // Whoever left since then, or before it had caught up, has that key, so another one follows.
    set(outbox, state, { ...state.ring, newest: missed }, true);
    return true;
  }
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
  if (typeof asked.host === "string") state.gossip.had.delete(asked.host as PeerName);
  if (has !== null) state.gossip.had.set(asked.host as PeerName, has);
  if (asked.kind === "gossip-turn" && state.book !== null) {
    const gone = new Set(Array.isArray(asked.gone) ? asked.gone : []);
    const hosts = new Set(Object.keys(state.book.peers).filter((name): name is PeerName => name.startsWith("host.")));
    for (const name of state.gossip.had.keys()) if (!hosts.has(name)) state.gossip.had.delete(name);
    const awaited = [...hosts].filter((name) => !gone.has(name));
    if (advanceGossip(state.outbox, state.gossip, awaited)) state.book = null;
  }
  return { kind: "gossip", gossip: state.gossip.ring };
}
