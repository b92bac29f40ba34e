import {
  type CellName,
  hostName,
  ipv4,
  mac,
  type PeerName,
  peerName,
  serverName,
  uid,
} from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { createAddressManager } from "../../address/manager.ts";
import { createDnsManager } from "../../dns/manager.ts";
import type { ActualHost, AgentVolume } from "../../documents/vocabulary.ts";
import type { Effect, Input, Service } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createPlacer } from "../../placer/placer.ts";
import { createStorageManager } from "../../storage/manager/manager.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerState } from "../state.ts";

/**
 * Several controllers with the real Storage Manager, IP Address Manager, DNS Manager and Placer between them. Messages of
 * one sender to one receiver keep their order and otherwise arrive in any, as `choose` says; timers run on a virtual
 * clock. Servers make and remove volumes at once and say what is free; VMs do not get beyond asking for their leases.
 */
interface Member {
  step(input: Input): readonly Effect[];
  entitled(peer: PeerName, key: string): boolean;
}
interface Timer {
  readonly owner: PeerName;
  readonly name: string;
  readonly atMs: number;
}
export interface Room {
  /** MiB of each host and of each storage server, and the pool of subnets. */
  readonly hosts: readonly number[];
  readonly servers: readonly number[];
  readonly pool: string;
}

export class Rivals {
  readonly #members = new Map<PeerName, Member>();
  readonly #published = new Map<PeerName, Map<string, Json>>();
  readonly #subscribers = new Map<PeerName, { readonly peer: PeerName; readonly prefix: string }[]>();
  readonly #links = new Map<string, { readonly to: PeerName; readonly input: Input }[]>();
  readonly #timers = new Map<string, Timer>();
  readonly #states = new Map<PeerName, () => ControllerState>();
  readonly #choose: (many: number) => number;
  readonly replies: Json[] = [];
  readonly events: string[] = [];
  nowMs = 0;

