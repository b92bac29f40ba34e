import { createSocket } from "node:dgram";
import { once } from "node:events";
import { countRefusal, type RefusalLog } from "../../core/distribution/refuse.ts";
import { createSwim, stepSwim } from "../../core/presence/swim.ts";
import { decodePacket, encodePacket, type PacketFault, type Seal } from "../../core/presence/swim-codec.ts";
import {
  type SwimConfig,
  type SwimInput,
  type SwimOutput,
  type SwimState,
  swimDefaults,
} from "../../core/presence/swim-types.ts";
import type { HostName } from "../../model/identifiers.ts";

/**
 * A host's part in the membership protocol for real: one UDP socket, one timer, the monotonic clock. What is said to the
 * Presence group and exchanged in full with other hosts goes over channels that its owner has.
 */
export interface MemberOptions {
  readonly self: HostName;
  /** Durable, and greater than any before. */
  readonly generation: number;
  readonly address: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly seal: Seal;
  readonly seed: number;
  readonly config?: SwimConfig;
  /** Where a host's socket is; null: not known now, and the packet is lost like any other. */
  readonly find: (host: HostName) => { readonly address: string; readonly port: number } | null;
  /** Verdicts, full views for others, and the wish for a new generation, after each step that has any. */
  readonly output: (output: SwimOutput, state: SwimState) => void;
  /** Whether a host of the installation has this address; absent: any may. What comes from elsewhere is not even read. */
  readonly isHost?: (address: string) => boolean;
  /** A datagram was refused: which fault, and how often it was met. At the first and then once a minute at most. */
  readonly refused: (fault: DatagramFault, count: number) => void;
}
export type DatagramFault = PacketFault | "no host's address";
export interface PresenceMember {
  readonly port: number;
  readonly state: SwimState;
  readonly refusals: ReadonlyMap<DatagramFault, number>;
  /** Datagrams since the start: handed to the kernel, and taken for packets. */
  readonly datagrams: { readonly sent: number; readonly received: number };
  /** Anything but a packet. */
  input(input: SwimInput): void;
  /** Says goodbye to a few when `goodbye`, and closes the socket. Idempotent. */
  stop(options?: { readonly goodbye: boolean }): Promise<void>;
}

const longestTimerMs = 2 ** 31 - 1;

/** Rejects when the port is taken. */
export const createMember = async (options: MemberOptions): Promise<PresenceMember> => {
  const { self, generation, seed, config = swimDefaults, seal } = options;
  const socket = createSocket("udp4");
  socket.bind(options.port, options.address);
  await once(socket, "listening");
  const state = createSwim({ self, generation, config, seed }, performance.now());
  const refusals = new Map<DatagramFault, number>();
  const logged: RefusalLog = new Map();
  const datagrams = { sent: 0, received: 0 };
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;
  let sending = 0;

  const refuse = (fault: DatagramFault): void => {
    refusals.set(fault, (refusals.get(fault) ?? 0) + 1);
    const count = countRefusal(logged, fault, performance.now());
    if (count !== null) options.refused(fault, count);
  };
  const step = (input: SwimInput): void => {
    if (stopped) return;
    const output = stepSwim(state, input, performance.now());
    for (const { to, packet } of output.packets) {
      const target = options.find(to);
      if (target === null) continue;
      sending += 1;
      datagrams.sent += 1;
      // A datagram that the kernel does not take is a lost one.
      socket.send(encodePacket(packet, seal), target.port, target.address, () => {
        sending -= 1;
      });
    }
    if (timer !== null) clearTimeout(timer);
    const afterMs = Math.max(0, state.wakeAt - performance.now());
    timer = afterMs === Number.POSITIVE_INFINITY ? null : setTimeout(wake, Math.min(afterMs, longestTimerMs));
    if (output.verdicts.length + output.syncs.length > 0 || output.incarnated || output.above !== null)
      options.output(output, state);
  };
  const wake = (): void => step({ kind: "wake" });

  socket.on("message", (bytes, { address }) => {
    if (options.isHost?.(address) === false) {
      refuse("no host's address");
      return;
    }
    const packet = decodePacket(bytes, seal);
    if (!packet.ok) {
      refuse(packet.error);
      return;
    }
    datagrams.received += 1;
    step({ kind: "packet", packet: packet.value });
  });
  // Errors of single datagrams (an unreachable port) arrive here; the protocol finds out by itself.
  socket.on("error", () => undefined);
  wake();

  return {
    port: socket.address().port,
    state,
    refusals,
    datagrams,
    input: step,
    stop: async ({ goodbye } = { goodbye: true }) => {
      if (stopped) return;
      if (goodbye) step({ kind: "leave" });
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
