import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredInstance, DesiredSecurityGroup } from "../../documents/network/eucalyptus.ts";
import type { DesiredName, DesiredPlacement } from "../../documents/vocabulary.ts";
import { isObject } from "../../outbox.ts";
import { whyEnds } from "../requests/connection-ends.ts";
import { shownWithState } from "../requests/shown.ts";
import { shop, World } from "../world.testing.ts";

const manager = "network-view-manager";
const rule = (address1: string, address2: string, more: JsonObject = {}): JsonObject => ({
  "x.type": "NetworkRule",
  "x.address1": address1,
  "x.address2": address2,
  "x.protocol": "tcp",
  ...more,
});
const [front, back] = ["<ref:/shop/front>", "<ref:/shop/back>"];
const rules = {
  toDb: rule(front, back, { "x.port2": 5432 }),
  in: rule("internet", front, { "x.port2": 80, "x.direction": "1to2" }),
};
const onEdge = (): World => new World({ networkMode: "EDGE" });
const instances = (world: World) => world.documents<DesiredInstance>(manager, "instance");
const instanceOf = (world: World, path: string) => instances(world).find((each) => each.path === path);

test("a cell on a mode has instances where its machines are, groups in place of ranges, and hands a machine over with its address", () => {
  const world = onEdge();
  world.put(shop(rules));
  const { uidOf } = world;
  const uid = (path: string) => uidOf.call(world, path);
  assert.deepEqual(
    instances(world)
      .map(({ path, host, groups, cell }) => [path, host, groups, cell])
      .sort(),
    [
      ["shop/db", "h1", [uid("shop/back")], "shop"],
      ["shop/web", "h1", [uid("shop/front")], "shop"],
    ],
  );
  const what = { protocol: 6, icmpType: 0, icmpCode: 0 };
  const [service, door] = [
    { ...what, fromPort: 5432, toPort: 5432 },
    { ...what, fromPort: 80, toPort: 80 },
  ];
  const groups = new Map(
    world.documents<DesiredSecurityGroup>(manager, "security-group").map((each) => [each.uid, each]),
  );
  assert.deepEqual(groups.get(uid("shop/front")), {
    uid: uid("shop/front"),
    cell: "shop",
    ingress: [{ ...door, cidr: "0.0.0.0/0" }],
    egress: [{ ...service, group: uid("shop/back") }],
  });
  assert.deepEqual(groups.get(uid("shop/back")), {
    uid: uid("shop/back"),
    cell: "shop",
    ingress: [{ ...service, group: uid("shop/front") }],
    egress: [],
  });
  const web = world.vm("shop/web");
  const [card] = web?.document.interfaces ?? [];
  assert.equal(web?.host, "host.h1");
  assert.match(card?.instance ?? "", /^i-[0-9a-f]{8}$/);
  assert.match(card?.address ?? "", /^10\.9\.0\.\d+$/);
  assert.equal(card?.mac, card?.mac.toLowerCase());
  assert.deepEqual(
    [world.phase("shop/web"), world.phase("shop/toDb"), world.phase("shop/front")],
    ["ready", "ready", "ready"],
  );
  // Nothing of it is Diverter's, nor of the IP Address Manager.
  assert.deepEqual(world.documents("address-manager", "subnet"), []);
  assert.deepEqual(
    world.policy("host.h1")?.rules.filter(({ path }) => path.startsWith("shop/")),
    [],
  );
  assert.deepEqual(
    world.documents<DesiredPlacement>("placer", "placement").map(({ networkMode }) => networkMode),
    ["EDGE", "EDGE"],
  );
  const plain = new World();
  plain.put(shop());
  assert.deepEqual(
    [instances(plain), plain.documents<DesiredPlacement>("placer", "placement")[0]?.networkMode],
    [[], undefined],
  );
});

test("a machine whose instance has no address is handed to nobody, and says for what it waits", () => {
  const world = onEdge();
  world.put(shop(rules));
  const uid = world.uidOf("shop/web");
  const off = { "x.type": "VM", "x.memory": 1024, "x.desiredState": "off", "x.restartOnFailure": true };
  world.put(shop({ ...rules, web: off }));
  assert.equal(instanceOf(world, "shop/web"), undefined);
  assert.equal(world.recordOf("shop/webCard").allocation, null);
  assert.equal(world.phase("shop/webCard"), "ready", "an interface waits for nothing while its VM is to be off");
  const reason = "no private address is free in the cluster one";
  world.networks.set(uid, { phase: "waiting", reason, id: "i-00000001", address: null, mac: null });
  world.put(shop(rules));
  assert.equal(instanceOf(world, "shop/web")?.host, "h1");
  assert.equal(world.vm("shop/web"), null);
  assert.equal(world.standing("shop/web"), "working: waits-for shop/webCard (said network-view-manager)");
  assert.match(world.phase("shop/web"), /no private address is free/);
  assert.match(world.phase("shop/webCard"), /no private address is free/);
  world.networks.delete(uid);
  world.settle();
  assert.equal(world.phase("shop/web"), "ready");
});

