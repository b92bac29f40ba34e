import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed } from "../../../model/api.ts";
import type { Openness } from "../../../model/cell/cell.ts";
import { type Cidr, cellName, ipv4, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { addressOfferOf } from "../../address/manager.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import { toJson } from "../../outbox.ts";
import { childGrant, shop, World } from "../world.testing.ts";
import { subnetConnectivityPath } from "./policy.ts";
import type { NamesAsked } from "./resolvers.ts";

const resolver = ipv4("10.0.0.9");
const model = (rule: JsonObject | null, policy: JsonObject = {}): JsonObject => ({
  shop: {
    "x.type": "Cell",
    "x.name": "shop",
    ...policy,
    net: { "x.type": "Subnet", "x.size": 8 },
    ...(rule === null ? {} : { rule: { "x.type": "NetworkRule", ...rule } }),
  },
});
const net = "<ref:../net>";
const askedBy = (world: World): unknown => (world.ask({ method: "RESOLVERS" }) as unknown as NamesAsked).resolvers;

test("a cell asks outside for names as long as a rule of its own opens something towards the internet", () => {
  const world = new World({ resolvers: [resolver] });
  assert.deepEqual(askedBy(world), [], "before there is a model");
  const asks = (document: JsonObject): unknown => {
    assert.equal(world.put(document).status, 200);
    return askedBy(world);
  };
  const end = (one: string, two: string, direction: string): JsonObject => ({
    "x.address1": one,
    "x.address2": two,
    "x.direction": direction,
  });
  assert.deepEqual(asks(model(null)), []);
  assert.deepEqual(asks(model(end(net, "internet", "1to2"))), [resolver]);
  assert.deepEqual(asks(model(end("internet", net, "1to2"))), [], "that lets in alone");
  assert.deepEqual(asks(model(end("internet", net, "both"))), [resolver]);
  assert.deepEqual(asks(model(end(net, "203.0.113.0/24", "1to2"))), []);
  assert.deepEqual(asks(model(null, { "x.policy.internet": "out" })), [resolver]);
  assert.deepEqual(asks(model(null)), [], "the rule is gone");
  assert.deepEqual(askedBy(new World({})), [], "no resolver is declared");
});

test("what machines have of former pools is the cloud's, for who asks names outside", () => {
  const world = new World({});
  const pools = { internalPool: "10.64.0.0/10", externalPool: "198.18.0.0/15" };
  const says = (kept: readonly string[]): unknown => {
    const value = toJson(addressOfferOf({ ...pools, kept }));
    world.step({ kind: "actual", from: peerName("address-manager"), key: "addresses", value });
    return (world.ask({ method: "RESOLVERS" }) as unknown as NamesAsked).external;
  };
  assert.deepEqual(says([]), ["198.18.0.0/15"]);
  assert.deepEqual(says(["203.0.113.8/29"]), ["198.18.0.0/15", "203.0.113.8/29"]);
});

const cellManager = peerName("cell-manager");
const outwards = { "x.address1": net, "x.address2": "internet", "x.direction": "1to2" };
/** A cell as its parent tells it that it is. */
function child(bound: Openness, document: JsonObject): World {
  const world = new World({ child: true, cellManager: true, resolvers: [ipv4("10.0.0.77")] });
  const life = { uid: world.state.options.cellUid, model: document, grant: childGrant, ending: false, bound };
  world.step({ kind: "desired", from: cellManager, key: "life", value: toJson(life) });
  world.settle();
  return world;
}

test("a cell asks the resolvers that its parent lets it have, or some of them", () => {
  const bound: Openness = { resolvers: [resolver, ipv4("10.0.0.8")] };
  const asks = (policy: JsonObject): unknown => askedBy(child(bound, model(outwards, policy)));
  assert.deepEqual(asks({}), bound.resolvers);
  assert.deepEqual(asks({ "x.policy.resolvers": ["10.0.0.8", "10.0.3.1"] }), ["10.0.0.8"]);
  assert.deepEqual(asks({ "x.policy.resolvers": [] }), []);
  assert.deepEqual(askedBy(child({}, model(outwards, { "x.policy.resolvers": [resolver] }))), []);
});

test("what a parent does not open is closed, whatever the cell says of it", () => {
  const out: JsonObject = { "x.policy.internet": "out" };
  assert.deepEqual(askedBy(child({ resolvers: [resolver], internet: "none" }, model(null, out))), []);
  assert.deepEqual(askedBy(child({ resolvers: [resolver], internet: "out" }, model(null))), [resolver]);
  const connects = (bound: Openness, said: JsonObject): boolean => {
    const document = shop();
    const world = child(bound, { shop: { ...(document.shop as JsonObject), ...said } });
    const { rules } = world.policy(world.vm("shop/web")?.host ?? "") ?? assert.fail("there is no policy");
    return rules.some(({ path }) => path === subnetConnectivityPath);
  };
  const own = { "x.policy.subnetConnectivity": true };
  assert.deepEqual([connects({}, own), connects({ subnetConnectivity: false }, own)], [true, false]);
  assert.deepEqual([connects({}, {}), connects({ subnetConnectivity: true }, {})], [false, true]);
});

const withChild = (defaults: JsonObject, name = "shop"): JsonObject => ({
  [name]: {
    "x.type": "Cell",
    "x.name": name,
    ...defaults,
    team: { "x.type": "CellController", "x.cell": { team: { "x.type": "Cell" } } },
  },
});
const toldTo = (world: World): Openness | undefined => world.documents<DesiredCell>("cell-manager", "cell")[0]?.bound;

test("a cell lets its children have no more than it has itself, and the root cell alone declares resolvers", () => {
  const bound: Openness = { internet: "none", resolvers: [resolver] };
  const told = (defaults: JsonObject): Openness | undefined => toldTo(child(bound, withChild(defaults)));
  assert.deepEqual(told({}), bound);
  assert.deepEqual(told({ "x.defaults.resolvers": [resolver, "10.0.3.1"], "x.defaults.internet": "out" }), bound);
  assert.deepEqual(told({ "x.defaults.resolvers": [], "x.defaults.broadcast": "off" }), {
    internet: "none",
    broadcast: "off",
  });
  const root = {
    management: "10.0.0.0/16" as Cidr,
    authority: { address: ipv4("10.0.0.5"), fingerprint: "00" },
    credentialHashes: [],
    token: () => ({ token: "", hash: "00" }),
  };
  const world = new World({ root, cellManager: true });
  world.put(withChild({ "x.defaults.resolvers": [resolver] }));
  assert.deepEqual(toldTo(world), { resolvers: [resolver] });
  for (const beyond of ["9.9.9.9", "10.0.255.255"]) {
    const { status, body } = world.ask({
      method: "PUT",
      path: "",
      json: withChild({ "x.defaults.resolvers": [beyond] }),
    });
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), /cell\/management.*not on the management network 10\.0\.0\.0\/16/);
  }
});

