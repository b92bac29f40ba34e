import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createAddressManager } from "../../core/address/manager.ts";
import { createCellManager } from "../../core/cells/manager.ts";
import { createController } from "../../core/controller/controller.ts";
import { options as controllerOptions, shop, World } from "../../core/controller/world.testing.ts";
import { createDirectory } from "../../core/directory/directory.ts";
import { textOf } from "../../core/distribution/node/frames.ts";
import { createNode, type Node, stepNode } from "../../core/distribution/node/node.ts";
import { storeKey } from "../../core/distribution/node/stored.ts";
import type { NodeInput } from "../../core/distribution/node/types.ts";
import { createDnsManager } from "../../core/dns/manager.ts";
import { kindOf, mayDesire, permissions, type ServiceKind } from "../../core/documents/permissions.ts";
import { actualDocuments, desiredDocuments, documentsOf } from "../../core/documents/readers/table.ts";
import { serviceRoles } from "../../core/documents/service-roles.ts";
import type { Service } from "../../core/env.ts";
import { createNetworkViewManager } from "../../core/eucalyptus/manager.ts";
import { createHaManager } from "../../core/ha/manager.ts";
import { createAuthorityService } from "../../core/identity/authority/authority.ts";
import { toJson } from "../../core/outbox.ts";
import { createPlacer } from "../../core/placer/placer.ts";
import { createPresence } from "../../core/presence/group/group.ts";
import { createAgentService } from "../../core/storage/agent/agent.ts";
import { createStorageManager } from "../../core/storage/manager/manager.ts";
import { createTenancy } from "../../core/tenancy/tenancy.ts";
import { desiredVm, host as hostOptions, policy, Room } from "../../host/service/manager.testing.ts";
import { createHostManager } from "../../host/service/manager.ts";
import { ipv4, type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { actualSamples, desiredSamples, want } from "./samples.ts";
import { type Spoiling, spoil, spoilings } from "./spoil.ts";

/**
 * Every service is given everything, under every key that a peer may put or publish there: good documents, good ones that were
 * spoiled in one place, any JSON, and the same out of its store at a start. No step may throw, each malformed one is counted,
 * and all that the service says and desires meanwhile passes its own readers.
 */
const hosts = [peerName("host.h2"), peerName("host.h3")];
let starts = 0;
const member = peerName("presence.1");
const create = (
  at: Exclude<ServiceKind, "gateway">,
): { readonly self: PeerName; readonly service: Service<unknown> } => {
  const made: { readonly [At in Exclude<ServiceKind, "gateway">]: () => readonly [string, unknown] } = {
    "address-manager": () => [
      "address-manager",
      createAddressManager({
        self: peerName("address-manager"),
        internalPool: "10.64.0.0/10",
        externalPool: "198.18.0.0/24",
        controllers: [],
      }),
    ],
    "dns-manager": () => ["dns-manager", createDnsManager({ self: peerName("dns-manager") })],
    placer: () => ["placer", createPlacer({ self: peerName("placer"), hosts, presence: [member] })],
    "storage-manager": () => [
      "storage-manager",
      createStorageManager({ self: peerName("storage-manager"), agents: [peerName("agent.s1")] }),
    ],
    agent: () => ["agent.s1", createAgentService({ server: "s1", address: ipv4("10.0.2.1"), firstPort: 20_000 })],
    host: () => ["host.h1", createHostManager({ host: hostOptions, wake: () => undefined, hasAuthority: true })],
    presence: () => [
      "presence.2",
      createPresence({ self: peerName("presence.2"), members: [member, peerName("presence.2")], hosts }),
    ],
    "ha-manager": () => [
      "ha-manager",
      createHaManager({
        self: peerName("ha-manager"),
        presence: [member],
        storageManagers: [peerName("storage-manager")],
        hosts,
      }),
    ],
    "network-view-manager": () => [
      "network-view-manager",
      createNetworkViewManager({
        self: peerName("network-view-manager"),
        hosts,
        address: "10.0.0.19",
        controllers: [],
      }),
    ],
    directory: () => ["directory", createDirectory({ self: peerName("directory") })],
    "cell-manager": () => ["cell-manager", createCellManager({ self: peerName("cell-manager"), firstNumber: 2 })],
    controller: () => [
      "controller.shop",
      createController({ ...controllerOptions, directory: true, cellManager: true, ha: true, child: true }),
    ],
    tenancy: () => ["tenancy", createTenancy({ self: peerName("tenancy") })],
    authority: () => ["authority", createAuthorityService({ self: peerName("authority") })],
  };
  const [self, service] = made[at]();
  return { self: peerName(self), service: service as Service<unknown> };
};
const kinds = Object.keys(permissions).filter((at): at is Exclude<ServiceKind, "gateway"> => at !== "gateway");

/** A document that a peer may send: what verb, from whom, under which key, and a good one. */
interface Sent {
  readonly verb: "desired" | "actual";
  readonly from: PeerName;
  readonly key: string;
  readonly good: Json;
}
const named: Readonly<Record<string, string>> = {
  controller: "controller.shop",
  host: "host.h2",
  agent: "agent.s1",
  presence: "presence.1",
};
const peerOf = (kind: string): PeerName => peerName(named[kind] ?? kind);

/** Of the table of permissions: every key that some peer may put there, and every one that some source may say to it. */
function everythingTo(at: ServiceKind, self: PeerName): readonly Sent[] {
  const desired = Object.entries<readonly string[]>(permissions[at].desires).flatMap(([who, patterns]) =>
    patterns.map((pattern): Sent => {
      const good = (desiredSamples[at] as Readonly<Record<string, Json>>)[pattern] ?? null;
      return { verb: "desired", from: peerOf(who), key: keyOf(pattern, self, good), good };
    }),
  );
  const actual = Object.entries(actualSamples).flatMap(([source, samples]) =>
    Object.entries<Json>(samples).flatMap(([pattern, good]): Sent[] => {
      const from = peerOf(source);
      return from === self ? [] : [{ verb: "actual", from, key: keyOf(pattern, self, good), good }];
    }),
  );
  // Fewer keys, and more behind each of them.
  return [...desired, ...desired, ...desired, ...actual];
}

/** One service behind state distribution, connected with everybody. */
class Bench {
  readonly at: ServiceKind;
  readonly self: PeerName;
  readonly store: Map<string, Json>;
  node: Node<unknown>;
  readonly #links = new Map<string, number>();
  readonly #timers = new Set<string>();
  #seq = 0;
  #ms = 1000;

  constructor(at: Exclude<ServiceKind, "gateway">, store: ReadonlyMap<string, Json>) {
    const { self, service } = create(at);
    this.at = at;
    this.self = self;
    this.store = new Map(store);
    // Whatever it follows by itself, here it follows everybody.
    const following: Service<unknown> = {
      ...service,
      step: (state, input, now) => {
        const { state: next, effects } = service.step(state, input, now);
        const sources = input.kind === "start" ? new Set(everythingTo(at, self).map(({ from }) => from)) : [];
        return {
          state: next,
          effects: [...effects, ...[...sources].map((to) => ({ kind: "subscribe", to, prefix: "" }) as const)],
        };
      },
    };
    this.node = createNode(following, this.store, self, { ms: 0, wallMs: 1000 }, `draw${starts++}`, [member]);
    this.input({ kind: "start" });
    if (at === "host") this.input({ kind: "request", id: 1, request: { kind: "found", machines: [] } });
    if (at === "host") this.input({ kind: "request", id: 2, request: { kind: "presence-follow", members: [member] } });
    for (const { from } of everythingTo(at, self))
      for (const role of ["client", "server"] as const) {
        const name = `${role} ${from}`;
        if (this.#links.has(name)) continue;
        const connection = this.#links.size + 1;
        this.#links.set(name, connection);
        this.input({ kind: "connected", connection, peer: from, role });
        const frame = { frame: "hello", version: 2, generation: 1, session: 1, name: from, life: 1 };
        this.input({ kind: "frame", connection, frame });
      }
  }
  input(input: NodeInput): void {
    this.#ms += 10;
    const output = stepNode(this.node, input, { ms: this.#ms, wallMs: this.#ms });
    for (const { key, value } of output.writes)
      if (value === null) this.store.delete(key);
      else this.store.set(key, structuredClone(value));
    for (const { name, afterMs } of output.timers)
      if (afterMs === null) this.#timers.delete(name);
      else this.#timers.add(name);
  }
  send({ verb, from, key }: Sent, value: Json): void {
    this.#seq += 1;
    const connection = this.#links.get(`${verb === "desired" ? "server" : "client"} ${from}`) ?? 0;
    const frame = { frame: verb === "desired" ? "desire" : "actual", key, seq: this.#seq, value };
    this.input({ kind: "frame", connection, frame });
  }
  /** What was refused for what is in it. JSON that is nested too deeply to be handled counts as too long. */
  get malformed(): number {
    const { refusals } = this.node.distribution;
    return (refusals.get("malformed document") ?? 0) + (refusals.get("value too long") ?? 0);
  }
  timers(): void {
    for (const name of [...this.#timers]) {
      this.#timers.delete(name);
      this.input({ kind: "timer", name });
    }
  }
  /** What it says and desires is as good as it demands of others. */
  check(): void {
    const { distribution, service, state } = this.node;
    service.measure?.(state);
    for (const [key, { value }] of distribution.published) {
      for (const { from } of everythingTo(this.at, this.self)) service.entitled(state, from, key);
      const read = documentsOf(this.at)("actual", this.self, key, value);
      assert.ok(read.ok, `it publishes ${key}: ${read.ok ? "" : read.error}`);
    }
    for (const [to, { documents }] of distribution.targets)
      for (const [key, { value }] of documents) {
        const at = kindOf(to) as ServiceKind;
        if (value === null || !mayDesire(at, this.self, key)) continue;
        const read = documentsOf(at)("desired", this.self, key, value);
        assert.ok(read.ok, `it desires ${key} of ${to}: ${read.ok ? "" : read.error}`);
      }
  }
}

/** The controller has a cell with everything in place, the others begin with nothing. */
/** What `<uid>`, `<name>` and `<cell>` stand for in the samples. */
const keyOf = (pattern: string, self: string, sample: Json): string => {
  const fields = sample as JsonObject;
  // A neighbour is named by its host, though the document says where that is.
  const named = pattern.includes("probe/") ? fields.host : pattern === "owner/<name>" ? fields.cell : undefined;
  const name = named ?? fields.file ?? fields.address ?? fields.host ?? fields.name ?? "x1";
  return pattern
    .replace("<peer>", self)
    .replace("<name>/…", `${want.domain}/${want.path}`)
    .replace("<uid>", "c1-4")
    .replace("<cell>/…", "shop/0-4.01")
    .replace("<cell>", "shop")
    .replace("<name>", String(name));
};

function storeOf(at: ServiceKind): ReadonlyMap<string, Json> {
  const store = new Map<string, Json>();
  if (at !== "controller") return store;
  const world = new World();
  world.put(shop());
  for (const [key, value] of world.records) store.set(storeKey.own(key), value);
  for (const [peer, documents] of world.desired)
    for (const [key, value] of documents) store.set(storeKey.out(peer, key), { value });
  return store;
}
/** The keys of what a controller has asked for, so that answers to it are about what it has. */
function asked(at: ServiceKind, self: PeerName, sent: readonly Sent[]): readonly Sent[] {
  if (at !== "controller") return sent;
  const store = [...storeOf(at).keys()].filter((key) => key.startsWith("out/")).map((key) => key.split("/"));
  return sent.flatMap((each) => {
    const [, area] = each.key.split("/");
    const mine = store.filter(([, , kind]) => each.key.startsWith(`${self}/`) && kind === area);
    if (mine.length === 0) return [each];
    return mine.slice(0, 4).map(([, , kind, uid]) => ({ ...each, key: `${self}/${kind}/${uid}` }));
  });
}

test("every key that the table of permissions allows has its reader, and a good document of each is read whole", () => {
  for (const at of Object.keys(permissions) as ServiceKind[]) {
    for (const patterns of Object.values<readonly string[]>(permissions[at].desires))
      for (const pattern of patterns) assert.ok(pattern in desiredDocuments[at], `${at} ${pattern}`);
    for (const patterns of Object.values<readonly string[]>(permissions[at].sees))
      for (const pattern of patterns)
        assert.ok(pattern.endsWith("…") || pattern in actualDocuments[at], `${at} ${pattern}`);
    const self = at === "gateway" ? peerName("gateway") : create(at).self;
    for (const { verb, from, key, good } of everythingTo(at, self)) {
      const read = documentsOf(at)(verb, from, key, good);
      assert.ok(read.ok, `${at} ${verb} ${key} of ${from}: ${read.ok ? "" : read.error}`);
      assert.equal(read.value, good, `${key}: nothing is left out`);
    }
  }
  const served = Object.keys(serviceRoles).filter((role) => !(kinds as readonly string[]).includes(role));
  assert.deepEqual(
    served,
    ["gateway", "personality.caas"],
    "a role is a service that is tried below, or has nothing of state distribution",
  );
});

for (const at of kinds)
  test(`property: nothing that is sent to a service ends its step: ${at}`, (context) => {
    const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
    context.diagnostic(`CELLS_SEED=${seed}`);
    const { self } = create(at);
    const sent = asked(at, self, everythingTo(at, self));
    const store = storeOf(at);
    const something = fc.record({ which: fc.nat(sent.length - 1), spoiling: spoilings });
    const made = ({ which, spoiling }: { readonly which: number; readonly spoiling: Spoiling }) => {
      const each = sent[which] ?? assert.fail();
      return { each, value: spoil(each.good, spoiling) };
    };
    fc.assert(
      fc.property(fc.array(something, { maxLength: 6 }), fc.array(something, { maxLength: 30 }), (stored, then) => {
        const before = new Map(store);
        for (const { each, value } of stored.map(made))
          if (each.verb === "desired" && value !== null)
            before.set(storeKey.in(each.from, each.key), { generation: 0, seq: 0, value });
        const bench = new Bench(at, before);
        bench.check();
        for (const { each, value } of then.map(made)) {
          const known = bench.malformed;
          const client = bench.node.distribution.clients.get(each.from)?.documents.get(each.key)?.text;
          bench.send(each, value);
          const isKnown = each.verb === "desired" && client === JSON.stringify(value);
          const isGood =
            value === null ||
            isKnown ||
            (textOf(value) !== null && documentsOf(at)(each.verb, each.from, each.key, value).ok);
          assert.equal(bench.malformed - known, isGood ? 0 : 1, `${each.verb} ${each.key}`);
        }
        bench.check();
        bench.timers();
        for (const each of sent) bench.send(each, each.good);
        bench.check();
        const again = new Bench(at, bench.store);
        again.check();
      }),
      { seed, numRuns: Number(process.env.CELLS_RUNS ?? 40), endOnFailure: false },
    );
  });

test("what a store holds and cannot be read is kept, and nothing that it is about ends", () => {
  // A host's own number of a cell goes with the cell's rules, which are no more in force than before they came.
  const records = (store: ReadonlyMap<string, Json>) =>
    [...store.keys()].filter((key) => key.startsWith("own/") && !key.startsWith("own/cell-number/"));
  for (const at of kinds) {
    const { self } = create(at);
    const before = new Bench(at, storeOf(at));
    for (const verb of ["actual", "desired", "actual"] as const)
      for (const each of everythingTo(at, self)) if (each.verb === verb) before.send(each, each.good);
    before.timers();
    const store = new Map(before.store);
    for (const [key, value] of store)
      if (key.startsWith("in/")) store.set(key, { ...(value as JsonObject), value: { form: "of another version" } });
    const after = new Bench(at, store);
    after.timers();
    const kept = new Set(after.store.keys());
    assert.deepEqual(
      records(store).filter((key) => !kept.has(key)),
      [],
      at,
    );
    for (const key of store.keys()) if (key.startsWith("in/")) assert.ok(kept.has(key), key);
  }
});

test("a machine whose stored document cannot be read goes on, and is told what to do by the next one that can", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", toJson(policy()));
  room.desire("vm/a", toJson(desiredVm("a", 1)));
  room.settle();
  assert.deepEqual([...room.machines], [["a", 1]]);
  room.documents.set("vm/a", { uid: "a", cell: "shop", incarnation: 1, power: "on" });
  room.boot();
  room.found();
  room.settle();
  assert.deepEqual([...room.machines], [["a", 1]]);
  room.desire("vm/a", toJson(desiredVm("a", 2)));
  room.settle();
  assert.deepEqual([...room.machines], [["a", 2]]);
  room.desire("vm/a", null);
  room.settle();
  assert.deepEqual([...room.machines], []);
});
