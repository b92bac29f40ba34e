import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { settingsKey, spareKey } from "../../documents/ha.ts";
import type { DesiredHost } from "../../documents/vocabulary.ts";
import { Root, rootWithTenancy } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";

const told = (root: Root, peer: string): readonly string[] =>
  root.at<DesiredHost>(peer, "host/").map(({ host, state }) => `${host} ${state}`);
const maintenance: JsonObject = { "x.type": "Host", "x.state": "maintenance" };
/** A second Placer beside the first one. */
const secondPlacer: JsonObject = {
  more: {
    "x.type": "VM",
    "x.memory": 160,
    "x.desiredState": "off",
    "x.data": { service: { roles: { placer: { number: 2 } } } },
  },
};
const rootWith = (hosts: readonly string[], more: JsonObject = {}): Root => {
  const root = new Root();
  root.put("", rootWithTenancy(more));
  root.hearHosts(hosts);
  return root;
};

test("a host that is heard has an element from then on, and one that joins gets its own", () => {
  const root = rootWith(["h1", "h2"]);
  assert.deepEqual(root.model("root/hosts"), { h1: { "x.type": "Host" }, h2: { "x.type": "Host" } });
  root.put("root/hosts/h1", { ...maintenance, "x.tags": ["ssd"] });
  root.hearHosts(["h1", "h2", "h3"]);
  root.crash();
  assert.deepEqual(root.model("root/hosts"), {
    h1: { ...maintenance, "x.tags": ["ssd"] },
    h2: { "x.type": "Host" },
    h3: { "x.type": "Host" },
  });
});

test("whoever places VMs is told of a host that takes nothing new, until it does again", () => {
  const root = rootWith(["h1", "h2", "h3"], secondPlacer);
  assert.deepEqual(told(root, "placer"), []);
  root.put("root/hosts/h1", maintenance);
  root.put("root/hosts/h2", { "x.type": "Host", "x.state": "disabled" });
  for (const peer of ["placer", "placer.2"])
    assert.deepEqual(told(root, peer), ["h1 maintenance", "h2 disabled"], peer);
  root.crash();
  assert.deepEqual(told(root, "placer.2"), ["h1 maintenance", "h2 disabled"]);
  root.put("root/hosts/h1", { "x.type": "Host", "x.state": "enabled" });
  assert.deepEqual(told(root, "placer"), ["h2 disabled"]);
});

test("a host with the tag ha is kept for VMs whose host was lost, and not every one can be", () => {
  const root = rootWith(["h1", "h2"]);
  const reserved: JsonObject = { "x.type": "Host", "x.tags": ["ssd", "ha"] };
  root.put("root/hosts/h1", reserved);
  assert.deepEqual(told(root, "placer"), ["h1 reserved"]);
  root.put("root/hosts/h1", { ...reserved, "x.state": "disabled" });
  assert.deepEqual(told(root, "placer"), ["h1 disabled"]);
  root.put("root/hosts/h1", reserved);
  const { status, body } = root.put("root/hosts/h2", reserved);
  assert.notEqual(status, 200);
  assert.match(JSON.stringify(body), /cell\/no-open-host.*the management could start nowhere/);
  assert.match(JSON.stringify(body), /without `ha` in the `x\.tags` of h1 that one takes VMs/);
});

test("a text that does not name a host leaves it as it is; with its element gone it is as every other", () => {
  const root = rootWith(["h1", "h2", "h3"]);
  root.put("root/hosts/h1", maintenance);
  assert.equal(root.put("", rootWithTenancy()).status, 200);
  assert.deepEqual(told(root, "placer"), ["h1 maintenance"]);
  root.put("", rootWithTenancy({ hosts: { h2: maintenance } }));
  assert.deepEqual(told(root, "placer"), ["h1 maintenance", "h2 maintenance"]);
  const { body, status } = root.ask({ method: "DELETE", path: "root/hosts/h1" });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(told(root, "placer"), ["h2 maintenance"]);
  const hosts = { h2: maintenance, h3: { "x.type": "Host" }, h1: { "x.type": "Host" } };
  assert.deepEqual(root.model("root/hosts"), hosts, "it is there, and written");
});

test("a host that is away, or has left, keeps its element", () => {
  const root = rootWith(["h1", "h2"]);
  root.put("root/hosts/h2", maintenance);
  root.hearHosts(["h1"]);
  assert.equal(root.put("", rootWithTenancy({ hosts: { h1: { "x.type": "Host" }, h2: maintenance } })).status, 200);
  assert.deepEqual(told(root, "placer"), ["h2 maintenance"]);
});

