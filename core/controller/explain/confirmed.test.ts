import assert from "node:assert/strict";
import { test } from "node:test";
import { haSettingNames } from "../../../model/cell/attributes/ha-settings.ts";
import { cellAttributes } from "../../../model/cell/attributes/of-cells.ts";
import { placementSettingNames } from "../../../model/cell/attributes/placement-settings.ts";
import { elementPath, peerName } from "../../../model/cell/identifiers.ts";
import { commonAttributes, elementSchemas } from "../../../model/cell/schema.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { toJson } from "../../outbox.ts";
import { storageOffersOf } from "../../storage/offers.ts";
import { shop, World } from "../world.testing.ts";

/*
 * No element is ready while an attribute of it is not as declared. The test walks the schema. Each attribute is changed in a cell that is
 * as declared, while nobody outside of the controller does or says anything new: then its element must not be ready, and says what is
 * owed. Once those outside have acted and said so, it is. What needs no fact from outside has its reason here; a new attribute needs a row.
 */
interface Change {
  /** In words: who says that it is so. */
  readonly fact: string;
  /** Path of the element that has the attribute. */
  readonly at: string;
  readonly from?: Json;
  readonly to: Json;
  /** Of the same element, before and after. */
  readonly beside?: JsonObject;
  /** Others of which it is an attribute: what the plan names as changed. */
  readonly also?: readonly string[];
}
/** Why no fact from outside shows it. */
type Own = { readonly own: string };
type Row = Change | Own;

const incarnation = "its host runs the incarnation that was started with it";
const otherElement = "another element is in its place, of which its service has to say that it is there";
const hostsRules = "every host concerned has that version of the rules in force";
const judged = "the controller itself goes by it, from the change on";
const notYet = "hosts are told with the rules, and do not say so of these yet";
const udp = { "x.liveness.protocol": "udp", "x.liveness.port": 7 };
const probes = "the host of the VM says how it asks";

