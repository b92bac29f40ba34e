import type { Random } from "../random.testing.ts";
import {
  gatewayMac,
  type HostKey,
  hostAddresses,
  hostKeys,
  hostMacs,
  type Interface,
  nobody,
  outsideMacs,
  type Port,
  routerAddresses,
  routerMacs,
  type Step,
  strangerMac,
  strangers,
  type View,
  type World,
} from "../world.testing.ts";
import { arp, dhcp, ethernet, ip, plain, udp } from "./build.testing.ts";
import { again, answerTo, changed, drawDestination, drawTalk, packetOf, quote, type Talk } from "./packets.testing.ts";

type Frame = Step & { readonly kind: "frame" };
const everyone = 0xffffffffffff;
const isIp = 0x0800;
const mostRecent = 48;
const isConnection = ({ protocol }: Talk): boolean => protocol === 6;
/** Flags of TCP: an acknowledgement, one with the end of what its sender says, and one with the end of all of it. */
const [goesOn, ends, resets] = [0x10, 0x11, 0x14];

/**
 * Frames by a grammar: most are what an honest guest, host or router would send, or nearly so; many follow what was sent
 * before, as answers, errors and fragments do; some have one thing wrong.
 */
export class FrameDrawer {
  readonly #random: Random;
  readonly #world: World;
  readonly #views: Readonly<Record<HostKey, () => View>>;
  readonly #recent: Talk[] = [];
  #last: Talk | null = null;
  /** What is still to be said of connections that end, and how many frames follow one after a wait. */
  readonly #farewells: Talk[] = [];
  #following = 0;
  readonly #byAddress: ReadonlyMap<number, Interface>;

