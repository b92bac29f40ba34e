import assert from "node:assert/strict";
import { test } from "node:test";
import { type Cidr, ipv4, type Uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import type { DesiredName } from "../../documents/vocabulary.ts";
import type { ControllerResponse } from "../requests/requests.ts";
import { World } from "../world.testing.ts";

const root = {
  management: "10.0.0.0/16" as Cidr,
  authority: { address: ipv4("10.0.0.5"), fingerprint: "00" },
  credentialHashes: [],
  token: (vm: Uid, incarnation: number, role: string) => ({ token: `${vm} ${incarnation} ${role}`, hash: "00" }),
};
const card = (vm: string, subnet: string, more: JsonObject = {}): JsonObject => ({
  "x.type": "VirtualInterface",
  "x.vm": `<ref:../${vm}>`,
  "x.subnet": `<ref:../${subnet}>`,
  ...more,
});
const vm: JsonObject = { "x.type": "VM", "x.memory": 128, "x.desiredState": "on" };
/** A service with one foot on the management network and one in the cell's own, beside an ordinary VM. */
const model = (more: JsonObject = {}, net: JsonObject = {}): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    "x.limits.addresses": 16,
    net: { "x.type": "Subnet", "x.addressRange": "management", ...net },
    own: { "x.type": "Subnet", "x.size": 8 },
    service: vm,
    web: vm,
    serviceNet: card("service", "net", { "x.address": "10.0.0.30", "x.vifName": "service" }),
    serviceOwn: card("service", "own"),
    webOwn: card("web", "own", { "x.vifName": "web" }),
    rule: { "x.type": "NetworkRule", "x.address1": "<ref:../service>", "x.address2": "<ref:../own>" },
    ...more,
  },
});
const messages = ({ status, body }: ControllerResponse): string => {
  if (status === 200) return "";
  const { error } = body as { error: { message: string; diagnostics?: readonly { code: string; message: string }[] } };
  return (error.diagnostics ?? []).map(({ code, message }) => `${code}: ${message}`).join("\n") || error.message;
};

test("a subnet on the management network is the underlay: nobody gives it, and its interfaces go past the rules", () => {
  const world = new World({ root });
  world.put(model({}, { "x.cidr": "10.0.0.0/16" }));
  assert.deepEqual(
    world.documents<{ path: string }>("address-manager", "subnet").map(({ path }) => path),
    ["shop/own"],
  );
  assert.equal(world.phase("shop/net"), "ready");
  assert.equal(world.phase("shop/serviceNet"), "ready");
  const service = world.vm("shop/service");
  const [managed, own] = service?.document.interfaces ?? [];
  const { identity, vmIdentity, subnetIdentity, ...rest } = managed!;
  assert.deepEqual(rest, {
    uid: world.uidOf("shop/serviceNet"),
    path: "shop/serviceNet",
    mac: "02:ce:0a:00:00:1e",
    address: "10.0.0.30",
    prefixLength: 16,
    gateway: "0.0.0.0",
    nameServer: "10.0.3.1",
    hostName: "service",
    domain: "shop.cells.internal",
    audience: [],
    management: true,
  });
  assert.equal(own?.management, undefined);
  assert.deepEqual(
    world.documents<DesiredName>("dns-manager", "name").map(({ name, address }) => `${name} ${address}`),
    ["service.shop.cells.internal 10.0.0.30", "web.shop.cells.internal 10.64.0.3"],
  );
  const { rules } = world.policy(service!.host)!;
  assert.ok(
    rules.some(({ from }) => from === vmIdentity),
    "the rule of the VM's other interface is there",
  );
  for (const strange of [identity, subnetIdentity])
    assert.ok(!rules.some(({ from, to }) => from === strange || to === strange));
});

test("it survives a crash after each step, and nothing of it is left when it was deleted", () => {
  const world = new World({ root });
  world.crashing = true;
  world.put(model());
  assert.equal(world.vm("shop/service")?.document.interfaces[0]?.management, true);
  world.put({ shop: { "x.type": "Cell", "x.name": "shop" } });
  assert.deepEqual(world.phases(), {});
});

test("an all-or-none cell has its management subnet at once, and gives up nothing for it", () => {
  const world = new World({ root });
  world.put(model({ "x.policy.deploy": "all-or-none" }));
  assert.equal(world.vm("shop/service")?.document.interfaces[0]?.management, true);
  world.hosts.clear();
  const scarce = new World({ root });
  scarce.hosts.clear();
  scarce.put(model({ "x.policy.deploy": "all-or-none" }));
  assert.equal(scarce.standing("shop/service"), "waiting: no-host");
});

test("only the operator's root cell may have one, and only the underlay's addresses", () => {
  const ask = (world: World, json: JsonObject): string => messages(world.ask({ method: "PUT", path: "", json }));
  assert.match(ask(new World(), model()), /^cell\/management: `shop\/net` is on the management network, which only/);
  assert.match(
    ask(new World({ root }), model({}, { "x.cidr": "10.0.0.0/15" })),
    /^cell\/management: `shop\/net` asks for 10\.0\.0\.0\/15, and the management network is 10\.0\.0\.0\/16$/,
  );
  const outside = { serviceNet: card("service", "net", { "x.address": "10.2.0.1" }) };
  assert.match(ask(new World({ root }), model(outside)), /10\.2\.0\.1 of `shop\/serviceNet` is no usable address/);
  assert.match(
    ask(new World({ root }), model({ serviceNet: card("service", "net") })),
    /^cell\/management: `shop\/serviceNet` is on the management network and has no fixed address$/,
  );
  for (const path of ["net", "serviceNet"]) {
    const rule = { "x.type": "NetworkRule", "x.address1": `<ref:../${path}>`, "x.address2": "internet" };
    assert.match(ask(new World({ root }), model({ rule })), /`shop\/.*` is on the management network, where no rule/);
  }
  assert.equal(ask(new World({ root }), model()), "");
});

test("its addresses are nobody's quota", () => {
  for (const net of [{}, { "x.cidr": "10.0.0.0/16" }]) assert.ok(checkDocument(model({}, net)).ok);
  const small = checkDocument(model({ "x.limits.addresses": 7 }));
  assert.ok(!small.ok && small.error.every(({ code }) => code === "cell/limits"), "its own subnet counts");
});
