import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CellName,
  type ElementPath,
  ipv4,
  mac,
  type PeerName,
  peerName,
  uid,
} from "../../../model/cell/identifiers.ts";
import { noUsage } from "../../../model/check/check-limits.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import { settingsKey } from "../../documents/ha.ts";
import type { DesiredEnrolment } from "../../documents/identity.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { createCheckedController } from "../changes/agreement.ts";
import { rootMeans } from "../model/root.testing.ts";
import type { ControllerRequest, ControllerResponse } from "../requests/requests.ts";
import { servicesOf } from "../services/service-data.ts";
import { World } from "../world.testing.ts";

const [authority, cellManager, haManager] = [peerName("authority"), peerName("cell-manager"), peerName("ha-manager")];
const dnsManager = peerName("dns-manager");
const at = "10.0.0.40";

/** The root cell's controller, with what it desires at others. */
class Root {
  readonly #service = createCheckedController({
    cell: "root" as CellName,
    cellUid: uid("root"),
    cellNumber: 1,
    domain: "cells.internal",
    address: ipv4("10.0.0.31"),
    mac: mac("02:00:0a:00:03:01"),
    self: peerName("controller.root"),
    cellManager: true as const,
    root: rootMeans,
  });
  readonly desired = new Map<PeerName, Map<string, Json>>();
  state = this.#service.restore({ records: new Map(), desiredAt: new Map() });
  constructor() {
    this.#take(this.#service.step(this.state, { kind: "start" }, { ms: 0, wallMs: 0 }).effects);
    for (const peer of ["storage-manager", "address-manager", "dns-manager", "placer", "cell-manager"])
      this.#step({ kind: "reachable", peer: peerName(peer), reachable: true });
  }
  #take(effects: readonly Effect[]): readonly Effect[] {
    for (const effect of effects) {
      if (effect.kind !== "desire") continue;
      const documents = this.desired.get(effect.to) ?? new Map<string, Json>();
      this.desired.set(effect.to, documents);
      if (effect.value === null) documents.delete(effect.key);
      else documents.set(effect.key, effect.value);
    }
    return effects;
  }
  #step(input: Parameters<ReturnType<typeof createCheckedController>["step"]>[1]): readonly Effect[] {
    const { state, effects } = this.#service.step(this.state, input, { ms: 1, wallMs: 1 });
    this.state = state;
    return this.#take(effects);
  }
  /** With high availability, as the root controller's configuration begins it. */
  begin(): void {
    this.#step({ kind: "request", id: 1, request: { method: "HA" } });
  }
  ask(request: ControllerRequest): string {
    const effects = this.#step({ kind: "request", id: 1, request: toJson(request) });
    return said(effects.find((effect) => effect.kind === "reply")?.response as unknown as ControllerResponse);
  }
  put(json: JsonObject): string {
    return this.ask({ method: "PUT", path: "", json: { root: { "x.type": "Cell", ...json } } });
  }
  entrances(): [string, Json][] {
    return [...(this.desired.get(authority) ?? [])].filter(([key]) => key.startsWith("entrance/"));
  }
  cells(): [string, string | undefined][] {
    return [...(this.desired.get(cellManager)?.values() ?? [])].map((value) => {
      const { cell, gateway } = value as unknown as DesiredCell;
      return [cell, gateway];
    });
  }
}
/** "" for what was accepted, else every sentence of the refusal. */
const said = ({ status, body }: ControllerResponse): string => {
  if (status === 200) return "";
  const { error } = body as { error: { message: string; diagnostics?: readonly { message: string }[] } };
  return (error.diagnostics ?? []).map(({ message }) => message).join("\n") || error.message;
};
const child = (name: string, more: JsonObject = {}): JsonObject => ({
  "x.type": "CellController",
  "x.name": name,
  "x.cell": { [name]: { "x.type": "Cell" } },
  ...more,
});
const open: JsonObject = { "x.gateway": at };

test("the root cell's model says which child is the way in: to the child by its life, to everybody by the authority", () => {
  const root = new Root();
  assert.equal(root.put({ cells: { primary: child("primary", open), shop: child("shop") } }), "");
  assert.deepEqual(root.entrances(), [["entrance/primary", { address: at }]]);
  assert.deepEqual(root.cells(), [
    ["primary", at],
    ["shop", undefined],
  ]);
});

