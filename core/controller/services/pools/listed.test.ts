import assert from "node:assert/strict";
import { test } from "node:test";
import type { Holdings } from "../../../../model/contract/tenancy/pools.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import { childOf, Root, rootWithTenancy } from "../../model/root.testing.ts";

const [dev, ops] = ["ROOT/acme/dev", "ROOT/other/ops"];
const dedicated = (of: string, to: string, account?: string): JsonObject => ({
  "x.type": "Dedication",
  "x.of": of,
  "x.to": to,
  ...(account === undefined ? {} : { "x.account": account }),
});
/** Hosts `h1` to `h3` of a flavour, of which the second is one account's; `h4` stands in a pod that is the domain's. */
function cloud(): Root {
  const root = new Root();
  root.put(
    "",
    rootWithTenancy({
      flavors: { large: { "x.type": "HostFlavor", "x.units": 4, "x.description": "32 processors" } },
      places: { z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" } } } },
    }),
  );
  root.hearHosts(["h1", "h2", "h3", "h4", "h5"]);
  for (const name of ["h1", "h2", "h3"]) {
    root.put(`root/hosts/${name}`, { "x.type": "Host", "x.state": "disabled" });
    root.hearStanding(name, []);
    root.put(`root/hosts/${name}`, { "x.type": "Host", "x.flavor": "large" });
    root.hearStanding(name, []);
  }
  root.put("root/hosts/h4", { "x.type": "Host", "x.cluster": "z1/p1/c1" });
  root.put("root/dedications/own", dedicated("h2", "ROOT/acme", "dev"));
  root.put("root/dedications/pod", dedicated("z1/p1", "ROOT/acme"));
  root.put("root/cells/shop", childOf("shop", dev));
  return root;
}
const holdings = (root: Root, account: string | null): Holdings =>
  root.ask({ method: "HOLDINGS", account }).body as unknown as Holdings;

test("the operator sees which hosts are of a flavour and whose each place is", () => {
  const { flavors, dedications } = holdings(cloud(), null);
  assert.deepEqual(flavors, [
    { name: "large", description: "32 processors", units: 4, free: 3, hosts: ["h1", "h2", "h3"] },
  ]);
  assert.deepEqual(
    dedications.map(({ of, level, to }) => `${of} ${level} ${to.path}`),
    [`h2 host ${dev}`, "z1/p1 pod ROOT/acme"],
  );
});

test("an account sees how many it could have, and what is its own or its domain's, and no host by its name", () => {
  const root = cloud();
  const own = holdings(root, dev);
  assert.deepEqual(own.flavors, [{ name: "large", description: "32 processors", units: 4, free: 3 }]);
  assert.deepEqual(own.dedications, [
    { of: "z1/p1", level: "pod", to: { kind: "domain", path: "ROOT/acme" } },
    { of: null, level: "host", to: { kind: "account", path: dev } },
  ]);
  const others = holdings(root, ops);
  assert.deepEqual([others.flavors[0]?.free, others.dedications], [2, []], "h2 is not for it, and it learns of nobody");
  assert.doesNotMatch(JSON.stringify([own, others]), /"h\d"/);
  // What is in a pool, disabled or dead is not to be had.
  root.hearPools("shop", [{ name: "a" }]);
  assert.equal(holdings(root, ops).flavors[0]?.free, 1);
  root.declareDead("h3");
  assert.equal(holdings(root, ops).flavors[0]?.free, 0);
});
