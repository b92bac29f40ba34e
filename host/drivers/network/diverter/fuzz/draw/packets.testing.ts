import type { Random } from "../random.testing.ts";
import type { Interface, World } from "../world.testing.ts";
import { hostAddresses, lastOf, nobody, routerAddresses, strangers } from "../world.testing.ts";
import { type Head, icmp, ip, plain, tcp, udp } from "./build.testing.ts";
import { somePorts } from "./rules.testing.ts";

/** What a packet was about, so that others can follow it. */
export interface Talk {
  readonly source: number;
  readonly destination: number;
  readonly protocol: number;
  readonly sourcePort: number;
  readonly port: number;
  readonly id: number;
  readonly flags: number;
  readonly icmpType: number;
}
const [isIcmp, isTcp, isUdp] = [1, 6, 17];
const syn = 0x02;
const flagSets = [syn, syn, syn, syn, 0x10, 0x10, 0x18, 0x12, 0x11, 0x14, 0x04, 0x00, 0x03, 0x06, 0x13];
const otherProtocols = [2, 41, 47, 50, 89, 132, 255, 0];
const icmpTypes = [8, 8, 8, 8, 0, 0, 3, 11, 12, 4, 5, 9, 10, 13, 14];
const someOptions = [
  [1, 1, 1, 1],
  [1, 1, 1, 0],
  [0x94, 4, 0, 0],
  [0x44, 8, 5, 0, 0, 0, 0, 0],
  [0x83, 3, 4, 0],
  [1, 0x89, 3, 4],
  [1, 1, 1, 0x83],
  [7, 1, 0, 0],
  [7, 12, 0, 0],
  [1, 1, 1, 7],
].map((bytes) => Buffer.from(bytes));
const somePort = (random: Random): number =>
  random.percent(92) ? random.pick(somePorts) : random.pick([1, 81, 444, 65535, 4999]);

export function drawTalk(random: Random, source: number, destination: number): Talk {
  const chance = random.below(100);
  const protocol = chance < 36 ? isTcp : chance < 70 ? isUdp : chance < 93 ? isIcmp : random.pick(otherProtocols);
  return {
    source,
    destination,
    protocol,
    sourcePort: somePort(random),
    port: somePort(random),
    id: random.between(1, 3),
    flags: random.pick(flagSets),
    icmpType: random.pick(icmpTypes),
  };
}
/** As its receiver would answer. */
export function answerTo(random: Random, talk: Talk): Talk {
  const { source, destination, sourcePort, port, flags, icmpType } = talk;
  const answered = flags === syn ? 0x12 : 0x10;
  return {
    ...talk,
    source: destination,
    destination: source,
    sourcePort: port,
    port: sourcePort,
    flags: random.percent(70) ? answered : random.pick(flagSets),
    icmpType: icmpType === 8 && random.percent(85) ? 0 : random.pick(icmpTypes),
  };
}
export const again = (random: Random, talk: Talk): Talk => ({
  ...talk,
  flags: random.percent(60) ? 0x10 : random.pick(flagSets),
});
/** The same ends, and something else between them. */
export function changed(random: Random, talk: Talk): Talk {
  const other = drawTalk(random, talk.source, talk.destination);
  const field = random.pick(["sourcePort", "port", "protocol", "id", "icmpType", "flags"] as const);
  return { ...talk, [field]: other[field] };
}

function transport(random: Random, talk: Talk, quoted: Buffer | null): Buffer {
  const data = Buffer.alloc(random.percent(90) ? random.below(12) : random.between(12, 200), 0x78);
  const { protocol, sourcePort, port, flags, icmpType, id } = talk;
  if (protocol === isTcp) return tcp(sourcePort, port, flags, data);
  if (protocol === isUdp) return udp(sourcePort, port, data);
  if (protocol !== isIcmp) return Buffer.concat([Buffer.alloc(8, protocol), data]);
  return icmp(icmpType, id, quoted ?? data);
}
/** What an ICMP error would quote of a packet: its header, and what follows it. */
export function quote(random: Random, talk: Talk): Buffer {
  const { source, destination, protocol, id } = talk;
  const whole = ip({ ...plain, source, destination, protocol, id }, transport(random, talk, null));
  return whole.subarray(0, random.percent(90) ? Math.max(28, Math.min(whole.length, 40)) : random.below(30));
}
export function packetOf(random: Random, talk: Talk, quoted: Buffer | null): Buffer {
  const body = transport(random, talk, quoted);
  const chance = random.below(100);
  const options = random.percent(5) ? random.pick(someOptions) : plain.options;
  const head = { ...plain, ...talk, options } satisfies Head & Talk;
  if (chance < 86) return ip(head, body);
  if (chance < 93) return ip({ ...head, more: true }, Buffer.concat([body, Buffer.alloc(8)]));
  return ip(
    { ...head, offset: random.pick([8, 16, 1480]), more: random.percent(30) },
    Buffer.alloc(random.between(0, 24), 0x66),
  );
}

/** Whom an interface might speak to, honestly or not. */
export function drawDestination(random: Random, world: World, from: Interface): number {
  const chance = random.below(100);
  if (chance < 40) return random.pick(world.interfaces.filter(({ cell }) => cell === from.cell)).address;
  if (chance < 66) return random.pick(world.interfaces).address;
  if (chance < 74) return random.pick(strangers);
  if (chance < 77) return random.pick(routerAddresses);
  if (chance < 79) return random.pick(nobody);
  if (chance < 84) return world.cells.find(({ number }) => number === from.cell)!.controller.address;
  if (chance < 85) return random.pick(world.cells).controller.address;
  if (chance < 87) return from.subnet.range.first + 1;
  if (chance < 89) return 0xffffffff;
  if (chance < 92) return lastOf(random.pick(random.pick(world.cells).subnets).range);
  if (chance < 95) return random.pick([0xe0000001, 0xe00000fb, 0xefc00001, 0xeffffffa, 0xe1020304]);
  if (chance < 96) return random.pick(Object.values(hostAddresses));
  return from.subnet.range.first + random.below(16);
}