test("no other cell gives one, and the root cell one alone, at an address that is there and nobody else's", () => {
  const other = new World();
  const web = { shop: { "x.type": "Cell", "x.name": "shop", web: child("web", open) } };
  assert.match(said(other.ask({ method: "PUT", path: "", json: web })), /`shop\/web` has `x.gateway`, which only the/);
  const root = new Root();
  assert.match(
    root.put({ cells: { a: child("a", open), b: child("b", { "x.gateway": "10.0.0.41" }) } }),
    /^`root\/cells\/b` and `root\/cells\/a` both have `x.gateway`/,
  );
  for (const gateway of ["10.1.0.1", "10.0.0.1", "10.0.255.255"])
    assert.match(
      root.put({ a: child("a", { "x.gateway": gateway }) }),
      /is no usable address of the management network/,
    );
  assert.match(root.put({ a: child("a", { "x.gateway": "door" }) }), /must be an IPv4 address/);
  const tenants = new Root();
  assert.equal(tenants.put({ cells: { primary: child("primary") } }), "");
  const moved = { ...child("primary", open), "x.movedFrom": "root/cells/primary" };
  for (const cells of [{ primary: child("primary", open) }, { mine: moved, primary: null }])
    assert.match(tenants.put({ cells }), /is there already/, "nobody's cell becomes the way in afterwards");
  const taken = {
    net: { "x.type": "Subnet", "x.addressRange": "management" },
    vm: { "x.type": "VM", "x.memory": 64 },
    card: { "x.type": "VirtualInterface", "x.vm": "<ref:../vm>", "x.subnet": "<ref:../net>", "x.address": at },
  };
  assert.match(root.put({ ...taken, a: child("a", open) }), /The address `10\.0\.0\.40` is already that of/);
  assert.deepEqual(root.entrances(), []);
});

test("the HA Manager is told which cell is the way in, of which it holds nothing back", () => {
  const root = new Root();
  const told = (): unknown => root.desired.get(haManager)?.get(settingsKey);
  assert.equal(root.put({ cells: { shop: child("shop") } }), "");
  root.begin();
  assert.equal(told(), undefined, "all as preset, and no way in");
  assert.equal(root.put({ cells: { primary: child("primary", open), shop: child("shop") } }), "");
  assert.deepEqual(told(), { settings: {}, entrance: "primary" });
  assert.equal(root.put({ cells: { primary: child("primary"), front: child("front", { "x.gateway": at }) } }), "");
  assert.deepEqual(told(), { settings: {}, entrance: "front" });
});

test("the way in stays: its cell goes only together with the coming of another", () => {
  const root = new Root();
  assert.equal(root.put({ cells: { primary: child("primary", open), shop: child("shop") } }), "");
  const is = /^root\/cells\/primary is the way into this cloud, whose gateway is at 10\.0\.0\.40/;
  for (const refused of [
    root.ask({ method: "DELETE", path: "root/cells/primary" }),
    root.ask({ method: "DELETE", path: "" }),
    root.put({ cells: { primary: child("primary") } }),
    root.put({ cells: { primary: child("primary", { "x.gateway": "10.0.0.41" }) } }),
    root.put({ cells: { primary: child("other", open) } }),
  ])
    assert.match(refused, is);
  assert.match(
    root.put({ cells: { primary: child("primary"), shop: child("shop", open) } }),
    /^root\/cells\/shop is there already/,
  );
  // A specification that does not name it takes nothing away.
  assert.equal(root.put({ cells: {} }), "");
  assert.equal(root.ask({ method: "DELETE", path: "root/cells/shop" }), "");
  assert.deepEqual(root.cells(), [["primary", at]]);
  const front = child("front", { "x.gateway": "10.0.0.41" });
  assert.equal(root.put({ cells: { primary: child("primary"), front } }), "");
  assert.deepEqual(root.entrances(), [["entrance/front", { address: "10.0.0.41" }]]);
  assert.equal(root.ask({ method: "DELETE", path: "root/cells/primary" }), "");
  assert.deepEqual(root.cells(), [["front", "10.0.0.41"]]);
});