const declared = "the operator's root cell alone has it, and `tenancy` says it of what is declared; `tenants.test.ts`";
const lossOfHost = "the HA Manager is told, and confirms nothing before its host is lost";
const rows: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  "every element": {
    "x.type": { own: "an element of another type is another element: created, with a row of its own" },
    "x.public": { own: "the directory is told, and answers those alone who ask it for an element" },
    "x.movedFrom": { own: "nothing is asked of anybody: the element goes on under another path" },
  },
  Cell: {
    "x.name": { own: "refused: a cell keeps its name" },
    "x.policy.subnetConnectivity": { fact: hostsRules, at: "", to: true, also: ["front"] },
    "x.policy.internet": { own: notYet },
    "x.policy.broadcast": { own: notYet },
    "x.policy.resolvers": { own: judged },
    "x.policy.deploy": { own: judged },
    "x.policy.forward": { own: judged },
    "x.policy.isolation": { own: judged },
    "x.defaults.subnetConnectivity": { own: judged },
    "x.defaults.internet": { own: judged },
    "x.defaults.broadcast": { own: judged },
    "x.defaults.resolvers": { own: judged },
    "x.limits.vms": { own: judged },
    "x.limits.memory": { own: judged },
    "x.limits.cpus": { own: judged },
    "x.limits.volumes": { own: judged },
    "x.limits.storage": { own: judged },
    "x.limits.subnets": { own: judged },
    "x.limits.addresses": { own: judged },
    "x.limits.publicAddresses": { own: judged },
    "x.limits.vmStartsPerMinute": { own: judged },
    "x.backup.publicKey": { own: "backups are made by the clock; `cells management list` shows them" },
    "x.backup.period": { own: "the same" },
    "x.backup.keep": { own: "the same" },
    "x.pools.external": { own: "the IP Address Manager goes by it, and refuses to take what is in use" },
    "x.zone.name": { own: "its name servers fetch it within a minute; nothing that runs is touched" },
    "x.zone.servers": { own: "the same" },
    "x.zone.secondaries": { own: "the same" },
    "x.zone.key": { own: "the same" },
    ...Object.fromEntries(
      [...haSettingNames, "investigators"].map((name) => [
        `x.ha.${name}`,
        { own: "the HA Manager goes by it from then on; nothing that runs is touched" },
      ]),
    ),
    ...Object.fromEntries(
      placementSettingNames.map((name) => [
        `x.placement.${name}`,
        { own: "Placers go by it from then on; nothing that runs is touched" },
      ]),
    ),
  },
  VM: {
    "x.memory": { fact: incarnation, at: "web", from: 1024, to: 512 },
    "x.cpus": { fact: incarnation, at: "web", to: 2 },
    "x.cpuSpeed": { fact: incarnation, at: "web", to: 1000 },
    "x.desiredState": { fact: "its host says that nothing of it runs", at: "web", from: "on", to: "off" },
    "x.restart": { fact: incarnation, at: "web", to: 1 },
    "x.start": { own: "it is about a start on a disk that nobody has written, and asks nothing of one that runs" },
    "x.display": { fact: incarnation, at: "web", to: "vga" },
    "x.ready": { fact: "its host says whether the guest has come up", at: "web", to: "booted" },
    "x.restartOnFailure": { own: judged },
    "x.liveness.protocol": { fact: probes, at: "web", to: "icmp" },
    "x.liveness.port": { fact: probes, at: "web", from: 7, to: 8, beside: udp },
    "x.liveness.interface": { fact: probes, at: "web", to: "<ref:/shop/webOther>", beside: udp },
    "x.liveness.intervalMs": { fact: probes, at: "web", to: 500, beside: udp },
    "x.liveness.failures": { fact: probes, at: "web", to: 5, beside: udp },
    "x.data": { fact: incarnation, at: "web", to: { role: "web" } },
    "x.priority": { own: "nobody outside is asked" },
    "x.ha.isolated": { own: lossOfHost },
    "x.placement.*": { fact: incarnation, at: "web", to: "h1" },
  },
  Volume: {
    "x.size": { fact: "the server, and the host of each VM that has it", at: "spare", from: 64, to: 128 },
    "x.access": { fact: otherElement, at: "spare", to: "ro" },
    "x.import": { fact: otherElement, at: "spare", to: "tiny" },
    "x.recreatable": { own: lossOfHost },
  },
  VolumeCopy: {
    "x.image": { fact: otherElement, at: "webDisk", from: "<ref:/shop/golden>", to: "<ref:/shop/spare>" },
    "x.size": { fact: "the server, and the host of each VM that has it", at: "webDisk", from: 64, to: 128 },
    "x.recreatable": { own: lossOfHost },
  },
  Subnet: {
    "x.size": { fact: otherElement, at: "back", from: 8, to: 16 },
    "x.addressRange": { own: "none of the others can be had by a cell that has machines in it" },
    "x.router": { own: notYet },
    "x.cidr": { fact: otherElement, at: "front", from: "10.64.0.0/29", to: "10.64.7.0/29" },
  },
  VolumeConnection: {
    "x.vm": { fact: otherElement, at: "dataDisk", from: "<ref:/shop/web>", to: "<ref:/shop/db>" },
    "x.volume": { fact: otherElement, at: "dataDisk", from: "<ref:/shop/data>", to: "<ref:/shop/spare>" },
    "x.busType": { fact: incarnation, at: "dataDisk", from: "virtio", to: "scsi" },
    "x.busNumber": { fact: incarnation, at: "dataDisk", to: 1 },
    "x.busSlot": { fact: incarnation, at: "dataDisk", to: 9 },
    "x.bootOrder": { fact: incarnation, at: "dataDisk", to: 3 },
    "x.requires": { own: "it is about the next start, and the controller itself goes by it" },
  },
  VirtualInterface: {
    "x.vm": { fact: otherElement, at: "webOther", from: "<ref:/shop/web>", to: "<ref:/shop/db>" },
    "x.subnet": { fact: otherElement, at: "webOther", from: "<ref:/shop/front>", to: "<ref:/shop/back>" },
    "x.vifName": { fact: "the DNS Manager says which name it serves", at: "webCard", from: "web", to: "www" },
    "x.mac": { fact: incarnation, at: "webOther", to: "02:00:00:00:00:77" },
    "x.address": { fact: incarnation, at: "webOther", to: "10.64.0.6" },
    "x.forwards": { own: notYet },
    "x.groups": { own: notYet },
    "x.requires": { own: "it is about the next start, and the controller itself goes by it" },
  },
  NetworkRule: {
    "x.address1": { fact: hostsRules, at: "toDb", from: "<ref:/shop/web>", to: "<ref:/shop/front>" },
    "x.address2": { fact: hostsRules, at: "toDb", from: "<ref:/shop/dbCard>", to: "<ref:/shop/back>" },
    "x.protocol": { fact: hostsRules, at: "toDb", from: "tcp", to: "udp" },
    "x.port1": { fact: hostsRules, at: "toDb", to: 99 },
    "x.port2": { fact: hostsRules, at: "toDb", from: 5432, to: 5433 },
    "x.direction": { fact: hostsRules, at: "toDb", to: "1to2", beside: { "x.protocol": null, "x.port2": null } },
  },
  VolumeGrant: {
    "x.volume": {
      fact: "the Storage Manager says what it grants",
      at: "grant",
      from: "<ref:/shop/golden>",
      to: "<ref:/shop/spare>",
    },
    "x.vm": { own: "instead of `x.cell`: granted to a VM by the same document" },
    "x.holder": { fact: "the Storage Manager says what it grants", at: "grant", to: "u-dev" },
    "x.cell": {
      fact: "the Storage Manager says what it grants",
      at: "grant",
      from: "<ref://bank.cells.internal/>",
      to: "<ref://mint.cells.internal/>",
    },
    "x.account": { own: "instead of `x.cell`: granted by the same document; `../volumes/grants.test.ts`" },
    "x.domain": { own: "the same" },
    "x.grant": { fact: "the Storage Manager says what it grants", at: "grant", from: "copy", to: "connect" },
    "x.hold": { fact: "the Storage Manager says what it grants", at: "grant", from: "a/b", to: "a/c" },
  },
  CellController: {
    "x.name": { fact: otherElement, at: "child", to: "kid" },
    "x.cell": { own: "the first model of the child: one that has a model is changed by its own users" },
    "x.account": {
      own: "the operator's root cell alone has it, and says it on in the same step; `owners.test.ts` beside it",
    },
    "x.services.placer": { own: "counts when the child is made, and never again" },
    "x.services.storageManager": { own: "the same" },
    "x.services.haManager": {
      own: "counts when the child is made, and where its HA Manager is gone: the child's state says whom it has",
    },
    "x.networkMode": { own: "another one makes the child anew" },
    "x.gateway": {
      own: "the operator's root cell alone has it; who lets packets pass are the hosts, by the authority's word",
    },
  },
  Host: {
    "x.state": { own: "the operator's root cell alone has it; a VM at the host says how far that is" },
    "x.tags": { own: "the operator's root cell alone has it, and tells Placers what follows of it" },
    "x.cluster": { own: "the operator's root cell alone has it, and tells Placers what follows of it" },
    "x.properties": { own: "the operator's root cell alone has it, and tells Placers what follows of it" },
    "x.flavor": { own: "the operator's root cell alone has it, and tells Placers what follows of it" },
  },
  Zone: {},
  Pod: {},
  Cluster: {},
  Dedication: Object.fromEntries(
    Object.keys(elementSchemas.Dedication).map((name) => [
      name,
      { own: "the operator's root cell alone has it, and tells Placers what follows of it" },
    ]),
  ),
  ...Object.fromEntries(
    (["Offering", "HostFlavor", "Pool", "PoolHost"] as const).map((type) => [
      type,
      Object.fromEntries(
        Object.keys(elementSchemas[type]).map((name) => [
          name,
          { own: "the root controller goes by it for pools, and whoever offers machines for what they have" },
        ]),
      ),
    ]),
  ),
  AffinityGroup: { "x.kind": { own: "its Placer goes by it for what is placed from then on" } },
  ...Object.fromEntries(
    (["Domain", "Account", "Role"] as const).map((type) => [
      type,
      Object.fromEntries(Object.keys(elementSchemas[type]).map((name) => [name, { own: declared }])),
    ]),
  ),
};

