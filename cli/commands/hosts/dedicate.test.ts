import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../model/json/json.ts";
import { failure, type Gateway, scene } from "../model/scene.testing.ts";
import { dedicateResource, listDedications, releaseResource } from "./dedicate.ts";

const vmAt = (host: string): JsonObject => ({
  "x.type": "VM",
  $state: { phase: "ready", reason: null, since: "", uid: "c1-1", power: "on", incarnation: 1, host },
});
const dedicated = (of: string, to: string, account?: string): JsonObject => ({
  "x.type": "Dedication",
  "x.of": of,
  "x.to": to,
  ...(account === undefined ? {} : { "x.account": account }),
});

/** A cloud of two accounts' cells, whose hosts stand in one cluster but for the last. */
const cloud = (dedications: JsonObject = {}) => {
  const put: string[] = [];
  const model: JsonObject = {
    "x.type": "Cell",
    dedications,
    places: { z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" } } } },
    hosts: { h1: { "x.type": "Host", "x.cluster": "z1/p1/c1" }, h2: { "x.type": "Host" } },
    cells: { shop: { "x.type": "CellController", "x.name": "shop", "x.account": "ROOT/acme/dev" } },
  };
  const gateway: Gateway = ({ method, url, dryRun, body }) => {
    if (url.includes("/domains")) return { status: 200, body: [{ path: "ROOT/acme" }, { path: "ROOT/other" }] };
    if (url.includes("/accounts")) return { status: 200, body: [{ path: "ROOT/acme/dev" }] };
    if (method === "PUT" || method === "DELETE") {
      if (!dryRun) put.push(`${method} ${url.split("/cells/")[1]?.split("?")[0]} ${body}`.trim());
      return { status: 200, body: { plan: { steps: [] }, version: 7, dryRun } };
    }
    if (url.endsWith("/cells")) return { status: 200, body: [{ cell: "root" }, { cell: "shop" }] };
    if (url.includes("/cells/shop/")) return { status: 200, body: { shop: { "x.type": "Cell", vm: vmAt("h1") } } };
    return { status: 200, body: { root: model } };
  };
  return Object.assign(gateway, { put });
};

test("a place is given to a domain or to an account by its path, and the group is said by which VMs ask for it", async (t) => {
  const gateway = cloud();
  const { context, printed } = await scene(t, gateway);
  await dedicateResource(context, "z1/p1", { to: "acme/dev", dryRun: true });
  assert.deepEqual(gateway.put, []);
  await dedicateResource(context, "z1/p1", { to: "acme/dev", dryRun: false });
  await dedicateResource(context, "h2", { to: "ROOT/acme", dryRun: false });
  assert.deepEqual(gateway.put, [
    'PUT root/model/root/dedications/z1-p1 {"x.type":"Dedication","x.of":"z1/p1","x.to":"ROOT/acme","x.account":"dev"}',
    'PUT root/model/root/dedications/h2 {"x.type":"Dedication","x.of":"h2","x.to":"ROOT/acme"}',
  ]);
  assert.deepEqual(printed.slice(-2), [
    "h2 is dedicated to the domain ROOT/acme",
    'VMs ask for it with `x.placement.groups "DedicatedGrp-domain-acme"`',
  ]);
});

test("VMs of others that run there stand against it and are named, and so does what was given before", async (t) => {
  const gateway = cloud({ own: dedicated("h2", "ROOT/acme", "dev") });
  const { context } = await scene(t, gateway);
  const order = (of: string, to: string) => failure(dedicateResource(context, of, { to, dryRun: false }));
  assert.match((await order("z1", "other")).message, /VMs of others run in z1: shop\/vm at h1/);
  assert.match((await order("h2", "acme")).message, /h2 is dedicated to the account ROOT\/acme\/dev already/);
  assert.match((await order("h9", "acme")).message, /no zone, pod, cluster or host h9; there are h1, h2, z1/);
  assert.match((await order("h1", "nobody")).message, /there is no domain and no account ROOT\/nobody/);
  assert.deepEqual(gateway.put, []);
});

test("what is dedicated is listed, and given back by its name", async (t) => {
  const gateway = cloud({ rack: dedicated("z1/p1", "ROOT/acme"), own: dedicated("h2", "ROOT/acme", "dev") });
  const { context, printed } = await scene(t, gateway);
  await listDedications(context);
  assert.match(printed.join("\n"), /h2 +host +the account ROOT\/acme\/dev +DedicatedGrp-dev/);
  assert.match(printed.join("\n"), /z1\/p1 +pod +the domain ROOT\/acme +DedicatedGrp-domain-acme/);
  await releaseResource(context, "z1/p1");
  assert.deepEqual(gateway.put, ["DELETE root/model/root/dedications/rack"]);
  assert.match((await failure(releaseResource(context, "z1"))).message, /z1 is dedicated to nobody; .*h2, z1\/p1/);
});