const card = (more: JsonObject = {}): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": "<ref:../gateway>",
  "x.subnet": "<ref:../net>",
  "x.address": at,
  ...more,
});
const gateway = (roles: JsonObject = { gateway: {} }): JsonObject => ({
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.restartOnFailure": true,
  "x.data": { service: { roles } },
});
/** It holds what it limits itself to, so that it need not ask for more. */
const limits = {
  "x.limits.vms": 9,
  "x.limits.memory": 2048,
  "x.limits.cpus": 9,
  "x.limits.storage": 4096,
  "x.limits.volumes": 9,
};
const shop = { "x.type": "Cell", "x.name": "shop", ...limits };
const primary = (more: JsonObject = {}): JsonObject => ({
  shop: {
    ...shop,
    net: { "x.type": "Subnet", "x.addressRange": "management" },
    gateway: gateway(),
    card: card(),
    ...more,
  },
});
const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as typeof noUsage;
const lifeOf = (more: object): Json => {
  const grant = { amount: room, serial: 1, answered: 0, refusal: null };
  return toJson({ uid: "root-1", model: { shop }, grant, ending: false, ...more });
};
/** The controller of a child of the root cell, which has heard its life. */
const childWorld = (life: object): World => {
  const world = new World({ child: true, services: rootMeans });
  world.step({ kind: "desired", from: cellManager, key: "life", value: lifeOf(life) });
  world.settle();
  return world;
};
const put = (world: World, json: JsonObject): string => {
  const answer = said(world.ask({ method: "PUT", path: "", json }));
  world.settle();
  return answer;
};

test("the child that is the way in has its gateway made a service and enrolled, by its own controller", () => {
  const world = childWorld({ gateway: at, model: primary() });
  const vm = world.vm("shop/gateway")?.document ?? assert.fail(world.phase("shop/gateway"));
  const id = world.uidOf("shop/gateway");
  const { credentialHashes, authority: known } = rootMeans;
  assert.deepEqual(vm.data, {
    format: 2,
    authority: known,
    domain: "cells.internal",
    roles: { gateway: { name: "gateway", token: `token ${id} 1 gateway`, gateway: { credentialHashes } } },
  });
  assert.deepEqual([vm.interfaces[0]?.management, vm.interfaces[0]?.address, vm.restart], [true, at, undefined]);
  const [enrolment] = world.documents<DesiredEnrolment>("authority", "enrolment");
  assert.deepEqual(
    [enrolment?.cell, enrolment?.grants.map(({ name, role, addresses }) => [name, role, addresses])],
    ["shop", [["gateway", "gateway", [at]]]],
  );
  world.crash();
  world.step({ kind: "desired", from: cellManager, key: "life", value: lifeOf({ gateway: at, model: primary() }) });
  world.settle();
  assert.equal(
    world.vm("shop/gateway")?.document.interfaces[0]?.management,
    true,
    "also after its controller's restart",
  );
  // It dies, and its own controller brings it back.
  world.ended.set(`${id}@1`, { phase: "failed", power: "off", ended: "crashed", reason: "gone" });
  world.settle();
  assert.equal(world.vm("shop/gateway")?.document.incarnation, 2);
});

test("what stands at the way in is told for its names by that child alone, and where that is by the root cell", () => {
  const doors = (world: World): Json => world.desired.get(dnsManager)?.get("doors") ?? null;
  const world = childWorld({ gateway: at, model: primary() });
  assert.deepEqual(doors(world), { address: at, roles: ["gateway"] });
  const beside = gateway({ gateway: {}, "personality.caas": {} });
  assert.equal(put(world, primary({ gateway: beside })), "");
  assert.deepEqual(doors(world), { address: at, roles: ["gateway", "personality.caas"] });
  assert.equal(put(world, primary()), "");
  assert.deepEqual(doors(world), { address: at, roles: ["gateway"] }, "it went with its line");
  const apart = childWorld({ gateway: at, model: primary(doorsApart()) });
  assert.deepEqual(doors(apart), { address: at, roles: ["gateway", "personality.caas"] }, "at the same address");
  assert.equal(doors(childWorld({ model: primary({ card: {}, net: {} }) })), null);

  const root = new Root();
  const zone = { "x.zone.name": "cloud.example.org", "x.zone.servers": "ns1.example.org" };
  const written = { ...zone, "x.zone.secondaries": ["10.0.0.9"] };
  const told = (): unknown => (root.desired.get(dnsManager)?.get("zone") as { entrance?: unknown })?.entrance;
  assert.equal(root.put({ ...written, cells: { primary: child("primary"), shop: child("shop") } }), "");
  assert.equal(told(), undefined);
  assert.equal(root.put({ ...written, cells: { front: child("front", open), shop: child("shop") } }), "");
  assert.deepEqual(told(), { cell: "front", address: at });
  assert.deepEqual(
    root.entrances(),
    [["entrance/front", { address: at, zone: "cloud.example.org" }]],
    "for certificates",
  );
});

