import assert from "node:assert/strict";
import { test } from "node:test";
import { type Dedications, dedicate, mayStand, type Owner, type Resource, ruleOf, type Tree } from "./dedication.ts";
import { preferenceOf, standingOf } from "./implicit.ts";

/* Where the paper asks, or says two things, and what holds here. */
const place = (name: string, level: Resource["level"], above: string | null): [string, Resource] => [
  name,
  { level, above },
];
const tree: Tree = new Map([
  place("z", "zone", null),
  ...["p1", "p2"].map((pod) => place(pod, "pod", "z")),
  ...["c1", "c2"].map((cluster) => place(cluster, "cluster", "p1")),
  place("c3", "cluster", "p2"),
  ...["h1", "h2"].map((host) => place(host, "host", "c1")),
  place("h3", "host", "c2"),
  ...["h4", "h5"].map((host) => place(host, "host", "c3")),
]);
const domain = (path: string): Owner => ({ kind: "domain", path });
const account = (path: string): Owner => ({ kind: "account", path });
const hostsFor = (dedications: Dedications, whose: string, group: Owner | null): readonly string[] =>
  [...tree].flatMap(([name, { level }]) =>
    level === "host" && mayStand(ruleOf(tree, dedications, name), whose, group) ? [name] : [],
  );

test("item 8 shuts sub-domains out of what is their domain's, 6 and 10 let them in: they are in", () => {
  const dedications: Dedications = new Map([["p2", domain("ROOT/d1/sd1")]]);
  assert.deepEqual(hostsFor(dedications, "ROOT/d1/sd1/sd11/a", domain("ROOT/d1/sd1")), ["h4", "h5"]);
  assert.deepEqual(hostsFor(dedications, "ROOT/d2/a", domain("ROOT/d1/sd1")), []);
});

test("item 7 asks whether a sub-domain may use its siblings' or its parent's: its parent's, not its siblings'", () => {
  const dedications: Dedications = new Map([
    ["p1", domain("ROOT/d1")],
    ["c2", domain("ROOT/d1/sd3")],
    ["c3", domain("ROOT/d1/sd2")],
  ]);
  const inSd3 = "ROOT/d1/sd3/a";
  assert.deepEqual(hostsFor(dedications, inSd3, domain("ROOT/d1")), ["h1", "h2"]);
  assert.deepEqual(hostsFor(dedications, inSd3, domain("ROOT/d1/sd3")), ["h3"]);
  assert.deepEqual(hostsFor(dedications, inSd3, domain("ROOT/d1/sd2")), []);
  assert.deepEqual(hostsFor(dedications, "ROOT/d1/a", domain("ROOT/d1/sd3")), [], "nor the parent its sub-domain's");
});

test("Table 1 sends a VM without a wish to shared hosts, the zone section into its account's zone: there it may be, too", () => {
  const zone: Dedications = new Map([["z", domain("ROOT/d1")]]);
  assert.deepEqual(hostsFor(zone, "ROOT/d1/a", null), ["h1", "h2", "h3", "h4", "h5"]);
  assert.deepEqual(hostsFor(new Map([["p1", domain("ROOT/d1")]]), "ROOT/d1/a", null), ["h4", "h5"], "of a zone alone");
  assert.deepEqual(hostsFor(new Map([...zone, ["c1", account("ROOT/d1/a")]]), "ROOT/d1/a", null), ["h3", "h4", "h5"]);
});

test("item 5 releases an account's hosts under its cluster, account item 3 dedicates nothing below a dedicated one: by the order", () => {
  const a = account("ROOT/d1/a");
  const above = dedicate(tree, new Map([["h1", a]]), "c1", a);
  assert.deepEqual(above.ok ? above.released : null, ["h1"]);
  const under = dedicate(tree, new Map([["c1", a]]), "h1", a);
  assert.equal(under.ok, false);
});

test("use case 10 lets a VM that asks for nothing go beside its account's strict VM: after shared hosts", () => {
  const own = standingOf([{ account: "a", mode: "strict" }], "a");
  const shared = standingOf([{ account: "b", mode: null }], "a");
  const ranks = [preferenceOf(shared, null), preferenceOf(own, null)];
  assert.deepEqual(ranks, [0, 1]);
});

test("the two cases of the processor: A's hosts are in one pod, B's in two", () => {
  const [a, b] = [account("ROOT/a"), account("ROOT/b")];
  const dedications: Dedications = new Map([
    ["h1", a],
    ["h2", b],
    ["h3", a],
    ["h5", b],
  ]);
  assert.deepEqual(hostsFor(dedications, a.path, a), ["h1", "h3"], "case 1: pod p1, and nothing of p2");
  assert.deepEqual(hostsFor(dedications, b.path, b), ["h2", "h5"], "case 2: the zone, and nothing of cluster c2");
  assert.deepEqual(hostsFor(dedications, a.path, null), ["h4"]);
});
