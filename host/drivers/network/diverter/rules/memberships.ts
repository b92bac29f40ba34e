import { type Ipv4, ipv4, type Mac } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork, InterfaceGroups } from "../../driver.ts";
import type { Dataplane } from "../program/dataplane.ts";
import { joined, mostGroups, octets, word } from "../program/layout.ts";
import { openPacketSocket, sendFrame } from "../program/libbpf.ts";
import { tapName } from "../taps/devices.ts";
import { checksum } from "../taps/probe.ts";
import type { DeviceOf } from "../taps/slots.ts";

/**
 * Groups that guests have joined by themselves. The program notes what they report (`../program/parts/igmp.h`); here they are
 * asked (RFC 3376), and who has not answered for long is a member no more. That is counted from when this process began to
 * ask: no membership ends because nobody did.
 */
export interface Memberships {
  /** Of the guest behind a device, sorted. */
  of(ifindex: number): readonly Ipv4[];
  /** Which interfaces there are. */
  tell(global: GlobalNetwork): void;
  close(): void;
}
const second = 1_000_000_000n;
/** RFC 3376, 8.2 and 8.4: the interval of questions, and twice that with the time for an answer. */
const askAgainMs = 125_000;
const forgetAfter = 260n * second;
const lookAgainMs = 200;

/** A general query: which groups are you a member of? As if by the gateway of the guest's subnet. */
export function query(gatewayMac: Mac, gateway: Ipv4): Buffer {
  const [type, answerWithin, robustness, interval] = [0x11, 100, 2, 125];
  const message = Buffer.from([type, answerWithin, 0, 0, 0, 0, 0, 0, robustness, interval, 0, 0]);
  message.writeUInt16BE(checksum(message), 2);
  const routerAlert = [0x94, 4, 0, 0];
  const head = Buffer.from([
    0x46,
    0xc0,
    0,
    24 + message.length,
    0,
    0,
    0,
    0,
    1,
    2,
    0,
    0,
    ...octets(gateway),
    224,
    0,
    0,
    1,
    ...routerAlert,
  ]);
  head.writeUInt16BE(checksum(head), 10);
  const macs = Buffer.from(`01005e000001${gatewayMac.replaceAll(":", "")}0800`, "hex");
  return Buffer.concat([macs, head, message, Buffer.alloc(10)]);
}

const inOrder = (one: Ipv4, other: Ipv4): number =>
  Buffer.compare(Buffer.from(octets(one)), Buffer.from(octets(other)));

/** Members of a table's entry at a time, and the entry without those that have been silent for too long. */
export function membersAt(entry: Buffer, now: bigint, began: bigint): { groups: readonly Ipv4[]; left: Buffer } {
  const left = Buffer.from(entry);
  const groups = new Set<Ipv4>();
  for (let at = 0; at < mostGroups; at += 1) {
    const place = joined.offsets.groups + at * 4;
    const group = ipv4([...entry.subarray(place, place + 4)].join("."));
    if (group === "0.0.0.0") continue;
    const heard = entry.readBigUInt64LE(joined.offsets.heard + at * 8);
    if (now - (heard > began ? heard : began) > forgetAfter) left.fill(0, place, place + 4);
    else groups.add(group);
  }
  return { groups: [...groups].sort(inOrder), left };
}

export function createMemberships(
  { maps }: Dataplane,
  gatewayMac: Mac,
  deviceOf: DeviceOf,
  /** At each look; null: they are the same. */
  onLook: (groups: readonly InterfaceGroups[] | null) => void,
): Memberships {
  const socket = openPacketSocket();
  const began = process.hrtime.bigint();
  let interfaces: GlobalNetwork["interfaces"] = [];
  let known: ReadonlyMap<number, readonly Ipv4[]> = new Map();
  let said = "[]";

  const look = (): void => {
    const now = process.hrtime.bigint();
    const found = new Map<number, readonly Ipv4[]>();
    for (const { key, value } of maps.memberships.entries()) {
      const { groups, left } = membersAt(value, now, began);
      if (!left.equals(value)) maps.memberships.set(key, left);
      if (groups.length > 0) found.set(word.decode(key).value, groups);
    }
    known = found;
    const facts = interfaces.flatMap(({ desired }) => {
      const groups = known.get(deviceOf(tapName(desired.uid))?.index ?? 0);
      return groups === undefined ? [] : [{ interface: desired.uid, groups }];
    });
    const text = JSON.stringify(facts);
    onLook(text === said ? null : facts);
    said = text;
  };
  const ask = (): void => {
    for (const { desired } of interfaces) {
      const device = desired.management === true ? null : deviceOf(tapName(desired.uid));
      if (device !== null) sendFrame(socket, device.index, query(gatewayMac, desired.gateway));
    }
  };
  const timers = [setInterval(look, lookAgainMs), setInterval(ask, askAgainMs)];
  return {
    of: (ifindex) => known.get(ifindex) ?? [],
    tell: (global) => {
      ({ interfaces } = global);
      look();
    },
    close: () => {
      for (const timer of timers) clearInterval(timer);
      socket.close();
    },
  };
}
