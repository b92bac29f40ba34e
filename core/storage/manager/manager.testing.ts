import assert from "node:assert/strict";
import {
  cellName,
  elementPath,
  hostName,
  type Ipv4,
  ipv4,
  type PeerName,
  peerName,
  serverName,
  type Uid,
  uid,
} from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { ok } from "../../../model/result.ts";
import { documentsOf } from "../../documents/readers/table.ts";
import type {
  ActualConnection,
  ActualVolume,
  AgentImage,
  AgentLease,
  AgentLeaseActual,
  AgentVolume,
  DesiredConnection,
  DesiredVolume,
  Layer,
  LeaseHolder,
} from "../../documents/vocabulary.ts";
import type { Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createStorageManager } from "./manager.ts";

/** An agent as the contract describes it: durable leases, compare-and-set, and a connection that may be cut. */
export interface TestAgent {
  readonly name: PeerName;
  readonly desired: Map<string, Json>;
  readonly actual: Map<string, Json>;
  readonly leases: Map<string, { epoch: number; holder: LeaseHolder | null }>;
  connected: boolean;
}

export const shop = peerName("controller.shop");
const readsAgent = documentsOf("agent");

/** A Storage Manager between a controller and agents, with its store and with what is still on its way to the agents. */
export class StorageWorld {
  readonly self = peerName("storage-manager");
  readonly agents: Map<PeerName, TestAgent>;
  readonly service;
  readonly records = new Map<string, Json>();
  readonly wanted = new Map<string, { from: PeerName; key: string; value: Json }>();
  readonly desiredAt = new Map<PeerName, Map<string, Json>>();
  published = new Map<string, Json>();
  /** What every controller is told of the servers' room. */
  offered: Json = null;
  /** Keys per agent that changed and have not arrived there yet. */
  readonly onTheWay: { agent: PeerName; key: string }[] = [];
  readonly events: string[] = [];
  state;

  constructor(agents: Record<string, { freeMiB: number; images?: Record<string, number> }>) {
    this.agents = new Map(
      Object.entries(agents).map(([server, { freeMiB, images }]) => {
        const name = peerName(`agent.${server}`);
        const actual = new Map<string, Json>([
          ["server", { server, address: "10.0.2.1", totalMiB: freeMiB * 2, freeMiB }],
        ]);
        for (const [image, sizeMiB] of Object.entries(images ?? {})) {
          actual.set(`image/${image}`, { name: image, digest: `d-${image}`, sizeMiB });
        }
        return [name, { name, desired: new Map(), actual, leases: new Map(), connected: true }];
      }),
    );
    this.service = createStorageManager({ self: this.self, agents: [...this.agents.keys()] });
    this.state = this.service.restore({ records: this.records, desiredAt: this.desiredAt });
    this.restart();
  }

  /** As after a crash: memory and everything published is gone, the store and the agents stay. */
  restart(): void {
    this.state = this.service.restore({ records: structuredClone(this.records), desiredAt: this.desiredAt });
    this.published = new Map();
    for (const document of this.wanted.values()) this.input({ kind: "desired", ...document });
    this.input({ kind: "start" });
    for (const agent of this.agents.values()) if (agent.connected) this.connect(agent);
  }

  connect(agent: TestAgent): void {
    agent.connected = true;
    for (const [key, value] of agent.actual) this.input({ kind: "actual", from: agent.name, key, value });
    this.input({ kind: "reachable", peer: agent.name, reachable: true });
  }
  cut(agent: TestAgent): void {
    agent.connected = false;
    this.input({ kind: "reachable", peer: agent.name, reachable: false });
  }

  input(input: Input): void {
    const { state, effects } = this.service.step(this.state, structuredClone(input), { ms: 0, wallMs: 0 });
    this.state = state;
    for (const effect of effects) {
      if (effect.kind === "write") {
        if (effect.value === null) this.records.delete(effect.key);
        else this.records.set(effect.key, effect.value);
      } else if (effect.kind === "desire") {
        // What its receiver would not read is a defect of whoever desires it.
        const isRead = effect.value === null || !this.agents.has(effect.to);
        const read = isRead ? ok(null) : readsAgent("desired", this.self, effect.key, effect.value);
        if (!read.ok) assert.fail(`${effect.key} to ${effect.to}: ${read.error}`);
        const documents = this.desiredAt.get(effect.to) ?? new Map<string, Json>();
        this.desiredAt.set(effect.to, documents);
        if (effect.value === null) documents.delete(effect.key);
        else documents.set(effect.key, effect.value);
        this.onTheWay.push({ agent: effect.to, key: effect.key });
      } else if (effect.kind === "publish" && effect.key === "storage") {
        this.offered = effect.value;
      } else if (effect.kind === "publish") {
        if (effect.value === null) this.published.delete(effect.key);
        else this.published.set(effect.key, effect.value);
      } else if (effect.kind === "log") {
        this.events.push(effect.event);
      }
    }
  }