const connection = (vm: string, volume: string): JsonObject => ({
  "x.type": "VolumeConnection",
  "x.busType": "virtio",
  "x.vm": `<ref:/shop/${vm}>`,
  "x.volume": `<ref:/shop/${volume}>`,
});
const base = shop({
  front: { "x.type": "Subnet", "x.cidr": "10.64.0.0/29" },
  spare: { "x.type": "Volume", "x.size": 64 },
  data: { "x.type": "Volume", "x.size": 64 },
  dataDisk: connection("web", "data"),
  webOther: { "x.type": "VirtualInterface", "x.vm": "<ref:/shop/web>", "x.subnet": "<ref:/shop/front>" },
  grant: {
    "x.type": "VolumeGrant",
    "x.volume": "<ref:/shop/golden>",
    "x.grant": "copy",
    "x.cell": "<ref://bank.cells.internal/>",
  },
  child: { "x.type": "CellController", "x.cell": { web: { "x.type": "Cell" } } },
}).shop as JsonObject;
const without = (element: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(element).filter(([name, value]) => !names.includes(name) && value !== null));

/** The cell with an attribute like that; undefined: without it. */
function documentWith(name: string, { at, beside = {} }: Change, value: Json | undefined): JsonObject {
  const attribute = name === "x.placement.*" ? "x.placement.host" : name;
  const before = at === "" ? base : (base[at] as JsonObject);
  const own = value === undefined ? {} : { [attribute]: value };
  const element = without({ ...without(before, [attribute]), ...beside, ...own }, []);
  return { shop: at === "" ? element : { ...base, [at]: element } };
}
const notReady = (world: World): readonly string[] =>
  [...world.state.elements.values()]
    .filter(({ phase, deleting }) => phase !== "ready" && !deleting)
    .map(({ path }) => `${path}: ${world.standing(path)}`);

