import type { PeerName } from "../../model/identifiers.ts";
import type { Refusal } from "./frames.ts";
import type { Distribution, Turn } from "./node-types.ts";

const logEveryMs = 60_000;

/**
 * Counts what a peer sent and this service does not take. Of each peer and reason at most one line a minute goes to the
 * log, so that whoever repeats itself cannot fill the disk. The value is never logged: it may be a secret.
 */
export const refuse = (node: Distribution, turn: Turn, peer: PeerName, reason: Refusal, key: string | null): void => {
  const count = (node.refusals.get(reason) ?? 0) + 1;
  node.refusals.set(reason, count);
  const about = `${peer} ${reason}`;
  const logged = node.refusalsLogged.get(about);
  if (logged !== undefined && turn.now.ms - logged < logEveryMs) return;
  node.refusalsLogged.set(about, turn.now.ms);
  turn.logs.push({ event: "distribution/refused", fields: { peer, reason, key, count } });
};

/** How much one step may hand to a connection before it waits for `sendable`. */
export const burst = { frames: 256, characters: 1024 * 1024 } as const;
