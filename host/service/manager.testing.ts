import assert from "node:assert/strict";
import type { ActualHost, ActualVm, CellPolicy, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect, Input } from "../../core/env.ts";
import {
  cellName,
  cidr,
  elementPath,
  hostName,
  ipv4,
  mac,
  type PeerName,
  peerName,
  type Uid,
  uid,
} from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostRequest, Outcome } from "../host-requests.ts";
import type { HostState } from "../known.ts";
import type { HealthChange } from "../liveness/liveness.ts";
import { createHostManager } from "./manager.ts";
import type { Action } from "./planner.ts";

export const host: ActualHost = {
  host: hostName("h1"),
  state: "up",
  address: ipv4("10.0.1.1"),
  mac: mac("02:00:00:00:01:01"),
  memoryMiB: 1000,
  reservedMiB: 200,
  cpus: 2,
  cpuSpeedMHz: 0,
  accelerator: "tcg",
};
export const shop = peerName("controller.shop");

export const desiredVm = (name: string, incarnation: number, changes: Partial<DesiredVm> = {}): DesiredVm => ({
  uid: uid(name),
  cell: cellName("shop"),
  path: elementPath(`shop/${name}`),
  name,
  incarnation,
  power: "on",
  memoryMiB: 100,
  cpus: 1,
  disks: [
    {
      connection: uid(`${name}-c`),
      busType: "virtio",
      busNumber: null,
      busSlot: null,
      bootOrder: null,
      readOnly: false,
      attachment: { volume: uid(`${name}-v`), epoch: incarnation, sizeMiB: 1, layers: [], boot: null },
    },
  ],
  interfaces: [
    {
      uid: uid(`${name}-i`),
      path: elementPath(`shop/${name}/nic`),
      mac: mac("02:00:00:00:00:01"),
      address: ipv4(`10.64.0.${name.charCodeAt(0)}`),
      prefixLength: 24,
      gateway: ipv4("10.64.0.1"),
      nameServer: ipv4("10.0.3.1"),
      hostName: name,
      domain: "shop.cells.internal",
      identity: 1,
      vmIdentity: 2,
      subnetIdentity: 3,
      audience: [hostName("h2")],
    },
  ],
  data: null,
  ...changes,
});
/** What is asked of that VM whether it lives, where nothing else is said than how. */
export const askedOf = (name: string): HealthChange["asked"] => ({
  interface: uid(`${name}-i`),
  protocol: "icmp",
  port: null,
});
export const policy = (hosts: readonly string[] = ["h1", "h2"]): CellPolicy => ({
  cell: cellName("shop"),
  cellNumber: 7,
  version: 1,
  rules: [],
  networks: [{ cidr: cidr("10.9.0.0/16"), identity: 9 }],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 8 },
  hosts: hosts.map(hostName),
});

/** The service with everything it has durable, and a machine room whose drivers answer as told. */
export class Room {
  readonly durable = new Map<string, Json>();
  readonly documents = new Map<string, Json>();
  readonly published = new Map<string, Json>();
  readonly subscribed = new Set<string>();
  /** VM → incarnation, and disks whose credentials are there. */
  readonly machines = new Map<Uid, number>();
  readonly credentials = new Set<Uid>();
  readonly startedOnce = new Set<string>();
  taps: readonly Uid[] = [];
  wallMs = 0;
  fails: (action: Action) => string | null = () => null;
  readonly log: string[] = [];
  /** Of the next step. */
  ms = 0;
  service = createHostManager({ host, wake: () => undefined });
  state: HostState = this.service.restore({ records: new Map(), desiredAt: new Map() });

