import type { Frame } from "../../core/distribution/node/frames.ts";
import type { NodeInput, Role } from "../../core/distribution/node/types.ts";
import { countsOnSilence } from "../../core/presence/counted-on.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

/**
 * The network between named processes, as `runtime/transport/transport.ts` shows it to them: connections that carry frames in order or
 * break, dialled again and again. TCP hides loss behind delay; so here a lost packet is a late one, and a path that is cut
 * holds frames back until it opens or one end has heard nothing for too long. Datagrams are lost, late, doubled and out of
 * order as they are.
 */
export interface Endpoint {
  readonly name: PeerName;
  /** Where it runs: paths are cut between machines. */
  readonly machine: string;
  readonly input: (input: NodeInput) => void;
  readonly datagram?: (bytes: Uint8Array) => void;
  /** A request of another process that has no answer but that it arrived. */
  readonly posted?: (from: PeerName, json: Json) => void;
  /** Null: it does not stand still. */
  readonly pausedSinceMs: () => number | null;
}
export interface Quality {
  readonly latencyMs: number;
  readonly jitterMs: number;
  /** Of packets, from 0 to 1. */
  readonly loss: number;
  readonly duplication: number;
}
export const goodQuality: Quality = { latencyMs: 0.2, jitterMs: 0.8, loss: 0, duplication: 0 };

/** The constants of `runtime/transport/transport.ts`. */
const silenceMs = 8000;
const pulseMs = 2000;
const restMs = 10_000;
const connectTimeoutMs = 5000;
const backoff = { firstMs: 50, lastMs: 2000 } as const;
/** Of TCP. */
const firstRetransmissionMs = 200;
/** About, of a digest as JSON. */
const digestCharacters = 1400;
/** What a kernel takes before a sender must wait. */
const windowCharacters = 1024 * 1024;

/** Called as a frame arrives: from, to, what. */
export type OnFrame = (from: PeerName, to: PeerName, frame: Frame) => void;

interface Dialer {
  readonly peer: PeerName;
  attempts: number;
  connected: boolean;
}
interface Attachment {
  readonly endpoint: Endpoint;
  readonly dialers: Map<PeerName, Dialer>;
  readonly ends: Map<number, End>;
  alive: boolean;
  datagrams: Random | null;
}
interface End {
  readonly id: number;
  readonly role: Role;
  readonly owner: Attachment;
  readonly peerName: PeerName;
  /** Nobody counts on its silence: it is asked every `restMs` whether it is there. */
  readonly rests: boolean;
  /** As long as this is so it hears nothing; null: it does. */
  deaf: (() => boolean) | null;
  other: End | null;
  open: boolean;
  /** Of the direction towards this end. */
  lastArrivalMs: number;
  inFlight: number;
  wantsSendable: boolean;
  readonly held: (() => void)[];
}

export class Network {
  quality: Quality = goodQuality;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #onFrame: OnFrame;
  readonly #chances = new Map<string, Random>();
  readonly #attached = new Map<PeerName, Attachment>();
  /** `<from machine> <to machine>` → how many reasons it is cut for. */
  readonly #cuts = new Map<string, number>();
  /** Which cut it is, so that one that was mended is not taken for the next. */
  readonly #cutAs = new Map<string, number>();
  readonly #cutMs = new Map<string, number>();
  #cutting = 0;
  readonly #down = new Set<string>();
  readonly #orphans = new Set<End>();
  #next = 0;
  /** Frames and datagrams that arrived. */
  frames = 0;
  datagrams = 0;

  constructor(clock: Clock, random: Random, onFrame: OnFrame = () => undefined) {
    this.#clock = clock;
    this.#random = random;
    this.#onFrame = onFrame;
  }

  /** A process comes up. What it had before must have been detached. */
  attach(endpoint: Endpoint): void {
    this.#attached.set(endpoint.name, { endpoint, dialers: new Map(), ends: new Map(), alive: true, datagrams: null });
  }

