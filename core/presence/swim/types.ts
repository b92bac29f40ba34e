import type { HostName } from "../../../model/cell/identifiers.ts";
import type { SwimConfig } from "./configuration.ts";

/** `dead` is only what the Presence group declared; `left` said goodbye. Both are the end of a generation. */
export type Status = "alive" | "suspect" | "dead" | "left";
export interface Update {
  readonly status: Status;
  readonly host: HostName;
  readonly generation: number;
  readonly incarnation: number;
  /** Who suspects; null for any other status. */
  readonly from: HostName | null;
}

/** `ping-req`: probe `target` for me. `nack`: it did not answer me yet, but I am here. */
export type PacketKind = "ping" | "ack" | "ping-req" | "nack" | "gossip";
export interface Packet {
  readonly kind: PacketKind;
  readonly seq: number;
  /** The sender; that it sends at all says that it is alive in this generation and incarnation. */
  readonly from: HostName;
  readonly generation: number;
  readonly incarnation: number;
  /** Whom it is about: who is probed. Null for gossip. */
  readonly target: HostName | null;
  /** Over the sender's view; equal views have equal digests. 32 bits. */
  readonly digest: number;
  readonly updates: readonly Update[];
}

/**
 * What this host thinks of another. `doubted`: suspected from own probes, which whoever asks further may know; `failed`: for so long that the
 * Presence group is told.
 */
export type Verdict = "alive" | "suspect" | "doubted" | "failed" | "dead" | "left";
export interface VerdictChange {
  readonly host: HostName;
  readonly generation: number;
  readonly incarnation: number;
  readonly verdict: Verdict;
}

export type SwimInput =
  | { readonly kind: "packet"; readonly packet: Packet }
  /** Due at `state.wakeAt`; earlier ones change nothing. */
  | { readonly kind: "wake" }
  /** Full views over the reliable channel. `answer`: this is the other half of an exchange. */
  | { readonly kind: "sync"; readonly from: HostName; readonly updates: readonly Update[]; readonly answer: boolean }
  /** All hosts of the installation by name. Views are exchanged with those that are not known yet until all are. */
  | { readonly kind: "peers"; readonly hosts: readonly HostName[] }
  /** The Presence group's word. */
  | { readonly kind: "declared"; readonly host: HostName; readonly generation: number }
  /** A member of the Presence group does not hear a host, which was in this life at least. It is believed as any datagram is. */
  | { readonly kind: "missed"; readonly host: HostName; readonly generation: number; readonly incarnation: number }
  /** Somebody broadcast that it was declared: a hint. */
  | { readonly kind: "rumour"; readonly host: HostName; readonly generation: number }
  /** Begin again with a generation that is durable. */
  | { readonly kind: "enter"; readonly generation: number }
  | { readonly kind: "leave" };

export interface SwimOutput {
  readonly packets: { readonly to: HostName; readonly packet: Packet }[];
  readonly syncs: { readonly to: HostName; readonly updates: readonly Update[]; readonly answer: boolean }[];
  readonly verdicts: VerdictChange[];
  /** Deaths that several hosts told of over the reliable channel, each by its own certificate; not those that are `declared`. */
  readonly deaths: { readonly host: HostName; readonly generation: number }[];
  /** This generation of this host is over for the others: store a generation above this one, then `enter` with it. */
  above: number | null;
  /** Own incarnation or generation changed: the Presence group is to be told. */
  incarnated: boolean;
}

export interface Suspicion {
  readonly startedAt: number;
  /** Distinct hosts that suspect, the first one first; no more than are of use. */
  readonly by: HostName[];
  deadline: number;
  /** An own probe, direct and indirect, went unanswered since. */
  firstHand: boolean;
  expired: boolean;
}
export interface Member {
  readonly host: HostName;
  generation: number;
  incarnation: number;
  status: Status;
  suspicion: Suspicion | null;
  told: Verdict;
  /** Its share in the digest. */
  hash: number;
}
export interface Probe {
  readonly seq: number;
  readonly target: Member;
  readonly generation: number;
  readonly startedAt: number;
  indirectAt: number;
  readonly deadline: number;
  /** In turn, and not out of a suspicion: these measure this host's own health. */
  readonly turn: boolean;
  /** Others are asked too. Not for a probe after which a doubt goes on anyway. */
  readonly indirect: boolean;
  expectedNacks: number;
  nacks: number;
}
/** A member that has not answered since, and nobody was told yet. */
export interface Doubt {
  readonly since: number;
  readonly generation: number;
  readonly incarnation: number;
}
export interface Relay {
  readonly origin: Member;
  readonly originSeq: number;
  readonly target: Member;
  nackAt: number;
  readonly endAt: number;
}

export interface Broadcast {
  readonly update: Update;
  readonly bytes: number;
  sends: number;
  current: boolean;
}
/** What is to be told, by how often it was told already; the newest last. */
export interface BroadcastQueue {
  readonly buckets: Broadcast[][];
  readonly byHost: Map<HostName, Broadcast>;
}

/** One host's view of all hosts. */
export interface SwimState {
  readonly config: SwimConfig;
  readonly self: Member;
  readonly members: Map<HostName, Member>;
  /** Whom to probe, in random order, shuffled after each round. Those that are gone are passed over. */
  ring: Member[];
  next: number;
  /** Alive or suspected, with this host. */
  live: number;
  /** State of the random number generator. */
  random: number;
  seq: number;
  readonly probes: Map<number, Probe>;
  turn: Probe | null;
  readonly relays: Map<number, Relay>;
  readonly doubts: Map<Member, Doubt>;
  /** Hosts of the installation of which nothing was heard yet. */
  strangers: HostName[];
  /** All hosts of the installation, as they were said last. */
  peers: readonly HostName[];
  /** When somebody of these was looked for last. */
  askedAt: number;
  readonly suspects: Set<Member>;
  readonly witnesses: Witnesses;
  readonly queue: BroadcastQueue;
  /** How far this host doubts itself, 0 to `maxLocalHealth` (Lifeguard, local health multiplier less 1). */
  localHealth: number;
  digest: number;
  /** Packets that may still be sent, as of `allowedAt`; below 0: gossip waits. */
  allowance: number;
  allowedAt: number;
  probeAt: number;
  gossipAt: number;
  suspicionAt: number;
  wakeAt: number;
  syncedAt: number;
  changedAt: number;
  /** Packets that were not for this host or made no sense. */
  refused: number;
}

/** What was said of deaths, and by whom (`witness.ts`). */
export interface Witnesses {
  /** By host that is said to be dead: the life that each host said last is over. */
  readonly said: Map<HostName, Map<HostName, number>>;
  /** Hints that nothing has settled yet: of which host, and since when. */
  readonly rumours: Map<HostName, number>;
}
