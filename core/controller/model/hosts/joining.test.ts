import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../model/json/json.ts";
import type { DesiredPooled } from "../../../documents/pools.ts";
import type { DesiredDedicated, DesiredMarks } from "../../../documents/tenancy.ts";
import type { DesiredHost } from "../../../documents/vocabulary.ts";
import { childOf, Root, rootWithTenancy } from "../root.testing.ts";
import type { JoiningHost } from "./joining.ts";

const places: JsonObject = { z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" } } } };
const flavors: JsonObject = { large: { "x.type": "HostFlavor", "x.units": 4 } };
const cloud = (more: JsonObject = {}, hosts: readonly string[] = ["h1", "h2"]): Root => {
  const root = new Root();
  assert.equal(root.put("", rootWithTenancy({ places, flavors, ...more })).status, 200);
  root.hearHosts(hosts);
  return root;
};
const lets = (root: Root, joining: JoiningHost, dryRun = false) =>
  root.ask({ method: "PUT", path: `root/hosts/${joining.host}`, joining, dryRun });
const refusals = (root: Root, joining: JoiningHost): readonly JsonObject[] => {
  const { status, body } = lets(root, joining);
  assert.equal(status, 400, JSON.stringify(body));
  return (body as { error: { diagnostics: readonly JsonObject[] } }).error.diagnostics;
};
const whose = (root: Root): readonly string[] =>
  root.at<DesiredDedicated>("placer", "dedicated/").map(({ host, to }) => `${host} ${to.kind} ${to.path}`);
const all: JoiningHost = {
  host: "h7",
  cluster: "z1/p1/c1",
  tags: ["ssd", "quiet"],
  domain: "ROOT/acme",
  account: "dev",
};

test("what a machine joins as is said to Placers before they hear of it, and stays as it joins", () => {
  const root = cloud();
  const before = root.model();
  assert.equal(lets(root, all, true).status, 200);
  assert.deepEqual(root.model(), before, "a trial changes nothing");
  assert.equal(lets(root, all).status, 200);
  const marks = [{ host: "h7", cluster: "z1/p1/c1", tags: ["ssd", "quiet"] }];
  assert.deepEqual([whose(root), root.at<DesiredMarks>("placer", "marks/")], [["h7 account ROOT/acme/dev"], marks]);
  root.crash();
  root.hearHosts(["h1", "h2"]);
  root.hearHosts(["h1", "h2", "h7"]);
  assert.deepEqual([whose(root), root.at<DesiredMarks>("placer", "marks/")], [["h7 account ROOT/acme/dev"], marks]);
  assert.deepEqual(root.model("root/hosts/h7"), {
    "x.type": "Host",
    "x.cluster": "z1/p1/c1",
    "x.tags": ["ssd", "quiet"],
  });
  // A text that does not name it leaves it as it is.
  assert.equal(root.put("", rootWithTenancy({ places, flavors })).status, 200);
  assert.deepEqual(whose(root), ["h7 account ROOT/acme/dev"]);
});

test("a machine joins as one of a flavour, and is a pool's to have once it is heard", () => {
  const root = cloud({ shop: childOf("shop", "ROOT/acme/dev"), "x.placement.systemHosts": 3 });
  assert.equal(lets(root, { host: "h7", flavor: "large" }).status, 200, "it takes no host from the cloud's own VMs");
  const pooled = (): unknown =>
    root.at<DesiredPooled>("placer", "pooled/").map(({ host, flavor, pool }) => [host, flavor, pool?.name ?? null]);
  assert.deepEqual(pooled(), [["h7", "large", null]]);
  assert.deepEqual(root.at<DesiredHost>("placer", "host/"), [], "it is enabled by it");
  root.hearPools("shop", [{ name: "rack1" }]);
  assert.deepEqual(pooled(), [["h7", "large", null]], "nobody gets what has not joined");
  root.hearHosts(["h1", "h2", "h7"]);
  root.hearStanding("h7", []);
  assert.deepEqual(pooled(), [["h7", "large", "rack1"]]);
});

test("a machine that joins as one that takes VMs of lost hosts alone takes none before", () => {
  const root = cloud();
  assert.equal(lets(root, { host: "h7", tags: ["ha"] }).status, 200);
  const told = root.at<DesiredHost>("placer", "host/").map(({ host, state }) => `${host} ${state}`);
  assert.deepEqual(told, ["h7 reserved"]);
});

test("what stands there already counts, and is named with its place", () => {
  const root = cloud();
  const text =
    'root extends Cell { hosts extends { h2 extends Host { x.tags ["hdd"]; } } places extends { z1 extends Zone { p1 extends Pod { c1 extends Cluster; } } } }';
  const applied = root.ask({ method: "PUT", path: "", bundle: { main: "root.sf", files: { "root.sf": text } } });
  assert.equal(applied.status, 200, JSON.stringify(applied.body));
  const version = lets(root, { host: "h2", tags: ["hdd"] }, true).version;
  assert.equal(lets(root, { host: "h2", tags: ["hdd"] }).version, version, "the same again changes nothing");
  const [tags, ...more] = refusals(root, { host: "h2", tags: ["ssd"] });
  assert.deepEqual([more, tags?.code, tags?.path, tags?.attribute], [[], "cell/host", "root/hosts/h2", "x.tags"]);
  assert.match(String(tags?.message), /h2 was to join with `x\.tags` \["ssd"\], and `root\/hosts\/h2` has \["hdd"\]/);
  assert.match(JSON.stringify(tags?.position), /"file":"root.sf","line":1/);
  const [cluster, owner] = refusals(root, { host: "h2", cluster: "z1/p1/c1", domain: "ROOT/acme" });
  assert.match(String(cluster?.message), /`x\.cluster` "z1\/p1\/c1", and `root\/hosts\/h2` says nothing of it/);
  assert.match(String(owner?.message), /as a host of the domain ROOT\/acme, and is nobody's alone/);
  assert.equal(lets(root, all).status, 200);
  assert.equal(lets(root, all).status, 200, "a second token for the same");
  const [other] = refusals(root, { host: "h7", domain: "ROOT/acme" });
  assert.match(String(other?.message), /domain ROOT\/acme, and is dedicated to the account ROOT\/acme\/dev/);
});

test("what does not fit the model is refused, and nothing of it is written", () => {
  const root = cloud();
  const before = root.model();
  const first = (joining: JoiningHost): string => String(refusals(root, joining)[0]?.message);
  assert.match(first({ host: "h7", cluster: "z1/p1/c2" }), /stands in the cluster "z1\/p1\/c2", which is none/);
  assert.match(first({ host: "h7", flavor: "lrage" }), /there is no host flavour "lrage"/);
  assert.match(first({ ...all, domain: "acme" }), /"acme" is no path of a domain/);
  root.put("root/dedications/z1", { "x.type": "Dedication", "x.of": "z1", "x.to": "ROOT/other" });
  assert.match(first(all), /ROOT\/other/);
  root.ask({ method: "DELETE", path: "root/dedications/z1" });
  assert.deepEqual(root.model("root/hosts"), (before as { root: JsonObject }).root.hosts);
  assert.deepEqual(whose(root), []);
  // Without a token nobody writes of a machine that is not there.
  assert.equal(root.put("root/hosts/h7", { "x.type": "Host" }).status, 400);
});