  constructor(room: Room, cells: Readonly<Record<string, number>>, choose: (many: number) => number) {
    this.#choose = choose;
    const hosts = room.hosts.map((_, index) => peerName(`host.h${index}`));
    const agents = room.servers.map((_, index) => peerName(`agent.s${index}`));
    const pools = { internalPool: room.pool, externalPool: "198.18.0.0/24" };
    this.#serve(
      peerName("address-manager"),
      createAddressManager({ self: peerName("address-manager"), ...pools, controllers: [] }),
    );
    this.#serve(peerName("storage-manager"), createStorageManager({ self: peerName("storage-manager"), agents }));
    this.#serve(peerName("placer"), createPlacer({ self: peerName("placer"), hosts }));
    this.#serve(peerName("dns-manager"), createDnsManager({ self: peerName("dns-manager") }));
    for (const [index, memoryMiB] of room.hosts.entries())
      this.#publish(peerName(`host.h${index}`), "host", hostDocument(index, memoryMiB));
    for (const [index, totalMiB] of room.servers.entries()) this.#server(peerName(`agent.s${index}`), totalMiB);
    for (const [name, cellNumber] of Object.entries(cells)) {
      const self = peerName(`controller.${name}`);
      const options = { cell: name as CellName, cellUid: uid(`c${name}`), cellNumber, domain: "cells.internal", self };
      const address = { address: ipv4("10.0.3.1"), mac: mac("02:00:0a:00:03:01") };
      this.#states.set(self, this.#serve(self, createCheckedController({ ...options, ...address })));
    }
    this.settle();
  }

  #serve<State>(self: PeerName, service: Service<State>): () => State {
    let state = service.restore({ records: new Map(), desiredAt: new Map() });
    const member: Member = {
      step: (input) => {
        const step = service.step(state, structuredClone(input), { ms: this.nowMs, wallMs: this.nowMs });
        state = step.state;
        return step.effects;
      },
      entitled: (peer, key) => service.entitled(state, peer, key),
    };
    this.#members.set(self, member);
    this.#feed(self, { kind: "start" });
    return () => state;
  }

  /** A storage server. Its files are sparse, so that making them takes nothing: what is scarce is what it may promise. */
  #server(self: PeerName, totalMiB: number): void {
    const made = new Set<string>();
    const step = (input: Input): readonly Effect[] => {
      if (input.kind !== "desired") return [];
      if (input.key.startsWith("lease/")) {
        // Granted, but not yet exported: its VM waits for it.
        const { epoch, holder } = (input.value ?? {}) as JsonObject;
        const lease = { phase: "ready", reason: null, epoch, holder, layer: null } as JsonObject;
        this.#publish(self, input.key, input.value === null ? null : lease);
      }
      if (!input.key.startsWith("volume/")) return [];
      const volume = input.value as unknown as AgentVolume | null;
      if (volume?.made === true && !made.has(input.key))
        throw new Error(`${input.key} was removed, and is wanted as made`);
      if (volume === null) made.delete(input.key);
      else made.add(input.key);
      const ready = { phase: "ready", reason: null, sizeMiB: volume?.sizeMiB ?? 0, usedMiB: 0, boot: null };
      this.#publish(self, input.key, volume === null ? null : ready);
      return [];
    };
    this.#members.set(self, { step, entitled: () => true });
    const server = serverName(self.slice("agent.".length));
    this.#publish(self, "server", { server, address: "10.0.2.1", totalMiB, freeMiB: totalMiB });
  }

  #feed(to: PeerName, input: Input): void {
    for (const effect of this.#members.get(to)?.step(input) ?? []) this.#carryOut(to, effect);
    // Behind all that it said on that account.
    if (input.kind === "desired" && input.value === null)
      this.#post(to, input.from, { kind: "released", peer: to, key: input.key });
  }
  #post(from: PeerName, to: PeerName, input: Input): void {
    const key = `${from}>${to}`;
    const queue = this.#links.get(key) ?? [];
    this.#links.set(key, queue);
    queue.push({ to, input });
  }
  #carryOut(from: PeerName, effect: Effect): void {
    if (effect.kind === "desire") this.#post(from, effect.to, { ...effect, kind: "desired", from });
    else if (effect.kind === "publish") this.#publish(from, effect.key, effect.value);
    else if (effect.kind === "reply") this.replies.push(effect.response);
    else if (effect.kind === "log") this.events.push(`${from} ${effect.event}`);
    else if (effect.kind === "timer") {
      const [id, { name, afterMs }] = [`${from} ${effect.name}`, effect];
      if (afterMs === null) this.#timers.delete(id);
      else this.#timers.set(id, { owner: from, name, atMs: this.nowMs + afterMs });
    } else if (effect.kind === "subscribe") {
      const { to, prefix } = effect;
      this.#subscribers.set(to, [...(this.#subscribers.get(to) ?? []), { peer: from, prefix }]);
      for (const [key, value] of this.#published.get(to) ?? []) this.#tell(to, { peer: from, prefix }, key, value);
      this.#post(to, from, { kind: "reachable", peer: to, reachable: true });
    }
  }
  #publish(from: PeerName, key: string, value: Json): void {
    const documents = this.#published.get(from) ?? new Map<string, Json>();
    this.#published.set(from, documents);
    if (value === null) documents.delete(key);
    else documents.set(key, value);
    for (const subscriber of this.#subscribers.get(from) ?? []) this.#tell(from, subscriber, key, value);
  }
  #tell(from: PeerName, { peer, prefix }: { peer: PeerName; prefix: string }, key: string, value: Json): void {
    const entitled = this.#members.get(from)?.entitled(peer, key) ?? true;
    if (key.startsWith(prefix) && entitled) this.#post(from, peer, { kind: "actual", from, key, value });
  }

  /** Delivers what is on its way, in an order of its own, until nothing is. `each` sees the world after each message. */
  settle(each: () => void = () => {}): void {
    for (let count = 0; ; count += 1) {
      if (count > 50_000) throw new Error("they do not come to rest");
      const waiting = [...this.#links.values()].filter((queue) => queue.length > 0);
      const queue = waiting[waiting.length < 2 ? 0 : this.#choose(waiting.length)];
      const message = queue?.shift();
      if (message === undefined) return;
      this.#feed(message.to, message.input);
      each();
    }
  }

  /** The timers that are next run out, all that are due at once in an order of its own; false if none is set. */
  tick(): boolean {
    const atMs = Math.min(...[...this.#timers.values()].map((timer) => timer.atMs));
    if (atMs === Number.POSITIVE_INFINITY) return false;
    this.nowMs = atMs;
    const due = [...this.#timers].filter(([, timer]) => timer.atMs === atMs);
    while (due.length > 0) {
      const [[id, timer] = []] = due.splice(this.#choose(due.length), 1);
      if (id !== undefined) this.#timers.delete(id);
      if (timer !== undefined) this.#feed(timer.owner, { kind: "timer", name: timer.name });
    }
    return true;
  }

  ask(cell: string, request: object): void {
    this.#feed(peerName(`controller.${cell}`), { kind: "request", id: 1, request: toJson(request) });
  }
  state(cell: string): ControllerState {
    const state = this.#states.get(peerName(`controller.${cell}`));
    if (state === undefined) throw new Error(`there is no cell ${cell}`);
    return state();
  }
  /** What the cell asks for of storage, addresses and places. */
  held(cell: string): readonly string[] {
    return [...this.state(cell).outbox.desired.values()]
      .flatMap((documents) => [...documents.keys()])
      .filter((key) => /^(volume|subnet|placement)\//.test(key));
  }
  /** Everything was had at once, and VMs went beyond their places. */
  isComplete(cell: string): boolean {
    const { vms, elements } = this.state(cell);
    const open = [...elements.values()].some(({ reserving }) => reserving === true);
    return elements.size > 0 && !open && [...vms.values()].every(({ run }) => run !== null && run.stage !== "placing");
  }
}

const hostDocument = (index: number, memoryMiB: number): Json =>
  toJson({
    host: hostName(`h${index}`),
    state: "up",
    address: ipv4(`10.0.1.${index + 1}`),
    mac: mac("02:00:0a:00:01:01"),
    memoryMiB,
    reservedMiB: 0,
    cpus: 64,
    cpuSpeedMHz: 2000,
    accelerator: "tcg",
  } satisfies ActualHost);

/** `count` times a subnet, a copy of a golden volume, and a VM with both. A server of 64 MiB can promise one such copy. */
export function parts(name: string, count: number, deploy: string): JsonObject {
  const elements: Record<string, Json> = { "x.type": "Cell", "x.name": name, "x.policy.deploy": deploy };
  elements.golden = { "x.type": "Volume", "x.size": 1 };
  for (let index = 0; index < count; index += 1) {
    const vm = `<ref:/${name}/vm${index}>`;
    elements[`net${index}`] = { "x.type": "Subnet", "x.size": 8 };
    elements[`disk${index}`] = { "x.type": "VolumeCopy", "x.image": `<ref:/${name}/golden>`, "x.size": 1200 };
    elements[`vm${index}`] = { "x.type": "VM", "x.memory": 600 };
    elements[`boot${index}`] = { "x.type": "VolumeConnection", "x.vm": vm, "x.volume": `<ref:/${name}/disk${index}>` };
    elements[`card${index}`] = { "x.type": "VirtualInterface", "x.vm": vm, "x.subnet": `<ref:/${name}/net${index}>` };
  }
  return { [name]: elements };
}