  /** A process is gone. Where its machine lives, the kernel tells its peers. */
  detach(name: PeerName): void {
    const attachment = this.#attached.get(name);
    if (attachment === undefined) return;
    this.#attached.delete(name);
    attachment.alive = false;
    for (const end of [...attachment.ends.values()]) {
      end.open = false;
      const { other } = end;
      if (other === null || !other.open) continue;
      const { machine } = attachment.endpoint;
      if (this.#down.has(machine) || !this.isOpen(machine, other.owner.endpoint.machine)) {
        this.#orphans.add(other);
        this.#listenForSilence(other, () => true);
      } else this.#arrive(other, 0, () => this.#broken(other));
    }
    attachment.ends.clear();
  }

  /** Its processes must have been detached before it comes up again. */
  setMachine(machine: string, isUp: boolean): void {
    if (!isUp) {
      this.#down.add(machine);
      return;
    }
    this.#down.delete(machine);
    for (const end of this.#orphans) {
      if (end.other?.owner.endpoint.machine !== machine) continue;
      // Its kernel knows nothing of the connection and says so to the next sign of life.
      const random = this.#chance(end.peerName, end.owner.endpoint.name);
      this.#clock.after(random.next() * (end.rests ? restMs : pulseMs), () => this.#broken(end));
    }
  }

  isUp(machine: string): boolean {
    return !this.#down.has(machine);
  }

  /** May a packet pass in this direction now? */
  isOpen(from: string, to: string): boolean {
    if (this.#cuts.size + this.#down.size === 0) return true;
    return !this.#cuts.has(`${from} ${to}`) && !this.#down.has(from) && !this.#down.has(to);
  }

  cut(from: string, to: string): void {
    const key = `${from} ${to}`;
    const reasons = this.#cuts.get(key) ?? 0;
    this.#cuts.set(key, reasons + 1);
    if (reasons > 0) return;
    for (const machine of [from, to]) this.#cutMs.set(machine, this.#clock.nowMs);
    this.#cutting += 1;
    const cutting = this.#cutting;
    this.#cutAs.set(key, cutting);
    for (const end of this.#endsTowards(from, to)) this.#listenForSilence(end, () => this.#cutAs.get(key) === cutting);
  }

  mend(from: string, to: string): void {
    const key = `${from} ${to}`;
    const reasons = (this.#cuts.get(key) ?? 0) - 1;
    if (reasons > 0) {
      this.#cuts.set(key, reasons);
      return;
    }
    this.#cuts.delete(key);
    for (const machine of [from, to]) this.#cutMs.set(machine, this.#clock.nowMs);
    this.#cutAs.delete(key);
    for (const end of this.#endsTowards(from, to)) for (const release of end.held.splice(0)) release();
  }

  /** A process stands still: its peers hear nothing of it. */
  paused(name: PeerName): void {
    const attachment = this.#attached.get(name);
    const since = attachment?.endpoint.pausedSinceMs();
    for (const { other } of attachment?.ends.values() ?? []) {
      if (other !== null) this.#listenForSilence(other, () => attachment?.endpoint.pausedSinceMs() === since);
    }
  }

  /** It goes on. The first that it looks at is how long it has heard nothing. */
  resumed(name: PeerName, pausedForMs: number): void {
    if (pausedForMs <= silenceMs) return;
    for (const end of [...(this.#attached.get(name)?.ends.values() ?? [])]) this.#break(end);
  }

  connect(name: PeerName, peer: PeerName): void {
    const attachment = this.#attached.get(name);
    if (attachment === undefined || attachment.dialers.has(peer)) return;
    const dialer: Dialer = { peer, attempts: 0, connected: false };
    attachment.dialers.set(peer, dialer);
    this.#dial(attachment, dialer);
  }

  send(name: PeerName, connection: number, frames: readonly Frame[]): void {
    const end = this.#attached.get(name)?.ends.get(connection);
    const other = end?.other;
    if (end === undefined || !end.open || other == null) return;
    // What it says now is not answered.
    if (end.rests && end.deaf?.() === true) this.#giveUp(end, end.deaf, 0);
    for (const frame of frames) {
      // Digests are most of what idle services say, and nobody keeps or changes one.
      const text = frame.frame === "digest" ? null : JSON.stringify(frame);
      const length = text?.length ?? digestCharacters;
      other.inFlight += length;
      this.#arrive(other, this.#retransmissionMs(this.#chance(name, end.peerName)), () => {
        other.inFlight -= length;
        if (end.wantsSendable && other.inFlight <= windowCharacters) this.#sendable(end);
        if (!other.open) return;
        this.frames += 1;
        if (other.role === "client") this.#answered(other);
        const arrived = text === null ? frame : (JSON.parse(text) as Frame);
        this.#onFrame(name, other.owner.endpoint.name, arrived);
        other.owner.endpoint.input({ kind: "frame", connection: other.id, frame: arrived as unknown as Json });
      });
    }
    if (other.inFlight <= windowCharacters) this.#sendable(end);
    else end.wantsSendable = true;
  }

  close(name: PeerName, connection: number): void {
    const end = this.#attached.get(name)?.ends.get(connection);
    if (end !== undefined) this.#break(end);
  }

  /** One packet, with all that may happen to one. Its chance is its sender's: a thousand hosts are a million pairs. */
  sendDatagram(from: PeerName, to: PeerName, bytes: Uint8Array): void {
    const sender = this.#attached.get(from);
    if (sender === undefined) return;
    sender.datagrams ??= this.#chance(from, "datagrams");
    const random = sender.datagrams;
    const { loss, duplication } = this.quality;
    for (let copies = duplication > 0 && random.chance(duplication) ? 2 : 1; copies > 0; copies -= 1) {
      if (loss > 0 && random.chance(loss)) continue;
      this.#clock.after(this.#travelMs(random), () => {
        const receiver = this.#attached.get(to)?.endpoint;
        if (receiver === undefined || !this.isOpen(sender.endpoint.machine, receiver.machine)) return;
        this.datagrams += 1;
        receiver.datagram?.(bytes);
      });
    }
  }

  /** Over a connection of its own, as HTTPS does: arrives as a whole, or not at all. What is sent must not change any more. */
  post(from: PeerName, to: PeerName, json: Json): void {
    const sender = this.#attached.get(from);
    if (sender === undefined) return;
    const random = this.#chance(from, to);
    const { machine } = sender.endpoint;
    this.#clock.after(4 * this.#travelMs(random) + this.#retransmissionMs(random), () => {
      const receiver = this.#attached.get(to)?.endpoint;
      if (receiver === undefined || !this.isOpen(machine, receiver.machine)) return;
      if (this.isOpen(receiver.machine, machine)) receiver.posted?.(from, json);
    });
  }

  /** When a path from or to this machine was last cut or mended; null: one is cut now. */
  cutBeforeMs(machine: string): number | null {
    for (const key of this.#cuts.keys()) if (key.split(" ").includes(machine)) return null;
    return this.#cutMs.get(machine) ?? Number.NEGATIVE_INFINITY;
  }

  #endsTowards(from: string, to: string): readonly End[] {
    return [...this.#attached.values()].flatMap(({ endpoint, ends }) =>
      endpoint.machine !== to
        ? []
        : [...ends.values()].filter((end) => end.other?.owner.endpoint.machine === from && end.open),
    );
  }

  /**
   * Each direction between two processes has chance of its own: what others say to each other changes nothing here, and a
   * history can be shortened.
   */
  #chance(from: string, to: string): Random {
    const key = `${from} ${to}`;
    const random = this.#chances.get(key) ?? this.#random.fork(key);
    this.#chances.set(key, random);
    return random;
  }