test("a host is refused that nobody knows, elsewhere than in the root cell, and at another place in it", () => {
  const root = rootWith(["h1", "h2"]);
  const refusal = (path: string, json: JsonObject): string => {
    const { status, body } = root.put(path, json);
    assert.equal(status, 400, JSON.stringify(body));
    return JSON.stringify(body);
  };
  const unknown = refusal("root/hosts/h9", maintenance);
  assert.match(
    unknown,
    /cell\/host.*There is no host `h9`.*The hosts are h1, h2; a machine joins with `cells host token`/,
  );
  assert.match(refusal("root/h1", maintenance), /`root\/h1` is a Host, and stands outside of `root\/hosts`/);
  assert.match(refusal("root/hosts/row", { h1: maintenance }), /Write it as `hosts extends \{ h1 extends Host/);
  const text = "root extends Cell { hosts extends { h9 extends Host { } } }";
  const bundle = { main: "root.sf", files: { "root.sf": text } };
  const { body } = root.ask({ method: "PUT", path: "", bundle });
  assert.match(JSON.stringify(body), /There is no host `h9`.*"position":\{"file":"root.sf","line":1,"column":\d+/);
  assert.deepEqual(told(root, "placer"), [], "nothing was touched");
  // Of an installation whose hosts are not all known nothing is concluded.
  root.hearHosts(["h1", "h2"], false);
  assert.equal(root.put("root/hosts/h9", maintenance).status, 200);
  const world = new World();
  const answer = world.ask({
    method: "PUT",
    path: "",
    json: { shop: { "x.type": "Cell", hosts: { h1: maintenance } } },
  });
  assert.match(JSON.stringify(answer.body), /machines of the installation stand in the root cell alone/);
});

test("closing every host that could carry the management is refused, with the way", () => {
  const root = rootWith(["h1", "h2", "h3"]);
  const disabled: JsonObject = { "x.type": "Host", "x.state": "disabled" };
  root.put("root/hosts/h1", maintenance);
  assert.equal(root.put("root/hosts/h2", disabled).status, 200);
  for (const state of [maintenance, disabled]) {
    const { status, body } = root.put("root/hosts/h3", state);
    assert.equal(status, 400);
    assert.match(
      JSON.stringify(body),
      /cell\/no-open-host.*With h3 closed as well, no host would take VMs.*`cells host resume h1` opens one/,
    );
  }
  const all = rootWithTenancy({ hosts: { h1: maintenance, h2: maintenance, h3: maintenance } });
  assert.match(JSON.stringify(root.put("", all).body), /root\/hosts\/h3/, "nor by the whole text");
  assert.deepEqual(told(root, "placer"), ["h1 maintenance", "h2 disabled"], "nothing was touched");
  // One that is declared dead carries nothing.
  const three = rootWith(["h1", "h2", "h3"]);
  assert.equal(three.put("root/hosts/h1", maintenance).status, 200);
  three.declareDead("h3");
  assert.match(JSON.stringify(three.put("root/hosts/h2", maintenance).body), /With h2 closed as well, no host would/);
  three.hearHosts(["h1", "h2", "h3", "h4"]);
  assert.equal(three.put("root/hosts/h2", maintenance).status, 200, "h4 is there");
});

test("a host goes into a flavour, or is closed, only where another one is left to VMs that ask for no pool", () => {
  const root = rootWith(["h1", "h2", "h3"], { flavors: { large: { "x.type": "HostFlavor", "x.units": 4 } } });
  const [disabled, large]: JsonObject[] = [
    { "x.type": "Host", "x.state": "disabled" },
    { "x.type": "Host", "x.flavor": "large" },
  ];
  const refusal = (host: string, json: JsonObject = {}): string => {
    const { status, body } = root.put(`root/hosts/${host}`, json);
    assert.equal(status, 400, JSON.stringify(body));
    return JSON.stringify(body);
  };
  for (const host of ["h1", "h2"]) {
    root.put(`root/hosts/${host}`, disabled ?? {});
    root.hearStanding(host, []);
    assert.equal(root.put(`root/hosts/${host}`, large ?? {}).status, 200);
  }
  assert.match(
    refusal("h3", disabled),
    /With h3 closed as well, no host would take VMs that ask for no pool.*without `x\.flavor`, and with `x\.state .*`, h1 takes/,
  );
  const { body } = root.put("", rootWithTenancy({ hosts: { h3: maintenance } }));
  assert.match(JSON.stringify(body), /cell\/no-open-host.*root\/hosts\/h3/, "nor by the whole text");
  assert.equal(root.put("root/hosts/h2", { "x.type": "Host" }).status, 200);
  assert.equal(root.put("root/hosts/h3", disabled ?? {}).status, 200, "h2 is left");
  // Closed already, and it could still be opened; of a flavour it would be kept for good.
  root.hearStanding("h3", []);
  root.declareDead("h2");
  assert.match(refusal("h3", large), /With h3 of the flavour large as well, no host.*`cells host resume h3` opens one/);
  assert.deepEqual(told(root, "placer"), ["h3 disabled"], "nothing was touched");
  assert.equal(root.put("root/hosts/h1", disabled ?? {}).status, 200, "what was withheld before refuses nothing else");
});

test("as many hosts are left out of flavours as the operator leaves to the cloud's own VMs", () => {
  const flavors: JsonObject = { large: { "x.type": "HostFlavor", "x.units": 4 } };
  const root = new Root();
  root.put("", { root: { ...(rootWithTenancy({ flavors }).root as JsonObject), "x.placement.systemHosts": 2 } });
  root.hearHosts(["h1", "h2", "h3", "h4"]);
  const enter = (host: string) => {
    const closed = root.put(`root/hosts/${host}`, { "x.type": "Host", "x.state": "disabled" });
    assert.equal(closed.status, 200, "closing alone is as before");
    root.hearStanding(host, []);
    return root.put(`root/hosts/${host}`, { "x.type": "Host", "x.flavor": "large" });
  };
  assert.equal(enter("h1").status, 200);
  assert.equal(enter("h2").status, 200);
  const { status, body } = enter("h3");
  assert.equal(status, 400);
  assert.match(
    JSON.stringify(body),
    /With h3 of the flavour large as well, 1 of the 2 hosts that `x\.placement\.systemHosts` leaves to the cloud's own VMs would be left \(h4\)/,
  );
});

test("an open host that is too small for the management's largest machine does not count", () => {
  const root = rootWith(["h1", "h2"], { large: { "x.type": "VM", "x.memory": 600 } });
  root.hearHosts(["h1", "h2"], true, { h2: 599 });
  const { status, body } = root.put("root/hosts/h1", maintenance);
  assert.equal(status, 400);
  assert.match(JSON.stringify(body), /no host that takes VMs \(h2\) has the 600 MiB of its largest one/);
  root.hearHosts(["h1", "h2"], true, { h2: 600 });
  assert.equal(root.put("root/hosts/h1", maintenance).status, 200);
});

test("where all were closed before, everything else is accepted, and opening one too", () => {
  const root = rootWith(["h1", "h2"]);
  root.put("root/hosts/h1", maintenance);
  root.hearHosts(["h1"]);
  assert.equal(root.put("root/hosts/h1", { "x.type": "Host", "x.state": "disabled" }).status, 200);
  assert.equal(root.put("", rootWithTenancy({ more: { "x.type": "Subnet", "x.size": 8 } })).status, 200);
  assert.equal(root.put("root/hosts/h1", { "x.type": "Host" }).status, 200);
});

test("what the root cell sets of x.ha is told to the HA Manager, as far as it is written, until it is taken out", () => {
  const root = rootWith(["h1"]);
  root.step({ kind: "request", id: 1, request: { method: "HA" } });
  const settings = () => root.at("ha-manager", "settings");
  assert.deepEqual(settings(), [], "all as preset");
  const rootWithHa = (ha: JsonObject): JsonObject => ({ root: { ...(rootWithTenancy().root as JsonObject), ...ha } });
  assert.equal(root.put("", rootWithHa({ "x.ha.maxRetries": 3, "x.ha.syncInterval": 30 })).status, 200);
  assert.deepEqual(settings(), [{ settings: { syncInterval: 30, maxRetries: 3 } }]);
  const { status, body } = root.put("", rootWithHa({ "x.ha.maxRetries": 0 }));
  assert.equal(status, 400);
  assert.match(JSON.stringify(body), /x\.ha\.maxRetries.*1.*100/);
  root.crash();
  assert.deepEqual(settings(), [{ settings: { syncInterval: 30, maxRetries: 3 } }]);
  const investigators = ["neighbours", "power"];
  assert.equal(root.put("", rootWithHa({ "x.ha.investigators": investigators })).status, 200);
  assert.deepEqual(settings(), [{ settings: { investigators } }]);
  root.put("", rootWithTenancy());
  assert.deepEqual(settings(), []);
});

test("for how many hosts room is kept is told to the Placers alone", () => {
  const root = rootWith(["h1"]);
  root.step({ kind: "request", id: 1, request: { method: "HA" } });
  const rootWithHa = (ha: JsonObject): JsonObject => ({ root: { ...(rootWithTenancy().root as JsonObject), ...ha } });
  assert.deepEqual(root.at("placer", "spare"), []);
  assert.equal(root.put("", rootWithHa({ "x.ha.spareHosts": 2 })).status, 200);
  assert.deepEqual(root.at("placer", "spare"), [{ hosts: 2 }]);
  assert.deepEqual(root.at("ha-manager", "settings"), []);
  root.put("", rootWithHa({ "x.ha.spareHosts": 0, "x.ha.maxRetries": 3 }));
  assert.deepEqual(root.at("placer", "spare"), []);
  assert.deepEqual(root.at("ha-manager", "settings"), [{ settings: { maxRetries: 3 } }]);
});

test("how VMs of all cells are placed is told to each Placer, also after a crash, until nothing is written of it", () => {
  const root = rootWith(["h1"], secondPlacer);
  const rootWithPlacement = (placement: JsonObject): JsonObject => ({
    root: { ...(rootWithTenancy(secondPlacer).root as JsonObject), ...placement },
  });
  assert.deepEqual(root.at("placer", "settings"), []);
  assert.equal(root.put("", rootWithPlacement({ "x.placement.lastHostS": 60 })).status, 200);
  root.crash();
  for (const peer of ["placer", "placer.2"])
    assert.deepEqual(root.at(peer, "settings"), [{ settings: { lastHostS: 60 } }], peer);
  const { status, body } = root.put("", rootWithPlacement({ "x.placement.lastHostS": 86_401 }));
  assert.equal(status, 400);
  assert.match(JSON.stringify(body), /x\.placement\.lastHostS.*0.*86400/);
  assert.deepEqual(root.at("placer", "settings"), [{ settings: { lastHostS: 60 } }], "nothing was touched");
  root.put("", rootWithPlacement({}));
  assert.deepEqual(root.at("placer", "settings"), []);
});

test("what a lost store said of a host is taken back where the model says otherwise, and nothing is said twice", () => {
  const root = rootWith(["h1", "h2"]);
  root.put("root/hosts/h2", maintenance);
  const keeps = (host: string): readonly unknown[] =>
    root
      .step({
        kind: "kept",
        peer: peerName("placer"),
        key: `host/${host}`,
        value: { host, state: "maintenance" },
      })
      .flatMap((effect) => (effect.kind === "desire" ? [[effect.to, effect.key, effect.value]] : []));
  assert.deepEqual(keeps("h1"), [["placer", "host/h1", null]]);
  assert.deepEqual(keeps("h1"), [], "it is on its way");
  assert.deepEqual(keeps("h2"), [], "that one is desired");
});

test("what a lost store had set for all is taken back where the model does not set it", () => {
  const root = rootWith(["h1", "h2"]);
  const keeps = (key: string, value: JsonObject): readonly unknown[] =>
    root
      .step({ kind: "kept", peer: peerName("placer"), key, value })
      .flatMap((effect) => (effect.kind === "desire" ? [[effect.to, effect.key, effect.value]] : []));
  assert.deepEqual(keeps(spareKey, { hosts: 1 }), [["placer", spareKey, null]]);
  assert.deepEqual(keeps(settingsKey, { settings: { systemHosts: 2 } }), [["placer", settingsKey, null]]);
  root.crash();
  root.put("", { root: { ...(rootWithTenancy().root as JsonObject), "x.ha.maxRetries": 3 } });
  assert.deepEqual(
    keeps(settingsKey, { settings: { systemHosts: 2 } }),
    [["placer", settingsKey, null]],
    "what is set for HA Managers is set for no Placer",
  );
});

test("what stands in the way of an element is the operator's, and is left alone", () => {
  const root = new Root();
  root.put("", rootWithTenancy({ hosts: { h1: { "x.type": "Subnet", "x.size": 8 } } }));
  root.hearHosts(["h1", "h2"]);
  const { h1, h2 } = root.model("root/hosts") as Readonly<Record<string, JsonObject>>;
  assert.deepEqual([h1?.["x.type"], h2?.["x.type"]], ["Subnet", "Host"]);
});

test("what is offered by names is told to every Placer, with what it asks of a host, and taken back with the last of it", () => {
  const root = rootWith(["h1"]);
  const told = (): unknown => root.desired.get(peerName("placer"))?.get(settingsKey);
  assert.equal(told(), undefined);
  const small = { "x.type": "Offering", "x.memory": 512, "x.planner": "ImplicitDedicationPlanner", "x.tags": ["ssd"] };
  root.put("root/offerings/small", small);
  root.put("root/offerings/large", { "x.type": "Offering", "x.memory": 4096, "x.cpus": 4, "x.cpuSpeed": 2000 });
  assert.deepEqual(told(), {
    settings: {},
    offerings: [
      { name: "large", memoryMiB: 4096, cpus: 4, cpuSpeedMHz: 2000 },
      { name: "small", memoryMiB: 512, cpus: 1, tags: ["ssd"], dedication: "strict" },
    ],
  });
  root.put("root/offerings/small", { ...small, "x.mode": "Preferred" });
  assert.match(JSON.stringify(told()), /"name":"small".*"dedication":"preferred"/);
  for (const name of ["small", "large"]) root.ask({ method: "DELETE", path: `root/offerings/${name}` });
  assert.equal(told(), undefined);
});

test("the first HA Manager is told by whichever Placer that too few hosts are left to the cloud's own VMs", () => {
  const root = rootWith(["h1"]);
  root.step({ kind: "request", id: 1, request: { method: "HA" } });
  const told = (): unknown => root.desired.get(peerName("ha-manager"))?.get(settingsKey);
  const say = (value: JsonObject | null): unknown =>
    root.step({ kind: "actual", from: peerName("placer"), key: "controller.root/short", value });
  assert.equal(told(), undefined);
  say({ kept: 1, left: 0 });
  assert.deepEqual(told(), { settings: {}, short: { kept: 1, left: 0 } });
  root.put("", { root: { ...(rootWithTenancy().root as JsonObject), "x.ha.maxRetries": 3 } });
  assert.deepEqual(told(), { settings: { maxRetries: 3 }, short: { kept: 1, left: 0 } });
  const short = { settings: { maxRetries: 3 }, short: { kept: 1, left: 0 } };
  say(null);
  assert.deepEqual(told(), short, "a Placer that has just started has not heard all hosts");
  root.crash();
  assert.deepEqual(told(), short);
  say({ kept: 3, left: 2 });
  assert.deepEqual(told(), { settings: { maxRetries: 3 }, short: { kept: 3, left: 2 } });
  say({ enough: true });
  assert.deepEqual(told(), { settings: { maxRetries: 3 } });
  root.crash();
  assert.deepEqual(told(), { settings: { maxRetries: 3 } });
});

test("a Placer that is away holds no alert up that the others say is over, and takes none back", () => {
  const root = rootWith(["h1"], secondPlacer);
  root.step({ kind: "request", id: 1, request: { method: "HA" } });
  const told = (): unknown => root.desired.get(peerName("ha-manager"))?.get(settingsKey);
  const say = (peer: string, value: JsonObject | null): unknown =>
    root.step({ kind: "actual", from: peerName(peer), key: "controller.root/short", value });
  const reach = (peer: string, reachable: boolean): unknown =>
    root.step({ kind: "reachable", peer: peerName(peer), reachable });
  const short = { kept: 2, left: 1 };
  for (const peer of ["placer", "placer.2"]) reach(peer, true);
  say("placer", short);
  say("placer.2", short);
  say("placer", { enough: true });
  assert.deepEqual(told(), { settings: {}, short }, "that one is there, and finds too few");
  reach("placer.2", false);
  assert.equal(told(), undefined, "what it said last is of then");
  say("placer", short);
  assert.deepEqual(told(), { settings: {}, short });
  reach("placer", false);
  assert.deepEqual(told(), { settings: {}, short }, "nobody is there who could say that it is over");
  root.crash();
  for (const peer of ["placer", "placer.2"]) reach(peer, false);
  assert.deepEqual(told(), { settings: {}, short }, "nor after a start");
  reach("placer", true);
  assert.deepEqual(told(), { settings: {}, short }, "it has just started");
  say("placer", { enough: true });
  assert.equal(told(), undefined);
});

test("of two Placers that have not been tried yet since a start each is waited for before an alert ends", () => {
  const root = rootWith(["h1"], secondPlacer);
  root.step({ kind: "request", id: 1, request: { method: "HA" } });
  const told = (): unknown => root.desired.get(peerName("ha-manager"))?.get(settingsKey);
  const say = (peer: string, value: JsonObject): unknown =>
    root.step({ kind: "actual", from: peerName(peer), key: "controller.root/short", value });
  const short = { kept: 2, left: 1 };
  say("placer.2", short);
  root.crash();
  say("placer", { enough: true });
  assert.deepEqual(told(), { settings: {}, short });
  say("placer.2", { enough: true });
  assert.equal(told(), undefined);
});
