/** How often, how long, how many. `decisions/0025-presence.md` says why these and not others. */
export interface SwimConfig {
  readonly probeEveryMs: number;
  /** After this long without an answer others are asked to probe as well. */
  readonly probeTimeoutMs: number;
  readonly indirectProbes: number;
  /** Gossip keeps off when probes and answers leave nothing of this; they themselves always go. */
  readonly packetsPerSecond: number;
  /** While there is something to tell, that many members are told every so often. */
  readonly gossipEveryMs: number;
  readonly gossipTo: number;
  /** Who does not answer is probed again and again for this long before anyone else is told. */
  readonly doubtMs: number;
  /** Shortest suspicion (`suspicion.ts` computes it): this × log10 of the number of members × `probeEveryMs`. */
  readonly suspicionFactor: number;
  /** Longest suspicion: this × the shortest. */
  readonly suspicionMaxFactor: number;
  /** So many hosts beside the first one must suspect independently until the longest is down to the shortest. */
  readonly confirmations: number;
  /** About so many of all that hear of a suspicion look for themselves at once, instead of when it is their turn. */
  readonly confirmers: number;
  /** An update is passed on this × log10 of the number of members times. */
  readonly retransmitFactor: number;
  readonly maxLocalHealth: number;
  /** A step that comes this much later than it was asked for: this process stood still. */
  readonly stallMs: number;
  /** Views that differ are compared in full at most this often: while nothing is being told, and otherwise. */
  readonly syncQuietMs: number;
  readonly syncBusyMs: number;
  /** More hosts than this are refused: no peer can fill the memory. */
  readonly maxMembers: number;
}

export const swimDefaults: SwimConfig = {
  probeEveryMs: 1000,
  probeTimeoutMs: 500,
  indirectProbes: 3,
  packetsPerSecond: 16,
  gossipEveryMs: 200,
  gossipTo: 2,
  doubtMs: 5500,
  suspicionFactor: 1,
  suspicionMaxFactor: 4,
  confirmations: 3,
  confirmers: 6,
  retransmitFactor: 3,
  maxLocalHealth: 8,
  stallMs: 300,
  syncQuietMs: 10_000,
  syncBusyMs: 300_000,
  maxMembers: 20_000,
};
