import { type HostName, hostPeer, type PeerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { actualPlacement } from "../../documents/readers/placement.ts";
import { desiredConnection } from "../../documents/readers/storage.ts";
import { actualKey } from "../../documents/vocabulary.ts";
import { isOnMode, networkViewManager } from "../network/instances.ts";
import {
  addressManager,
  type ControllerState,
  cellManager,
  desiredNow,
  directory,
  dnsManager,
  placerOf,
  storageManagerOf,
} from "../state.ts";
import { takeBack } from "./fork.ts";

/**
 * The end of a cell whose controller has lost its store, after an operator let the present one count: it knows nothing of what its
 * receivers hold for the cell, and said that the cell was empty; what the cell had then stayed for good, and nobody
 * was left to take it back. Now it hears every receiver first (hearing.ts), takes back what they hold, and says so meanwhile.
 * Hosts that this store did not know are known to the Placer and the Storage Manager, too.
 *
 * While the cell lives nothing of that is done: what an older store knows nothing of may be what its people want.
 */

/** A receiver holds it, and it is not desired here; null: it does not. */
export function noteForgotten(state: ControllerState, peer: PeerName, key: string, value: Json): void {
  const keys = state.forgotten.get(peer) ?? new Map<string, HostName | null>();
  state.forgotten.set(peer, keys);
  if (value === null || desiredNow(state, peer, key) !== undefined) keys.delete(key);
  else keys.set(key, key.startsWith("connection/") ? (desiredConnection.of(value)?.host ?? null) : null);
}

/** Whoever may hold something of a cell that ends and has forgotten what it has; null: it is not so. */
export function holdersOfForgotten(state: ControllerState): ReadonlySet<PeerName> | null {
  const { life, model, hasLost, elements, options } = state;
  if (!hasLost || life?.ending !== true || model.document !== null || elements.size > 0) return null;
  const holders = new Set([storageManagerOf(state), addressManager, dnsManager, placerOf(state)]);
  if (options.cellManager === true) holders.add(cellManager);
  if (options.directory === true) holders.add(directory);
  if (isOnMode(state)) holders.add(networkViewManager);
  const prefix = actualKey(options.self, "placement/");
  for (const [key, value] of state.actual.get(placerOf(state)) ?? []) {
    const host = key.startsWith(prefix) ? actualPlacement.of(value)?.host : null;
    if (host) holders.add(hostPeer(host));
  }
  for (const [peer, keys] of state.forgotten) {
    if (keys.size > 0) holders.add(peer);
    for (const host of keys.values()) if (host !== null) holders.add(hostPeer(host));
  }
  return holders;
}

/** Child cells go first, then what hosts run, then the rest. */
const stageOf = (peer: PeerName): number => (peer === cellManager ? 0 : peer.startsWith("host.") ? 1 : 2);

const isDone = (state: ControllerState, peer: PeerName): boolean =>
  state.reachable.get(peer) === true &&
  (state.forgotten.get(peer)?.size ?? 0) === 0 &&
  (state.outbox.releasing.get(peer)?.size ?? 0) === 0 &&
  (stageOf(peer) === 2 || !isSaid(state, peer));
const isSaid = (state: ControllerState, peer: PeerName): boolean =>
  [...(state.actual.get(peer)?.keys() ?? [])].some((key) =>
    ["vm/", "cell/"].some((kind) => key.startsWith(actualKey(state.options.self, kind))),
  );

/** Takes back what is due. @returns who has still to be heard, or to end something */
export function endForgotten(state: ControllerState): readonly PeerName[] {
  const left = leftHolders(state);
  const first = Math.min(...left.map(stageOf));
  for (const peer of left) {
    // Nothing goes before it is known who is all there.
    if (stageOf(peer) !== first || isUnheard(state)) continue;
    for (const key of state.forgotten.get(peer)?.keys() ?? [])
      if (state.outbox.releasing.get(peer)?.has(key) !== true) takeBack(state, peer, key);
  }
  return left;
}
const leftHolders = (state: ControllerState): readonly PeerName[] =>
  [...(holdersOfForgotten(state) ?? [])].filter((peer) => !isDone(state, peer)).sort();
const isUnheard = (state: ControllerState): boolean =>
  [storageManagerOf(state), placerOf(state)].some((peer) => state.reachable.get(peer) !== true);

/** A sentence; null: nothing that was forgotten is left anywhere. */
export function forgottenReason(state: ControllerState): string | null {
  const left = leftHolders(state);
  if (left.length === 0) return null;
  return (
    `its controller had lost its store: it waits for ${left.slice(0, 3).join(", ")}, which hold or may hold what it has forgotten; ` +
    `what is never answered ends with \`cells orphans end SERVICE ${state.options.self} --all\` there`
  );
}