test("who moves keeps its instance with the new host, and who ends takes it back", () => {
  const world = onEdge();
  world.put(shop(rules));
  const card = world.recordOf("shop/webCard").allocation;
  const uid = world.uidOf("shop/web");
  world.hosts.set(hostName("h1"), 2048);
  world.hosts.set(hostName("h2"), 0);
  world.ended.set(`${uid}@1`, { power: "off", ended: "crashed", phase: "failed", reason: "it broke" });
  world.settle();
  for (const name of [...world.timers.keys()]) world.fire(name);
  assert.deepEqual([world.vm("shop/web"), instanceOf(world, "shop/web")?.host], [null, "h1"], "while it has no host");
  assert.deepEqual(world.recordOf("shop/webCard").allocation, card);
  world.hosts.set(hostName("h2"), 4096);
  world.settle();
  assert.equal(instanceOf(world, "shop/web")?.host, "h2");
  assert.equal(world.vm("shop/web")?.host, "host.h2");
  assert.deepEqual(world.recordOf("shop/webCard").allocation, card);
  world.silent.add(peerName(manager));
  world.put(shop({ ...rules, web: null, webBoot: null, webCard: null }), ["shop/webDisk"]);
  assert.equal(instances(world).length, 1);
  assert.ok(
    [...world.state.elements.values()].some(({ path }) => path === "shop/web"),
    "not gone without its word",
  );
  world.silent.clear();
  world.settle();
  assert.ok(![...world.state.elements.values()].some(({ path }) => path === "shop/web"));
});

test("a machine of an external subnet has an elastic address until it leaves that, also while it is off", () => {
  const world = onEdge();
  const external: JsonObject = { "x.type": "Subnet", "x.size": 8, "x.addressRange": "external" };
  const off = { "x.type": "VM", "x.memory": 1024, "x.desiredState": "off", "x.restartOnFailure": true };
  world.put(shop({ ...rules, front: external }));
  const uid = world.uidOf("shop/web");
  const shown = (): string => JSON.stringify(world.ask({ method: "GET", path: "shop/webCard", state: true }).body);
  const outside = `192.0.2.${Number(uid.slice(uid.indexOf("-") + 1))}`;
  assert.deepEqual(
    instances(world)
      .map(({ path, elastic }) => [path, elastic])
      .sort(),
    [
      ["shop/db", undefined],
      ["shop/web", true],
    ],
  );
  assert.equal(world.phase("shop/webCard"), "ready");
  assert.ok(shown().includes(`"publicAddress":"${outside}"`), shown());
  const ends = whyEnds(world.state, "internet", outside);
  assert.ok(ends.ok && ends.value.to.path === "shop/webCard" && ends.value.to.host === "h1", JSON.stringify(ends));
  world.put(shop({ ...rules, front: external, web: off }));
  assert.deepEqual(
    [instanceOf(world, "shop/web")?.elastic, instanceOf(world, "shop/web")?.off, world.phase("shop/webCard")],
    [true, true, "ready"],
  );
  assert.ok(shown().includes(outside), "its own while it is off");
  world.put(shop({ ...rules, front: external }));
  assert.deepEqual([instanceOf(world, "shop/web")?.off, world.phase("shop/web")], [undefined, "ready"]);
  // Its host has yet to put it in place: the machine runs, and its interface says so.
  const id = "i-00000001";
  const address = ipv4("10.9.0.77");
  const reason = "h1 has yet to say that 192.0.2.1 is in place";
  const elastic = { address: ipv4("192.0.2.1"), reason };
  world.networks.set(uid, { phase: "ready", reason: null, id, address, mac: "D0:0D:00:00:00:01", elastic });
  world.settle();
  assert.match(world.phase("shop/webCard"), /^waiting: .*h1 has yet to say that 192\.0\.2\.1/);
  assert.equal(world.phase("shop/web"), "ready");
  // One of before gives none, and says nothing of it.
  world.networks.set(uid, { phase: "ready", reason: null, id, address, mac: "D0:0D:00:00:00:01" });
  world.settle();
  assert.equal(world.standing("shop/webCard"), "working: service-asked network-view-manager");
  world.networks.delete(uid);
  world.put(shop(rules));
  assert.equal(instanceOf(world, "shop/web")?.elastic, undefined);
});

