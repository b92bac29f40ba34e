import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type PeerName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredEnrolment } from "../../documents/identity.ts";
import { serviceRoles } from "../../documents/service-roles.ts";
import type { DesiredVm } from "../../documents/vocabulary.ts";
import { rootMeans } from "../model/root.testing.ts";
import type { ControllerOptions, RootOptions } from "../state.ts";
import { World } from "../world.testing.ts";
import { serviceData, servicesOf } from "./service-data.ts";

const own = { cell: "shop", cellUid: "c1", cellNumber: 7 };
const service = (roles: JsonObject): JsonObject => ({ service: { roles } });
const vm = (roles: JsonObject): JsonObject => ({
  "x.type": "VM",
  "x.memory": 160,
  "x.desiredState": "on",
  "x.restartOnFailure": true,
  "x.data": service(roles),
});
const card = (path: string): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:/${path}>`,
  "x.subnet": "<ref:/shop/net>",
});
/** A cell of service VMs, each with one interface. */
const cell = (vms: Readonly<Record<string, JsonObject>>): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    ...vms,
    ...Object.fromEntries(Object.keys(vms).map((name) => [`${name}Card`, card(`shop/${name}`)])),
  },
});
const enrolments = (world: World): Readonly<Record<string, readonly PeerName[]>> =>
  Object.fromEntries(
    [...(world.desired.get(peerName("authority")) ?? [])].map(([key, value]) => [
      key,
      (value as unknown as DesiredEnrolment).grants.map(({ name }) => name),
    ]),
  );
const vmOf = (world: World, path: string): DesiredVm => {
  const found = world.vm(path)?.document;
  assert.ok(found !== undefined, `${path}: ${world.phase(path)}`);
  return found;
};

test("the guest of a service VM is told its roles, and the authority whom it may enrol", () => {
  const world = new World({ root: rootMeans });
  world.put(cell({ core: vm({ presence: { number: 2 }, controller: own, authority: {}, gateway: {} }) }));
  const { data, restart } = vmOf(world, "shop/core");
  const id = world.uidOf("shop/core");
  const credentialHashes = rootMeans.credentialHashes;
  assert.deepEqual(data, {
    format: 2,
    authority: rootMeans.authority,
    domain: "cells.internal",
    roles: {
      controller: {
        name: "controller.shop",
        token: `token ${id} 1 controller`,
        controller: { ...own, domain: "cells.internal", credentialHashes, root: true },
      },
      presence: { name: "presence.2", token: `token ${id} 1 presence` },
      authority: { name: "authority" },
      gateway: { name: "gateway", token: `token ${id} 1 gateway`, gateway: { credentialHashes } },
    },
  });
  assert.equal(restart, "host", "nobody else could start the controller of the cell that it is in");
  const documents = world.documents<DesiredEnrolment>("authority", "enrolment");
  assert.deepEqual(documents.map(({ grants }) => grants[0]?.name).sort(), ["controller.shop", "gateway", "presence.2"]);
  const controller = documents.find(({ grants }) => grants[0]?.role === "controller");
  assert.equal(controller?.grants[0]?.cellUid, own.cellUid);
  const presence = documents.find(({ grants }) => grants[0]?.role === "presence");
  const grant = { name: "presence.2", role: "presence", addresses: ["10.64.0.2"], ports: serviceRoles.presence };
  assert.deepEqual(presence, {
    hash: `hash ${id} 1 presence`,
    cell: "shop",
    grants: [grant],
    endsAtMs: presence?.endsAtMs,
  });
  assert.ok((presence?.endsAtMs ?? 0) > 1_700_000_000_000);
});

test("a new incarnation has new tokens under the same keys; the end of the VM takes them back", () => {
  const world = new World({ root: rootMeans });
  world.put(cell({ names: vm({ "dns-manager": {} }), places: vm({ placer: {} }) }));
  const before = enrolments(world);
  assert.equal(Object.keys(before).length, 2);
  const ends = world.documents<DesiredEnrolment>("authority", "enrolment").map(({ endsAtMs }) => endsAtMs);
  world.crash();
  world.settle();
  assert.deepEqual(
    world.documents<DesiredEnrolment>("authority", "enrolment").map(({ endsAtMs }) => endsAtMs),
    ends,
    "a restart of the controller is no news for the authority",
  );
  const { uid: id } = vmOf(world, "shop/names");
  world.ended.set(`${id}@1`, { phase: "failed", power: "off", ended: "crashed", reason: "gone" });
  world.settle();
  assert.equal(vmOf(world, "shop/names").incarnation, 2);
  assert.deepEqual(enrolments(world), before);
  const hashes = world.documents<DesiredEnrolment>("authority", "enrolment").map(({ hash }) => hash);
  assert.ok(hashes.includes(`hash ${id} 2 dns-manager`), hashes.join());
  world.put(cell({ places: vm({ placer: {} }) }));
  assert.deepEqual(Object.values(enrolments(world)), [["placer"]]);
});

test("a service VM whose token was refused says so, with what helps", () => {
  const world = new World({ root: rootMeans });
  world.put(cell({ core: vm({ presence: { number: 2 } }) }));
  assert.equal(world.phase("shop/core"), "ready");
  const [key = ""] = Object.keys(enrolments(world));
  const says = (value: JsonObject): void => {
    world.step({ kind: "actual", from: peerName("authority"), key: `controller.shop/${key}`, value });
  };
  says({ phase: "waiting", reason: "nobody has shown the token yet", key: null });
  assert.equal(world.phase("shop/core"), "ready");
  says({ phase: "failed", reason: "the token was spent by another key", key: "ab".repeat(32) });
  assert.equal(world.standing("shop/core"), "ready: enrolment-refused presence.2 (said authority)");
  const why = JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/core" }).body);
  assert.match(why, /held up at \\"enrolment\\": presence\.2 cannot enrol.*the next incarnation has a new token/);
  says({ phase: "ready", reason: null, key: "ab".repeat(32) });
  assert.equal(world.phase("shop/core"), "ready");
});

test("the root controller's HA Manager enrols with it, over a key of its own; no VM has that role by its x.data", () => {
  const world = new World({ root: { ...rootMeans, ha: { hash: "hash of ha" } } });
  world.put(cell({ core: vm({ controller: own }), places: vm({ placer: {} }) }));
  const named = (name: string): readonly DesiredEnrolment[] =>
    world
      .documents<DesiredEnrolment>("authority", "enrolment")
      .filter(({ grants }) => grants.some((grant) => grant.name === name));
  const address = named("controller.shop")[0]?.grants[0]?.addresses;
  const [only, ...more] = named("ha-manager");
  const grant = { name: "ha-manager", role: "ha-manager", addresses: address, ports: serviceRoles["ha-manager"] };
  assert.deepEqual([only?.hash, only?.grants, more], ["hash of ha", [grant], []]);
  const { data } = vmOf(world, "shop/core");
  assert.deepEqual(Object.keys((data as { roles: JsonObject }).roles), ["controller"]);
  world.crash();
  world.settle();
  assert.deepEqual(named("ha-manager"), [only]);
  world.put(cell({ core: vm({ controller: own }), places: vm({ "ha-manager": {} }) }));
  assert.doesNotThrow(() => world.cause("shop/places", "services-malformed"));
  assert.match(world.cause("shop/places", "services-malformed").detail, /runs with the root controller in any case/);
  world.put(cell({ core: vm({ controller: own }), places: vm({ "ha-manager": { number: 1 } }) }));
  assert.match(
    world.cause("shop/places", "services-malformed").detail,
    /a number from 2 to 9999; the first one has none/,
  );
  world.put(cell({ core: vm({ controller: own }), places: vm({ "ha-manager": { number: 2 } }) }));
  assert.deepEqual(
    named("ha-manager.2").map(({ grants }) => grants[0]?.role),
    ["ha-manager"],
  );
  assert.deepEqual(named("ha-manager"), [only]);
  const without = new World({ root: rootMeans });
  without.put(cell({ core: vm({ controller: own }) }));
  assert.deepEqual(Object.values(enrolments(without)), [["controller.shop"]]);
});

test("another cell's controller is no matter of this VM's host, and its certificate is of that cell", () => {
  const world = new World({ root: rootMeans });
  world.put(cell({ other: vm({ controller: { cell: "bank", cellUid: "c9", cellNumber: 9 } }) }));
  assert.equal(vmOf(world, "shop/other").restart, undefined);
  const [document] = world.documents<DesiredEnrolment>("authority", "enrolment");
  assert.equal(document?.cell, "bank");
  assert.equal(document?.grants[0]?.name, "controller.bank");
});

test("a controller is told which of several services its cell is bound to", () => {
  const world = new World({ root: rootMeans });
  const bound = { cell: "bank", cellUid: "c9", cellNumber: 9, placer: 2, storageManager: 3, networkMode: "EDGE" };
  world.put(cell({ other: vm({ controller: bound }) }));
  const told = vmOf(world, "shop/other").data as { roles: { controller: { controller: JsonObject } } };
  const { placer, storageManager, networkMode } = told.roles.controller.controller;
  assert.deepEqual({ placer, storageManager, networkMode }, { placer: 2, storageManager: 3, networkMode: "EDGE" });
});

test("two VMs cannot have one name: the second waits until the first is gone", () => {
  const world = new World({ root: rootMeans });
  world.put(cell({ first: vm({ placer: {} }) }));
  world.slowStops.add("h1" as never);
  world.put(cell({ second: vm({ placer: {} }), first: vm({ placer: {} }) }));
  const taken = "waiting: service-name-taken placer shop/first numbered=true";
  assert.equal(world.standing("shop/second"), taken);
  world.put(cell({ second: vm({ placer: {} }) }));
  assert.equal(world.standing("shop/second"), taken, "the first one still runs");
  assert.deepEqual(Object.values(enrolments(world)), [["placer"]]);
  world.slowStops.clear();
  world.settle();
  assert.equal(world.standing("shop/second"), "ready");
  assert.equal(world.put(cell({ a: vm({ presence: { number: 1 } }), b: vm({ presence: { number: 1 } }) })).status, 200);
  const phases = ["shop/a", "shop/b"].map((path) => world.phase(path).split(":")[0]);
  assert.deepEqual(phases.sort(), ["ready", "waiting"], "of two new ones one starts");
});

test("a VM whose roles are wrong waits and says why; nothing of it is enrolled", () => {
  const wrong: readonly (readonly [JsonObject, RegExp])[] = [
    [service({ placre: {} }), /names the role "placre", which there is not; there are controller, storage-manager/],
    [service({}), /names no role/],
    [{ ...service({ placer: {} }), size: 3 }, /"size" beside "service"/],
    [{ service: { roles: { placer: {} }, more: 1 } }, /must have the form service \{ roles \{ placer/],
    [{ service: 3 }, /must have the form/],
    [service({ presence: {} }), /service:roles:presence, needs a number from 1 to 9999$/],
    [service({ placer: { number: 1 } }), /needs a number from 2 to 9999; the first one has none/],
    [service({ gateway: { number: 2 } }), /has "number", which is not known there; known are inside, doors$/],
    [service({ controller: { ...own, cellUid: "c2" } }), /must have cellUid "c1" and cellNumber 7/],
    [service({ controller: { ...own, cell: "A b" } }), /needs the name of its cell/],
    [service({ controller: { cell: "x", cellUid: "c3" } }), /needs the number of its cell/],
    [service({ controller: { ...own, placer: 2 } }), /bound to the first ones: leave out placer$/],
    [
      service({ controller: { ...own, cell: "x", storageManager: 0 } }),
      /storageManager that is no number from 1 to 9999$/,
    ],
    [service({ controller: { ...own, networkMode: "EDGE" } }), /whose networks are Diverter's: leave out networkMode$/],
    [service({ controller: { ...own, cell: "x", networkMode: "X" } }), /networkMode that is none of EDGE, MANAGED/],
    [service({ controller: own, "dns-manager": {} }), /controller and dns-manager both answer DNS at port 53/],
  ];
  for (const [data, words] of wrong) {
    const world = new World({ root: rootMeans });
    world.put(cell({ core: { ...vm({}), "x.data": data } }));
    assert.match(world.cause("shop/core", "services-malformed").detail, words);
    assert.deepEqual(enrolments(world), {});
    assert.equal(world.vm("shop/core"), null);
  }
});

test("without an interface nobody could reach it", () => {
  const world = new World({ root: rootMeans });
  world.put({ shop: { "x.type": "Cell", "x.name": "shop", core: vm({ placer: {} }) } });
  assert.equal(world.standing("shop/core"), "waiting: no-interface");
});

test("in any other cell a component `service` is data like any other", () => {
  const world = new World();
  world.put(cell({ core: vm({ anything: { number: 1 } }) }));
  assert.deepEqual(vmOf(world, "shop/core").data, service({ anything: { number: 1 } }));
  assert.equal(vmOf(world, "shop/core").restart, undefined);
  assert.deepEqual(enrolments(world), {});
});

test("whatever a person writes is told or refused with a sentence, and no name twice", () => {
  const options = { ...new World().state.options, root: rootMeans } as ControllerOptions & {
    readonly root: RootOptions;
  };
  const roles = fc.dictionary(
    fc.constantFrom(...Object.keys(serviceRoles), "other"),
    fc.oneof(
      fc.constant({}),
      fc.constant({ number: 2 }),
      fc.constant(own as Json),
      fc.jsonValue() as fc.Arbitrary<Json>,
    ),
  );
  let told = 0;
  const property = fc.property(fc.oneof(roles.map(service), fc.jsonValue()), (data) => {
    if (data === null || typeof data !== "object" || Array.isArray(data)) return;
    const read = servicesOf(options, data as JsonObject);
    const made = serviceData(options, rootMeans, { vm: uid("c1-1"), incarnation: 1 }, data as JsonObject);
    assert.equal(read.ok, made.ok);
    if (!read.ok) {
      assert.match(read.error, /^its (x\.data|roles)[ ,]/);
      return;
    }
    told += 1;
    assert.equal(new Set(read.value.map(({ name }) => name)).size, read.value.length);
  });
  fc.assert(property, { seed: Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31)), numRuns: 2000 });
  assert.ok(told > 10, String(told));
});
