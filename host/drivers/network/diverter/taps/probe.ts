import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Uid } from "../../../../../model/cell/identifiers.ts";
import type { LivenessProbe, MachineElsewhere } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { askedKey, type Decoded, interfaceState, octets, probeKey, questionType, word } from "../program/layout.ts";
import { type BpfMap, indexOf, openPacketSocket, sendFrame } from "../program/libbpf.ts";
import { protocolNumbers } from "../program/protocol-numbers.ts";
import { tapName } from "./devices.ts";

/**
 * Liveness probes: a question to a guest, put as if by its subnet's gateway, so that no guest learns of its host and none
 * needs a rule for it. On the management network, where there is no gateway and hosts are known to all, it is the host's. The frame goes out of the tap through a packet socket that receives nothing; the answer ends at the
 * tap's ingress, where the program that sees every packet anyhow notes it in the probe's own map entry. Nothing of a guest
 * is ever handed to a socket of the machine.
 *
 * A machine of another host is asked by a frame of an Ethernet type of its own, which that host's program puts to the machine as if by its gateway,
 * and with which it sends the answer back: no rule and no flow has a part in it, and no machine can send such a frame. The question's entry
 * has the MAC of that host and the address, so nobody else's answer is one.
 *
 * The entry is looked at a few times, later and later: a guest answers at once or not at all, so most probes cost one
 * look. A ring buffer with a thread that waits at it would cost more per answer than that.
 */
const firstGapMs = 4;
const longestGapMs = 256;
const longestMs = 60_000;
/** What a probe of a UDP port says: for a person who meets it in a capture. */
const datagram = Buffer.from("cells liveness probe\n");
/** Ports that a probe comes from: those that no service of a guest's gateway could have. */
const probingPorts = { from: 0xc000, to: 0x10000 };

type InterfaceState = Decoded<typeof interfaceState>;

