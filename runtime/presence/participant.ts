import { createGossip, type GossipInput, type GossipState, stepGossip } from "../../core/distribution/gossip.ts";
import type { Death } from "../../core/documents/declaration.ts";
import { decodeBroadcast, encodeBroadcast, isBroadcast } from "../../core/presence/broadcast/codec.ts";
import { deathGossip, deathItem, deathOf } from "../../core/presence/broadcast/death-broadcast.ts";
import { decodePacket, encodePacket, type PacketFault, type Seal } from "../../core/presence/swim/codec.ts";
import { type SwimConfig, swimDefaults } from "../../core/presence/swim/configuration.ts";
import { createSwim, stepSwim } from "../../core/presence/swim/swim.ts";
import type { SwimInput, SwimOutput, SwimState } from "../../core/presence/swim/types.ts";
import type { HostName } from "../../model/cell/identifiers.ts";

/**
 * A host's part in what hosts say to each other in datagrams: the membership protocol, and the broadcast of declared deaths.
 * It has the codec, the refusals and the times at which to wake; socket, timer and clock are its owner's.
 */
export interface ParticipantOptions {
  readonly self: HostName;
  /** Durable, and greater than any before. */
  readonly generation: number;
  readonly seal: Seal;
  readonly seed: number;
  readonly config?: SwimConfig;
  /** Verdicts, full views for others, and the request for a new generation, after each step that has any. */
  readonly output: (output: SwimOutput, state: SwimState) => void;
  /** Several other hosts say that the Presence group declared it; news here. */
  readonly died: (death: Death) => void;
  /** A datagram was refused: which fault, and how often it was met. At the first and then once a minute at most. */
  readonly refused: (fault: PacketFault, count: number) => void;
}
export interface ParticipantEffects {
  /** Monotonic milliseconds. */
  now(): number;
  /** May get lost like any datagram. */
  send(to: HostName, bytes: Uint8Array): void;
  /** `wake` is to be called after this long, instead of what was asked for before. */
  wakeAfter(ms: number): void;
}
export interface Participant {
  readonly state: SwimState;
  readonly broadcast: GossipState;
  readonly refusals: ReadonlyMap<PacketFault, number>;
  /** Anything but a packet. What is `declared` is broadcast. */
  input(input: SwimInput): void;
  receive(bytes: Uint8Array): void;
  wake(): void;
}

const logEveryMs = 60_000;
const never = Number.POSITIVE_INFINITY;

export const createParticipant = (options: ParticipantOptions, effects: ParticipantEffects): Participant => {
  const { self, generation, seed, config = swimDefaults, seal } = options;
  const begin = effects.now();
  const state = createSwim({ self, generation, config, seed }, begin);
  const accepts = (item: Parameters<typeof deathOf>[0]): boolean => deathOf(item) !== null;
  const broadcast = createGossip({ self, seed: seed ^ 0x2545f491, config: deathGossip, accepts }, begin);
  const refusals = new Map<PacketFault, number>();
  const saidAt = new Map<PacketFault, number>();
  let armedFor = never;

  const refuse = (fault: PacketFault): void => {
    const count = (refusals.get(fault) ?? 0) + 1;
    refusals.set(fault, count);
    const now = effects.now();
    if (now - (saidAt.get(fault) ?? Number.NEGATIVE_INFINITY) < logEveryMs) return;
    saidAt.set(fault, now);
    options.refused(fault, count);
  };
  const stepMembership = (input: SwimInput): void => {
    const { localHealth } = state;
    const output = stepSwim(state, input, effects.now());
    for (const { to, packet } of output.packets) effects.send(to, encodePacket(packet, seal));
    for (const death of output.deaths) options.died(death);
    const isSaid = output.verdicts.length + output.syncs.length > 0 || output.incarnated || output.above !== null;
    // A host that stands still again and again has no verdict on others, and yet hears that it is itself the one that is cut off.
    if (isSaid || state.localHealth !== localHealth) options.output(output, state);
  };
  const stepBroadcast = (input: GossipInput): void => {
    const { packets, news, refused } = stepGossip(broadcast, input, effects.now());
    for (const { to, packet } of packets) {
      const bytes = encodeBroadcast(self, packet, seal);
      if (bytes !== null) effects.send(to as HostName, bytes);
    }
    if (refused.length > 0) refuse("malformed");
    if (input.kind !== "packet") return;
    for (const item of news) {
      const death = deathOf(item);
      if (death !== null) stepMembership({ kind: "rumour", ...death });
    }
  };
  const arm = (): void => {
    const wakeAt = Math.min(state.wakeAt, broadcast.wakeAt);
    // What is armed for earlier wakes for nothing and arms again: cheaper than a timer for each packet.
    if (wakeAt >= armedFor) return;
    armedFor = wakeAt;
    effects.wakeAfter(Math.max(0, wakeAt - effects.now()));
  };
  arm();
  return {
    state,
    broadcast,
    refusals,
    input: (input) => {
      stepMembership(input);
      if (input.kind === "peers") stepBroadcast({ kind: "members", members: input.hosts });
      if (input.kind === "declared") stepBroadcast({ kind: "say", item: deathItem(input) });
      arm();
    },
    receive: (bytes) => {
      if (isBroadcast(bytes)) {
        const read = decodeBroadcast(bytes, seal);
        if (read.ok) stepBroadcast({ kind: "packet", ...read.value });
        else refuse(read.error);
      } else {
        const read = decodePacket(bytes, seal);
        if (read.ok) stepMembership({ kind: "packet", packet: read.value });
        else refuse(read.error);
      }
      arm();
    },
    wake: () => {
      armedFor = never;
      const now = effects.now();
      if (state.wakeAt <= now) stepMembership({ kind: "wake" });
      if (broadcast.wakeAt <= now) stepBroadcast({ kind: "wake" });
      arm();
    },
  };
};