for (const [type, attributes] of Object.entries(rows))
  for (const [name, row] of Object.entries(attributes)) {
    if ("own" in row) continue;
    test(`${type}, ${name}: ${row.fact}`, () => {
      const world = new World({ cellManager: true });
      world.withChildren = true;
      world.put(documentWith(name, row, row.from));
      assert.deepEqual(notReady(world), [], "the cell is as declared");
      world.frozen = true;
      const all = Object.keys(base).map((each) => `shop/${each}`);
      world.put(documentWith(name, row, row.to), all);
      for (const element of row.also ?? [row.at]) {
        const path = elementPath(`shop/${element}`);
        assert.notEqual(
          world.recordOf(path).phase,
          "ready",
          `${path} is said to be as declared, and nobody knows that`,
        );
        assert.notEqual(world.recordOf(path).causes.length, 0, "and says what is owed");
      }
      world.frozen = false;
      world.settle();
      assert.deepEqual(notReady(world), [], "once all have acted, it is as declared");
    });
  }

test("what peers of the previous version never say holds nothing up", () => {
  const world = new World({ cellManager: true });
  world.withChildren = true;
  world.older = true;
  const all = Object.keys(base).map((each) => `shop/${each}`);
  const web = { ...(base.web as JsonObject), "x.ready": "booted", ...udp };
  world.put({ shop: { ...base, web } });
  assert.deepEqual(notReady(world), ["shop/grant: waiting: service-asked storage-manager"], "it may still answer");
  const storageManager = peerName("storage-manager");
  const offers: JsonObject = toJson(storageOffersOf([])) as JsonObject;
  const { saysGrants: _, ...older } = offers;
  world.step({ kind: "actual", from: storageManager, key: "storage", value: older });
  assert.deepEqual(notReady(world), []);
  const renamed = { ...(base.webCard as JsonObject), "x.vifName": "www" };
  const other = { ...web, "x.liveness.port": 8, "x.liveness.failures": 9 };
  world.put({ shop: { ...base, web: other, webCard: renamed } }, all);
  assert.deepEqual(notReady(world), []);
  world.older = false;
  world.step({ kind: "actual", from: storageManager, key: "storage", value: offers });
  assert.equal(world.standing("shop/grant"), "waiting: service-asked storage-manager");
  world.settle();
  assert.deepEqual(notReady(world), []);
});

test("every attribute of the schema has a row, and every row an attribute", () => {
  const schema = { "every element": commonAttributes, Cell: cellAttributes, ...elementSchemas };
  const names = (table: object): readonly string[] =>
    Object.entries(table)
      .flatMap(([type, attributes]) => Object.keys(attributes).map((name) => `${type} ${name}`))
      .sort();
  assert.deepEqual(names(rows), names(schema));
});
