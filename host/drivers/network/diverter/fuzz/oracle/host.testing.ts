import {
  gatewayMac,
  type HostKey,
  hostAddresses,
  hostMacs,
  type Interface,
  lastOf,
  mtu,
  outsideMacs,
  type Subnet,
  type View,
  type World,
} from "../world.testing.ts";
import {
  type Arrival,
  isDhcpAnswer,
  isFromOwnRouter,
  keyOfMany,
  type Question,
  type Reason,
  type Routers,
  reasonAgainst,
  strangerReason,
} from "./check.testing.ts";
import { Knowledge, kindOf } from "./knowledge.testing.ts";
import { directedAt, isCopied, mayHaveCopy, membersOf } from "./many.testing.ts";
import { Memory } from "./memory.testing.ts";
import { icmp, type Packet, readPacket, udp } from "./packet.testing.ts";

/**
 * What one host should do with a frame. It is left to the host's own stack, it is dropped, or it goes somewhere with other
 * MACs; an answer that the host itself gives is told apart, since its content is looked at elsewhere.
 */
export type Outcome =
  | { readonly kind: "untouched" }
  | { readonly kind: "dropped"; readonly counted: { readonly interface: number; readonly reason: Reason } | null }
  | {
      readonly kind: "goes";
      readonly to: number;
      readonly from: number;
      readonly sender: number | null;
      readonly receiver: number | null;
    }
  | {
      /** To each of these, and once to each host; nothing else is left of it. */
      readonly kind: "copied";
      readonly sender: number | null;
      readonly receivers: readonly number[];
      readonly hosts: readonly number[];
      readonly from: number;
      readonly drops: readonly { readonly interface: number; readonly reason: Reason }[];
    }
  | { readonly kind: "answers"; readonly what: "arp" | "dhcp"; readonly to: number; readonly from: number };

const silently: Outcome = { kind: "dropped", counted: null };
const untouched: Outcome = { kind: "untouched" };
const drop = ({ at }: Interface, reason: Reason): Outcome => ({
  kind: "dropped",
  counted: { interface: at, reason },
});
const macAt = (frame: Buffer, at: number): number => frame.readUIntBE(at, 6);
const everyone = 0xffffffff;
const igmp = 2;
const isGroup = (address: number): boolean => address >>> 28 === 14;
const isBootp = (packet: Packet, at: Interface): boolean =>
  packet.protocol === udp &&
  packet.part === "whole" &&
  packet.sourcePort === 68 &&
  packet.port === 67 &&
  packet.headerLength === 20 &&
  (packet.source === 0 || packet.source === at.address) &&
  [everyone, lastOf(at.subnet.range), gatewayOf(at)].includes(packet.destination);
export const gatewayOf = ({ subnet }: Interface): number => subnet.range.first + 1;

/** A frame that the kernel is to cut: its pieces are no larger than others', and not so small that they are too many. */
function hasGoodSize(frame: Buffer, pieces: number, { headerLength, tcpLength }: Packet): boolean {
  if (pieces === 0) return frame.length - 14 <= mtu;
  if (pieces < 48 && frame.length > pieces * 128) return false;
  return pieces + headerLength + tcpLength <= mtu;
}

export class HostOracle {
  readonly world: World;
  readonly key: HostKey;
  #knowledge: Knowledge;
  #memories = new Map<number, Memory>();
  routers: Routers = { macs: [], used: 0 };

