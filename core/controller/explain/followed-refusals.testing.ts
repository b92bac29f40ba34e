import { cellName, peerName } from "../../../model/cell/identifiers.ts";
import { noUsage, type Usage } from "../../../model/check/check-limits.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { QuotaGrant } from "../../documents/cells.ts";
import { toJson } from "../../outbox.ts";
import { childOf, Root, rootMeans, rootWithTenancy } from "../model/root.testing.ts";
import { shop, World } from "../world.testing.ts";
import type { Change, FollowedRefusal } from "./followed.testing.ts";
import { followedPools } from "./followed-pools.testing.ts";

const cell = (inside: JsonObject, more: JsonObject = {}): Change => ({
  json: { shop: { "x.type": "Cell", ...more, ...inside } },
});
const zoneFor = (secondary: string): Change => ({
  json: {
    root: {
      "x.type": "Cell",
      "x.zone.name": "cloud.example.org",
      "x.zone.servers": "ns1.example.org",
      "x.zone.secondaries": [secondary],
    },
  },
});
const vm: JsonObject = { "x.type": "VM", "x.memory": 64 };
const [entrance, other] = ["10.0.0.40", "10.0.0.41"];
const plain = (): World => new World();
const root = (): World => new World({ root: rootMeans });
const holding =
  (make: () => World, { json }: Change) =>
  (): World => {
    const world = make();
    world.put(json);
    return world.settle();
  };

const child = (inside: JsonObject = {}): JsonObject => ({
  "x.type": "CellController",
  "x.name": "kid",
  "x.cell": { kid: { "x.type": "Cell", ...inside } },
});
const open = (name: string, gateway: string | null): JsonObject => ({
  "x.type": "CellController",
  "x.name": name,
  "x.cell": { [name]: { "x.type": "Cell" } },
  ...(gateway === null ? {} : { "x.gateway": gateway }),
});

