import assert from "node:assert/strict";
import { takeDeclared } from "../../core/documents/declaration.ts";
import type { DesiredStandby } from "../../core/documents/standby.ts";
import type { ActualSuccessor, AgentLeaseActual, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect, Input } from "../../core/env.ts";
import { toJson } from "../../core/outbox.ts";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import type { AgentState } from "../../core/storage/agent/records.ts";
import type { AgentReport, WorkAnswer } from "../../core/storage/agent/work.ts";
import {
  cellName,
  elementPath,
  type HostName,
  hostName,
  ipv4,
  mac,
  type PeerName,
  peerName,
  serverName,
  type Uid,
  uid,
} from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import {
  advanceSuccession,
  createSuccession,
  handleSuccession,
  hearReachable,
  hearSuccession,
  restraints,
  type SuccessionRequest,
  takeStandby,
  withSuccession,
} from "./succession.ts";
import type { SuccessionState } from "./succession-state.ts";

/**
 * Hosts that may succeed one another, and the storage agents that they ask: both are the real ones, and what is between them
 * can be cut, delayed and lost as by state distribution. The data volume is at one agent, the boot volume at another.
 */
export const manager = peerName("storage-manager");
export const member = peerName("presence.1");
export const root = uid("root-1");
const [data, boot] = [uid("root-3"), uid("root-2")];
export const volumes: readonly { readonly volume: Uid; readonly agent: PeerName }[] = [
  { volume: data, agent: peerName("agent.s1") },
  { volume: boot, agent: peerName("agent.s2") },
];

const disk = (volume: Uid, bootOrder: number): DesiredVm["disks"][number] => ({
  connection: uid(`${volume}-c`),
  busType: "virtio",
  busNumber: null,
  busSlot: null,
  bootOrder,
  readOnly: false,
  attachment: { volume, epoch: 1, sizeMiB: 10, layers: [], boot: null },
});
export const rootVm = (incarnation: number): DesiredVm => ({
  uid: root,
  cell: cellName("root"),
  path: elementPath("root/core1/vm"),
  name: "core1",
  incarnation,
  power: "on",
  memoryMiB: 100,
  cpus: 1,
  interfaces: [],
  data: null,
  restart: "host",
  disks: [disk(data, 1), disk(boot, 0)],
});
export const standby = (host: string, incarnation: number, epochs: readonly number[] = [1, 1]): DesiredStandby => ({
  vm: rootVm(incarnation),
  host: hostName(host),
  policy: {
    cell: cellName("root"),
    cellNumber: 1,
    version: 0,
    rules: [],
    networks: [],
    hosts: [],
    controller: { address: ipv4("10.0.0.31"), mac: mac("02:00:00:00:00:31"), identity: 1 },
  },
  volumes: volumes.map(({ volume, agent }, at) => ({
    volume,
    agent,
    connection: uid(`${volume}-c`),
    epoch: epochs[at] ?? 1,
  })),
});

/** One storage agent with the volume that it has, its executor included. */
export class TestAgent {
  readonly name: PeerName;
  readonly volume: Uid;
  readonly #service;
  readonly records = new Map<string, Json>();
  readonly desired = new Map<string, { readonly from: PeerName; readonly key: string; readonly value: Json }>();
  actual = new Map<string, Json>();
  state: AgentState;
  /** Epochs whose export writes. */
  readonly exports = new Set<number>();
  onPublish: (key: string, value: Json) => void = () => undefined;
  #replies = new Map<number, Json>();
  #id = 0;

  readonly #hosts: readonly string[];

