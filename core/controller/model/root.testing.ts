import { cellName, cidr, ipv4, mac, type PeerName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import type { Effect, Input } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import type { ControllerRequest, ControllerResponse } from "../requests/requests.ts";
import type { RootOptions } from "../state.ts";

const cellManager = peerName("cell-manager");
const presence = peerName("presence.1");
const services = ["storage-manager", "address-manager", "dns-manager", "placer", "cell-manager"];

/** What the root cell's controller has beside the others'. Its tokens say whose they are. */
export const rootMeans: RootOptions = {
  management: cidr("10.0.0.0/16"),
  authority: { address: ipv4("10.0.0.31"), fingerprint: "ab".repeat(32) },
  credentialHashes: ["0".repeat(64)],
  token: (vm, incarnation, role) => ({
    token: `token ${vm} ${incarnation} ${role}`,
    hash: `hash ${vm} ${incarnation} ${role}`,
  }),
};

/** The controller of the root cell over a store of the test, with nobody but the test around it. */
export class Root {
  readonly #service: ReturnType<typeof createCheckedController>;
  readonly records = new Map<string, Json>();
  readonly #taken = new Map<string, Input>();
  readonly published = new Map<string, Json>();
  readonly desired = new Map<PeerName, Map<string, Json>>();
  #state: ReturnType<ReturnType<typeof createCheckedController>["restore"]>;

  constructor(means?: RootOptions) {
    this.#service = createCheckedController({
      cell: cellName("root"),
      cellUid: uid("root"),
      cellNumber: 1,
      domain: "cells.internal",
      address: ipv4("10.0.3.1"),
      mac: mac("02:00:0a:00:03:01"),
      self: peerName("controller.root"),
      cellManager: true,
      presence: [presence],
      ...(means === undefined ? {} : { root: means }),
    });
    this.#state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
    this.#begin();
  }
  #begin(): void {
    // What others desire of it is durable.
    for (const input of this.#taken.values()) this.step(input);
    this.step({ kind: "start" });
    this.hearCells();
    for (const peer of services) this.step({ kind: "reachable", peer: peerName(peer), reachable: true });
  }
  crash(): void {
    this.published.clear();
    this.#state = this.#service.restore({
      records: structuredClone(this.records),
      desiredAt: structuredClone(this.desired),
    });
    this.#begin();
  }
  step(input: Input): readonly Effect[] {
    if (input.kind === "desired" && input.value === null) this.#taken.delete(`${input.from} ${input.key}`);
    else if (input.kind === "desired") this.#taken.set(`${input.from} ${input.key}`, input);
    const { state, effects } = this.#service.step(this.#state, input, { ms: 1, wallMs: 1 });
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === "write" && effect.value === null) this.records.delete(effect.key);
      else if (effect.kind === "write") this.records.set(effect.key, structuredClone(effect.value));
      if (effect.kind === "publish" && effect.value === null) this.published.delete(effect.key);
      else if (effect.kind === "publish") this.published.set(effect.key, effect.value);
      if (effect.kind !== "desire") continue;
      const documents = this.desired.get(effect.to) ?? new Map<string, Json>();
      this.desired.set(effect.to, documents);
      if (effect.value === null) documents.delete(effect.key);
      else documents.set(effect.key, structuredClone(effect.value));
    }
    return effects;
  }
  entitled = (peer: string, key: string): boolean => this.#service.entitled(this.#state, peerName(peer), key);
  ask(request: ControllerRequest): ControllerResponse {
    const effects = this.step({ kind: "request", id: 1, request: toJson(request) });
    const reply = effects.find((effect) => effect.kind === "reply");
    if (reply === undefined) throw new Error("there was no reply");
    return reply.response as unknown as ControllerResponse;
  }
  put(path: string, json: JsonObject): ControllerResponse {
    const answer = this.ask({ method: "PUT", path, json });
    this.hearCells();
    return answer;
  }
  /** What it desires of a service, by what its keys begin with, in the order of their UIDs. */
  at = <T>(peer: string, prefix: string): readonly T[] =>
    [...(this.desired.get(peerName(peer)) ?? [])]
      .filter(([key]) => key.startsWith(prefix))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, value]) => value as unknown as T);
  /** The Cell Manager says of every child cell that it is there, with what it holds of its grant and asks for. */
  hearCells(quotas: Readonly<Record<string, Json>> = {}): void {
    for (const [key, { cell, grant }] of this.#cells()) {
      const none = { serial: grant.serial, holds: toJson(grant.amount), asks: null };
      this.#says(key, {
        phase: "ready",
        controller: `controller.${cell}`,
        quota: quotas[cell] === undefined ? none : quotas[cell],
        ended: false,
      });
    }
  }
  /** And of every one that is to end that nothing is left of it. */
  endAll(): void {
    for (const [key, { cell, ending }] of this.#cells()) {
      if (ending !== true) continue;
      this.#says(key, { phase: "deleting", controller: `controller.${cell}`, quota: null, ended: true });
      this.step({ kind: "released", peer: cellManager, key });
      this.step({ kind: "actual", from: cellManager, key: `controller.root/${key}`, value: null });
    }
  }
  /** The Placer says which hosts there are; `complete` false: it has not heard all of them. */
  hearHosts(names: readonly string[], complete = true, memory: Readonly<Record<string, number>> = {}): void {
    const hosts = names.map((host) => ({ host, memoryMiB: memory[host] ?? 4000, cpus: 16, cpuSpeedMHz: 2000 }));
    this.step({ kind: "actual", from: peerName("placer"), key: "hosts", value: { hosts, complete } });
  }
  /** A child cell says which pools it has; `name`: of its PoolHosts, whose UIDs are the child's with that behind. */
  hearPools(name: string, hosts: readonly JsonObject[], authorised?: readonly string[], wishes: JsonObject = {}): void {
    for (const [key, { cell, grant, uid }] of this.#cells()) {
      if (cell !== name) continue;
      const quota = { serial: grant.serial, holds: toJson(grant.amount), asks: null };
      const pool = {
        uid: wishes.uid ?? `${uid}-pool`,
        path: `${name}/racks`,
        ...(authorised === undefined ? {} : { authorised: [...authorised] }),
        ...wishes,
        hosts: hosts.map((host) => ({ flavor: "large", enabled: false, ...host, uid: `${uid}-${host.name}` })),
      };
      this.#says(key, { phase: "ready", controller: `controller.${cell}`, quota, ended: false, pools: [pool] });
    }
  }
  /** What such a cell hears of them. */
  poolsOf = (name: string): DesiredCell["pools"] => this.#cells().find(([, { cell }]) => cell === name)?.[1].pools;
  /** The Placer says what stands at a host, and by which of the root controller's words; absent: by the present one. */
  hearStanding(host: string, vms: readonly string[], tag?: string | null): void {
    const pooled = this.at<{ readonly host: string; readonly tag: string }>("placer", "pooled/");
    const present = pooled.find((each) => each.host === host)?.tag ?? null;
    const value = toJson({ vms, tag: tag === undefined ? present : tag });
    this.step({ kind: "actual", from: peerName("placer"), key: `controller.root/standing/${host}`, value });
  }
  /** The only member of the Presence group declares a host dead. */
  declareDead(host: string): void {
    const value = { host, generation: 1, incarnation: 0, declaredAt: 1, reporters: 1 };
    this.step({ kind: "actual", from: presence, key: `dead/${host}`, value });
  }
  /** All elements of the model, with what is written in each. */
  model(path = ""): Json {
    return this.ask({ method: "GET", path }).body;
  }
  #cells = (): (readonly [string, DesiredCell])[] =>
    [...(this.desired.get(cellManager) ?? [])].map(([key, value]) => [key, value as unknown as DesiredCell]);
  #says(key: string, said: JsonObject): void {
    const value = { reason: null, address: null, version: 1, services: { placer: 1, storageManager: 1 }, ...said };
    this.step({ kind: "actual", from: cellManager, key: `controller.root/${key}`, value });
  }
}

/** A CellController, of an account or of the operator. */
export const childOf = (name: string, account?: string, cell: JsonObject = {}): JsonObject => ({
  "x.type": "CellController",
  "x.name": name,
  "x.cell": { [name]: { "x.type": "Cell", ...cell } },
  ...(account === undefined ? {} : { "x.account": account }),
});
/** The root cell with a VM that is the service of users. */
export const rootWithTenancy = (more: JsonObject = {}): JsonObject => ({
  root: {
    "x.type": "Cell",
    core: {
      "x.type": "VM",
      "x.memory": 160,
      "x.desiredState": "off",
      "x.data": { service: { roles: { tenancy: {} } } },
    },
    ...more,
  },
});