  #travelMs(random: Random): number {
    const { latencyMs, jitterMs } = this.quality;
    return latencyMs + random.next() * jitterMs;
  }

  #retransmissionMs(random: Random): number {
    let ms = 0;
    for (let wait = firstRetransmissionMs; ms < silenceMs && random.chance(this.quality.loss); wait *= 2) ms += wait;
    return ms;
  }

  /** Something reaches an end, in the order in which it was sent. */
  #arrive(end: End, extraMs: number, happen: () => void): void {
    const from = end.other?.owner.endpoint.machine ?? "";
    const to = end.owner.endpoint.machine;
    const travel = (): void => {
      const random = this.#chance(end.peerName, end.owner.endpoint.name);
      const atMs = Math.max(this.#clock.nowMs + this.#travelMs(random) + extraMs, end.lastArrivalMs + 0.001);
      end.lastArrivalMs = atMs;
      this.#clock.after(atMs - this.#clock.nowMs, () => {
        if (end.owner.alive) happen();
      });
    };
    if (this.isOpen(from, to) && end.held.length === 0) travel();
    else end.held.push(travel);
  }

  #sendable(end: End): void {
    end.wantsSendable = false;
    this.#clock.after(0.02, () => {
      if (end.open && end.owner.alive) end.owner.endpoint.input({ kind: "sendable", connection: end.id });
    });
  }

  /** An end that hears nothing while `lasts` gives up; looked at when its pulse would. */
  #listenForSilence(end: End, lasts: () => boolean): void {
    end.deaf = lasts;
    const random = this.#chance(end.peerName, end.owner.endpoint.name);
    this.#giveUp(end, lasts, end.rests ? random.next() * restMs : 0);
  }

  #giveUp(end: End, lasts: () => boolean, askedAfterMs: number): void {
    const random = this.#chance(end.peerName, end.owner.endpoint.name);
    this.#clock.after(askedAfterMs + silenceMs + random.next() * pulseMs, () => {
      if (end.open && end.owner.alive && lasts()) this.#break(end);
    });
  }

  /** This side ends it: it knows at once, the other when it hears of it. */
  #break(end: End): void {
    if (!end.open) return;
    const { other } = end;
    this.#broken(end);
    if (other?.open === true) this.#arrive(other, 0, () => this.#broken(other));
  }

  #broken(end: End): void {
    this.#orphans.delete(end);
    if (!end.open) return;
    end.open = false;
    const { owner } = end;
    owner.ends.delete(end.id);
    if (!owner.alive) return;
    owner.endpoint.input({ kind: "disconnected", connection: end.id });
    const dialer = owner.dialers.get(end.peerName);
    if (end.role !== "client" || dialer === undefined) return;
    dialer.connected = false;
    this.#retry(owner, dialer);
  }

  #answered(end: End): void {
    const dialer = end.owner.dialers.get(end.peerName);
    if (dialer !== undefined) dialer.attempts = 0;
  }

  #retry(attachment: Attachment, dialer: Dialer): void {
    const most = Math.min(backoff.lastMs, backoff.firstMs * 2 ** Math.min(dialer.attempts, 16));
    dialer.attempts += 1;
    this.#clock.after(most / 2 + (most / 2) * this.#chance(attachment.endpoint.name, dialer.peer).next(), () =>
      this.#dial(attachment, dialer),
    );
  }

  #dial(attachment: Attachment, dialer: Dialer): void {
    if (!attachment.alive || dialer.connected) return;
    const { endpoint } = attachment;
    const failed = (): void => {
      if (!attachment.alive) return;
      endpoint.input({ kind: "unreachable", peer: dialer.peer });
      this.#retry(attachment, dialer);
    };
    const target = this.#attached.get(dialer.peer);
    const machine = target?.endpoint.machine;
    const open =
      machine === undefined || (this.isOpen(endpoint.machine, machine) && this.isOpen(machine, endpoint.machine));
    if (!open || (target?.endpoint.pausedSinceMs() ?? null) !== null) {
      this.#clock.after(connectTimeoutMs, failed);
      return;
    }
    const random = this.#chance(endpoint.name, dialer.peer);
    this.#clock.after(3 * this.#travelMs(random) + this.#retransmissionMs(random), () => {
      if (!attachment.alive) return;
      if (target?.alive !== true || endpoint.pausedSinceMs() !== null) failed();
      else this.#join(attachment, dialer, target);
    });
  }

  #join(attachment: Attachment, dialer: Dialer, target: Attachment): void {
    dialer.connected = true;
    const client = this.#end(attachment, "client", target.endpoint.name);
    const server = this.#end(target, "server", attachment.endpoint.name);
    client.other = server;
    server.other = client;
    for (const end of [server, client]) {
      const { id: connection, role, peerName: peer } = end;
      end.owner.endpoint.input({ kind: "connected", connection, peer, role });
    }
  }

  #end(owner: Attachment, role: Role, peerName: PeerName): End {
    this.#next += 1;
    const end: End = {
      id: this.#next,
      role,
      owner,
      peerName,
      rests: !countsOnSilence(owner.endpoint.name, peerName),
      deaf: null,
      other: null,
      open: true,
      lastArrivalMs: 0,
      inFlight: 0,
      wantsSendable: false,
      held: [],
    };
    owner.ends.set(end.id, end);
    return end;
  }
}
