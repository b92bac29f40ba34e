import type { PeerName } from "../../../model/cell/identifiers.ts";
import { type HelloFrame, protocolVersion, type Refusal } from "./frames.ts";
import { historyOf } from "./history.ts";
import { storeKey } from "./stored.ts";
import type { Distribution, Turn } from "./types.ts";

/** Its own generation as a peer is told it, who may have seen it in later ones (`raisedFloor`). */
export const generationAt = ({ generation }: Distribution, floor: number): number => Math.max(generation, floor);

/**
 * A generation is the time of its start, or one more than the last. One that a clock would show in a century only was made up, and would
 * outlast whoever made it up: nobody who has the name afterwards could exceed it. A clock that is wrong by years is not refused for it.
 */
const aheadMs = 100 * 366 * 24 * 3600 * 1000;
const isAheadOfTime = ({ now }: Turn, generation: number): boolean => generation > now.wallMs + aheadMs;

/** Why a hello ends its connection, whatever else stands in it; null: it does not. */
export const forgedIn = (turn: Turn, peer: PeerName, { name, generation }: HelloFrame): Refusal | null => {
  if (name !== peer) return "name differs from certificate";
  return isAheadOfTime(turn, generation) ? "generation ahead of time" : null;
};

/**
 * A service that has lost its store draws its generation from its clock. Where that is behind, whoever has seen it before would
 * refuse it for ever as one of an earlier life; so it is told what was seen, and goes above it there, and nowhere else. One whose
 * store knows its generations does not, until an operator lets that store count: it may be an earlier life of itself, which is
 * still there.
 * @returns its generation at that peer from the next connection on; null: it stays as it is
 */
export const raisedFloor = (node: Distribution, turn: Turn, floor: number, seen: number | undefined): number | null => {
  if (!node.mayBeBehind || seen === undefined) return null;
  if (seen <= generationAt(node, floor) || isAheadOfTime(turn, seen)) return null;
  mayBeBehind(node, turn);
  return seen + 1;
};

/** So are its next starts, until it has a store that knows all that was seen of it. */
export const mayBeBehind = (node: Distribution, turn: Turn): void => {
  node.mayBeBehind = true;
  turn.writes.push({ key: storeKey.raised, value: true });
};

/** What this service says first on a connection; the server repeats the client's session. */
export const helloOf = (
  node: Distribution,
  { session, floor }: { readonly session: number; readonly floor: number },
  more: Pick<HelloFrame, "forked" | "seen" | "knew" | "seenLater"> = {},
): HelloFrame => ({
  frame: "hello",
  version: protocolVersion,
  generation: generationAt(node, floor),
  session,
  name: node.self,
  ...(node.life === 0 ? {} : { life: node.life }),
  history: historyOf(node),
  ...(node.instance === undefined ? {} : { instance: node.instance }),
  ...more,
});