  constructor(name: PeerName, volume: Uid, hosts: readonly string[]) {
    [this.name, this.volume, this.#hosts] = [name, volume, hosts];
    const server = serverName(name.slice("agent.".length));
    this.#service = createAgentService({ server, address: ipv4("10.0.2.1"), firstPort: 20000 });
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.input({ kind: "start" });
    this.install();
    this.desire(manager, `volume/${volume}`, toJson({ uid: volume, source: { kind: "empty" }, sizeMiB: 10 }));
    const holder = { vm: root, incarnation: 1, host: "h1" };
    this.desire(manager, `lease/${volume}`, toJson({ volume, epoch: 1, holder, succession: true }));
    while (this.work());
  }
  /** As the peers file has it. */
  install(): void {
    this.#report({
      kind: "installation",
      hosts: this.#hosts.map((name) => peerName(`host.${name}`)),
      members: [member],
      managers: [manager],
    });
  }
  input(input: Input): void {
    for (const effect of this.#service.step(this.state, input, { ms: 0, wallMs: 0 }).effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, structuredClone(effect.value));
      if (effect.kind === "reply") this.#replies.set(effect.id, effect.response);
      if (effect.kind !== "publish") continue;
      if (effect.value === null) this.actual.delete(effect.key);
      else this.actual.set(effect.key, effect.value);
      this.onPublish(effect.key, effect.value);
    }
  }
  desire(from: PeerName, key: string, value: Json): void {
    assert.ok(this.#service.accepts(from, key));
    if (value === null) this.desired.delete(`${from} ${key}`);
    else this.desired.set(`${from} ${key}`, { from, key, value });
    this.input({ kind: "desired", from, key, value });
  }
  #report(report: AgentReport): Json | undefined {
    this.#id += 1;
    this.input({ kind: "request", id: this.#id, request: report as unknown as Json });
    return this.#replies.get(this.#id);
  }
  #paused = false;
  /** Its executor does nothing meanwhile. */
  pause(paused: boolean): void {
    this.#paused = paused;
  }
  /** One piece of what is to be done; false: there is none. */
  work(): boolean {
    if (this.#paused) return false;
    const answer = this.#report({ kind: "work", known: 0 }) as unknown as WorkAnswer;
    const [work] = answer.work;
    if (work === undefined) return false;
    const { volume } = this;
    if (work.file?.action === "create") this.#report({ kind: "created", volume, sizeMiB: 10, boot: null });
    else if (work.fence !== null) {
      this.exports.clear();
      this.#report({ kind: "fenced", volume, epoch: work.fence.epoch });
    } else if (work.export?.access === null) {
      const { epoch } = work.export;
      this.#report({ kind: "prepared", volume, epoch, exportName: `e${epoch}`, pskIdentity: "i", pskHex: "00" });
    } else if (work.export?.access != null && !this.exports.has(work.export.epoch)) {
      const { epoch, access } = work.export;
      this.exports.add(epoch);
      this.#report({ kind: "exported", volume, epoch, exportName: access.exportName, sizeMiB: 10 });
    } else return false;
    return true;
  }
  restart(): void {
    const before = [...this.actual.keys()];
    this.actual = new Map();
    this.state = this.#service.restore({ records: structuredClone(this.records), desiredAt: new Map() });
    for (const document of this.desired.values()) this.input({ kind: "desired", ...document });
    this.input({ kind: "start" });
    this.install();
    for (const [key, value] of this.#declared) this.input({ kind: "actual", from: member, key, value });
    for (const key of before) if (!this.actual.has(key)) this.onPublish(key, null);
  }
  readonly #declared = new Map<string, Json>();
  /** A member of the Presence group says it; it does so again after a restart. */
  hear(key: string, value: Json): void {
    this.#declared.set(key, value);
    this.input({ kind: "actual", from: member, key, value });
  }
  successor = (): ActualSuccessor => this.actual.get(`successor/${this.volume}`) as unknown as ActualSuccessor;
}

/** One host, as far as it succeeds another; what it keeps outlives its restarts. */
export class TestHost {
  readonly name: HostName;
  readonly peer: PeerName;
  readonly #world: SuccessionWorld;
  readonly records = new Map<string, Json>();
  readonly desiredAt = new Map<PeerName, Map<string, Json>>();
  readonly subscribed = new Map<PeerName, Set<string>>();
  readonly events: string[] = [];
  document: DesiredStandby | null;
  desired: DesiredVm | undefined;
  obstacle: string | null = null;
  state: SuccessionState;

  constructor(world: SuccessionWorld, name: string) {
    this.#world = world;
    this.name = hostName(name);
    this.peer = peerName(`host.${name}`);
    this.document = standby("h1", 1);
    this.desired = name === "h1" ? rootVm(1) : undefined;
    this.state = this.boot();
  }
  boot(): SuccessionState {
    this.subscribed.clear();
    this.state = createSuccession(this.name, structuredClone({ records: this.records, desiredAt: this.desiredAt }));
    takeStandby(this.state, this.document);
    return this.state;
  }
  /** The root controller says something else of its VM. */
  stands(more: Partial<DesiredStandby>): void {
    if (this.document !== null) this.document = { ...this.document, ...more };
    takeStandby(this.state, this.document);
    this.advance();
  }
  advance(): void {
    const effects: Effect[] = [];
    const { now } = this.#world;
    const facts = { now, desired: this.desired, obstacle: () => this.obstacle };
    advanceSuccession(this.state, facts, effects);
    const again: Effect[] = [];
    advanceSuccession(this.state, facts, again);
    assert.deepEqual(again, [], "asked again at the same time, it has nothing more to say");
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, effect.value);
      else if (effect.kind === "log") this.events.push(effect.event);
      else if (effect.kind === "desire") {
        const documents = this.desiredAt.get(effect.to) ?? new Map<string, Json>();
        this.desiredAt.set(effect.to, documents);
        if (effect.value === null) documents.delete(effect.key);
        else documents.set(effect.key, effect.value);
        this.#world.toAgent(this, effect.to, () =>
          this.#world.agentOf(effect.to).desire(this.peer, effect.key, effect.value),
        );
      } else if (effect.kind === "subscribe" || effect.kind === "unsubscribe") {
        const prefixes = this.subscribed.get(effect.to) ?? new Set<string>();
        this.subscribed.set(effect.to, prefixes);
        if (effect.kind === "unsubscribe") prefixes.delete(effect.prefix);
        else {
          prefixes.add(effect.prefix);
          this.#world.toAgent(this, effect.to, () => this.#world.sendAll(this, effect.to));
        }
      }
    }
  }
  hear(request: SuccessionRequest): void {
    handleSuccession(this.state, request);
    this.advance();
  }
  heard(from: PeerName, key: string, value: Json): void {
    const members = new Set([member]);
    hearSuccession(this.state, members, from, key, value, takeDeclared(new Map(), members, from, key, value));
    this.advance();
  }
  reachable(peer: PeerName, reachable: boolean): void {
    hearReachable(this.state, peer, reachable);
    this.advance();
  }
  /** What it runs now, or would start; null: nothing, or it waits to hear whether it may. */
  runs(): DesiredVm | null {
    const vms = new Map(
      this.desired === undefined ? [] : [[root, { client: peerName("controller.root"), desired: this.desired }]],
    );
    const wanted = withSuccession(
      { vms, policies: [], locations: [], entrances: new Map() },
      this.state,
      this.#world.now,
    );
    const { held } = restraints(this.state, wanted.vms, this.#world.now);
    return held.has(root) ? null : (wanted.vms.get(root)?.desired ?? null);
  }
}

interface Link {
  readonly host: TestHost;
  readonly agent: PeerName;
  cut: boolean;
  toAgent: (() => void)[];
  toHost: (() => void)[];
}

export class SuccessionWorld {
  now = 0;
  readonly agents: readonly TestAgent[];
  readonly hosts: readonly TestHost[];
  readonly links: Link[] = [];
  readonly down = new Set<TestHost>();

  constructor(names: readonly string[]) {
    this.agents = volumes.map(({ agent, volume }) => new TestAgent(agent, volume, names));
    this.hosts = names.map((name) => new TestHost(this, name));
    for (const host of this.hosts)
      for (const { name } of this.agents) this.links.push({ host, agent: name, cut: false, toAgent: [], toHost: [] });
    for (const agent of this.agents)
      agent.onPublish = (key, value) => {
        for (const link of this.links) if (link.agent === agent.name) this.#publish(link, key, value);
      };
    for (const host of this.hosts) this.meet(host);
    this.settle();
  }
  /** All hosts hear one another. */
  meet(host: TestHost, hosts: readonly TestHost[] = this.hosts): void {
    host.hear({ kind: "presence-hosts", hosts: this.hosts.map(({ name }) => name) });
    const others = this.hosts.filter((other) => other !== host);
    const generation = (other: TestHost): number | null => (hosts.includes(other) ? 1 : null);
    host.hear({ kind: "presence-heard", hosts: others.map((other) => [other.name, generation(other)] as const) });
  }
  host = (name: string): TestHost => this.hosts.find((host) => host.name === name) ?? assert.fail(name);
  agentOf = (name: PeerName): TestAgent => this.agents.find((agent) => agent.name === name) ?? assert.fail(name);
  link = (host: TestHost, agent: PeerName): Link =>
    this.links.find((link) => link.host === host && link.agent === agent) ?? assert.fail(agent);
  toAgent(host: TestHost, agent: PeerName, deliver: () => void): void {
    const link = this.link(host, agent);
    if (!link.cut) link.toAgent.push(deliver);
    else link.toHost.push(() => host.reachable(agent, !link.cut));
  }
  #publish(link: Link, key: string, value: Json): void {
    const { host, agent } = link;
    const follows = [...(host.subscribed.get(agent) ?? [])].some((prefix) => key.startsWith(prefix));
    if (follows && !link.cut) link.toHost.push(() => host.heard(agent, key, value));
  }
  /** As at a new subscription or connection: all that is so, and then that it is in step. */
  sendAll(host: TestHost, agent: PeerName): void {
    const link = this.link(host, agent);
    for (const [key, value] of this.agentOf(agent).actual) this.#publish(link, key, value);
    link.toHost.push(() => host.reachable(agent, true));
  }
  /** What was on its way is lost. */
  cut(link: Link): void {
    if (link.cut) return;
    [link.cut, link.toAgent, link.toHost] = [true, [], []];
    if (!this.down.has(link.host)) link.host.reachable(link.agent, false);
  }
  /** The host's documents are repeated, those that were taken back are missing among them. */
  heal(link: Link): void {
    if (!link.cut || this.down.has(link.host)) return;
    link.cut = false;
    const { host, agent: name } = link;
    const agent = this.agentOf(name);
    for (const { from, key } of [...agent.desired.values()])
      if (from === host.peer && host.desiredAt.get(name)?.has(key) !== true)
        link.toAgent.push(() => agent.desire(from, key, null));
    for (const [key, value] of host.desiredAt.get(name) ?? [])
      link.toAgent.push(() => agent.desire(host.peer, key, value));
    link.toAgent.push(() => this.sendAll(host, name));
  }
  stop(host: TestHost): void {
    for (const link of this.links) if (link.host === host) this.cut(link);
    this.down.add(host);
  }
  start(host: TestHost): void {
    if (!this.down.delete(host)) return;
    host.boot();
    host.advance();
    for (const link of this.links) if (link.host === host) this.heal(link);
  }
  deliver(link: Link): boolean {
    const queue = link.toHost.length > 0 ? link.toHost : link.toAgent;
    const next = queue.shift();
    next?.();
    return next !== undefined;
  }
  settle(): void {
    for (let rounds = 0; rounds < 20_000; rounds += 1) {
      const moved = this.links.map((link) => this.deliver(link)).concat(this.agents.map((agent) => agent.work()));
      if (!moved.includes(true)) return;
    }
    assert.fail("hosts and agents do not come to rest");
  }
  /** In steps, as timers would come. */
  pass(ms: number): void {
    for (const end = this.now + ms; this.now < end; this.now += 1000) {
      for (const host of this.hosts) if (!this.down.has(host)) host.advance();
      this.settle();
    }
  }
  /** Presence declares its first life dead, and says so to those that are there. */
  declare(host: TestHost, to: readonly TestHost[] = this.hosts): void {
    const value = toJson({ host: host.name, generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 });
    for (const agent of this.agents) agent.hear(`dead/${host.name}`, value);
    for (const other of to) {
      if (other === host || this.down.has(other)) continue;
      other.hear({ kind: "presence-heard", hosts: [[host.name, null]] });
      other.heard(member, `dead/${host.name}`, value);
    }
  }
  /** Does this host have every lease of what it runs, as its agents see it? */
  holdsAll(host: TestHost): boolean {
    const vm = host.runs();
    return (
      vm !== null &&
      this.agents.every((agent) => {
        const { holder } = agent.successor();
        return holder?.host === host.name && holder.incarnation === vm.incarnation;
      })
    );
  }
  told = (host: string, agent: number): AgentLeaseActual | undefined =>
    this.agents[agent]?.actual.get(`host.${host}/succession/${this.agents[agent]?.volume}`) as never;
}
