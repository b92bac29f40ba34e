import { checkTimer } from "../../core/controller/changes/check.ts";
import { sliceTimer } from "../../core/controller/changes/slices.ts";
import { connectionAnswer } from "../../core/controller/shop.testing.ts";
import type { DesiredConnection, DesiredPlacement, DesiredVm, DesiredVolume } from "../../core/documents/vocabulary.ts";
import type { Effect, Input, Service } from "../../core/env.ts";
import type { PeerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";

/**
 * Services that do at once what a controller desires of them, one document at a time. They cost next to nothing themselves, so
 * that what is measured is the controller: each document is looked at once, and answered by what its kind needs.
 */
const hosts = 100;
/** A Storage Manager says first that it works on a volume, and a host that it starts a VM. */
const working = { phase: "working", reason: "is being made" };

export class Peers<State> {
  readonly #service: Service<State>;
  readonly #self: PeerName;
  readonly #inputs: Input[] = [];
  readonly #timers = new Map<string, number>();
  readonly #volumes = new Map<
    string,
    { readonly isReady: boolean; readonly waiting: string[]; readonly key: string }
  >();
  readonly #running = new Map<string, number>();
  #next = 0;
  #ms = 1000;
  #subnets = 0;
  #placed = 0;
  #replies = new Map<number, Json>();
  #requests = 0;
  /** Sees each document that is desired, or taken back. */
  told: (to: PeerName, key: string, value: Json) => void = () => undefined;
  /** Documents and news that went either way. */
  steps = 0;
  /** What is to be durable with the next commit. */
  #writes = new Map<string, Json>();
  state: State;

  constructor(service: Service<State>, self: PeerName) {
    this.#service = service;
    this.#self = self;
    this.state = service.restore({ records: new Map(), desiredAt: new Map() });
    this.#step({ kind: "start" });
  }

  /** Asks as the edge does: in a step of its own. What changes something is answered when its pass is through. */
  request(request: object): number {
    this.#requests += 1;
    this.#step({ kind: "request", id: this.#requests, request: request as unknown as Json });
    return this.#requests;
  }
  /** What the steps since the last time want to be durable. */
  takeWrites(): ReadonlyMap<string, Json> {
    const writes = this.#writes;
    this.#writes = new Map();
    return writes;
  }
  answerOf(request: number): Json | undefined {
    const reply = this.#replies.get(request);
    this.#replies.delete(request);
    return reply;
  }
  /** What only reads is answered at once. */
  ask(request: object): Json {
    const reply = this.answerOf(this.request(request));
    if (reply === undefined) throw new Error("the request was not answered");
    return reply;
  }

  /** One piece of news is taken; false: there is none, and no timer runs but the one of the check, which never ends. */
  move(): boolean {
    // A timer of no time comes before whatever is still on its way.
    if (this.#timers.delete(sliceTimer)) {
      this.#step({ kind: "timer", name: sliceTimer });
      return true;
    }
    const input = this.#inputs[this.#next];
    if (input !== undefined) {
      this.#next += 1;
      if (this.#next > 10_000) {
        this.#inputs.splice(0, this.#next);
        this.#next = 0;
      }
      this.#step(input);
      return true;
    }
    const [first] = [...this.#timers].sort(([, one], [, other]) => one - other);
    if (first === undefined) return false;
    const [name, dueMs] = first;
    this.#timers.delete(name);
    this.#ms = Math.max(this.#ms, dueMs);
    this.#step({ kind: "timer", name });
    return true;
  }

  #step(input: Input): void {
    this.steps += 1;
    this.#ms += 1;
    const now = { ms: this.#ms, wallMs: 1_700_000_000_000 + this.#ms };
    const { state, effects } = this.#service.step(this.state, input, now);
    this.state = state;
    for (const effect of effects) this.#carryOut(effect);
  }

  #carryOut(effect: Effect): void {
    if (effect.kind === "write") this.#writes.set(effect.key, effect.value);
    else if (effect.kind === "desire") {
      this.#writes.set(`desired/${effect.to}/${effect.key}`, effect.value);
      this.#hear(effect.to, effect.key, effect.value);
      this.told(effect.to, effect.key, effect.value);
    } else if (effect.kind === "reply") this.#replies.set(effect.id, effect.response);
    else if (effect.kind === "subscribe") this.#inputs.push({ kind: "reachable", peer: effect.to, reachable: true });
    else if (effect.kind === "timer" && effect.afterMs === null) this.#timers.delete(effect.name);
    else if (effect.kind === "timer" && effect.afterMs !== null && effect.name !== checkTimer)
      this.#timers.set(effect.name, this.#ms + effect.afterMs);
  }

  #say(from: PeerName, key: string, value: object | null): void {
    this.#inputs.push({ kind: "actual", from, key: `${this.#self}/${key}`, value: value as Json });
  }

  #hear(to: PeerName, key: string, value: Json): void {
    const [kind = "", uid = ""] = key.split("/");
    if (value === null) {
      if (kind === "volume") this.#volumes.delete(uid);
      this.#say(to, key, null);
      this.#inputs.push({ kind: "released", peer: to, key });
    } else if (kind === "volume") this.#volume(to, key, value as unknown as DesiredVolume);
    else if (kind === "vm") {
      const { incarnation } = value as unknown as DesiredVm;
      // Another audience is no news of the machine, and what is said again in the same words goes nowhere.
      if (this.#running.get(uid) === incarnation) return;
      this.#running.set(uid, incarnation);
      this.#say(to, key, { phase: "working", reason: "starts", incarnation, power: "off", ended: null });
      this.#say(to, key, { phase: "ready", reason: null, incarnation, power: "on", ended: null });
    } else {
      const said = this.#answer(kind, value);
      if (said !== null) this.#say(to, key, said);
    }
  }

  #answer(kind: string, value: Json): object | null {
    if (kind === "subnet") {
      const { has } = value as { readonly has?: string };
      const number = this.#subnets;
      if (has === undefined) this.#subnets += 1;
      const base = has?.slice(0, has.lastIndexOf(".")) ?? `10.${100 + (number >> 8)}.${number & 255}`;
      return { phase: "ready", reason: null, cidr: `${base}.0/26`, gateway: `${base}.1` };
    }
    if (kind === "connection") return connectionAnswer(value as unknown as DesiredConnection);
    if (kind === "placement") {
      const { incarnation } = value as unknown as DesiredPlacement;
      const host = `h${this.#placed % hosts}`;
      this.#placed += 1;
      return { phase: "ready", reason: null, incarnation, host, refusals: [] };
    }
    if (kind === "name") return { phase: "ready", reason: null };
    if (kind === "policy")
      return { version: (value as { readonly version: number }).version, phase: "ready", reason: null, slices: true };
    return null;
  }

  /** A copy is made once its origin is there. */
  #volume(to: PeerName, key: string, { uid, origin, sizeMiB }: DesiredVolume): void {
    if (this.#volumes.has(uid)) return;
    const above = origin.kind === "copy" ? this.#volumes.get(origin.volume) : undefined;
    const waiting: string[] = [];
    if (origin.kind === "copy" && above?.isReady !== true) {
      this.#volumes.set(uid, { isReady: false, waiting, key });
      above?.waiting.push(uid);
      this.#say(to, key, { phase: "waiting", reason: "waits for its origin", server: "s1", sizeMiB: sizeMiB ?? 64 });
      return;
    }
    this.#make(to, uid, key, waiting);
  }
  #make(to: PeerName, uid: string, key: string, waiting: string[]): void {
    this.#say(to, key, { ...working, server: "s1", sizeMiB: 64 });
    this.#say(to, key, { phase: "ready", reason: null, server: "s1", sizeMiB: 64 });
    this.#volumes.set(uid, { isReady: true, waiting: [], key });
    // Not by a call within a call: a chain may be thousands long.
    const next = [...waiting];
    for (let other = next.shift(); other !== undefined; other = next.shift()) {
      const entry = this.#volumes.get(other);
      if (entry === undefined) continue;
      this.#say(to, entry.key, { ...working, server: "s1", sizeMiB: 64 });
      this.#say(to, entry.key, { phase: "ready", reason: null, server: "s1", sizeMiB: 64 });
      this.#volumes.set(other, { ...entry, isReady: true, waiting: [] });
      next.push(...entry.waiting);
    }
  }
}