  constructor() {
    this.boot();
  }
  /** `booted`: the machine has started since. */
  boot(booted?: boolean, switchedOff?: true): void {
    const off = switchedOff === undefined ? {} : { switchedOff };
    if (booted !== undefined) this.service = createHostManager({ host, wake: () => undefined, booted, ...off });
    this.published.clear();
    this.subscribed.clear();
    this.state = this.service.restore({ records: new Map(this.durable), desiredAt: new Map() });
    for (const [key, value] of this.documents) this.input({ kind: "desired", from: shop, key, value });
    this.input({ kind: "start" });
  }
  found(): void {
    const machines = [...this.machines].map(([vm, incarnation]) => ({ vm, incarnation, pid: 1 }));
    this.ask({ kind: "found", machines });
  }
  input(input: Input): readonly Effect[] {
    const { effects } = this.service.step(this.state, input, { ms: this.ms, wallMs: this.wallMs });
    for (const effect of effects) {
      if (effect.kind === "write" || effect.kind === "publish") {
        const map = effect.kind === "write" ? this.durable : this.published;
        if (effect.value === null) map.delete(effect.key);
        else map.set(effect.key, effect.value);
      }
      if (effect.kind === "subscribe") this.subscribed.add(effect.to);
      if (effect.kind === "unsubscribe") this.subscribed.delete(effect.to);
    }
    return effects;
  }
  desire(key: string, value: unknown, from: PeerName = shop): void {
    assert.ok(this.service.accepts(from, key));
    if (value === null) this.documents.delete(key);
    else this.documents.set(key, value as Json);
    this.input({ kind: "desired", from, key, value: value as Json });
  }
  ask(request: HostRequest): Json {
    const effects = this.input({ kind: "request", id: 1, request: request as unknown as Json });
    const reply = effects.find((effect) => effect.kind === "reply");
    assert.ok(reply !== undefined);
    return reply.response;
  }
  next(): readonly Action[] {
    return this.ask({ kind: "next" }) as unknown as readonly Action[];
  }
  /** What the drivers would do, checked as they would check it. */
  carryOut(action: Action): Outcome {
    this.log.push(action.kind === "implement-network" ? action.kind : `${action.kind} ${action.vm}`);
    const error = this.fails(action);
    switch (action.kind) {
      case "implement-network": {
        if (error === null) this.taps = action.global.interfaces.map(({ desired }) => desired.uid);
        const policies = action.global.policies.map(({ cell, version }) => ({ cell, version, problem: null }));
        const interfaces = this.taps.map((tap) => ({ interface: tap, tap, ready: true, reason: null }));
        const { kind, revision } = action;
        const tried = action.global.interfaces.map(({ desired }) => desired.uid);
        return error === null
          ? { kind, revision, allocation: { interfaces, policies }, error }
          : { kind, revision, allocation: { interfaces: [], policies: [] }, error, tried };
      }
      case "start-machine": {
        const { vm, desired } = action;
        assert.equal(this.machines.has(vm), false, "an older incarnation still runs");
        assert.equal(this.credentials.has(vm), false, "disks of an older incarnation are still held");
        const again = desired.restart !== "host" && this.startedOnce.has(`${vm} ${desired.incarnation}`);
        assert.ok(!again, "an incarnation started twice");
        this.startedOnce.add(`${vm} ${desired.incarnation}`);
        assert.ok(action.interfaces.every(({ tap }) => this.taps.includes(uid(tap))));
        assert.ok(this.durable.has(`machine/${vm}`), "started before it was written down");
        this.credentials.add(vm);
        if (error === null) this.machines.set(vm, desired.incarnation);
        break;
      }
      case "stop-machine":
        if (error === null) this.machines.delete(action.vm);
        break;
      case "grow-disk": {
        assert.ok(this.machines.has(action.vm), "a disk of a machine that does not run");
        const { disk, sizeMiB } = action;
        return { kind: action.kind, vm: action.vm, error, grown: { connection: disk.connection, sizeMiB } };
      }
      case "release-disks":
        assert.equal(this.machines.has(action.vm), false, "disks released under a running machine");
        if (error === null) this.credentials.delete(action.vm);
        break;
      case "withdraw-state":
      case "refuse-machine":
        assert.fail("the service keeps this one to itself");
    }
    return { kind: action.kind, vm: action.vm, error };
  }
  /** Until there is nothing left to do. */
  settle(): void {
    for (let round = 0; round < 100; round += 1) {
      const actions = this.next();
      if (actions.length === 0 && this.state.busy.size === 0) {
        const before = this.published.size + this.durable.size;
        assert.deepEqual(this.next(), []);
        if (this.published.size + this.durable.size === before) return;
      }
      for (const action of actions) this.ask({ kind: "done", outcome: this.carryOut(action) });
    }
    assert.fail("the plan never ends");
  }
  vm(name: string): ActualVm | undefined {
    return this.published.get(`${shop}/vm/${name}`) as ActualVm | undefined;
  }
}
