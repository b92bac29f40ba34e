import { agreedOn } from "../../core/documents/declaration.ts";
import { isPlausible } from "../../core/documents/life-numbers.ts";
import type { Effect } from "../../core/env.ts";
import type { HostName, PeerName } from "../../model/cell/identifiers.ts";
import type { PresenceState } from "./presence-state.ts";

/** A life ends no sooner than this after the one before: what a member costs that lies. */
const lifeEveryMs = 60_000;
const lifeTimer = "life";

/**
 * This host begins a new life where any member of the Presence group holds the present one for over. A member may be alone
 * with a declaration, which is for good: those that voted as it did could not write theirs, or have lost their stores. No
 * majority ever tells this host of it then, and that member, with whoever heard the others, holds it for dead as long as it
 * runs. A new life costs it no more than to say everything once more, so here one word is enough; but
 * it ends the present life alone, or a member that lies would drive the number beyond what others take from each other. Who
 * follows other hosts wants a majority as before.
 */
export const endLife = (
  state: PresenceState,
  own: HostName,
  nowMs: number,
  onDeath: ((host: HostName, generation: number) => void) | undefined,
  effects: Effect[],
): void => {
  const { members, declared, generation, lifeEndedMs } = state;
  const said = declared.get(own) ?? new Map<PeerName, number>();
  const agreed = agreedOn(members, said);
  let over = agreed !== null && isPlausible(agreed, generation) ? agreed : -1;
  for (const [member, life] of said)
    if (members.has(member) && isPlausible(life, generation)) over = Math.max(over, Math.min(life, generation));
  // The first life has yet to begin.
  if (generation === 0 || over < generation) return;
  const waitMs = lifeEndedMs === null ? 0 : Math.max(lifeEndedMs + lifeEveryMs - nowMs, 0);
  // Also behind one that ends, which may be said again before there is the next one.
  effects.push({ kind: "timer", name: lifeTimer, afterMs: waitMs === 0 ? lifeEveryMs : waitMs });
  if (waitMs > 0) return;
  state.lifeEndedMs = nowMs;
  onDeath?.(own, over);
};
