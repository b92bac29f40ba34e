import { agreedOn, type Declared } from "../../core/documents/declaration.ts";
import { isBoot, isGeneration } from "../../core/documents/life-numbers.ts";
import { type ActualPresenceMissed, presenceKey } from "../../core/documents/presence.ts";
import { presence } from "../../core/documents/readers/presence.ts";
import type { Effect } from "../../core/env.ts";
import { isObject } from "../../core/outbox.ts";
import { answerTo, type HostPublication } from "../../core/presence/group/host-publications.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/** What the Host Manager's service keeps and says for this host's part in Presence. The generation is durable. */
export interface PresenceState {
  generation: number;
  /** Of the machine (`ActualHost.boot`); null: not told. Durable. */
  boot: number | null;
  /**
   * The number was drawn although the machine had not started anew, since the store had none: what runs was placed for this
   * boot, whatever it was called then. Durable.
   */
  isSameBoot: boolean;
  /** What this host last said of its life; null: nothing yet. */
  self: Json;
  readonly members: Set<PeerName>;
  /** What these have declared, and which boot of this machine each says is over. */
  readonly declared: Declared;
  readonly ended: Map<PeerName, number>;
  /** When a life of this host last ended by what any member says; monotonic. */
  lifeEndedMs: number | null;
}
export type PresenceRequest =
  /** → a generation above every earlier one and above this number, once it is durable. */
  | { readonly kind: "presence-enter"; readonly above: number }
  | { readonly kind: "presence-said"; readonly publications: readonly HostPublication[] }
  /** The members of the Presence group whose declarations are to be followed. */
  | { readonly kind: "presence-follow"; readonly members: readonly PeerName[] };

export const presenceRecord = "presence/generation";

const bootRecord = "presence/boot";
const sameBootRecord = "presence/same-boot";

export const restorePresence = (records: ReadonlyMap<string, Json>): PresenceState => {
  const [boot, generation] = [records.get(bootRecord), records.get(presenceRecord)];
  return {
    generation: isGeneration(generation) ? generation : 0,
    boot: isBoot(boot) ? boot : null,
    isSameBoot: records.get(sameBootRecord) === true,
    self: null,
    members: new Set(),
    declared: new Map(),
    ended: new Map(),
    lifeEndedMs: null,
  };
};

/** The machine has started anew: its number is above every earlier one's, and above those of a store that was lost. */
export const beginBoot = (
  state: PresenceState,
  above: number,
  wallMs: number,
  effects: Effect[],
  isSameBoot = false,
): void => {
  if (state.isSameBoot !== isSameBoot) effects.push({ kind: "write", key: sameBootRecord, value: isSameBoot || null });
  state.isSameBoot = isSameBoot;
  state.boot = Math.max(state.boot ?? 0, above, Math.floor(wallMs) - 1) + 1;
  effects.push({ kind: "write", key: bootRecord, value: state.boot });
};
const sayLife = (state: PresenceState, life: Json, effects: Effect[]): void => {
  const { boot } = state;
  state.self = life;
  const value = boot === null || !isObject(life) ? life : { ...life, boot };
  effects.push({ kind: "publish", key: presenceKey.self, value });
};

/**
 * More than half of the group say that this boot is over, which runs. Whoever said it erred, or the store was lost with the
 * number of a later boot. Nobody takes anything for running that was placed for this boot: so it ends, with all of its machines.
 * @returns whether it does
 */
export const endsThisBoot = (
  state: PresenceState,
  own: string,
  { from, key, value }: { readonly from: PeerName; readonly key: string; readonly value: Json },
  wallMs: number,
  effects: Effect[],
): boolean => {
  if (!state.members.has(from) || key !== presenceKey.death(own) || !isObject(value)) return false;
  if (isBoot(value.ended)) state.ended.set(from, value.ended);
  const ended = agreedOn(state.members, state.ended);
  if (state.boot === null || ended === null || ended < state.boot) return false;
  beginBoot(state, ended, wallMs, effects);
  effects.push({ kind: "log", event: "host/boot-ended", fields: { from, boot: state.boot } });
  if (state.self !== null) sayLife(state, state.self, effects);
  return true;
};

/** @returns the answer */
export const handlePresence = (state: PresenceState, request: PresenceRequest, effects: Effect[]): Json => {
  switch (request.kind) {
    case "presence-enter":
      // A number without a next one is nobody's life.
      state.generation = Math.max(state.generation, isGeneration(request.above) ? request.above : 0) + 1;
      effects.push({ kind: "write", key: presenceRecord, value: state.generation });
      return state.generation;
    case "presence-said":
      for (const { key, value } of request.publications)
        if (key === presenceKey.self) sayLife(state, value, effects);
        else if (key.startsWith(presenceKey.all)) effects.push({ kind: "publish", key, value });
      return null;
    case "presence-follow": {
      const wanted = new Set(request.members);
      for (const prefix of [presenceKey.call, presenceKey.missed(""), presenceKey.death("")]) {
        for (const to of wanted) if (!state.members.has(to)) effects.push({ kind: "subscribe", to, prefix });
        for (const to of state.members) if (!wanted.has(to)) effects.push({ kind: "unsubscribe", to, prefix });
      }
      state.members.clear();
      for (const to of wanted) state.members.add(to);
      return null;
    }
  }
};

interface Said {
  readonly from: PeerName;
  readonly key: string;
  readonly value: Json;
}
/** Whatever a member of the group says but deaths. */
export const hearMember = (
  state: PresenceState,
  own: string,
  said: Said,
  onMissed: ((missed: ActualPresenceMissed) => void) | undefined,
  effects: Effect[],
): void => {
  hearMissed(state, own, said, onMissed);
  answerCall(state, said.from, said.key, said.value, effects);
};

/** A member of the Presence group does not hear a host, other than this one, and says which life of it to look for. */
export const hearMissed = (
  { members }: PresenceState,
  own: string,
  { from, key, value }: Said,
  onMissed: ((missed: ActualPresenceMissed) => void) | undefined,
): void => {
  if (!members.has(from) || !key.startsWith(presenceKey.missed("")) || value === null) return;
  const host = key.slice(presenceKey.missed("").length);
  const missed = host === own ? null : presence.of(value, host);
  if (missed !== null) onMissed?.(missed);
};

/** A member of the Presence group asks who hears it: the answer is published, for it alone. */
export const answerCall = (state: PresenceState, from: PeerName, key: string, value: Json, effects: Effect[]): void => {
  const answer = state.members.has(from) ? answerTo(from, key, value) : null;
  if (answer !== null) effects.push({ kind: "publish", key: answer.key, value: answer.value });
};
