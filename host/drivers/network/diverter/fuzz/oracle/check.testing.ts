import type { Interface } from "../world.testing.ts";
import { type Knowledge, kindOf } from "./knowledge.testing.ts";
import { type Flow, type FlowKey, isOver, type Memory } from "./memory.testing.ts";
import { icmp, type Packet, tcp, udp } from "./packet.testing.ts";
import { opens } from "./rules.testing.ts";

/**
 * The check of one interface on one packet: it passes as part of a flow whose opening the rules of now admit, or it opens one
 * that they admit. The reason of a drop is named as the driver's counters name it; null: it passes.
 */
export type Reason =
  | "malformed"
  | "spoofed-mac"
  | "spoofed-address"
  | "ipv6"
  | "other-ethertype"
  | "rogue-dhcp"
  | "rogue-arp"
  | "broadcast"
  | "no-rule"
  | "no-location"
  | "fragment"
  | "wrong-host"
  | "inside-from-outside"
  | "not-from-router"
  | "no-router";

/** How a frame came that is no local interface's. */
export interface Arrival {
  readonly mac: number;
  /** By the device that leads outside, which may be the uplink. */
  readonly isWayOut: boolean;
  /** By a device that leads outside and is not the uplink. */
  readonly isOwnDevice: boolean;
}
export interface Routers {
  /** 0: it has not answered yet. */
  readonly macs: readonly number[];
  readonly used: number;
}
export interface Question {
  readonly knowledge: Knowledge;
  readonly routers: Routers;
  readonly memory: Memory;
  readonly self: Interface;
  readonly packet: Packet;
  /** The interface sends it. */
  readonly isOut: boolean;
  /** Null: it is from this host. */
  readonly arrival: Arrival | null;
  readonly now: number;
}
const isRouter = ({ macs }: Routers, mac: number): boolean => mac !== 0 && macs.includes(mac);
/** Clients take such answers from any port. */
export const isDhcpAnswer = ({ protocol, part, sourcePort, port }: Packet): boolean =>
  protocol === udp && part !== "later" && (sourcePort === 67 || port === 68);

/** Of a packet from somewhere that this host knows nothing of. */
export function strangerReason(
  { knowledge, routers, self, packet }: Pick<Question, "knowledge" | "routers" | "self" | "packet">,
  arrival: Arrival,
): Reason | null {
  if (!arrival.isWayOut || kindOf(self.address) !== "external") return "no-location";
  const isRouted = isRouter(routers, arrival.mac);
  if (kindOf(packet.source) !== "outside" || knowledge.endpoint(packet.source) !== null)
    return isRouted || arrival.isOwnDevice ? "inside-from-outside" : "no-location";
  return isRouted ? null : "not-from-router";
}

/** Does a frame in the name of somebody outside come from where the router of the receiver's subnet is? */
export function isFromOwnRouter(
  { knowledge, self }: Pick<Question, "knowledge" | "self">,
  outside: number,
  { mac, isOwnDevice }: Arrival,
): boolean {
  const router = knowledge.routerBetween(self.cell, self.address, outside);
  return router !== null && !isOwnDevice && knowledge.placeOf(self.cell, router.address) === mac;
}

/** Does a frame come from the machine where its source is? */
function sourceReason(question: Question, arrival: Arrival): Reason | null {
  const { knowledge, routers, self, packet } = question;
  const place = knowledge.machineOf(self.cell, packet.source);
  if (place === null) {
    const reason = strangerReason(question, arrival);
    return reason !== null && isFromOwnRouter(question, packet.source, arrival) ? null : reason;
  }
  if (place === arrival.mac && !arrival.isOwnDevice) return null;
  const isOutsider = isRouter(routers, arrival.mac) || arrival.isOwnDevice;
  return arrival.isWayOut && isOutsider ? "inside-from-outside" : "wrong-host";
}

/** Under which what was sent to many is remembered. */
export const keyOfMany = (packet: Packet): Omit<FlowKey, "remote"> => {
  const { protocol, sourcePort, port } = packet;
  return { protocol, localPort: sourcePort, remotePort: protocol === icmp ? 1 : port };
};

