import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../../model/json/json.ts";
import type { DesiredPooled } from "../../../documents/pools.ts";
import type { DesiredOwner } from "../../../documents/tenancy.ts";
import { childOf, Root, rootWithTenancy } from "../../model/root.testing.ts";

const dev = "ROOT/acme/dev";
const host = (more: JsonObject = {}): JsonObject => ({ "x.type": "Host", ...more });
/** Two hosts of a flavour, which are empty, one that is of none, and two cells. */
function cloud(more: JsonObject = {}): Root {
  const root = new Root();
  root.put("", rootWithTenancy({ flavors: { large: { "x.type": "HostFlavor", "x.units": 4 } }, ...more }));
  root.hearHosts(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2"]) {
    root.put(`root/hosts/${name}`, host({ "x.state": "disabled" }));
    root.hearStanding(name, []);
    assert.equal(root.put(`root/hosts/${name}`, host({ "x.flavor": "large" })).status, 200);
  }
  for (const name of ["h1", "h2"]) root.hearStanding(name, []);
  root.put("root/cells/shop", childOf("shop", dev));
  root.put("root/cells/store", childOf("store", "ROOT/other/ops"));
  return root;
}
const told = (root: Root): readonly string[] =>
  root
    .at<DesiredPooled>("placer", "pooled/")
    .map(({ host: name, flavor, pool }) =>
      pool === null
        ? `${name} ${flavor}`
        : `${name} ${flavor} ${pool.cell}/${pool.name} ${pool.enabled ? "on" : "off"} ${pool.authorised.join()}`,
    );
const given = (root: Root, cell: string): readonly string[] =>
  (root.poolsOf(cell) ?? []).map(
    ({ uid, reason, vms }) => `${uid.split("-").at(-1)} ${reason ?? "has one"} ${vms.join()}`,
  );
const forget = (root: Root, cell: string): void => root.hearPools(cell, []);

test("whoever asks gets a host of the flavour, disabled until every Placer has heard, and nobody is told which", () => {
  const root = cloud();
  assert.deepEqual(told(root), ["h1 large", "h2 large"]);
  root.hearPools("shop", [{ name: "a", enabled: true }]);
  assert.deepEqual(told(root), [`h1 large shop/a off ${dev}`, "h2 large"]);
  root.hearPools("shop", [{ name: "a", enabled: true }]);
  assert.deepEqual(told(root), [`h1 large shop/a on ${dev}`, "h2 large"]);
  assert.deepEqual(given(root, "shop"), ["a has one "]);
  assert.doesNotMatch(JSON.stringify(root.poolsOf("shop")), /h[123]/);
  root.crash();
  assert.deepEqual(told(root), [`h1 large shop/a on ${dev}`, "h2 large"]);
});

test("of three that ask for two hosts two get one each, and the third waits until one is given back", () => {
  const root = cloud();
  root.hearPools("shop", [{ name: "a" }, { name: "b" }]);
  root.hearPools("store", [{ name: "c" }]);
  assert.deepEqual(
    [given(root, "shop"), given(root, "store")],
    [["a has one ", "b has one "], ["c no host of large is free "]],
  );
  root.hearPools("shop", [{ name: "b" }]);
  assert.deepEqual(
    given(root, "store"),
    ["c no host of large is free "],
    "the Placer has not said of that word that it is empty",
  );
  root.hearStanding("h1", ["x-1"]);
  assert.deepEqual(given(root, "shop"), ["a has one x-1", "b has one "], "what was promised there counts");
  root.hearStanding("h1", []);
  assert.deepEqual(given(root, "shop"), ["b has one "]);
  root.hearStanding("h1", []);
  assert.deepEqual(given(root, "store"), ["c has one "]);
});

test("a host whose owner is not heard stays his", () => {
  const root = cloud();
  root.hearPools("shop", [{ name: "a", enabled: true }]);
  root.hearCells();
  for (const name of ["h1", "h2"]) root.hearStanding(name, []);
  assert.deepEqual(given(root, "shop"), ["a has one "]);
  forget(root, "shop");
  root.hearStanding("h1", []);
  forget(root, "shop");
  root.hearStanding("h1", []);
  assert.deepEqual(told(root), ["h1 large", "h2 large"]);
});

test("a host that is another's, that is disabled, not empty, dead or in another zone goes into no pool", () => {
  const dedications = (to: string): JsonObject => ({
    dedications: { all: { "x.type": "Dedication", "x.of": "h1", "x.to": to } },
  });
  for (const [to, which] of [
    ["ROOT/other", `h2 large shop/a off ${dev}`],
    ["ROOT/acme", `h1 large shop/a off ${dev}`],
  ] as const) {
    const root = cloud();
    root.put("", rootWithTenancy(dedications(to)));
    root.hearPools("shop", [{ name: "a" }]);
    assert.ok(told(root).includes(which), told(root).join("; "));
  }
  const root = cloud();
  root.put("root/hosts/h1", host({ "x.flavor": "large", "x.state": "disabled" }));
  root.hearStanding("h2", ["x-1"]);
  root.hearPools("shop", [{ name: "a" }]);
  assert.deepEqual(given(root, "shop"), ["a no host of large is free "]);
  root.declareDead("h2");
  root.hearStanding("h2", []);
  assert.deepEqual(given(root, "shop"), ["a no host of large is free "]);
  const zoned = cloud();
  zoned.hearPools("shop", [
    { name: "a", zone: "z9" },
    { name: "b", flavor: "none" },
  ]);
  assert.deepEqual(given(zoned, "shop"), ["a no host of large is free in z9 ", "b there is no host flavour none "]);
});

