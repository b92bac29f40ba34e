import type { Seal } from "../../core/presence/swim/codec.ts";
import { createPresencePart, type PresencePart } from "../../host/presence/presence-part.ts";
import { type HostName, hostName, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { createParticipant, type Participant } from "../../runtime/presence/participant.ts";
import type { ScheduledEvent } from "../kernel/clock.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Life } from "../kernel/process.ts";

/** Whoever reaches the simulated network has the key: forging is not what is tried here, and an HMAC is half of the time. */
const seal: Seal = { sign: () => undefined, verify: () => true };

export const hostOfPeer = (peer: PeerName): HostName => hostName(peer.slice("host.".length));

/** Names are values: one table for all hosts of all runs, or a thousand tables of a thousand names fill every cache. */
const peers = new Map<HostName, PeerName>();

export interface TakePartOptions {
  readonly kernel: Kernel;
  readonly life: Life;
  readonly host: HostName;
  readonly seed: number;
}
/** The real part of a host in Presence, over the simulated network and clock, until its life ends. */
export const takePart = async ({ kernel, life, host, seed }: TakePartOptions): Promise<PresencePart<Participant>> => {
  const { network } = kernel;
  const self = peerName(`host.${host}`);
  const peerOf = (name: HostName): PeerName => {
    const found = peers.get(name) ?? peerName(`host.${name}`);
    peers.set(name, found);
    return found;
  };
  let timer: ScheduledEvent | null = null;
  const part: PresencePart<Participant> = await createPresencePart<Participant>({
    request: (request) => life.request(request as unknown as Json),
    beginLife: (generation) => life.input({ kind: "life", life: generation }),
    declaredDead: (peer, dead) => {
      kernel.log(self, "presence/heard", { peer, life: dead });
      life.input({ kind: "declared-dead", peer, life: dead });
    },
    sendView: (to, view) => network.post(self, peerOf(to), view),
    participate: async ({ generation, output, died }) => {
      const participant: Participant = createParticipant(
        {
          self: host,
          generation,
          seal,
          seed: (seed * 7919 + generation) % 2 ** 32,
          output,
          died,
          refused: (reason, count) => kernel.log(self, "distribution/refused", { peer: "datagram", reason, count }),
        },
        {
          now: life.nowMs,
          send: (to, bytes) => network.sendDatagram(self, peerOf(to), bytes),
          wakeAfter: (ms) => {
            if (timer !== null) timer.cancelled = true;
            // Never a rounding too early, which would wake it again at the same time for ever.
            timer = ms === Number.POSITIVE_INFINITY ? null : life.timer(ms + 0.001, () => participant.wake());
          },
        },
      );
      return participant;
    },
  });
  life.listen({
    datagram: (bytes) => part.participant.receive(bytes),
    posted: (from, json) => void part.view(hostOfPeer(from), json),
  });
  return part;
};