test("nothing else of that child comes onto the management network, and its gateway stays there", () => {
  const world = childWorld({ gateway: at, model: primary() });
  assert.equal(world.state.model.version, 1);
  const other = { "x.type": "VM", "x.memory": 64 };
  const more = { other, otherCard: card({ "x.vm": "<ref:../other>", "x.address": "10.0.0.50" }) };
  assert.match(put(world, primary(more)), /`shop\/otherCard` puts shop\/other on the management network/);
  for (const roles of [{ gateway: {}, placer: {} }, { placer: {} }, {}])
    assert.match(put(world, primary({ gateway: gateway(roles) })), /`shop\/card` puts shop\/gateway on the management/);
  const moved = { card: card({ "x.address": "10.0.0.41" }) };
  assert.match(
    put(world, primary(moved)),
    /`shop\/card` has the address 10\.0\.0\.41, and the root cell lets this cell have/,
  );
  assert.match(put(world, { shop }), /has no gateway at 10\.0\.0\.40, and without/);
  assert.match(said(world.ask({ method: "DELETE", path: "" })), /the cell shop is the way into this cloud/);
  assert.match(said(world.ask({ method: "DELETE", path: "shop/card" })), /has no gateway at 10\.0\.0\.40/);
  assert.equal(put(world, primary({ gateway: { ...gateway(), "x.memory": 192 } })), "", "it may be changed");
  assert.equal(put(world, primary({ gateway: { ...gateway(), "x.memory": 192 }, other })), "");
  // The same roles elsewhere in the cell are refused at the VM: it has no other service.
  assert.equal(put(world, primary({ other: gateway({ placer: {} }) })), "");
  const { detail } = world.cause("shop/other", "services-malformed");
  assert.match(detail, /the role "placer", and a VM of this cell may have the gateway and personalities alone/);
});

const caas = { gateway: {}, "personality.caas": {} };
test("beside the gateway the way in may have personalities, enrolled under their own names at its address", () => {
  const world = childWorld({ gateway: at, model: primary() });
  assert.equal(put(world, primary({ gateway: gateway(caas) })), "");
  const id = world.uidOf("shop/gateway");
  world.ended.set(`${id}@1`, { phase: "failed", power: "off", ended: "stopped" });
  world.settle();
  const { roles } = (world.vm("shop/gateway")?.document.data ?? {}) as { readonly roles: JsonObject };
  assert.deepEqual(roles["personality.caas"], { name: "personality.caas", token: `token ${id} 2 personality.caas` });
  assert.deepEqual(
    world
      .documents<DesiredEnrolment>("authority", "enrolment")
      .map(({ grants: [grant] }) => [grant?.name, grant?.addresses]),
    [
      ["gateway", [at]],
      ["personality.caas", [at]],
    ],
  );
  for (const roles of [{ "personality.caas": {} }, { ...caas, placer: {} }, { ...caas, "personality.other": {} }])
    assert.match(put(world, primary({ gateway: gateway(roles) })), /`shop\/card` puts shop\/gateway on the management/);
  // Taken out again, its name ends with it.
  assert.equal(put(world, primary()), "");
  const names = world.documents<DesiredEnrolment>("authority", "enrolment").flatMap(({ grants }) => grants);
  assert.deepEqual(
    names.map(({ name }) => name),
    ["gateway"],
  );
});

