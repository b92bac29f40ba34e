import type { CauseKind, CauseOf } from "../../model/cause/cause.ts";
import { sentenceOf } from "../../model/cause/sentence.ts";
import {
  type Cidr,
  type HostName,
  hostName,
  type PeerName,
  peerName,
  serverName,
  type Uid,
} from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import type { ActualWant } from "../documents/cells.ts";
import type { ActualPolicy, ActualSubnet, DesiredSubnet } from "../documents/network/network.ts";
import type {
  ActualPlacement,
  ActualVm,
  ActualVolume,
  CellPolicy,
  DesiredConnection,
  DesiredPlacement,
  DesiredVm,
  DesiredVolume,
  LeaseHolder,
  Leave,
} from "../documents/vocabulary.ts";
import type { Effect, GoneHosts, Input, Restored, Service } from "../env.ts";
import { sameJson, toJson } from "../outbox.ts";
import { createCheckedController } from "./changes/agreement.ts";
import { checkTimer } from "./changes/check.ts";
import { shownCauses } from "./explain/shown-causes.testing.ts";
import type { ElementRecord } from "./records.ts";
import type { ControllerResponse } from "./requests/requests.ts";
import { turnTimer } from "./rules/told-places.ts";
import { connectionAnswer, eucalyptusAnswer, shopOptions } from "./shop.testing.ts";
import type { ControllerOptions, ControllerState } from "./state.ts";

/**
 * A controller with peers that do at once what is desired of them, unless a test says otherwise. Everything that the
 * real ones decide over time is reduced to a function of their desired documents. `crashing` restores the controller
 * from what is durable after every step that made anything durable; the others cannot be told from steps never taken.
 */
const self = peerName("controller.shop");
export const options: ControllerOptions = {
  ...shopOptions,
  presence: ["presence.1", "presence.2", "presence.3"].map(peerName),
};

export class World {
  readonly records = new Map<string, Json>();
  readonly desired = new Map<PeerName, Map<string, Json>>();
  readonly effects: Effect[] = [];
  readonly timers = new Map<string, number>();
  /** Free memory of each host, MiB. */
  readonly hosts = new Map<HostName, number>([
    [hostName("h1"), 4096],
    [hostName("h2"), 4096],
  ]);
  /** By VM and incarnation, `c1-4@1`: what the Placer says of its leaving. */
  readonly leaves = new Map<string, Leave>();
  /** What the Placer says of a VM's place beside which it is. */
  readonly gives = new Map<string, Partial<ActualPlacement>>();
  /** Of each host's machine. */
  readonly boots = new Map<HostName, number>();
  /** Ranges that the IP Address Manager gave to subnets of other cells. */
  readonly takenRanges = new Set<Cidr>();
  /** How an incarnation ended: `<uid>@<incarnation>`. */
  readonly ended = new Map<string, Partial<ActualVm>>();
  readonly silent = new Set<PeerName>();
  /** Volumes that their server cannot make yet. */
  readonly slowVolumes = new Set<Uid>();
  /** What the Storage Manager says of a volume beside that it is ready, such as its room. */
  readonly volumesAre = new Map<Uid, Partial<ActualVolume>>();
  /** By volume: who has its lease, where its controller asks first. */
  readonly holders = new Map<Uid, LeaseHolder>();
  /** Hosts that take their time to stop a VM. */
  readonly slowStops = new Set<HostName>();
  /** What a host says of a policy, where that is not that it is in force; null: nothing. */
  readonly policiesAt = new Map<HostName, (policy: CellPolicy) => ActualPolicy | null>();
  /** What the directory answers to a want: `<domain>/<path>`. */
  readonly shown = new Map<string, ActualWant>();
  /** What the Cell Manager says of each child whose document it has, by its UID. */
  readonly children = new Map<string, object>();
  /** What the Network View Manager says of an instance or group, where that is not that all is in place. */
  readonly networks = new Map<string, object>();
  /** Nobody does or says anything new: what is desired now is still on its way. */
  frozen = false;
  /** Its peers are of the previous version, and say only what that one said. */
  older = false;
  /** Hosts take policies in slices. */
  slices = false;
  /** Guests of all images have an agent. */
  hasAgent = false;
  /** Of every child that `children` does not name, it says that it is well. */
  withChildren = false;
  /** Other cells have rules that open the same. */
  agreed = false;
  crashing = false;
  state: ControllerState;
  readonly #actual = new Map<PeerName, Map<string, Json>>();
  readonly #subscribed = new Set<PeerName>();
  /** Tombstones that their peer has not taken yet. */
  #tombstones: { readonly peer: PeerName; readonly key: string }[] = [];
  readonly #places = new Map<string, HostName>();
  readonly #bootOfPlace = new Map<string, number>();
  readonly #ranges = new Map<string, number>();
  #ms = 1_000;
  #request = 0;