/** The controller of the child that is the way in, as it was born. */
const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as Usage;
const limits = { "x.limits.vms": 9, "x.limits.memory": 2048, "x.limits.cpus": 9 };
const card = (of: string, address: string | null): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:../${of}>`,
  "x.subnet": "<ref:../net>",
  ...(address === null ? {} : { "x.address": address }),
});
const serving = (roles: JsonObject): JsonObject => ({ ...vm, "x.memory": 160, "x.data": { service: { roles } } });
const wayIn = (more: JsonObject): Change =>
  cell(
    {
      net: { "x.type": "Subnet", "x.addressRange": "management" },
      gateway: serving({ gateway: {} }),
      card: card("gateway", entrance),
      ...more,
    },
    limits,
  );
/** CaaS behind the gateway's second address, which `toDoors` is to have. */
const doorApart = (toDoors: string): Change =>
  wayIn({
    gateway: serving({ gateway: { inside: "10.64.0.2", doors: { "personality.caas": "10.64.0.3" } } }),
    doors: { "x.type": "Subnet", "x.cidr": "10.64.0.0/29" },
    toDoors: { ...card("gateway", toDoors), "x.subnet": "<ref:../doors>" },
    caas: serving({ "personality.caas": { gateway: "10.64.0.2" } }),
    caasCard: { ...card("caas", "10.64.0.3"), "x.subnet": "<ref:../doors>" },
  });
const wayInWorld = (born: Change = wayIn({})): World => {
  const world = new World({ child: true, services: rootMeans });
  const grant = { amount: room, serial: 1, answered: 0, refusal: null };
  const life = { uid: "root-1", model: born.json, grant, ending: false, gateway: entrance };
  world.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: toJson(life) });
  return world.settle();
};

const managed = (net: JsonObject, address: string): Change =>
  cell({
    net: { "x.type": "Subnet", "x.addressRange": "management", ...net },
    vm,
    card: card("vm", address),
  });

const roles = { controller: { cell: "shop", cellUid: "c1", cellNumber: 7 } };
const image = (name: string): JsonObject => ({
  "x.type": "Volume",
  "x.size": 64,
  "x.access": "ro",
  "x.import": name,
});
const own = (more: JsonObject, beside: JsonObject = {}): Change =>
  cell({
    net: { "x.type": "Subnet", "x.size": 8, "x.addressRange": "internal" },
    core: { ...serving(roles), ...more },
    coreCard: { ...card("core", null) },
    image: image("tiny"),
    boot: { "x.type": "VolumeCopy", "x.image": "<ref:../image>" },
    disk: { "x.type": "VolumeConnection", "x.vm": "<ref:../core>", "x.volume": "<ref:../boot>", "x.bootOrder": 0 },
    ...beside,
  });

const disk = (size: number, more: JsonObject = {}): Change => {
  const { json } = cell({
    vm,
    disk: { "x.type": "Volume", "x.size": size },
    connection: { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../disk>" },
    ...more,
  });
  return { json };
};
const copied = (size?: number): JsonObject => ({
  copy: { "x.type": "VolumeCopy", "x.image": "<ref:../disk>", ...(size === undefined ? {} : { "x.size": size }) },
});

const grantTo = { "x.type": "VolumeGrant", "x.volume": "<ref:../disk>", "x.cell": "<ref://primary.cells.internal/>" };
const held = (more: JsonObject, hold: JsonObject = { "x.hold": "primary/volumes/a1" }): Change =>
  cell({ disk: { "x.type": "Volume", "x.size": 64, ...more }, grant: { ...grantTo, "x.grant": "copy", ...hold } });
/** Two volumes, of which the second is held for that copy and the first for `primary/volumes/a1`. */
const twoHeld = (copy: string): Change => {
  const disk = { "x.type": "Volume", "x.size": 64 };
  const grant = { ...grantTo, "x.grant": "copy", "x.hold": "primary/volumes/a1" };
  const other = { ...grant, "x.volume": "<ref:../second>", "x.hold": copy };
  return cell({ disk, grant, second: disk, other });
};
/** The Storage Manager says that the copy is made for which a volume is held. */
const makeCopies = (world: World): void => {
  for (const [key, value] of world.desired.get(peerName("storage-manager")) ?? []) {
    if (!key.startsWith("grant/")) continue;
    const { uid: _uid, ...grants } = value as JsonObject;
    const said = toJson({ phase: "ready", reason: null, grants, copied: true });
    world.step({ kind: "actual", from: peerName("storage-manager"), key: `controller.shop/${key}`, value: said });
  }
};

const uses = (vms: number): Usage => ({ ...noUsage, vms });
/** The one child says what it has and what it asks for; its parent answers under another serial, which it then knows. */
function childAsks(world: World, number: number, asks: number, holds: number): void {
  const at = "shop/kid";
  const [key = ""] = [...(world.desired.get(peerName("cell-manager"))?.keys() ?? [])];
  const granted = (): QuotaGrant => {
    const desired = world.desired.get(peerName("cell-manager"))?.get(key);
    return (desired as unknown as { readonly grant: QuotaGrant }).grant;
  };
  const says = (quota: object): void => {
    const answer = {
      phase: "ready",
      reason: null,
      controller: "controller.kid.shop",
      address: null,
      version: 1,
      quota,
    };
    world.children.set(world.uidOf(at), answer);
    world.settle();
  };
  says({ serial: granted().serial, holds: uses(holds), asks: { number, amount: uses(asks) } });
  says({ serial: granted().serial, holds: uses(asks), asks: null });
}
const parent = (vms: number, limit: number): Change =>
  cell(
    { kid: child(), ...Object.fromEntries(Array.from({ length: vms }, (_, at) => [`vm${at}`, vm])) },
    { "x.limits.vms": limit },
  );
const parentWorld = (): World => {
  const world = new World({ cellManager: true });
  world.put(parent(1, 4).json);
  world.settle();
  childAsks(world, 1, 3, 0);
  return world;
};

const limited = (changes: JsonObject, storage = 364): Change => {
  const { shop: model } = shop(changes);
  return { json: { shop: { ...(model as JsonObject), "x.limits.storage": storage } } };
};
const boot = (size: number): JsonObject => ({
  webDisk: { "x.type": "VolumeCopy", "x.image": "<ref:/shop/golden>", "x.size": size },
});
const scratch = (size: number): JsonObject => ({ scratch: { "x.type": "Volume", "x.size": size } });
/** A size was written back while it was promised. */
const promised = (): World => {
  const world = new World();
  world.put(limited(boot(64)).json);
  world.settle();
  const uid = world.uidOf("shop/webDisk");
  world.put(limited(boot(200)).json);
  world.volumesAre.set(uid, { sizeMiB: 64, owes: { phase: "waiting", reason: "it stays at 64 MiB: s1 is full" } });
  world.settle();
  world.put(limited(boot(64)).json);
  world.volumesAre.set(uid, { sizeMiB: 200, owes: { phase: "failed", reason: "it has 200 MiB" } });
  return world.settle();
};

const without = ({ json }: Change, name: string): Change => {
  const { [name]: _, ...rest } = json.shop as Readonly<Record<string, Json>>;
  return { json: { shop: rest } };
};

/** By a part of the hint that no other has. */
/** The root cell with these child cells. */
const cellsOfRoot = (cells: JsonObject): Change => ({ json: rootWithTenancy({ cells }) });
const dev = "ROOT/acme/dev";
const rootCell = (): Root => {
  const it = new Root(rootMeans);
  it.put("", rootWithTenancy());
  return it;
};
const limitOfDev = (it: Root, vms: number): void => {
  const value = { uid: "a1", path: dev, kind: "account", limits: { vms } };
  it.step({ kind: "desired", from: peerName("tenancy"), key: "limits/a1", value });
};
const endingDev = (it = rootCell()): Root => {
  const value = { uid: "a1", path: dev, kind: "account", limits: {}, off: true, ending: true };
  it.step({ kind: "desired", from: peerName("tenancy"), key: "limits/a1", value });
  return it;
};
const two = { "x.limits.vms": 2 };
const [shopOfDev, webOfDev] = [childOf("shop", dev, two), childOf("web", dev, two)];
/** Of three VMs that the account may have its cell "shop" has two. */
const limitedAccount = (): Root => {
  const it = rootCell();
  limitOfDev(it, 3);
  it.put("root/cells/shop", shopOfDev);
  return it;
};
const doorOf = (account?: string): JsonObject => childOf("primary", account);

const inRoot = (inside: JsonObject): Change => ({ json: rootWithTenancy(inside) });
const aHost: JsonObject = { "x.type": "Host", "x.state": "disabled" };
const aDedication = (to = "ROOT/acme"): JsonObject => ({ "x.type": "Dedication", "x.of": "h1", "x.to": to });
const withHosts = (): Root => {
  const it = rootCell();
  it.hearHosts(["h1", "h3"]);
  return it;
};

export const followedRefusals: Readonly<Record<string, FollowedRefusal>> = {
  ...followedPools,
  "Let cells of it give something back, delete one, or have the limit raised": {
    arise: limitedAccount,
    wrong: cellsOfRoot({ shop: shopOfDev, web: webOfDev }),
    ways: [
      {
        ...cellsOfRoot({ shop: shopOfDev, web: webOfDev }),
        before: (it: Root) => it.hearCells({ shop: toJson({ serial: 1, holds: noUsage, asks: null }) }),
      },
      {
        ...cellsOfRoot({ web: webOfDev }),
        before: (it: Root) => {
          it.ask({ method: "DELETE", path: "root/cells/shop" });
          it.endAll();
        },
      },
      { ...cellsOfRoot({ shop: shopOfDev, web: webOfDev }), before: (it: Root) => limitOfDev(it, 4) },
    ],
  },
  "Leave it out: a child cell goes with the cell around it": {
    arise: plain,
    wrong: cell({ web: { ...open("web", null), "x.account": dev } }),
    ways: [cell({ web: open("web", null) })],
  },
  "Leave one of the two out: the way in is the operator's": {
    arise: rootCell,
    wrong: cellsOfRoot({ primary: { ...doorOf(dev), "x.gateway": entrance } }),
    ways: [cellsOfRoot({ primary: { ...doorOf(), "x.gateway": entrance } }), cellsOfRoot({ primary: doorOf(dev) })],
  },
  "Leave it out: what a VM wants of its host stands in its `x.placement`": {
    arise: plain,
    wrong: cell({ vm, hosts: { h1: aHost } }),
    ways: [cell({ vm: { ...vm, "x.placement.host": "h1" } })],
  },
  "Write it as `hosts extends { h1 extends Host { … } }` in the cell `root`": {
    arise: withHosts,
    wrong: inRoot({ h1: aHost }),
    ways: [inRoot({ hosts: { h1: aHost } })],
  },
  "Leave one of them enabled: ": {
    arise: withHosts,
    wrong: inRoot({ hosts: { h1: aHost, h3: aHost } }),
    ways: [
      inRoot({ hosts: { h1: aHost, h3: { "x.type": "Host" } } }),
      {
        ...inRoot({ hosts: { h1: aHost, h3: aHost } }),
        before: (it) => (it as Root).hearHosts(["h1", "h3", "h4"]),
      },
    ],
  },
  "a machine joins with `cells host token`, and its element is written by itself": {
    arise: withHosts,
    wrong: inRoot({ hosts: { h2: aHost } }),
    ways: [
      inRoot({ hosts: { h1: aHost } }),
      { ...inRoot({ hosts: { h2: aHost } }), before: (it) => (it as Root).hearHosts(["h1", "h2"]) },
    ],
  },
  "Give the zone another name": {
    arise: withHosts,
    wrong: inRoot({ places: { h1: { "x.type": "Zone" } } }),
    ways: [inRoot({ places: { z1: { "x.type": "Zone" } } })],
  },
  "Write it as `dedications extends { racks extends Dedication { … } }` in the cell `root`": {
    arise: withHosts,
    wrong: inRoot({ racks: aDedication() }),
    ways: [inRoot({ dedications: { racks: aDedication() } })],
  },
  "`cells domain list` shows them": {
    arise: withHosts,
    wrong: inRoot({ dedications: { racks: aDedication("acme") } }),
    ways: [inRoot({ dedications: { racks: aDedication() } })],
  },
  "Release h1 first: leave out one of the two": {
    arise: withHosts,
    wrong: inRoot({ dedications: { racks: aDedication(), more: aDedication() } }),
    ways: [inRoot({ dedications: { racks: aDedication() } })],
  },
  "Give it to another account, or leave it out": {
    arise: () => endingDev(),
    wrong: cellsOfRoot({ shop: childOf("shop", dev) }),
    ways: [cellsOfRoot({ shop: childOf("shop", "ROOT/acme/ops") }), cellsOfRoot({})],
  },
  "Give it to another one, or leave it out": {
    arise: () => endingDev(withHosts()),
    wrong: inRoot({ dedications: { racks: { ...aDedication(), "x.account": "dev" } } }),
    ways: [inRoot({ dedications: { racks: aDedication() } }), inRoot({})],
  },
  "`cells account list` shows them": {
    arise: rootCell,
    wrong: cellsOfRoot({ shop: childOf("shop", "dev") }),
    ways: [cellsOfRoot({ shop: childOf("shop", dev) })],
  },
  'Submit it as the cell "store", or set `x.name` to "shop"': {
    arise: plain,
    wrong: { json: { store: { "x.type": "Cell", vm } } },
    ways: [{ json: { store: { "x.type": "Cell", "x.name": "shop", vm } } }, cell({ vm })],
  },
  "Ask for less, raise the limit, or let a child cell give something back": {
    arise: parentWorld,
    wrong: parent(2, 4),
    ways: [parent(1, 4), parent(2, 5), { ...parent(2, 4), before: (world: World) => childAsks(world, 2, 2, 2) }],
  },
  "Ask for 228 MiB or less, or write `x.limits.storage 388` or more": {
    arise: promised,
    wrong: limited({ ...boot(64), ...scratch(60) }),
    ways: [limited({ ...boot(64), ...scratch(36) }), limited({ ...boot(64), ...scratch(60) }, 388)],
  },
  "Leave it out: this cell's own VMs are reached through rules": {
    arise: plain,
    wrong: cell({ web: open("web", entrance) }),
    ways: [cell({ web: open("web", null) })],
  },
  "Leave it out of one of the two": {
    arise: root,
    wrong: cell({ a: open("a", entrance), b: open("b", other) }),
    ways: [cell({ a: open("a", entrance), b: open("b", null) }), cell({ a: open("a", null), b: open("b", other) })],
  },
  "Choose one from 10.0.0.2 to 10.0.255.254 that nobody has": {
    arise: root,
    wrong: cell({ a: open("a", "10.1.0.1") }),
    ways: [cell({ a: open("a", "10.0.0.2") }), cell({ a: open("a", "10.0.255.254") })],
  },
  "Name one from 10.0.0.2 to 10.0.255.254, such as a resolver there that asks 9.9.9.9 itself": {
    arise: root,
    wrong: cell({}, { "x.defaults.resolvers": ["9.9.9.9"] }),
    ways: [
      cell({}, { "x.defaults.resolvers": ["10.0.0.2"] }),
      cell({}, { "x.defaults.resolvers": ["10.0.255.254", "10.0.0.9"] }),
    ],
  },
  "Give it an address there, and name that": {
    arise: (): World => new World({ root: rootMeans, cell: cellName("root") }),
    wrong: zoneFor("192.0.2.53"),
    ways: [zoneFor("10.0.0.9")],
  },
  "Give it one: on a subnet that is not the management network, with that `x.address`.": {
    arise: () => wayInWorld(doorApart("10.64.0.2")),
    wrong: doorApart("10.64.0.4"),
    ways: [doorApart("10.64.0.2")],
  },
  'Write `x.address "10.0.0.40"`.': {
    arise: wayInWorld,
    wrong: wayIn({ card: card("gateway", other) }),
    ways: [wayIn({ card: card("gateway", entrance) })],
  },
  "Only a VM with `x.data { service { roles { gateway {} } } }`, and beside it no role": {
    arise: wayInWorld,
    wrong: wayIn({ gateway: serving({ gateway: {}, placer: {} }) }),
    ways: [
      wayIn({ gateway: serving({ gateway: {} }) }),
      wayIn({ gateway: serving({ gateway: {}, "personality.caas": {} }) }),
    ],
  },
  "Let a VM with `x.data { service { roles { gateway {} } } }` have an interface there": {
    arise: wayInWorld,
    wrong: cell({}, limits),
    ways: [wayIn({})],
  },
  'Write `x.addressRange "internal"` with an `x.size`': {
    arise: plain,
    wrong: managed({}, other),
    ways: [
      cell({ net: { "x.type": "Subnet", "x.addressRange": "internal", "x.size": 8 }, vm, card: card("vm", null) }),
    ],
  },
  'Leave `x.cidr` out, or write "10.0.0.0/16"': {
    arise: root,
    wrong: managed({ "x.cidr": "10.0.0.0/17" }, other),
    ways: [managed({}, other), managed({ "x.cidr": "10.0.0.0/16" }, other)],
  },
  "Choose one from 10.0.0.2 to 10.0.255.254 that nobody": {
    arise: root,
    wrong: managed({}, "10.7.0.1"),
    ways: [managed({}, "10.0.0.2"), managed({}, "10.0.255.254")],
  },
  "Leave everything of this VM as it is, except the image of its boot volume": {
    arise: holding(root, own({})),
    wrong: own({ "x.memory": 640 }),
    ways: [own({}), own({}, { image: image("tiny-2") }), own({}, { more: serving({ placer: {} }) })],
  },
  "Write the copy's whole path in that cell": {
    arise: plain,
    wrong: held({}, { "x.hold": "primary" }),
    ways: [held({}), held({}, {})],
  },
  "Name the other cell that the copy stands in": {
    arise: plain,
    wrong: held({}, { "x.hold": "primary/a", "x.cell": "<ref://primary.example.org/>" }),
    ways: [held({}), held({}, { "x.cell": "<ref://primary.example.org/>" })],
  },
  "Let each hold name a copy of its own in": {
    arise: plain,
    wrong: twoHeld("primary/volumes/a1"),
    ways: [twoHeld("primary/volumes/a2")],
  },
  "Name another copy in `x.hold`, or wait until that one is made": {
    arise: () => {
      const world = holding(plain, held({}))();
      world.ask({ method: "DELETE", path: "" });
      return world;
    },
    wrong: held({}),
    ways: [
      held({}, { "x.hold": "primary/volumes/a2" }),
      { ...held({}), before: (world) => makeCopies(world as World) },
      {
        ...held({}),
        before: (world) =>
          void world.ask({ method: "DELETE", path: "shop/disk", dropHeld: true, allowDestroy: ["shop/disk"] }),
      },
    ],
  },
  "Wait for the copy, or take `x.hold` of": {
    arise: holding(plain, held({})),
    wrong: held({ "x.import": "tiny" }),
    ways: [
      { ...held({ "x.import": "tiny" }), before: (world) => makeCopies(world as World) },
      {
        ...held({ "x.import": "tiny" }, {}),
        before: (world) => void world.ask({ method: "PUT", path: "", ...held({}, {}) }),
      },
    ],
  },
  "Write `x.size 64`. To have less, make a volume of 32 MiB under another name": {
    arise: holding(plain, disk(64)),
    wrong: disk(32),
    ways: [
      disk(64),
      disk(64, {
        smaller: { "x.type": "Volume", "x.size": 32 },
        both: { "x.type": "VolumeConnection", "x.vm": "<ref:../vm>", "x.volume": "<ref:../smaller>" },
      }),
      { ...without(without(disk(64), "disk"), "connection"), allowDestroy: ["shop/disk"] },
    ],
  },
  "Write `x.size 64`, and `x.size 128` at the copy that needs the room": {
    arise: holding(plain, disk(64, copied())),
    wrong: disk(128, copied()),
    ways: [disk(64, copied(128))],
  },
  "If that is meant, add --allow-destroy shop/disk": {
    arise: holding(plain, disk(64)),
    wrong: cell({ vm }),
    ways: [{ ...cell({ vm }), allowDestroy: ["shop/disk"] }],
  },
};