test("CaaS keeps persistent volumes there by a credential of its own, which ends with its incarnation and opens nothing else", () => {
  const credential = (vm: string, incarnation: number, role: string) => ({
    token: `credential ${vm} ${incarnation} ${role}`,
    hash: `hash of ${vm} ${incarnation} ${role}`,
  });
  const world = new World({ child: true, services: { ...rootMeans, credential } });
  const model = primary({ gateway: gateway(caas) });
  world.step({ kind: "desired", from: cellManager, key: "life", value: lifeOf({ gateway: at, model }) });
  world.settle();
  const id = world.uidOf("shop/gateway");
  const { roles } = (world.vm("shop/gateway")?.document.data ?? {}) as { readonly roles: JsonObject };
  assert.deepEqual((roles["personality.caas"] as JsonObject).personality, {
    credential: `credential ${id} 1 personality.caas`,
  });
  assert.equal((roles.gateway as JsonObject).personality, undefined);
  const known = (hash: string): Json => world.ask({ method: "CREDENTIAL-KNOWN", hash }).body;
  const within = { path: "shop/volumes", access: "write" } as const;
  assert.deepEqual(known(`hash of ${id} 1 personality.caas`), { within });
  for (const other of [`hash of ${id} 2 personality.caas`, `hash of ${id} 1 gateway`, "hash"])
    assert.equal(known(other), false);
  const volume = { "x.type": "Volume", "x.size": 64 };
  const add = (path: string) =>
    world.ask({ method: "PATCH", path: "", patch: [{ op: "add", path, value: volume }], within }).status;
  assert.equal(add("/shop/volumes/one"), 200, "the place for them is made with the first one");
  assert.equal(add("/shop/one"), 403);
  world.settle();
  // The specification of the cell says nothing of them, and takes none away.
  assert.equal(put(world, primary({ gateway: gateway(caas) })), "");
  assert.ok(world.state.cell?.elements.has("shop/volumes/one" as ElementPath));
  world.ended.set(`${id}@1`, { phase: "failed", power: "off", ended: "crashed", reason: "gone" });
  world.settle();
  assert.deepEqual(
    [known(`hash of ${id} 1 personality.caas`), known(`hash of ${id} 2 personality.caas`)],
    [false, { within }],
  );
  assert.equal(put(world, primary()), "");
  assert.equal(known(`hash of ${id} 2 personality.caas`), false, "taken out of the model, it knows none");
  const tenant = childWorld({});
  assert.equal(tenant.ask({ method: "CREDENTIAL-KNOWN", hash: `hash of ${id} 1 personality.caas` }).body, false);
});

/** The gateway with a second interface, and CaaS behind it on a subnet of the cell's own. */
const doorsApart = (more: JsonObject = {}): JsonObject => ({
  gateway: gateway({ gateway: { inside: "10.64.0.2", doors: { "personality.caas": "10.64.0.3" } } }),
  doors: { "x.type": "Subnet", "x.cidr": "10.64.0.0/29" },
  toDoors: card({ "x.subnet": "<ref:../doors>", "x.address": "10.64.0.2" }),
  caas: gateway({ "personality.caas": { gateway: "10.64.0.2" } }),
  caasCard: card({ "x.vm": "<ref:../caas>", "x.subnet": "<ref:../doors>", "x.address": "10.64.0.3" }),
  ...more,
});

test("a personality in a VM of its own is known at the way in's address, is on no management network and is told the gateway alone", () => {
  const world = childWorld({ gateway: at, model: primary(doorsApart()) });
  assert.equal(world.state.model.version, 1);
  const own = world.vm("shop/caas")?.document ?? assert.fail(world.phase("shop/caas"));
  const id = world.uidOf("shop/caas");
  assert.deepEqual(
    own.interfaces.map(({ address, management }) => [address, management]),
    [["10.64.0.3", undefined]],
  );
  assert.deepEqual(own.data, {
    format: 2,
    authority: { address: "10.64.0.2", fingerprint: rootMeans.authority.fingerprint },
    domain: "cells.internal",
    roles: {
      "personality.caas": {
        name: "personality.caas",
        token: `token ${id} 1 personality.caas`,
        personality: { gateway: "10.64.0.2" },
      },
    },
  });
  const { roles } = (world.vm("shop/gateway")?.document.data ?? {}) as { readonly roles: JsonObject };
  assert.deepEqual((roles.gateway as JsonObject).gateway, {
    credentialHashes: rootMeans.credentialHashes,
    inside: "10.64.0.2",
    doors: { "personality.caas": "10.64.0.3" },
  });
  const grants = world.documents<DesiredEnrolment>("authority", "enrolment").flatMap((each) => each.grants);
  assert.deepEqual(grants.map(({ name, addresses }) => [name, addresses]).sort(), [
    ["gateway", [at]],
    ["personality.caas", [at]],
  ]);
});

