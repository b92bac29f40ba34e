import { HostOracle, type Outcome } from "./oracle/host.testing.ts";
import { Compiler } from "./subject/documents.testing.ts";
import type { HostUnderTest } from "./subject/host.testing.ts";
import { canBeTried } from "./subject/program-run.testing.ts";
import {
  address,
  type HostKey,
  hostKeys,
  hostMacs,
  type Port,
  type Rule,
  type Step,
  type View,
  type World,
} from "./world.testing.ts";

/**
 * One world, step by step: what the oracle says of a frame is compared with what the programs do, verdict and bytes, and what
 * one host sends to the other is given to the other. Beside that a question that needs no oracle: did anything pass between
 * two cells that never had a rule about each other?
 */
export interface Difference {
  readonly what: string;
  /** Something passed between cells that never agreed, or that only one of them wanted. */
  readonly isCrossing: boolean;
}
export interface Tally {
  frames: number;
  delivered: number;
  /** Delivered to another cell, whose rules and the sender's agree. */
  between: number;
  outside: number;
  dropped: number;
}
export const newTally = (): Tally => ({ frames: 0, delivered: 0, between: 0, outside: 0, dropped: 0 });

const verdicts = { untouched: 0, dropped: 2, copied: 2, goes: 7, answers: 7 } as const;
const notBelieved = ["wrong-host", "no-location", "inside-from-outside", "not-from-router"];
/** Which of these is told depends on what was looked at first; each is a refusal for where the frame came from or goes. */
const reasonClass = (reason: string): string => (notBelieved.includes(reason) ? "not believed" : reason);
const hex = (buffer: Buffer): string => buffer.toString("hex");

interface Counts {
  sent: number;
  received: number;
  readonly drops: Map<string, number>;
}
interface Side {
  readonly oracle: HostOracle;
  readonly subject: HostUnderTest;
  readonly counts: Map<number, Counts>;
}

export class Trial {
  readonly #world: World;
  readonly #sides: Readonly<Record<HostKey, Side>>;
  readonly #tally: Tally;
  /** Cells of which any version of rules named another one. */
  readonly #consent = new Set<string>();
  #now = 0;