/** Internet checksum (RFC 1071). */
export function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += (bytes[at]! << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** ICMP echo request (RFC 792). */
function echoRequest(identifier: number, sequence: number): Buffer {
  const message = Buffer.concat([Buffer.from([8, 0, 0, 0, 0, 0, 0, 0]), datagram]);
  message.writeUInt16BE(identifier, 4);
  message.writeUInt16BE(sequence, 6);
  message.writeUInt16BE(checksum(message), 2);
  return message;
}
/** UDP datagram (RFC 768), its checksum over the pseudo header of these addresses. */
function udpDatagram(from: number, to: number, source: readonly number[], destination: readonly number[]): Buffer {
  const length = 8 + datagram.length;
  const message = Buffer.concat([Buffer.alloc(8), datagram]);
  message.writeUInt16BE(from, 0);
  message.writeUInt16BE(to, 2);
  message.writeUInt16BE(length, 4);
  const pseudo = Buffer.from([...source, ...destination, 0, protocolNumbers.udp, 0, length]);
  message.writeUInt16BE(checksum(Buffer.concat([pseudo, message])) || 0xffff, 6);
  return message;
}
/** Who puts the question. */
interface Asker {
  readonly address: string;
  readonly mac: string;
}
/** @param type what the frame says that it is: IP, or a question to a machine of another host */
function frameTo(
  state: Pick<InterfaceState, "address" | "mac">,
  asker: Asker,
  key: Pick<Decoded<typeof probeKey>, "protocol" | "here" | "there">,
  type: number = internetType,
): Buffer {
  const hardware = (mac: string): Buffer => Buffer.from(mac.replaceAll(":", ""), "hex");
  const source = octets(asker.address);
  const destination = octets(state.address);
  const message =
    key.protocol === protocolNumbers.icmp
      ? echoRequest(key.here, key.there)
      : udpDatagram(key.here, key.there, source, destination);
  /* Version 4, five words, no fragment (RFC 791). */
  const head = Buffer.from([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, key.protocol, 0, 0, ...source, ...destination]);
  head.writeUInt16BE(head.length + message.length, 2);
  head.writeUInt16BE(checksum(head), 10);
  const kind = Buffer.from([type >> 8, type & 0xff]);
  return Buffer.concat([hardware(state.mac), hardware(asker.mac), kind, head, message]);
}
const internetType = 0x0800;
const numberOf = (mac: string): bigint => BigInt(`0x${mac.replaceAll(":", "")}`);

export interface Prober {
  /** See `NetworkDriver.probe`. */
  probe(interfaceUid: Uid, probe: LivenessProbe, timeoutMs: number): Promise<boolean>;
  /** See `AsksElsewhere`. */
  ask(machine: MachineElsewhere, timeoutMs: number): Promise<boolean>;
  close(): void;
}

/** Forgets the probes of an earlier process: nobody waits for them. Throws if the machine refuses a packet socket. */
export function createProber({ maps }: Dataplane, gatewayMac: string, host: Asker, uplink: number): Prober {
  const socket = openPacketSocket();
  let open = true;
  for (const map of [maps.probes, maps.asked]) for (const key of map.keys()) map.delete(key);

  /** Notes that an answer is waited for, puts the question, and waits. */
  const waitFor = async (map: BpfMap, key: Buffer, timeoutMs: number, put: () => void): Promise<boolean> => {
    map.set(key, word.encode({ value: 0 }));
    try {
      put();
      let left = timeoutMs;
      for (let gap = firstGapMs; left > 0 && open; gap = Math.min(gap * 4, longestGapMs)) {
        await sleep(Math.min(gap, left));
        left -= gap;
        const answered = open ? map.get(key) : null;
        if (answered !== null && word.decode(answered).value !== 0) return true;
      }
      return false;
    } finally {
      if (open) map.delete(key);
    }
  };
  const checkTime = (timeoutMs: number): void => {
    if (!(timeoutMs >= 1 && timeoutMs <= longestMs))
      throw new Error(`a probe may wait from 1 to ${longestMs} ms for its answer, not ${timeoutMs}`);
  };

  const keyFor = (ifindex: number, probe: LivenessProbe): Decoded<typeof probeKey> | null => {
    const padding = new Uint8Array(3);
    if (probe.protocol === "icmp")
      return { ifindex, protocol: protocolNumbers.icmp, here: randomInt(0x10000), there: randomInt(0x10000), padding };
    if (probe.port === null) return null;
    const here = randomInt(probingPorts.from, probingPorts.to);
    return { ifindex, protocol: protocolNumbers.udp, here, there: probe.port, padding };
  };

  return {
    async probe(interfaceUid, probe, timeoutMs) {
      checkTime(timeoutMs);
      const ifindex = indexOf(tapName(interfaceUid));
      const entry = ifindex === 0 ? null : maps.interfaces.get(word.encode({ value: ifindex }));
      if (entry === null) return false;
      const wanted = keyFor(ifindex, probe);
      if (wanted === null) throw new Error("a UDP probe needs the port that it asks; ICMP has none");
      /* A device that is down or full is a guest that does not answer. */
      const state = interfaceState.decode(entry);
      const asker = state.gateway === "0.0.0.0" ? host : { address: state.gateway, mac: gatewayMac };
      return waitFor(maps.probes, probeKey.encode(wanted), timeoutMs, () =>
        sendFrame(socket, ifindex, frameTo(state, asker, wanted)),
      );
    },
    async ask(machine, timeoutMs) {
      checkTime(timeoutMs);
      const question = { protocol: protocolNumbers.icmp, here: randomInt(0x10000), there: randomInt(0x10000) };
      const { here, there } = question;
      const key = askedKey.encode({ host: numberOf(machine.mac), address: machine.address, here, there });
      return waitFor(maps.asked, key, timeoutMs, () =>
        sendFrame(socket, uplink, frameTo(machine, host, question, questionType)),
      );
    },
    close() {
      open = false;
      socket.close();
    },
  };
}
