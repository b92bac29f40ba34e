import { createSocket } from "node:dgram";
import { once } from "node:events";
import { countRefusal } from "../../core/distribution/node/refuse.ts";
import type { RefusalLog } from "../../core/distribution/node/types.ts";
import type { PacketFault } from "../../core/presence/swim/codec.ts";
import type { SwimInput, SwimState } from "../../core/presence/swim/types.ts";
import type { HostName } from "../../model/cell/identifiers.ts";
import { createParticipant, type ParticipantOptions } from "./participant.ts";

/**
 * A host's part in the membership protocol and in broadcasts for real: one UDP socket, one timer, the monotonic clock. What
 * is said to the Presence group and exchanged in full with other hosts goes over channels that its owner has.
 */
export interface MemberOptions extends ParticipantOptions {
  readonly address: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Where a host's socket is; null: not known now, and the packet is lost like any other. */
  readonly find: (host: HostName) => { readonly address: string; readonly port: number } | null;
  /** Whether a host of the installation has this address; absent: any may. What comes from elsewhere is not even read. */
  readonly isHost?: (address: string) => boolean;
  readonly refused: (fault: DatagramFault, count: number) => void;
}
export type DatagramFault = PacketFault | "no host's address";
export interface PresenceMember {
  readonly port: number;
  readonly state: SwimState;
  readonly refusals: ReadonlyMap<PacketFault, number>;
  /** Datagrams since the start: handed to the kernel, arrived from hosts, and from elsewhere. */
  readonly datagrams: { readonly sent: number; readonly received: number; readonly strangers: number };
  /** Anything but a packet. */
  input(input: SwimInput): void;
  /** Says goodbye to a few when `goodbye`, and closes the socket. Idempotent. */
  stop(options?: { readonly goodbye: boolean }): Promise<void>;
}

const longestTimerMs = 2 ** 31 - 1;

/** Rejects when the port is taken. */
export const createMember = async (options: MemberOptions): Promise<PresenceMember> => {
  const socket = createSocket("udp4");
  socket.bind(options.port, options.address);
  await once(socket, "listening");
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let sending = 0;
  const datagrams = { sent: 0, received: 0, strangers: 0 };
  const logged: RefusalLog = new Map();

  const participant = createParticipant(options, {
    now: () => performance.now(),
    send: (to, bytes) => {
      const target = stopped ? null : options.find(to);
      if (target === null) return;
      sending += 1;
      datagrams.sent += 1;
      // A datagram that the kernel does not take is a lost one.
      socket.send(bytes, target.port, target.address, () => {
        sending -= 1;
      });
    },
    wakeAfter: (ms) => {
      if (timer !== null) clearTimeout(timer);
      const wake = (): void => (stopped ? undefined : participant.wake());
      timer = ms === Number.POSITIVE_INFINITY ? null : setTimeout(wake, Math.min(ms, longestTimerMs));
    },
  });
  const input = (given: SwimInput): void => (stopped ? undefined : participant.input(given));

  const stranger = (): void => {
    datagrams.strangers += 1;
    const count = countRefusal(logged, "no host's address", performance.now());
    if (count !== null) options.refused("no host's address", count);
  };
  socket.on("message", (bytes, { address }) => {
    if (stopped) return;
    if (options.isHost?.(address) === false) {
      stranger();
      return;
    }
    datagrams.received += 1;
    participant.receive(bytes);
  });
  // Errors of single datagrams (an unreachable port) arrive here; the protocol finds out by itself.
  socket.on("error", () => undefined);

  return {
    port: socket.address().port,
    state: participant.state,
    refusals: participant.refusals,
    datagrams,
    input,
    stop: async ({ goodbye } = { goodbye: true }) => {
      if (stopped) return;
      if (goodbye) input({ kind: "leave" });
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      // What was handed to the kernel has left when its callbacks ran.
      for (let turns = 0; sending > 0 && turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      const closed = once(socket, "close");
      socket.close();
      await closed;
    },
  };
};