test("a child speaks of its own elements alone", () => {
  const root = cloud();
  root.hearPools("shop", [{ name: "a" }]);
  const [mine] = root.poolsOf("shop") ?? [];
  root.hearPools("store", [{ name: "a" }]);
  assert.notEqual(root.poolsOf("store")?.[0]?.uid, mine?.uid);
  assert.deepEqual(given(root, "store"), ["a has one "]);
});

test("a child has a host in no pool of another's, by whatever UID it calls its own", () => {
  const root = cloud();
  for (let time = 0; time < 2; time += 1) root.hearPools("shop", [{ name: "a", enabled: true }]);
  const uidOf = (name: string): string => (root.poolsOf(name)?.[0]?.uid ?? "").replace(/-[^-]*$/, "");
  const [shop, before] = [uidOf("shop"), told(root)];
  for (const uid of [`${shop}-pool`, shop, "pool"]) {
    root.hearPools("store", [{ name: "b", enabled: true }], ["ROOT/other/ops"], { uid });
    assert.deepEqual(told(root), before, uid);
  }
  root.hearPools("store", [{ name: "b" }]);
  assert.equal(told(root).filter((each) => each.includes("store/b")).length, 1);
});

test("what whole hosts cost is counted against the account and its domain, and whoever has too many units waits", () => {
  const root = cloud();
  const limit = (path: string, units: number): void =>
    void root.step({
      kind: "desired",
      from: peerName("tenancy"),
      key: "limits/d1",
      value: { uid: "d1", path, kind: path === dev ? "account" : "domain", limits: { units } },
    });
  limit(dev, 3);
  root.hearPools("shop", [{ name: "a" }]);
  assert.deepEqual(given(root, "shop"), [
    `a the account ${dev} may have 3 units of whole hosts; 0 are held, and 4 more are asked for `,
  ]);
  root.hearPools("store", [{ name: "c" }]);
  assert.deepEqual(given(root, "store"), ["c has one "], "another account's are another's");
  limit("ROOT/acme", 4);
  assert.deepEqual(given(root, "shop"), ["a has one "]);
  root.hearPools("shop", [{ name: "a" }, { name: "b" }]);
  assert.match(
    given(root, "shop")[1] ?? "",
    /^b the domain ROOT\/acme may have 4 .* of ROOT\/acme\/dev by shop 4, and 4/,
  );
  const [granted, owner] = [
    (root.published.get("tenancy/limits/d1") as { granted: JsonObject }).granted,
    root.at<DesiredOwner>("tenancy", "owner/").find(({ cell }) => cell === "shop"),
  ];
  assert.deepEqual([granted.units, owner?.has?.units], [4, 4], "it is told for bills");
  limit("ROOT/acme", 0);
  assert.equal(given(root, "shop")[0], "a has one ", "what was granted stays");
  // Given back, it costs as long as it is not free.
  root.hearPools("shop", []);
  assert.equal(root.at<DesiredOwner>("tenancy", "owner/").find(({ cell }) => cell === "shop")?.has?.units, 4);
  root.hearStanding("h2", []);
  root.hearStanding("h1", []);
  root.hearPools("shop", []);
  assert.equal(root.at<DesiredOwner>("tenancy", "owner/").find(({ cell }) => cell === "shop")?.has?.units, undefined);
});

test("how a pool's hosts are to be used is told to Placers, until its owner takes it back", () => {
  const root = cloud();
  const wishes = (): unknown =>
    root
      .at<DesiredPooled>("placer", "pooled/")
      .flatMap(({ pool }) =>
        pool === null ? [] : [[pool.cpuRatio, pool.memoryPercent, pool.fill, pool.offerings, pool.images]],
      );
  const all = { cpuRatio: 2, memoryPercent: 80, fill: "pack", offerings: ["small"], images: [] } as const;
  root.hearPools("shop", [{ name: "a" }], undefined, all);
  assert.deepEqual(wishes(), [[2, 80, "pack", ["small"], []]]);
  root.crash();
  assert.deepEqual(wishes(), [[2, 80, "pack", ["small"], []]]);
  root.hearPools("shop", [{ name: "a" }]);
  assert.deepEqual(wishes(), [[undefined, undefined, undefined, undefined, undefined]]);
});

test("a cell that ends hears which hosts its pools have until the last is given back", () => {
  const root = cloud();
  root.hearPools("shop", [{ name: "a", enabled: true }]);
  root.hearPools("shop", [{ name: "a", enabled: true }]);
  root.ask({ method: "DELETE", path: "root/cells/shop" });
  assert.deepEqual(given(root, "shop"), ["a has one "]);
  root.hearPools("shop", []);
  root.hearStanding("h1", ["x-1"]);
  assert.deepEqual(given(root, "shop"), ["a has one x-1"], "somebody stands there yet");
  root.hearStanding("h1", []);
  root.hearPools("shop", []);
  assert.deepEqual([told(root), given(root, "shop")], [["h1 large", "h2 large"], []]);
});