test("a rule is ready once every host with a view has it, and a word about other rules is none about these", () => {
  const world = onEdge();
  world.put(shop(rules));
  const uid = world.uidOf("shop/back");
  world.networks.set(uid, { phase: "waiting", reason: "h2 has yet to put view 7 in place", rules: [1, 2] });
  world.settle();
  assert.equal(world.standing("shop/toDb"), "working: service-asked network-view-manager");
  world.networks.delete(uid);
  world.settle();
  assert.equal(world.phase("shop/toDb"), "ready");
  world.frozen = true;
  world.ask({ method: "PUT", path: "", json: shop({ ...rules, toDb: rule(front, back, { "x.port2": 5433 }) }) });
  assert.equal(world.phase("shop/toDb"), `working: ${world.phase("shop/toDb").slice(9)}`);
  assert.notEqual(world.phase("shop/toDb"), "ready");
  world.frozen = false;
  world.settle();
  assert.equal(world.phase("shop/toDb"), "ready");
});

test("a controller that starts anew keeps what its machines have, before the Network View Manager is heard", () => {
  const world = onEdge();
  world.put(shop(rules));
  const before = [world.vm("shop/web"), instances(world)];
  world.frozen = true;
  world.crash();
  world.ask({ method: "GET", path: "" });
  assert.deepEqual([world.vm("shop/web"), instances(world)], before);
  world.frozen = false;
  world.settle();
  assert.deepEqual([world.vm("shop/web"), instances(world)], before);
});

test("in SYSTEM a machine is handed over without an address, and its interface and name have the one that the site gave it", () => {
  const world = new World({ networkMode: "SYSTEM" });
  const spec = shop();
  const { toDb: _, ...whole } = Object.values(spec)[0] as JsonObject;
  const named = { ...(whole.webCard as JsonObject), "x.vifName": "www" };
  const plain = (card: JsonObject): JsonObject => ({
    ...spec,
    shop: { ...whole, "x.policy.isolation": "none", webCard: card },
  });
  world.put(plain(named));
  const uid = world.uidOf("shop/web");
  const there = { phase: "ready", reason: null, id: "i-00000001", mac: "D0:0D:00:00:00:01", learnt: true };
  const shown = (): unknown => {
    const part = shownWithState(world.state, "shop/webCard");
    return part?.ok && isObject(part.value) && isObject(part.value.$state) && part.value.$state.address;
  };
  const names = () => world.documents<DesiredName>("dns-manager", "name").filter(({ name }) => name.startsWith("www."));
  world.networks.set(uid, { ...there, address: null });
  world.settle();
  const before = world.vm("shop/web");
  assert.deepEqual(
    before?.document.interfaces.map(({ instance, mac }) => [instance, mac]),
    [["i-00000001", "d0:0d:00:00:00:01"]],
  );
  assert.deepEqual([world.phase("shop/web"), shown(), names()], ["ready", null, []]);
  world.networks.set(uid, { ...there, address: "10.88.0.7" });
  world.settle();
  assert.deepEqual([world.phase("shop/web"), shown(), names()[0]?.address], ["ready", "10.88.0.7", "10.88.0.7"]);
  // Nothing of the machine is another for it.
  assert.deepEqual(world.vm("shop/web"), before);
  const pathOf = (address: string): unknown => {
    const ends = whyEnds(world.state, address, "shop/db");
    return ends.ok && ends.value.from.path;
  };
  assert.equal(pathOf("10.88.0.7"), "shop/webCard");
  const { address } = world.state.options;
  world.networks.set(uid, { ...there, address });
  world.networks.set(world.uidOf("shop/db"), { ...there, id: "i-00000002", address: "10.88.0.8" });
  world.settle();
  assert.deepEqual([shown(), pathOf(address)], [address, "controller"], "it says the controller's");
});

test("what a machine says of its address is nothing that rules of other cells name, and its name says whose word it is", () => {
  for (const [networkMode, networks, heard] of [
    ["SYSTEM", [], true],
    ["STATIC", ["10.88.0.7/32"], undefined],
  ] as const) {
    const world = new World({ networkMode, directory: true });
    const { toDb: _, ...whole } = Object.values(shop())[0] as JsonObject;
    const webCard = { ...(whole.webCard as JsonObject), "x.vifName": "www", "x.public": true };
    world.put({ ...shop(), shop: { ...whole, "x.policy.isolation": "none", webCard } });
    const learnt = networkMode === "SYSTEM" ? { learnt: true } : {};
    const at = { phase: "ready", reason: null, id: "i-00000001", mac: "D0:0D:00:00:00:01", address: "10.88.0.7" };
    world.networks.set(world.uidOf("shop/web"), { ...at, ...learnt });
    world.settle();
    const shown = world.desired.get(peerName("directory"))?.get(`public/${world.uidOf("shop/webCard")}`);
    assert.deepEqual(isObject(shown) && isObject(shown.shows) && shown.shows.networks, networks, networkMode);
    const name = world.documents<DesiredName>("dns-manager", "name").find(({ name }) => name.startsWith("www."));
    assert.deepEqual([name?.address, name?.public, name?.heard], ["10.88.0.7", true, heard]);
  }
});