  readonly #service: Service<ControllerState>;

  constructor(
    more: Partial<ControllerOptions> = {},
    make: (options: ControllerOptions) => Service<ControllerState> = createCheckedController,
  ) {
    this.#service = make({ ...options, ...more });
    this.state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.step({ kind: "start" });
    this.settle();
  }

  step(input: Input): readonly Effect[] {
    this.#ms += 1;
    const { state, effects: all } = this.#service.step(this.state, input, {
      ms: this.#ms,
      wallMs: 1_700_000_000_000 + this.#ms,
    });
    this.state = state;
    // The check's timer always runs, and is no news.
    const effects = all.filter((effect) => effect.kind !== "timer" || effect.name !== checkTimer);
    for (const effect of effects) this.#carryOut(effect);
    this.effects.push(...effects);
    if (this.crashing && effects.some(({ kind }) => kind === "write" || kind === "desire")) this.crash();
    return effects;
  }

  #carryOut(effect: Effect): void {
    if (effect.kind === "write") {
      if (effect.value === null) this.records.delete(effect.key);
      else this.records.set(effect.key, structuredClone(effect.value));
    } else if (effect.kind === "desire") {
      const documents = this.desired.get(effect.to) ?? new Map();
      this.desired.set(effect.to, documents);
      if (effect.value === null) {
        documents.delete(effect.key);
        this.#tombstones.push({ peer: effect.to, key: effect.key });
      } else documents.set(effect.key, structuredClone(effect.value));
    } else if (effect.kind === "let-go") this.desired.get(effect.at)?.delete(effect.key);
    else if (effect.kind === "timer") {
      if (effect.afterMs === null) this.timers.delete(effect.name);
      else this.timers.set(effect.name, effect.afterMs);
    } else if (effect.kind === "subscribe") this.#subscribed.add(effect.to);
  }

  /** The process dies between two steps, and starts again from what was durable. What peers say comes again. */
  crash(putBack: Pick<Restored, "wasRestored" | "putBackBy" | "goneHosts" | "forkedAt" | "drawn"> = {}): void {
    this.timers.clear();
    this.#subscribed.clear();
    this.#tombstones = [];
    this.#actual.clear();
    this.state = this.#service.restore({
      records: structuredClone(this.records),
      desiredAt: structuredClone(this.desired),
      ...putBack,
    });
    this.step({ kind: "start" });
  }
  /** It ends, and its store is put back from a copy that is as it is. */
  putBack(goneHosts?: GoneHosts): void {
    this.crash({ wasRestored: true, ...(goneHosts === undefined ? {} : { goneHosts }) });
  }

  /** Lets peers act, and the controller see it, until nothing moves any more. */
  settle(): this {
    for (let round = 0; round < 5_000; round += 1) {
      if (this.#moveOne()) continue;
      if (!this.timers.delete(turnTimer)) return this;
      // A moment later hosts are told where interfaces are.
      this.step({ kind: "timer", name: turnTimer });
    }
    throw new Error("the controller and its peers do not come to rest");
  }

  /** Delivers one piece of news; false when there is none. */
  #moveOne(): boolean {
    if (this.frozen) return false;
    for (const peer of this.#subscribed) {
      if (this.silent.has(peer)) {
        if (this.state.reachable.get(peer) === false) continue;
        this.step({ kind: "reachable", peer, reachable: false });
        return true;
      }
      const known = this.#actual.get(peer) ?? new Map<string, Json>();
      this.#actual.set(peer, known);
      const now = this.#actualOf(peer);
      for (const [key, value] of now) {
        if (sameJson(known.get(key), value)) continue;
        known.set(key, value);
        this.step({ kind: "actual", from: peer, key: `${self}/${key}`, value: structuredClone(value) });
        return true;
      }
      for (const key of [...known.keys()]) {
        if (now.has(key)) continue;
        known.delete(key);
        this.step({ kind: "actual", from: peer, key: `${self}/${key}`, value: null });
        return true;
      }
      if (this.state.reachable.get(peer) === true) continue;
      this.step({ kind: "reachable", peer, reachable: true });
      return true;
    }
    const taken = this.#tombstones.find(({ peer }) => !this.silent.has(peer));
    if (taken === undefined) return false;
    this.#tombstones = this.#tombstones.filter((each) => each !== taken);
    this.step({ kind: "released", ...taken });
    return true;
  }

  #actualOf(peer: PeerName): Map<string, Json> {
    const actual = new Map<string, Json>();
    const host = /^host\.(.+)$/.exec(peer)?.[1];
    for (const [key, value] of this.desired.get(peer) ?? []) {
      const document = this.#answer(peer, key, value);
      if (document !== null) actual.set(key, toJson(document));
    }
    if (host !== undefined && this.slowStops.has(hostName(host))) {
      for (const [key, value] of this.#actual.get(peer) ?? []) if (!actual.has(key)) actual.set(key, value);
    }
    return actual;
  }

  #answer(peer: PeerName, key: string, value: Json): object | null {
    const [kind, id = ""] = key.split("/");
    if (kind === "subnet") {
      const { size, has } = value as unknown as DesiredSubnet;
      const index = this.#ranges.get(id) ?? this.#ranges.size;
      if (has !== undefined && this.takenRanges.has(has)) {
        this.#ranges.delete(id);
        this.#ranges.set(`once ${id}`, index);
        const taken = { cidr: null, gateway: null, taken: has };
        return { phase: "failed", reason: `${has} is another's`, ...taken } as ActualSubnet;
      }
      this.#ranges.set(id, index);
      // A large one lies apart from the others, which follow one another.
      const [base, first] = size > 8 ? [`10.64.${index + 1}`, 0] : ["10.64.0", index * 8];
      const prefix = size > 8 ? 32 - Math.ceil(Math.log2(size)) : 29;
      return {
        phase: "ready",
        reason: null,
        cidr: `${base}.${first}/${prefix}`,
        gateway: `${base}.${first + 1}`,
      } as unknown as ActualSubnet;
    }
    if (kind === "volume") return this.#volume(value as unknown as DesiredVolume);
    if (kind === "connection") {
      const desire = value as unknown as DesiredConnection;
      const holder = this.holders.get(desire.volume);
      if (holder === undefined || desire.asksFirst !== true) return connectionAnswer(desire, this.hasAgent);
      const { incarnation } = desire;
      return { phase: "waiting", reason: "is being written", incarnation, attachment: null, holder };
    }
    if (kind === "placement") return this.#place(value as unknown as DesiredPlacement);
    if (kind === "want") return this.shown.get(key.slice("want/".length)) ?? null;
    if (kind === "cell") return this.children.get(id) ?? (this.withChildren ? childAnswer(value) : null);
    if (kind === "reach") return this.agreed ? { agreed: true, hosts: [] } : null;
    if (kind === "name" || kind === "grant") {
      const { uid: _uid, ...own } = value as JsonObject;
      if (this.older) return kind === "name" ? { phase: "ready", reason: null } : null;
      return { phase: "ready", reason: null, ...(kind === "name" ? { serves: own } : { grants: own }) };
    }
    if (kind === "instance" || kind === "security-group")
      return this.networks.get(id) ?? eucalyptusAnswer(key, value as object);
    if (kind === "policy") {
      const said = this.policiesAt.get(hostName(peer.slice(5)));
      return said === undefined ? this.#inForce(value) : said(value as unknown as CellPolicy);
    }
    if (kind !== "vm") return null;
    const vm = value as unknown as DesiredVm;
    const running: ActualVm = {
      phase: "ready",
      reason: null,
      incarnation: vm.incarnation,
      power: "on",
      ended: null,
      ...(this.older ? {} : { probes: vm.liveness ?? null, ...(vm.ready === undefined ? {} : { guest: "up" }) }),
      ...(vm.liveness === undefined ? {} : { health: "answering" }),
    };
    if (!this.desired.get(peer)?.has("policy/shop")) throw new Error(`${vm.path} is at ${peer} without a policy`);
    return { ...running, ...this.ended.get(`${vm.uid}@${vm.incarnation}`) };
  }

  #inForce(value: Json): ActualPolicy {
    const { version } = value as unknown as CellPolicy;
    return { version, phase: "ready", reason: null, ...(this.slices ? { slices: true } : {}) };
  }
  #volume(volume: DesiredVolume): ActualVolume {
    const origin = volume.origin.kind === "copy" ? volume.origin.volume : null;
    const waiting = this.slowVolumes.has(volume.uid) || (origin !== null && this.slowVolumes.has(origin));
    if (waiting) return { phase: "waiting", reason: "no server has room for it", server: null, sizeMiB: null };
    const copies = this.documents<DesiredVolume>("storage-manager", "volume");
    const isOrigin = copies.some((each) => each.origin.kind === "copy" && each.origin.volume === volume.uid);
    const frozen = isOrigin ? ({ frozen: true } as const) : {};
    const more = this.volumesAre.get(volume.uid);
    return {
      phase: "ready",
      reason: null,
      server: serverName("s1"),
      sizeMiB: volume.sizeMiB ?? 64,
      ...frozen,
      ...more,
    };
  }

  #place({ vm, incarnation, memoryMiB }: DesiredPlacement): ActualPlacement {
    const key = `${vm}@${incarnation}`;
    const before = this.#places.get(key);
    const used = (host: HostName): number =>
      [...(this.desired.get(peerName("placer")) ?? [])]
        .map(([, value]) => value as unknown as DesiredPlacement)
        .filter((other) => this.#places.get(`${other.vm}@${other.incarnation}`) === host)
        .reduce((sum, other) => sum + other.memoryMiB, 0);
    const host = before ?? [...this.hosts].find(([name, memory]) => memory - used(name) >= memoryMiB)?.[0] ?? null;
    const boot = this.#bootOfPlace.get(key) ?? (host === null ? undefined : this.boots.get(host));
    if (host !== null) this.#places.set(key, host);
    if (boot !== undefined) this.#bootOfPlace.set(key, boot);
    const refusals =
      host === null
        ? [...this.hosts].map(([name, memory]) => ({
            host: name,
            kind: "memory" as const,
            why: `needs ${memoryMiB} MiB, ${memory - used(name)} MiB free`,
            lifts: `ask for at most ${memory - used(name)} MiB`,
          }))
        : [];
    const placed = { phase: host === null ? "waiting" : "ready", reason: null, incarnation, host, refusals } as const;
    const leave = this.leaves.get(key);
    const more = { ...this.gives.get(vm), ...(leave === undefined ? {} : { leave }) };
    return boot === undefined ? { ...placed, ...more } : { ...placed, boot, ...more };
  }

  /** As state distribution does at a declared death: the peer is not heard, then all that it said goes. */
  withdraw(peer: PeerName): this {
    this.silent.add(peer);
    this.settle();
    const known = this.#actual.get(peer) ?? new Map();
    this.#actual.delete(peer);
    for (const key of known.keys()) this.step({ kind: "actual", from: peer, key: `${self}/${key}`, value: null });
    return this.settle();
  }

  /** Lets a back-off run out. */
  fire(name: string): this {
    this.timers.delete(name);
    this.step({ kind: "timer", name });
    return this.settle();
  }

  wait(ms: number): void {
    this.#ms += ms;
  }

  ask(request: object): ControllerResponse {
    this.#request += 1;
    const effects = this.step({ kind: "request", id: this.#request, request: toJson(request) });
    const reply = effects.find((effect) => effect.kind === "reply");
    if (reply?.kind !== "reply") throw new Error("the request was not answered");
    return reply.response as unknown as ControllerResponse;
  }

  put(json: JsonObject, allowDestroy: readonly string[] = []): ControllerResponse {
    const response = this.ask({ method: "PUT", path: "", json, allowDestroy });
    if (response.status !== 200) throw new Error(JSON.stringify(response.body));
    this.settle();
    return response;
  }

  documents<Document>(peer: string, kind: string): Document[] {
    return [...(this.desired.get(peerName(peer)) ?? [])]
      .filter(([key]) => key.startsWith(`${kind}/`))
      .map(([, value]) => value as unknown as Document);
  }

  vm(path: string): { host: string; document: DesiredVm } | null {
    for (const peer of this.desired.keys()) {
      const document = this.documents<DesiredVm>(peer, "vm").find((vm) => vm.path === path);
      if (document !== undefined) return { host: peer, document };
    }
    return null;
  }

  policy(host: string): CellPolicy | undefined {
    return this.documents<CellPolicy>(host, "policy")[0];
  }

  uidOf(path: string): Uid {
    const found = [...this.state.elements.values()].find((record) => record.path === path && !record.deleting);
    if (found === undefined) throw new Error(`${path} is no element`);
    return found.uid;
  }

  /** In words, for messages of tests and the one test of sentences. */
  phase(path: string): string {
    const { phase, causes } = this.recordOf(path);
    const reason = sentenceOf(causes);
    return reason === null ? `${phase}` : `${phase}: ${reason}`;
  }

  /** The same by kinds and facts, without anybody's prose: `waiting: waits-for shop/disk (said storage-manager)`. */
  standing(path: string): string {
    const { phase, causes } = this.recordOf(path);
    return causes.length === 0 ? `${phase}` : `${phase}: ${shownCauses(causes)}`;
  }

  /** The first cause, where it is of that kind. */
  cause<Kind extends CauseKind>(path: string, kind: Kind): CauseOf<Kind> {
    const found = this.recordOf(path).causes.find((cause) => cause.kind === kind);
    if (found === undefined) throw new Error(`${path} has no cause ${kind}: ${this.standing(path)}`);
    return found as CauseOf<Kind>;
  }

  recordOf(path: string): ElementRecord {
    const record = this.state.elements.get(this.uidOf(path));
    if (record === undefined) throw new Error(`${path} is no element`);
    return record;
  }

  phases(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.state.elements.values()].map(({ path }) => [path, this.phase(path)]));
  }
}