  constructor(world: World, subjects: Readonly<Record<HostKey, HostUnderTest>>, tally: Tally) {
    this.#world = world;
    this.#tally = tally;
    const compiler = new Compiler(world);
    for (const key of hostKeys) subjects[key].begin(world, compiler);
    const side = (key: HostKey): Side => ({
      oracle: new HostOracle(world, key),
      subject: subjects[key],
      counts: new Map(),
    });
    this.#sides = { a: side("a"), b: side("b") };
  }
  view(host: HostKey): View {
    return this.#sides[host].oracle.view;
  }
  do(step: Step): Difference | null {
    switch (step.kind) {
      case "frame":
        return this.#follow(step.port, step.frame, step.pieces);
      case "tell":
        return this.#tell(step.host, step.view);
      case "time":
        this.#now += step.seconds;
        for (const key of hostKeys) this.#sides[key].subject.age(step.seconds);
        return null;
      case "restart":
        this.#sides[step.host].subject.restart();
        return null;
      case "routers":
        this.#sides[step.host].oracle.routers = { macs: step.macs, used: step.used };
        this.#sides[step.host].subject.routers(step.macs, step.used);
        return null;
    }
  }
  #tell(host: HostKey, view: View): null {
    const { oracle, subject, counts } = this.#sides[host];
    for (const [cell, { rules }] of view.rules)
      for (const rule of rules) for (const other of this.#namedBy(cell, rule)) this.#consent.add(`${cell} ${other}`);
    for (const at of counts.keys()) if (!view.here.includes(at)) counts.delete(at);
    for (const at of view.here) if (!counts.has(at)) counts.set(at, { sent: 0, received: 0, drops: new Map() });
    oracle.tell(view);
    subject.tell(view);
    return null;
  }
  /** Cells whose addresses a rule might mean: by their name, by a network, or as "internet". */
  #namedBy(cell: number, { ends }: Rule): readonly number[] {
    return this.#world.cells.flatMap(({ number }) => {
      const isNamed = ends.some(
        (end) => end.kind === "cidr" || end.kind === "internet" || (end.kind === "foreign" && end.cell === number),
      );
      return number !== cell && isNamed ? [number] : [];
    });
  }

  #follow(port: Port, frame: Buffer, pieces: number): Difference | null {
    if (!canBeTried(frame)) return null;
    this.#tally.frames += 1;
    const sender = port.kind === "tap" ? port.interface : null;
    let [at, bytes] = [port, frame];
    for (;;) {
      const { oracle, subject, counts } = this.#sides[at.host];
      const expected =
        at.kind === "tap"
          ? oracle.fromTap(at.interface, bytes, pieces, this.#now)
          : oracle.fromSegment(at.kind, bytes, this.#now);
      const ran = subject.run(at, bytes, pieces);
      if (at.kind === "tap" && looksForMembers(expected)) subject.rest(at.interface);
      const wrong = difference(expected, ran.verdict, bytes, ran.frame);
      if (wrong !== null || this.#isCrossing(sender, ran.verdict, ran.frame))
        return {
          what: `at ${describe(at)}: ${wrong ?? "a frame reaches another cell that never agreed"}\n  frame ${hex(bytes)}${pieces === 0 ? "" : ` in pieces of ${pieces}`}`,
          isCrossing: this.#isCrossing(sender, ran.verdict, ran.frame),
        };
      count(counts, expected, this.#tally);
      if (expected.kind === "copied") return this.#followCopies(expected, at, bytes, sender);
      if (expected.kind !== "goes") return null;
      if (expected.receiver !== null) {
        if (sender !== null && this.#cellOf(sender) !== this.#cellOf(expected.receiver)) this.#tally.between += 1;
        return null;
      }
      const next = hostKeys.find((key) => key !== at.host && hostMacs[key] === expected.to);
      if (next === undefined) {
        this.#tally.outside += 1;
        return null;
      }
      bytes = Buffer.from(ran.frame);
      at = { host: next, kind: "wire" };
    }
  }
  /** What each of the two hosts does with the copy that it gets. */
  #followCopies(
    { hosts, receivers, from }: Outcome & { readonly kind: "copied" },
    at: Port,
    frame: Buffer,
    sender: number | null,
  ): Difference | null {
    if (sender !== null)
      this.#tally.between += receivers.filter((each) => this.#cellOf(sender) !== this.#cellOf(each)).length;
    for (const key of hostKeys) {
      if (key === at.host || !hosts.includes(hostMacs[key])) continue;
      const copy = Buffer.from(frame);
      copy.writeUIntBE(hostMacs[key], 0, 6);
      copy.writeUIntBE(from, 6, 6);
      const wrong = this.#follow({ host: key, kind: "wire" }, copy, 0);
      if (wrong !== null) return wrong;
    }
    return null;
  }
  #cellOf(at: number): number {
    return this.#world.interfaces[at]!.cell;
  }
  #isCrossing(sender: number | null, verdict: number, frame: Buffer): boolean {
    if (sender === null || verdict !== verdicts.goes) return false;
    const to = frame.readUIntBE(0, 6);
    const receiver = this.#world.interfaces.find(({ mac }) => mac === to);
    if (receiver === undefined) return false;
    const [one, other] = [this.#cellOf(sender), receiver.cell];
    return one !== other && !(this.#consent.has(`${one} ${other}`) && this.#consent.has(`${other} ${one}`));
  }
  /** At the end: what was counted, and why things were dropped. */
  finish(): Difference | null {
    for (const host of hostKeys)
      for (const [at, expected] of this.#sides[host].counts) {
        const found = this.#sides[host].subject.counted(at);
        const drops = new Map<string, number>();
        for (const [reason, number] of found.drops)
          if (number > 0) drops.set(reasonClass(reason), (drops.get(reasonClass(reason)) ?? 0) + number);
        const text = (sent: number, received: number, by: ReadonlyMap<string, number>): string =>
          `${sent} sent, ${received} received, drops ${JSON.stringify([...by].sort())}`;
        const [is, should] = [
          text(found.sent, found.received, drops),
          text(expected.sent, expected.received, expected.drops),
        ];
        if (is !== should)
          return {
            what: `counters of interface ${at} at host ${host}: ${is}\n  should be ${should}`,
            isCrossing: false,
          };
      }
    return null;
  }
}

/** To look who gets a copy takes of what an interface may have copied, and so does it where no rule lets anybody have one. */
const looksForMembers = (expected: Outcome): boolean =>
  expected.kind === "copied" || (expected.kind === "dropped" && expected.counted?.reason === "no-rule");

const describe = (port: Port): string =>
  port.kind === "tap"
    ? `the tap of interface ${port.interface} on host ${port.host}`
    : `the ${port.kind} of host ${port.host}`;

function count(counts: ReadonlyMap<number, Counts>, outcome: Outcome, tally: Tally): void {
  if (outcome.kind === "dropped") {
    tally.dropped += 1;
    const of = outcome.counted === null ? undefined : counts.get(outcome.counted.interface);
    const reason = reasonClass(outcome.counted?.reason ?? "");
    of?.drops.set(reason, (of.drops.get(reason) ?? 0) + 1);
  }
  if (outcome.kind === "copied") {
    for (const { interface: at, reason } of outcome.drops)
      count(counts, { kind: "dropped", counted: { interface: at, reason } }, tally);
    const from = outcome.sender === null ? undefined : counts.get(outcome.sender);
    if (from !== undefined) from.sent += 1;
    for (const at of outcome.receivers) {
      const to = counts.get(at);
      if (to !== undefined) to.received += 1;
      tally.delivered += 1;
    }
  }
  if (outcome.kind !== "goes") return;
  const { sender, receiver } = outcome;
  const [from, to] = [
    sender === null ? undefined : counts.get(sender),
    receiver === null ? undefined : counts.get(receiver),
  ];
  if (from !== undefined) from.sent += 1;
  if (to !== undefined) to.received += 1;
  if (receiver !== null) tally.delivered += 1;
}

/** What is wrong with a verdict and a frame; null: nothing. */
function difference(expected: Outcome, verdict: number, before: Buffer, after: Buffer): string | null {
  const should = verdicts[expected.kind];
  if (verdict !== should) return `verdict ${verdict} where ${say(expected)} (${should})`;
  if (expected.kind === "dropped" || expected.kind === "copied") return null;
  if (expected.kind === "untouched") return before.equals(after) ? null : `left alone, and changed to ${hex(after)}`;
  const [to, from] = [after.readUIntBE(0, 6), after.readUIntBE(6, 6)];
  if (to !== expected.to || from !== expected.from)
    return `sent to ${to.toString(16)} from ${from.toString(16)} where ${say(expected)}`;
  if (expected.kind === "goes")
    return before.compare(after, 12, after.length, 12, before.length) === 0
      ? null
      : `sent on, and changed to ${hex(after)}`;
  return expected.what === "arp" ? wrongArp(before, after, from) : wrongDhcp(before, after);
}
const say = (expected: Outcome): string => {
  switch (expected.kind) {
    case "dropped":
      return `it is dropped (${expected.counted?.reason ?? "silently"})`;
    case "goes":
    case "answers":
      return `it ${expected.kind}${expected.kind === "answers" ? ` by ${expected.what}` : ""} to ${expected.to.toString(16)} from ${expected.from.toString(16)}`;
    default:
      return "it is left to the host";
  }
};

function wrongArp(question: Buffer, answer: Buffer, mac: number): string | null {
  const isAnswer = answer.readUInt16BE(20) === 2;
  const isAsked = answer.readUInt32BE(28) === question.readUInt32BE(38) && answer.readUIntBE(22, 6) === mac;
  const isToAsker =
    answer.readUInt32BE(38) === question.readUInt32BE(28) && answer.readUIntBE(32, 6) === question.readUIntBE(22, 6);
  return isAnswer && isAsked && isToAsker ? null : `not the answer of ARP: ${hex(answer)}`;
}
function wrongDhcp(question: Buffer, answer: Buffer): string | null {
  const bootp = 42;
  const asked = question.indexOf(Buffer.from([53, 1]), bootp + 240);
  const type = question[asked + 2] === 1 ? 2 : 5;
  const isAnswer = answer[bootp] === 2 && answer.compare(question, bootp + 4, bootp + 8, bootp + 4, bootp + 8) === 0;
  const hasType = answer[bootp + 240] === 53 && answer[bootp + 242] === type;
  const isWhole = answer.length === 14 + 576 && answer.readUInt16BE(34) === 67 && answer.readUInt16BE(36) === 68;
  const toWhom = answer.readUInt32BE(30);
  const isTo = toWhom === address("255.255.255.255") || toWhom === answer.readUInt32BE(bootp + 16);
  return isAnswer && hasType && isWhole && isTo ? null : `not the answer of DHCP: ${hex(answer)}`;
}