test("the plan names what opens by a word of the cell above, also for the cells below", () => {
  const planned = (world: World, json: JsonObject): unknown =>
    (world.ask({ method: "PUT", path: "", json, dryRun: true }).body as unknown as Changed).opened;
  const own = { attribute: "x.policy.internet", from: "none", to: "out", of: "own", cells: ["shop"] };
  assert.deepEqual(planned(child({ internet: "out" }, model(null, { "x.policy.internet": "none" })), model(null)), [
    own,
  ]);
  assert.equal(planned(child({ internet: "out" }, model(null)), model(null, { "x.policy.resolvers": [] })), undefined);
  const below = child({}, withChild({}));
  assert.deepEqual(planned(below, withChild({ "x.defaults.internet": "out" })), [
    { ...own, of: "children", cells: ["team.shop"] },
  ]);
});

test("the root cell says to whom the DNS Manager hands names, as long as it is written, and nobody else does", () => {
  const zone = { zone: "cloud.example.org", servers: ["ns1.example.org", "ns2.example.org"], secondaries: [resolver] };
  const written: JsonObject = {
    "x.zone.name": zone.zone,
    "x.zone.servers": zone.servers.join(" "),
    "x.zone.secondaries": [resolver],
  };
  const root = {
    management: "10.0.0.0/16" as Cidr,
    authority: { address: ipv4("10.0.0.5"), fingerprint: "00" },
    credentialHashes: [],
    token: () => ({ token: "", hash: "00" }),
  };
  const world = new World({ root, cell: cellName("root"), cellManager: true });
  const handed = (): unknown => {
    const document = world.desired.get(peerName("dns-manager"))?.get("zone");
    return document === undefined ? [] : [document];
  };
  const put = (attributes: JsonObject) =>
    world.ask({ method: "PUT", path: "", json: { root: { "x.type": "Cell", "x.name": "root", ...attributes } } });
  assert.equal(put({}).status, 200);
  assert.deepEqual(handed(), []);
  assert.equal(put(written).status, 200);
  assert.deepEqual(handed(), [zone]);
  const { status, body } = put({ ...written, "x.zone.secondaries": ["192.0.2.53"] });
  assert.equal(status, 400);
  assert.match(
    JSON.stringify(body),
    /192\.0\.2\.53 of `x\.zone\.secondaries` is not on the management network 10\.0\.0\.0\/16/,
  );
  assert.equal(put({}).status, 200);
  assert.deepEqual(handed(), []);
});