  constructor(random: Random, world: World, views: Readonly<Record<HostKey, () => View>>) {
    this.#random = random;
    this.#world = world;
    this.#views = views;
    this.#byAddress = new Map(world.interfaces.map((each) => [each.address, each]));
  }
  /** Time has passed: whoever was silent all the while says something more, so that it shows what was forgotten. */
  waited(): void {
    this.#following = 24;
  }
  next(): Frame {
    const farewell = this.#farewells.pop();
    if (farewell !== undefined) return this.#say(farewell);
    if (this.#following > 0) {
      this.#following -= 1;
      return this.#afterWait();
    }
    const chance = this.#random.below(100);
    const drawn =
      chance < 45
        ? this.#follow()
        : chance < 78
          ? this.#fresh()
          : chance < 90
            ? this.#fromElsewhere()
            : chance < 94
              ? this.#arp()
              : chance < 97
                ? this.#dhcp()
                : this.#fresh();
    return this.#random.percent(10) ? this.#broken(drawn) : drawn;
  }
  #note(talk: Talk): void {
    this.#last = talk;
  }
  /** Whether the last frame got somewhere: what did is followed rather than what did not. */
  heard(isThrough: boolean): void {
    const talk = this.#last;
    this.#last = null;
    if (talk === null || !(isThrough || this.#random.percent(12))) return;
    if (this.#recent.length < mostRecent) this.#recent.push(talk);
    else this.#recent[this.#random.below(mostRecent)] = talk;
  }
  #frame(port: Port, frame: Buffer): Frame {
    const random = this.#random;
    const pieces = random.percent(2) ? random.pick([1, 20, 47, 48, 500, 1440, 1452, 1460, 1480, 1500]) : 0;
    const isLong = random.percent(1);
    const long = isLong ? Buffer.concat([frame, Buffer.alloc(random.between(1400, 1520))]) : frame;
    return { kind: "frame", port, frame: long, pieces };
  }
  /** The host that has an interface; either of them where both or none do. */
  #hostOf(at: number): HostKey {
    const having = hostKeys.filter((key) => this.#views[key]().here.includes(at));
    return this.#random.pick(having.length === 0 ? hostKeys : having);
  }
  #fromTap(self: Interface, packet: Buffer): Frame {
    const port: Port = { host: this.#hostOf(self.at), kind: "tap", interface: self.at };
    return this.#frame(port, ethernet(gatewayMac, self.mac, isIp, packet));
  }
  #someInterface(): Interface {
    const { interfaces } = this.#world;
    const here = hostKeys.flatMap((key) => this.#views[key]().here);
    return here.length > 0 && this.#random.percent(97)
      ? interfaces[this.#random.pick(here)]!
      : this.#random.pick(interfaces);
  }
  #fresh(): Frame {
    const self = this.#someInterface();
    const talk = drawTalk(this.#random, self.address, drawDestination(this.#random, this.#world, self));
    return this.#say(talk);
  }
  /** From wherever its source is. */
  #say(talk: Talk, about: Talk | null = null): Frame {
    this.#note(talk);
    const isError = talk.protocol === 1 && [3, 11, 12].includes(talk.icmpType);
    const quoted = isError ? quote(this.#random, about ?? this.#quotable(talk)) : null;
    const packet = packetOf(this.#random, talk, quoted);
    const self = this.#byAddress.get(talk.source);
    const isHere = self !== undefined && hostKeys.some((key) => this.#views[key]().here.includes(self.at));
    if (isHere) return this.#fromTap(self, packet);
    // Somebody outside: a router of the machine's cell may speak for him.
    const router = self === undefined ? this.#routerOf(talk.destination) : null;
    if (router !== null && this.#random.percent(80)) return this.#fromTap(router, packet);
    return this.#bySegment(talk, packet);
  }
  /** The interface that routes for a machine, where one of the two hosts has it. */
  #routerOf(machine: number): Interface | null {
    const self = this.#byAddress.get(machine);
    for (const key of hostKeys) {
      const { rules, here } = this.#views[key]();
      const at = self === undefined ? undefined : rules.get(self.cell)?.routers.get(self.subnet.name);
      if (at !== undefined && here.includes(at)) return this.#world.interfaces[at]!;
    }
    return null;
  }
  #quotable({ source, destination }: Talk): Talk {
    const { percent } = { percent: (of: number) => this.#random.percent(of) };
    const fitting = this.#recent.filter((each) => each.source === destination && each.destination === source);
    if (fitting.length > 0 && percent(80)) return this.#random.pick(fitting);
    return this.#recent.length > 0 && percent(70)
      ? this.#random.pick(this.#recent)
      : drawTalk(this.#random, destination, source);
  }
  #afterWait(): Frame {
    const random = this.#random;
    const connections = this.#recent.filter(isConnection);
    if (connections.length === 0) return this.#follow();
    const talk = random.pick(connections);
    return this.#say({ ...(random.percent(50) ? talk : answerTo(random, talk)), flags: goesOn });
  }
  #follow(): Frame {
    const random = this.#random;
    if (this.#recent.length === 0) return this.#fresh();
    const talk = random.pick(this.#recent);
    const chance = random.below(100);
    if (isConnection(talk) && random.percent(12)) {
      if (random.percent(50)) return this.#say({ ...talk, flags: resets });
      this.#farewells.push({ ...answerTo(random, talk), flags: ends });
      return this.#say({ ...talk, flags: ends });
    }
    if (chance < 45) return this.#say(answerTo(random, talk));
    if (chance < 65) return this.#say(again(random, talk));
    if (chance < 80)
      return this.#say(random.percent(50) ? changed(random, talk) : answerTo(random, changed(random, talk)));
    // An error about it, from its receiver or from somebody on the way.
    const from = random.percent(70)
      ? talk.destination
      : random.pick([
          ...strangers,
          ...routerAddresses,
          this.#someInterface().address,
          this.#routerOf(talk.source)?.address ?? strangers[0]!,
        ]);
    const error = { ...answerTo(random, talk), source: from, protocol: 1, icmpType: random.pick([3, 11, 12]) };
    return this.#say(error, random.percent(85) ? talk : changed(random, talk));
  }
  /** A packet from an address that is at no host that is tried here, to where its destination is. */
  #bySegment(talk: Talk, packet: Buffer): Frame {
    const random = this.#random;
    const self = this.#byAddress.get(talk.destination);
    const host = self === undefined ? random.pick(hostKeys) : this.#hostOf(self.at);
    const { wayOut, cells } = this.#world;
    const sender = this.#byAddress.get(talk.source);
    const controller = cells.find((cell) => cell.controller.address === talk.source)?.controller;
    const isOutsider =
      sender === undefined && controller === undefined && !Object.values(hostAddresses).includes(talk.source as never);
    const isOutside = wayOut === "own" && (isOutsider ? random.percent(92) : random.percent(8));
    const honest = controller?.mac ?? (isOutsider ? routerMacs[0] : this.#macOfHost(host, sender));
    const others = [
      hostMacs.a,
      hostMacs.b,
      hostMacs.c,
      ...routerMacs,
      strangerMac,
      controller?.mac ?? 0,
      0,
      honest + 0x010000000000,
    ];
    const from = random.percent(82) ? honest : random.pick(others);
    const own = isOutside ? outsideMacs[host] : hostMacs[host];
    const to = random.percent(94) ? own : random.pick([everyone, strangerMac, hostMacs[host], outsideMacs[host]]);
    return this.#frame({ host, kind: isOutside ? "outside" : "wire" }, ethernet(to, from, isIp, packet));
  }
  /** Where the host was told that somebody is. */
  #macOfHost(host: HostKey, sender: Interface | undefined): number {
    const told = this.#views[host]().elsewhere.find((each) => each.interface === sender?.at);
    return told === undefined ? this.#random.pick([hostMacs.a, hostMacs.b, hostMacs.c]) : hostMacs[told.place];
  }
  /** Somebody at another host, the controller's machine, somebody outside; what they say may follow something, too. */
  #fromElsewhere(): Frame {
    const random = this.#random;
    const { interfaces, cells } = this.#world;
    const self = this.#someInterface();
    const told = hostKeys.flatMap((key) =>
      this.#views[key]().elsewhere.map((each) => interfaces[each.interface]!.address),
    );
    const own = cells.find(({ number }) => number === self.cell)!;
    const chance = random.below(100);
    const source =
      chance < 40 && told.length > 0
        ? random.pick(told)
        : chance < 65
          ? random.pick(strangers)
          : chance < 70
            ? random.pick(routerAddresses)
            : chance < 80
              ? own.controller.address
              : chance < 85
                ? random.pick(nobody)
                : chance < 95
                  ? random.pick(interfaces).address
                  : random.pick(Object.values(hostAddresses));
    // A machine elsewhere may also send to somebody outside, by a router that is here.
    const isMachine = this.#byAddress.has(source);
    const talk = drawTalk(random, source, isMachine && random.percent(25) ? random.pick(strangers) : self.address);
    this.#note(talk);
    const isError = talk.protocol === 1 && [3, 11, 12].includes(talk.icmpType);
    return this.#bySegment(talk, packetOf(random, talk, isError ? quote(random, this.#quotable(talk)) : null));
  }
  #arp(): Frame {
    const random = this.#random;
    const self = this.#someInterface();
    const host = this.#hostOf(self.at);
    const { first } = self.subnet.range;
    const operation = random.pick([1, 1, 1, 1, 2]);
    if (random.percent(55)) {
      const fields = {
        operation,
        senderMac: random.percent(90) ? self.mac : strangerMac,
        sender: random.percent(90) ? self.address : random.pick([0, first + 1, first + 3]),
        target: random.pick([first + 1, first + 2, first + 5, self.address, strangers[0]!, first - 1]),
      };
      return this.#frame({ host, kind: "tap", interface: self.at }, ethernet(everyone, self.mac, 0x0806, arp(fields)));
    }
    const { controller } = this.#world.cells.find(({ number }) => number === self.cell)!;
    const kind = this.#world.wayOut === "own" && random.percent(50) ? "outside" : "wire";
    const isController = random.percent(50);
    const fields = {
      operation,
      senderMac: isController ? controller.mac : random.pick([...routerMacs, strangerMac]),
      sender:
        isController || random.percent(10) ? controller.address : random.pick([...routerAddresses, strangers[0]!]),
      target: random.percent(85) ? self.address : random.pick([first + 9, hostAddresses[host]]),
    };
    return this.#frame({ host, kind }, ethernet(everyone, fields.senderMac, 0x0806, arp(fields)));
  }
  #dhcp(): Frame {
    const random = this.#random;
    const self = this.#someInterface();
    const { first } = self.subnet.range;
    const message = dhcp(
      random.pick([1, 1, 1, 1, 2]),
      random.percent(92) ? self.mac : strangerMac,
      random.pick([1, 3, 3, 2, 4, 8, null]),
    );
    const [from, to] = random.pick([
      [68, 67],
      [68, 67],
      [68, 67],
      [67, 68],
      [5000, 68],
      [67, 5000],
    ] as const);
    const head = {
      ...plain,
      protocol: 17,
      source: random.pick([0, 0, self.address, first + 1]),
      destination: random.pick([
        0xffffffff,
        0xffffffff,
        first + 1,
        first + 2 ** (32 - self.subnet.range.prefixLength) - 1,
        first + 3,
      ]),
    };
    return this.#fromTap(self, ip(head, udp(from, to, message)));
  }
  /** One thing is wrong with it, which may be of no matter. */
  #broken(drawn: Frame): Frame {
    const random = this.#random;
    const frame = Buffer.from(drawn.frame);
    const { length } = frame;
    const byte = (at: number, value: number): void => {
      if (at < length) frame[at] = value;
    };
    switch (random.below(10)) {
      case 0:
        return { ...drawn, frame: frame.subarray(0, random.between(14, length)) };
      case 1:
        byte(14, random.pick([0x45, 0x46, 0x44, 0x65, 0x4f, 0x55]));
        break;
      case 2:
        if (length >= 18)
          frame.writeUInt16BE(random.pick([0, 19, 20, 27, 28, 40, length - 14, length - 13, 65535]), 16);
        break;
      case 3:
        byte(random.between(6, 11), random.below(256));
        break;
      case 4:
        if (length >= 14) frame.writeUInt16BE(random.pick([0x86dd, 0x8100, 0x0806, 0x0800, 0x88cc, 0x05dc]), 12);
        break;
      case 5:
        if (length >= 30) frame.writeUInt32BE(random.pick([...strangers, this.#someInterface().address, 0]), 26);
        break;
      case 6:
        if (length >= 34) frame.writeUInt32BE(this.#someInterface().address, 30);
        break;
      case 7:
        if (length >= 22) frame.writeUInt16BE(random.pick([0x2000, 1, 2, 0x2001, 0x4000, 0x1fff]), 20);
        break;
      case 8:
        byte(random.pick([46, 47]), random.below(256));
        break;
      default:
        byte(random.between(14, 61), random.below(256));
    }
    return { ...drawn, frame };
  }
}