test("a door apart is refused on the management network, and so is a gateway that could not serve it", () => {
  const world = childWorld({ gateway: at, model: primary() });
  /** What is taken waits for its addresses. */
  const refusal = (json: JsonObject): string => {
    try {
      return put(world, json);
    } catch {
      return "";
    }
  };
  const there = { caasCard: card({ "x.vm": "<ref:../caas>", "x.address": "10.0.0.50" }) };
  assert.match(put(world, primary(doorsApart(there))), /`shop\/caasCard` puts shop\/caas on the management network/);
  for (const toDoors of [
    card({ "x.subnet": "<ref:../doors>", "x.address": "10.64.0.4" }),
    card({ "x.vm": "<ref:../caas>", "x.subnet": "<ref:../doors>", "x.address": "10.64.0.2" }),
  ])
    assert.match(
      refusal(primary(doorsApart({ toDoors }))),
      /`shop\/gateway` would serve its doors at "10.64.0.2", and has no/,
    );
  const known = gateway({ gateway: { inside: at, doors: {} } });
  assert.match(refusal(primary({ gateway: known })), /would serve its doors at "10.0.0.40", and has no interface of/);
  assert.equal(childWorld({ gateway: at, model: primary(doorsApart()) }).state.model.version, 1);
});

test("what is written of doors apart is read as a whole, or refused with its place", () => {
  const { root: _root, ...options } = new World({ root: rootMeans }).state.options;
  const fault = (roles: JsonObject): string => {
    const read = servicesOf(options, { service: { roles } });
    return read.ok ? "" : read.error;
  };
  const door = { "personality.caas": "10.64.0.3" };
  for (const [roles, words] of [
    [{ gateway: { inside: "10.64.0.2" } }, /gateway, needs both: inside, .* and doors/],
    [{ gateway: { doors: door } }, /gateway, needs both/],
    [{ gateway: { inside: "here", doors: door } }, /gateway, needs both/],
    [{ gateway: { inside: "10.64.0.2", doors: { placer: "10.64.0.3" } } }, /door "placer", which is no personality/],
    [{ gateway: { inside: "10.64.0.2", doors: { "personality.caas": 3 } } }, /no IPv4 address of its door/],
    [{ gateway: { inside: "10.64.0.2", doors: door }, "personality.caas": {} }, /among the doors of other VMs/],
    [{ gateway: {}, "personality.caas": { gateway: "10.64.0.2" } }, /with a gateway elsewhere, and has one itself/],
    [{ "personality.caas": { gateway: "x" } }, /has a gateway that is no IPv4 address/],
    [{ "personality.caas": { gateway: "10.64.0.2" }, placer: {} }, /the role "placer", and a VM of this cell may/],
  ] as const)
    assert.match(fault(roles), words);
  assert.equal(fault({ "personality.caas": { gateway: "10.64.0.2" } }), "");
});

test("the root cell has no personality, and none stands without the gateway", () => {
  const data = (roles: JsonObject): JsonObject => ({ service: { roles } });
  const options = new World({ root: rootMeans }).state.options;
  const { root: _root, ...others } = options;
  const fault = (roles: JsonObject, of = options): string => {
    const read = servicesOf(of, data(roles));
    return read.ok ? "" : read.error;
  };
  assert.match(fault(caas), /"personality.caas", which stands beside the gateway of the cell that is the way in/);
  assert.match(fault({ "personality.caas": {} }, others), /personality.caas, which stands beside the gateway: add/);
  assert.match(fault({ gateway: {}, "personality.x": {} }, others), /"personality.x", which there is not/);
  assert.equal(fault(caas, others), "");
});

test("a child without that right has no management network and no services, whatever it writes", () => {
  const world = childWorld({});
  assert.match(put(world, primary()), /`shop\/net` is on the management network, which only the operator's root cell/);
  const data = { "x.type": "VM", "x.memory": 64, "x.data": { service: { roles: { gateway: {} } } } };
  assert.equal(put(world, { shop: { ...shop, vm: data } }), "");
  assert.deepEqual(world.vm("shop/vm")?.document.data, { service: { roles: { gateway: {} } } });
  assert.deepEqual(world.documents("authority", "enrolment"), []);
});

test("a right that was taken away: the gateway is enrolled no more and does not start again", () => {
  const world = childWorld({ gateway: at, model: primary() });
  const id = world.uidOf("shop/gateway");
  world.step({ kind: "desired", from: cellManager, key: "life", value: lifeOf({ model: primary() }) });
  world.settle();
  assert.deepEqual(world.documents("authority", "enrolment"), []);
  world.ended.set(`${id}@1`, { phase: "failed", power: "off", ended: "crashed", reason: "gone" });
  world.settle();
  assert.equal(world.standing("shop/gateway"), "waiting: waits-for shop/card (not-on-management)");
  assert.equal(said(world.ask({ method: "DELETE", path: "" })), "", "and the cell may end");
});