/** Under which a packet's flow is remembered: an echo's by who asked, an error's by the packet that it is about. */
function keyOf({ packet, isOut }: Question): FlowKey {
  const remote = isOut ? packet.destination : packet.source;
  const { about } = packet;
  const named = about ?? packet;
  const { protocol } = named;
  // What an error quotes went the other way.
  const wentOut = about === null ? isOut : !isOut;
  if (protocol === icmp) {
    const isQuestion = named.icmpType === 8;
    return { remote, protocol, localPort: named.sourcePort, remotePort: wentOut === isQuestion ? 1 : 0 };
  }
  const [localPort, remotePort] = wentOut ? [named.sourcePort, named.port] : [named.port, named.sourcePort];
  return { remote, protocol, localPort, remotePort };
}

function mayOpen({ knowledge, self }: Question, key: FlowKey, isOut: boolean): boolean {
  const [sourcePort, port] = isOut ? [key.localPort, key.remotePort] : [key.remotePort, key.localPort];
  const [from, to] = isOut ? [self.address, key.remote] : [key.remote, self.address];
  const ports = key.protocol === icmp ? { sourcePort: 0, port: 0 } : { sourcePort, port };
  return opens(knowledge, knowledge.cell(self.cell), { from, to, protocol: key.protocol, ...ports });
}

function note(flow: Flow, { packet, isOut, now }: Question): void {
  flow.lastSeen = now;
  if (packet.protocol !== tcp) return;
  if (packet.flags.reset) flow.wasReset = true;
  if (packet.flags.fin && flow.isOut === isOut) flow.openerEnded = true;
  if (packet.flags.fin && flow.isOut !== isOut) flow.otherEnded = true;
}

function laterReason(question: Question): Reason | null {
  const { memory, packet, isOut, now } = question;
  const remote = isOut ? packet.destination : packet.source;
  const flow = memory.fragments(remote, packet.protocol, packet.id, isOut, now);
  return flow !== null && mayOpen(question, flow, flow.isOut) ? null : "fragment";
}

/** The flow that a packet belongs to, if the rules of now admit its opening; one that they do not is no more. */
function flowOf(question: Question, key: FlowKey): Flow | null {
  const { memory, packet, isOut, now } = question;
  const flow = memory.find(key, now);
  if (flow === null) return null;
  const isOpening = packet.protocol === tcp && packet.flags.syn && !packet.flags.ack;
  if (isOpening && (flow.isOut !== isOut || isOver(flow))) return null;
  const isEcho = packet.icmpType === 0 || packet.icmpType === 8;
  if (packet.protocol === icmp && packet.about === null && !isEcho) return null;
  if (mayOpen(question, flow, flow.isOut)) return flow;
  memory.forget(key);
  return null;
}

function isAnswerToMany({ memory, packet, isOut, now }: Question, key: FlowKey): boolean {
  const isKind = packet.protocol === udp || (packet.protocol === icmp && packet.icmpType === 0);
  return !isOut && packet.part === "whole" && isKind && memory.hasMany(key, now);
}
/** It needs no question to be let in. */
const mayOpenBy = (question: Question, key: FlowKey): boolean =>
  question.packet.protocol === udp && mayOpen(question, key, false);

export function reasonAgainst(question: Question): Reason | null {
  const { memory, packet, isOut, arrival, now } = question;
  const wrong = arrival === null ? null : sourceReason(question, arrival);
  if (wrong !== null) return wrong;
  if (packet.part === "later") return laterReason(question);
  const key = keyOf(question);
  const remember = (flow: Flow): void => {
    if (packet.part === "first") memory.putFragments(key.remote, packet.protocol, packet.id, isOut, flow, now);
  };
  const flow = flowOf(question, key);
  if (flow !== null) {
    if (packet.about === null) note(flow, question);
    remember(flow);
    return null;
  }
  // Who got a copy of what was sent to many may answer it.
  if (isAnswerToMany(question, key) && mayOpen(question, key, true) && !mayOpenBy(question, key)) {
    if (packet.protocol === udp) memory.put(key, true, now);
    return null;
  }
  // Answers and errors belong to a flow or to nothing; nobody here says which way others shall go.
  if (packet.about !== null || (packet.protocol === icmp && [0, 4, 5, 9, 10].includes(packet.icmpType ?? -1)))
    return "no-rule";
  if (!mayOpen(question, key, isOut)) {
    if (packet.part === "first") memory.forgetFragments(key.remote, packet.protocol, packet.id, isOut);
    return "no-rule";
  }
  const isKept = packet.protocol !== icmp || packet.icmpType === 8;
  const opened = { ...key, isOut, lastSeen: now, openerEnded: false, otherEnded: false, wasReset: false };
  remember(isKept ? memory.put(key, isOut, now) : opened);
  return null;
}