/** A Cell Manager makes a child as it is told. */
const childAnswer = (desired: Json): object => ({
  phase: "ready",
  reason: null,
  controller: "controller.web.shop",
  address: "10.0.3.9",
  version: 1,
  quota: null,
  services: { placer: 1, storageManager: 1, ...((desired as JsonObject).services as JsonObject | undefined) },
  ended: false,
});

/** Volumes of the shop that its VMs write. */
export const written: readonly string[] = ["shop/webDisk", "shop/dbDisk"];

/** Two web servers, one database, one subnet each; every VM on its own copy of a golden image. */
export function shop(changes: JsonObject = {}): JsonObject {
  const vm = (memory: number, more: JsonObject = {}): JsonObject => ({
    "x.type": "VM",
    "x.memory": memory,
    "x.desiredState": "on",
    "x.restartOnFailure": true,
    ...more,
  });
  const disk = (vmPath: string, volume: string): JsonObject => ({
    "x.type": "VolumeConnection",
    "x.vm": `<ref:${vmPath}>`,
    "x.volume": `<ref:${volume}>`,
    "x.busType": "virtio",
  });
  const card = (vmPath: string, subnet: string, name: string): JsonObject => ({
    "x.type": "VirtualInterface",
    "x.vm": `<ref:${vmPath}>`,
    "x.subnet": `<ref:${subnet}>`,
    "x.vifName": name,
  });
  const copy: JsonObject = { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>" };
  const subnet: JsonObject = { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" };
  return {
    shop: {
      "x.type": "Cell",
      "x.name": "shop",
      front: subnet,
      back: subnet,
      golden: { "x.type": "Volume", "x.size": 64, "x.import": "tiny" },
      webDisk: copy,
      dbDisk: copy,
      web: vm(1024),
      db: vm(2048),
      webBoot: disk("/shop/web", "/shop/webDisk"),
      dbBoot: disk("/shop/db", "/shop/dbDisk"),
      webCard: card("/shop/web", "/shop/front", "web"),
      dbCard: card("/shop/db", "/shop/back", "db"),
      toDb: {
        "x.type": "NetworkRule",
        "x.address1": "<ref:/shop/web>",
        "x.address2": "<ref:/shop/dbCard>",
        "x.protocol": "tcp",
        "x.port2": 5432,
      },
      ...changes,
    },
  };
}

/** @returns the UID of a volume that this store gave out, and whose end everybody has confirmed */
export function goneVolume(world: World): string {
  world.put(shop({ scratch: { "x.type": "Volume", "x.size": 8 } }));
  const volume = world.uidOf("shop/scratch");
  world.put(shop());
  world.settle();
  return volume;
}

/** What a parent has granted a child cell of a test. */
const childAmount = {
  vms: 9,
  memoryMiB: 4096,
  cpus: 9,
  volumes: 9,
  storageMiB: 4096,
  subnets: 9,
  addresses: 900,
  publicAddresses: 0,
};
export const childGrant = { amount: childAmount, serial: 1, answered: 0, refusal: null };
