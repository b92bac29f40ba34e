import type { HostName, PeerName } from "../../../model/cell/identifiers.ts";
import type { ActualPresenceDeath, ActualPresenceMissed, ActualPresenceVote } from "../../documents/presence.ts";
import { type Outbox, publishValue } from "../../outbox.ts";

/** A life of a host, as far as it has answered suspicions. */
export interface Life {
  readonly generation: number;
  readonly incarnation: number;
}
/** One host as this member of the group sees it. */
export interface HostView {
  readonly host: HostName;
  readonly peer: PeerName;
  /** This member's own connection to it; null until something was said about it. */
  reachable: boolean | null;
  /** What it last said of itself; null: never heard of, or it said goodbye. */
  self: Life | null;
  /** It took back what it said of itself without having been declared dead: it said goodbye. */
  left: boolean;
  /** It answers calls; false: it is of the previous version, or was never heard. */
  answers: boolean;
  /** The latest call of this member that it answered; 0: none. */
  answered: number;
  /** The life that all evidence is against, and the call that was made for it; null: the evidence is not whole. */
  asked: (Life & { readonly call: number }) | null;
  /** By the host that reports it. */
  readonly reports: Map<HostName, Life>;
  /** By the host that suspects it since a moment ago, whether it reports it by now or not. */
  readonly doubts: Map<HostName, Life>;
  /** By member of the group, this one included. */
  readonly votes: Map<PeerName, ActualPresenceVote>;
  declared: ActualPresenceDeath | null;
  /** By other member of the group, what it declares of the host. */
  readonly claims: Map<PeerName, ActualPresenceDeath>;
  /** By other member, in which life it has heard the host since its declared death. */
  readonly returned: Map<PeerName, number>;
  /** The latest life that it ever said of itself; durable. */
  known: KnownLife | null;
  /** When `self` or whether anyone reports it changed last; milliseconds since 1970, for people. */
  sinceMs: number;
}
export interface GroupOptions {
  readonly self: PeerName;
  /** All members of the group, this one included. */
  readonly members: readonly PeerName[];
  /** `host.<name>` of each host. */
  readonly hosts: readonly PeerName[];
  /** Reports that are not yet enough in a large installation; default `thresholdCap`. */
  readonly threshold?: number;
}
export interface GroupState {
  /** Its members grow. */
  options: GroupOptions;
  readonly outbox: Outbox;
  readonly hosts: Map<HostName, HostView>;
  /** How many of them are not gone; null: to be counted. Each doubt asks, and of a lost host there are as many as hosts. */
  live: number | null;
  /** Other members that are in step. */
  readonly members: Set<PeerName>;
  /** Other members that nothing was said about yet. */
  readonly silent: Set<PeerName>;
  /** Whether this member hears too few of the group to declare anything; null until something was said about them. */
  alone: boolean | null;
  /** The latest call's number, or the one below this life's first. */
  call: number;
  /** Hosts that only answers are missing for. */
  readonly asking: Set<HostView>;
  /** Hosts that this member does not hear and tells others to look for. */
  readonly missed: {
    readonly hosts: Map<HostName, ActualPresenceMissed>;
    /** Told again when half as many are left, so that one host more or less does not have all told each time. */
    areTooMany: boolean;
  };
  /** Documents that made no sense. */
  refused: number;
}
/** More reports than this are needed where there are many hosts. */
export const thresholdCap = 3;

/** Its last life was declared over, or it said goodbye, or it was never there. */
export const isGone = ({ self, declared }: HostView): boolean =>
  self === null || (declared !== null && declared.generation >= self.generation);

/** How many hosts are alive as far as is known. Whoever changes what `isGone` looks at has them counted anew. */
export function liveHosts(state: GroupState): number {
  if (state.live !== null) return state.live;
  let live = 0;
  for (const view of state.hosts.values()) if (!isGone(view)) live += 1;
  state.live = live;
  return live;
}

/**
 * More distinct hosts than this must report a host. A few in a large installation; among few hosts less than half of the
 * others, so that the death of any minority is found. How many members then have to vote for it: `majorityOf`.
 * @param hosts that are alive as far as known, the reported one among them
 */
export const thresholdOf = (hosts: number, cap: number): number => Math.min(cap, Math.floor((hosts - 1) / 2));

/** Says something unless it is said already; null takes it back. */
export function publish(state: GroupState, key: string, value: object | null): void {
  publishValue(state.outbox, key, value);
}

/** The life of a host that a word about its end is for (`end.ts`). */
export interface KnownLife {
  readonly generation: number;
  /** Null: a host of the previous version. */
  readonly boot: number | null;
}