  want(key: string, value: object | null, from: PeerName = shop): void {
    if (value === null) this.wanted.delete(`${from}/${key}`);
    else this.wanted.set(`${from}/${key}`, { from, key, value: toJson(value) });
    this.input({ kind: "desired", from, key, value: value === null ? null : toJson(value) });
  }

  /** Lets the n-th waiting document arrive at its agent, which acts at once; false if it cannot. */
  arrive(index: number): boolean {
    const message = this.onTheWay[index];
    const agent = message && this.agents.get(message.agent);
    if (agent === undefined || message === undefined || !agent.connected) return false;
    this.onTheWay.splice(index, 1);
    this.agentTakes(agent, message.key, this.desiredAt.get(agent.name)?.get(message.key) ?? null);
    return true;
  }
  /** Controllers have had their time to say what they desire. */
  explain(): void {
    this.input({ kind: "timer", name: "explain" });
  }
  /** Until nothing moves. */
  settle(): void {
    for (let index = 0; index < this.onTheWay.length; ) {
      if (this.arrive(index)) index = 0;
      else index += 1;
    }
  }

  private agentTakes(agent: TestAgent, key: string, value: Json): void {
    if (value === null) agent.desired.delete(key);
    else agent.desired.set(key, value);
    const [kind = "", id = ""] = key.split("/");
    if (kind === "volume") {
      const volume = value as unknown as AgentVolume | null;
      const source = volume?.source;
      const named = source?.kind === "image" ? agent.actual.get(`image/${source.image}`) : undefined;
      const image = named === undefined ? {} : { image: (named as unknown as AgentImage).digest };
      const boot =
        volume?.source.kind === "image" ? { digest: "b", address: "10.0.2.1", port: 1, commandLine: "" } : null;
      this.say(
        agent,
        key,
        volume && {
          phase: "ready",
          reason: null,
          sizeMiB: volume.sizeMiB,
          usedMiB: 1,
          boot,
          ...image,
          ...(volume.about && { about: toJson(volume.about) }),
        },
      );
    } else if (kind === "readers") {
      this.say(agent, key, value && { phase: "ready", reason: null, layer: toJson(layer(id, 0, false)) });
    } else {
      const asked = value as unknown as AgentLease | null;
      const held = agent.leases.get(id) ?? { epoch: 0, holder: null };
      if (asked === null) agent.leases.delete(id);
      else if (asked.epoch === held.epoch + 1) agent.leases.set(id, { epoch: asked.epoch, holder: asked.holder });
      this.say(agent, key, asked && this.leaseActual(agent, id));
    }
  }
  leaseActual(agent: TestAgent, volume: string): Json {
    const { epoch, holder } = agent.leases.get(volume) ?? { epoch: 0, holder: null };
    const actual: AgentLeaseActual = {
      phase: "ready",
      reason: null,
      epoch,
      holder,
      layer: holder && layer(volume, epoch, true),
    };
    return toJson(actual);
  }
  say(agent: TestAgent, key: string, value: Json): void {
    if (value === null) agent.actual.delete(key);
    else agent.actual.set(key, value);
    this.input({ kind: "actual", from: agent.name, key, value });
  }

  agent(server: string): TestAgent {
    const agent = this.agents.get(peerName(`agent.${server}`));
    if (agent === undefined) throw new Error(`no agent ${server}`);
    return agent;
  }
  volume(id: string, client: PeerName = shop): ActualVolume | undefined {
    return this.published.get(`${client}/volume/${id}`) as unknown as ActualVolume | undefined;
  }
  connection(id: string, client: PeerName = shop): ActualConnection | undefined {
    return this.published.get(`${client}/connection/${id}`) as unknown as ActualConnection | undefined;
  }
}

const layer = (volume: string, epoch: number, writable: boolean): Layer => ({
  volume: uid(volume),
  address: ipv4("10.0.2.1") as Ipv4,
  port: 20000,
  exportName: `${volume}-${epoch}`,
  pskIdentity: "i",
  pskHex: "00",
  writable,
});

export const volume = (
  id: string,
  origin: DesiredVolume["origin"],
  sizeMiB: number | null = null,
  cell = "shop",
): DesiredVolume => ({
  uid: uid(id),
  cell: cellName(cell),
  path: elementPath(`${cell}/${id}`),
  origin,
  sizeMiB,
  access: "rw",
});
export const copyOf = (id: string): DesiredVolume["origin"] => ({ kind: "copy", volume: uid(id) as Uid });
export const connection = (id: string, of: string, vm: string, incarnation = 1, host = "h1"): DesiredConnection => ({
  uid: uid(id),
  volume: uid(of),
  vm: uid(vm),
  incarnation,
  host: hostName(host),
  cell: cellName("shop"),
});
export const server = serverName;