  constructor(world: World, key: HostKey) {
    this.world = world;
    this.key = key;
    this.#knowledge = new Knowledge(world, key, { rules: new Map(), here: [], elsewhere: [] });
  }
  tell(view: View): void {
    this.#knowledge = new Knowledge(this.world, this.key, view);
    for (const at of this.#memories.keys()) if (!view.here.includes(at)) this.#memories.delete(at);
    for (const at of view.here) if (!this.#memories.has(at)) this.#memories.set(at, new Memory());
  }
  get view(): View {
    return this.#knowledge.view;
  }

  fromTap(at: number, frame: Buffer, pieces: number, now: number): Outcome {
    if (!this.#knowledge.has(at)) return silently;
    const self = this.world.interfaces[at]!;
    if (macAt(frame, 6) !== self.mac) return drop(self, "spoofed-mac");
    const type = frame.readUInt16BE(12);
    if (type === 0x0806) return this.#arpFromTap(self, frame);
    if (type === 0x86dd) return drop(self, "ipv6");
    if (type !== 0x0800) return drop(self, "other-ethertype");
    const packet = readPacket(frame);
    if (packet === null) return drop(self, "malformed");
    if (isBootp(packet, self)) return this.#dhcp(self, frame);
    const isOther = packet.source !== self.address;
    if (isOther && this.#routesBetween(self, packet.destination, packet.source) === false)
      return drop(self, "spoofed-address");
    if (isDhcpAnswer(packet)) return drop(self, "rogue-dhcp");
    if (!hasGoodSize(frame, pieces, packet)) return drop(self, "malformed");
    const { destination, about } = packet;
    if (destination === everyone || destination === lastOf(self.subnet.range) || isGroup(destination))
      return this.#copy(self, packet, now);
    if (destination === gatewayOf(self)) return drop(self, "no-rule");
    if (about !== null && about.source !== destination) return drop(self, "no-rule");
    if (about !== null && about.destination !== packet.source) {
      // A router tells why it did not get there, as if its receiver did.
      if (!this.#routesBetween(self, destination, about.destination)) return drop(self, "no-rule");
      return this.#forward(self, { ...packet, source: about.destination }, now);
    }
    return isOther ? this.#forward(self, packet, now) : this.#send(self, packet, now);
  }
  #routesBetween({ cell, at }: Interface, inside: number, outside: number): boolean {
    return this.#knowledge.routerBetween(cell, inside, outside)?.at === at;
  }
  /** In the name of somebody outside: the machine itself is asked, and nobody else. */
  #forward(self: Interface, packet: Packet, now: number): Outcome {
    const receiver = this.#knowledge.endpoint(packet.destination);
    if (receiver === null) {
      const host = this.#knowledge.hostOf(packet.destination);
      return host === null
        ? drop(self, "no-location")
        : { kind: "goes", to: host, from: hostMacs[this.key], sender: self.at, receiver: null };
    }
    if (receiver === self) return drop(self, "no-location");
    const refused = reasonAgainst(this.#question(receiver, packet, false, null, now));
    if (refused !== null) return drop(receiver, refused);
    return { kind: "goes", to: receiver.mac, from: gatewayMac, sender: self.at, receiver: receiver.at };
  }
  /** To the router of the machine's subnet; null: it has none for that address. */
  #toOwnRouter(self: Interface, { destination }: Packet): Outcome | null {
    const router = this.#knowledge.routerBetween(self.cell, self.address, destination);
    if (router === null || router === self) return null;
    if (this.#knowledge.endpoint(router.address) !== null)
      return { kind: "goes", to: router.mac, from: gatewayMac, sender: self.at, receiver: router.at };
    const host = this.#knowledge.placeOf(self.cell, router.address);
    if (host === null) return drop(self, "no-router");
    return { kind: "goes", to: host, from: hostMacs[this.key], sender: self.at, receiver: null };
  }
  #question(self: Interface, packet: Packet, isOut: boolean, arrival: Arrival | null, now: number): Question {
    const memory = this.#memories.get(self.at)!;
    return { knowledge: this.#knowledge, routers: this.routers, memory, self, packet, isOut, arrival, now };
  }
  #send(self: Interface, packet: Packet, now: number): Outcome {
    const reason = reasonAgainst(this.#question(self, packet, true, null, now));
    const isDirected = directedAt(this.#knowledge, this.#knowledge.cell(self.cell), packet.destination) !== null;
    if (reason === "no-rule" && isDirected) return this.#copy(self, packet, now);
    if (reason !== null) return drop(self, reason);
    const receiver = this.#knowledge.endpoint(packet.destination);
    if (receiver !== null && receiver !== self) {
      const refused = reasonAgainst(this.#question(receiver, packet, false, null, now));
      if (refused !== null) return drop(receiver, refused);
      return { kind: "goes", to: receiver.mac, from: gatewayMac, sender: self.at, receiver: receiver.at };
    }
    if (receiver === self) return drop(self, "no-location");
    const host = this.#knowledge.machineOf(self.cell, packet.destination);
    if (host !== null) return { kind: "goes", to: host, from: hostMacs[this.key], sender: self.at, receiver: null };
    if (isDirected) return this.#copy(self, packet, now);
    return this.#toOwnRouter(self, packet) ?? this.#leave(self, packet);
  }
  /** What a machine here sends to many. */
  #copy(self: Interface, packet: Packet, now: number): Outcome {
    // A report of groups is its own host's to hear.
    if (packet.protocol === igmp && packet.part === "whole" && isGroup(packet.destination)) return silently;
    const many = isCopied(packet) ? membersOf(this.#knowledge, self, packet.destination) : null;
    if (many === null || (many.directed !== null && packet.protocol === icmp)) return drop(self, "broadcast");
    this.#memories.get(self.at)!.putMany(keyOfMany(packet), now);
    const cell = this.#knowledge.cell(self.cell);
    const admitted = many.members.filter(
      (each) => each !== self && mayHaveCopy(this.#knowledge, cell, packet, each, many.directed),
    );
    const hosts = new Set(admitted.flatMap(({ address }) => this.#knowledge.hostOf(address) ?? []));
    const here = admitted.filter(({ at }) => this.#knowledge.has(at));
    const got = this.#copyHere(here, packet, many.directed, null, now);
    if (got.receivers.length + hosts.size === 0) got.drops.push({ interface: self.at, reason: "no-rule" });
    const sender = got.receivers.length + hosts.size === 0 ? null : self.at;
    return { kind: "copied", sender, ...got, hosts: [...hosts], from: hostMacs[this.key] };
  }
  #copyHere(
    members: readonly Interface[],
    packet: Packet,
    directed: Subnet | null,
    arrival: Arrival | null,
    now: number,
  ) {
    const receivers: number[] = [];
    const drops: { interface: number; reason: Reason }[] = [];
    for (const each of members) {
      const isNamed =
        directed === null || mayHaveCopy(this.#knowledge, this.#knowledge.cell(each.cell), packet, each, each.subnet);
      const reason = isNamed ? reasonAgainst(this.#question(each, packet, false, arrival, now)) : "no-rule";
      if (reason === null) receivers.push(each.at);
      else drops.push({ interface: each.at, reason });
    }
    return { receivers, drops };
  }
  /** The same, from another host; null: that address is not of many. */
  #copyIn(frame: Buffer, now: number): Outcome | null {
    const [source, destination] = [frame.readUInt32BE(26), frame.readUInt32BE(30)];
    const knowledge = this.#knowledge;
    const here = this.world.interfaces.filter(({ at }) => knowledge.has(at));
    const open = here.filter(({ cell }) => knowledge.view.rules.get(cell)?.broadcast === "on");
    const of = open.find(({ subnet }) => lastOf(subnet.range) === destination)?.subnet;
    if (destination !== everyone && !isGroup(destination) && of === undefined) return null;
    const packet = readPacket(frame);
    if (packet === null || !isCopied(packet) || isDhcpAnswer(packet)) return silently;
    const mac = knowledge.hostOf(source);
    if (mac === null || mac !== macAt(frame, 6)) return silently;
    const sender = this.world.interfaces.find(({ address }) => address === source)!;
    const isOwn = knowledge.interfaceOf(sender.cell, source) !== null;
    const directed = of !== undefined && !(isOwn && of === sender.subnet) ? of : null;
    if (directed !== null && packet.protocol === icmp) return silently;
    const members =
      of === undefined
        ? isOwn
          ? (membersOf(knowledge, sender, destination)?.members ?? [])
          : []
        : open.filter(({ subnet }) => subnet === of);
    const arrival = { mac, isWayOut: this.world.wayOut === "uplink", isOwnDevice: false };
    const got = this.#copyHere(
      members.filter(({ at }) => knowledge.has(at)),
      packet,
      directed,
      arrival,
      now,
    );
    return { kind: "copied", sender: null, ...got, hosts: [], from: hostMacs[this.key] };
  }
  #leave(self: Interface, { destination }: Packet): Outcome {
    const { wayOut } = this.world;
    if (wayOut === "none" || kindOf(self.address) !== "external" || kindOf(destination) !== "outside")
      return drop(self, "no-location");
    if (this.routers.used === 0) return drop(self, "no-router");
    const from = wayOut === "own" ? outsideMacs[this.key as keyof typeof outsideMacs] : hostMacs[this.key];
    return { kind: "goes", to: this.routers.used, from, sender: self.at, receiver: null };
  }

  /** A frame from the underlay, or by a device of its own from the network outside. */
  fromSegment(kind: "wire" | "outside", frame: Buffer, now: number): Outcome {
    const { wayOut } = this.world;
    if (kind === "outside" && wayOut !== "own") return untouched;
    const isWayOut = kind === "outside" || wayOut === "uplink";
    const type = frame.readUInt16BE(12);
    if (type === 0x0806) return this.#arpFromSegment(kind, isWayOut, frame);
    if (type !== 0x0800 || frame.length < 34) return untouched;
    const self = this.#knowledge.endpoint(frame.readUInt32BE(30));
    if (self === null) return kind === "wire" ? this.#passesOn(frame, now) : untouched;
    const own = kind === "outside" ? outsideMacs[this.key as keyof typeof outsideMacs] : hostMacs[this.key];
    if (macAt(frame, 0) !== own) return silently;
    const mac = macAt(frame, 6);
    if (mac === 0 || (frame[6]! & 1) > 0) return drop(self, "spoofed-mac");
    const packet = readPacket(frame);
    if (packet === null) return drop(self, "malformed");
    return this.#receive(self, packet, { mac, isWayOut, isOwnDevice: kind === "outside" }, now);
  }
  /** From another host, to nobody here: what a machine sends to a router of its cell that is here. */
  #passesOn(frame: Buffer, now: number): Outcome {
    const [source, destination] = [frame.readUInt32BE(26), frame.readUInt32BE(30)];
    if (destination === hostAddresses[this.key] || macAt(frame, 0) !== hostMacs[this.key]) return untouched;
    const copied = this.#copyIn(frame, now);
    if (copied !== null) return copied;
    const host = this.#knowledge.hostOf(source);
    const machine = this.world.interfaces.find(({ address }) => address === source);
    if (host === null || machine === undefined) return untouched;
    const router = this.#knowledge.routerBetween(machine.cell, source, destination);
    if (router === null || this.#knowledge.endpoint(router.address) === null) return untouched;
    if (macAt(frame, 6) !== host) return drop(router, "wrong-host");
    const packet = readPacket(frame);
    if (packet === null) return drop(router, "malformed");
    if (isDhcpAnswer(packet)) return drop(router, "rogue-dhcp");
    const { about } = packet;
    if (about !== null && (about.source !== destination || about.destination !== source))
      return drop(router, "no-rule");
    return { kind: "goes", to: router.mac, from: gatewayMac, sender: null, receiver: router.at };
  }
  #receive(self: Interface, packet: Packet, arrival: Arrival, now: number): Outcome {
    const { about } = packet;
    if (isDhcpAnswer(packet)) return drop(self, "rogue-dhcp");
    if (about !== null && about.source !== self.address) return drop(self, "no-rule");
    let judged = packet;
    if (about !== null && about.destination !== packet.source) {
      // Somebody on the way outside says why it did not get there, as if its receiver did.
      const { routers } = this;
      const knowledge = this.#knowledge;
      if (
        strangerReason({ knowledge, routers, self, packet }, arrival) !== null &&
        !isFromOwnRouter({ knowledge, self }, about.destination, arrival)
      )
        return drop(self, "no-rule");
      judged = { ...packet, source: about.destination };
    }
    const reason = reasonAgainst(this.#question(self, judged, false, arrival, now));
    if (reason !== null) return drop(self, reason);
    return { kind: "goes", to: self.mac, from: gatewayMac, sender: null, receiver: self.at };
  }

  /** Every address that the VM may know is at the gateway's MAC, whether it is there or not. */
  #arpFromTap(self: Interface, frame: Buffer): Outcome {
    const arp = readArp(frame);
    if (arp === null) return drop(self, "malformed");
    if (arp.senderMac !== self.mac || (arp.sender !== self.address && arp.sender !== 0)) return drop(self, "rogue-arp");
    const { range } = self.subnet;
    const isKnown = arp.target === gatewayOf(self) || (arp.target >= range.first && arp.target <= lastOf(range));
    if (arp.operation !== 1 || arp.target === self.address || !isKnown) return silently;
    return { kind: "answers", what: "arp", to: self.mac, from: gatewayMac };
  }
  #arpFromSegment(kind: "wire" | "outside", isWayOut: boolean, frame: Buffer): Outcome {
    const arp = readArp(frame);
    if (arp === null || arp.operation !== 1) return untouched;
    const self = this.#knowledge.endpoint(arp.target);
    if (self === null) return untouched;
    const { controller } = this.#knowledge.cell(self.cell);
    const hasRules = this.#knowledge.view.rules.has(self.cell);
    if (hasRules && controller.address === arp.sender && controller.mac === arp.senderMac)
      // The controller's machine is on the underlay, and is told where its own machines are.
      return { kind: "answers", what: "arp", to: arp.senderMac, from: hostMacs[this.key] };
    if (!isWayOut || kindOf(arp.target) !== "external") return silently;
    const from = kind === "outside" ? outsideMacs[this.key as keyof typeof outsideMacs] : hostMacs[this.key];
    return { kind: "answers", what: "arp", to: arp.senderMac, from };
  }
  #dhcp(self: Interface, frame: Buffer): Outcome {
    const bootp = 14 + 20 + 8;
    if (frame.length < bootp + 240) return drop(self, "malformed");
    if (frame[bootp] !== 1 || frame[bootp + 2] !== 6 || macAt(frame, bootp + 28) !== self.mac)
      return drop(self, "spoofed-mac");
    const asked = dhcpType(frame, bootp + 240);
    if (asked !== 1 && asked !== 3) return silently;
    return { kind: "answers", what: "dhcp", to: self.mac, from: gatewayMac };
  }
}

interface Arp {
  readonly operation: number;
  readonly senderMac: number;
  readonly sender: number;
  readonly target: number;
}
function readArp(frame: Buffer): Arp | null {
  if (frame.length < 42 || frame.readUInt32BE(14) !== 0x00010800 || frame.readUInt16BE(18) !== 0x0604) return null;
  return {
    operation: frame.readUInt16BE(20),
    senderMac: macAt(frame, 22),
    sender: frame.readUInt32BE(28),
    target: frame.readUInt32BE(38),
  };
}

/** Option 53 of a message (RFC 2132, 9.6); null: it has none that can be found. */
function dhcpType(frame: Buffer, start: number): number | null {
  let at = start;
  for (let options = 0; options < 48; options += 1) {
    const code = frame[at];
    if (code === undefined || code === 255) return null;
    if (code === 0) {
      at += 1;
      continue;
    }
    if (at + 3 > frame.length) return null;
    if (code === 53) return frame[at + 1] === 1 ? frame[at + 2]! : null;
    at += 2 + frame[at + 1]!;
  }
  return null;
}
