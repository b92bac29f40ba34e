import { presenceKey } from "../core/documents.ts";
import type { Effect } from "../core/env.ts";
import { answerTo, type HostPublication } from "../core/presence/host-publications.ts";
import type { PeerName } from "../model/identifiers.ts";
import type { Json } from "../model/json.ts";

/** What the Host Manager's service keeps and says for this host's part in Presence. The generation is durable. */
export interface PresenceState {
  generation: number;
  readonly members: Set<PeerName>;
}
export type PresenceRequest =
  /** → a generation above every earlier one and above this number, once it is durable. */
  | { readonly kind: "presence-enter"; readonly above: number }
  | { readonly kind: "presence-said"; readonly publications: readonly HostPublication[] }
  /** The members of the Presence group whose declarations are to be followed. */
  | { readonly kind: "presence-follow"; readonly members: readonly PeerName[] };

export const presenceRecord = "presence/generation";

/** @returns the answer */
export const handlePresence = (state: PresenceState, request: PresenceRequest, effects: Effect[]): Json => {
  switch (request.kind) {
    case "presence-enter":
      state.generation = Math.max(state.generation, request.above) + 1;
      effects.push({ kind: "write", key: presenceRecord, value: state.generation });
      return state.generation;
    case "presence-said":
      for (const { key, value } of request.publications)
        if (key.startsWith(presenceKey.all)) effects.push({ kind: "publish", key, value });
      return null;
    case "presence-follow": {
      const wanted = new Set(request.members);
      for (const prefix of [presenceKey.call, presenceKey.death("")]) {
        for (const to of wanted) if (!state.members.has(to)) effects.push({ kind: "subscribe", to, prefix });
        for (const to of state.members) if (!wanted.has(to)) effects.push({ kind: "unsubscribe", to, prefix });
      }
      state.members.clear();
      for (const to of wanted) state.members.add(to);
      return null;
    }
  }
};

/** A member of the Presence group asks who hears it: the answer is published, for it alone. */
export const answerCall = (state: PresenceState, from: PeerName, key: string, value: Json, effects: Effect[]): void => {
  const answer = state.members.has(from) ? answerTo(from, key, value) : null;
  if (answer !== null) effects.push({ kind: "publish", key: answer.key, value: answer.value });
};
