import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, type PeerName, peerName } from "../../../../model/cell/identifiers.ts";
import type { Json, JsonObject } from "../../../../model/json/json.ts";
import type { DesiredPooled } from "../../../documents/pools.ts";
import { toJson } from "../../../outbox.ts";
import { childOf, Root, rootWithTenancy } from "../../model/root.testing.ts";

const placer = peerName("placer");
const flavored = { "x.type": "Host", "x.flavor": "large" };
/** Two hosts of a flavour, which take what is placed there. */
const withHosts = (hosts: JsonObject): JsonObject =>
  rootWithTenancy({
    flavors: { large: { "x.type": "HostFlavor", "x.units": 4 } },
    hosts,
    cells: { shop: childOf("shop", "ROOT/acme/dev") },
  });
const text = withHosts({ h1: flavored, h2: flavored });
/** What a Placer was told while shop had one of them whole. */
function toldBefore(): readonly DesiredPooled[] {
  const root = new Root();
  const disabled = { "x.type": "Host", "x.state": "disabled" };
  root.put("", rootWithTenancy({ flavors: { large: { "x.type": "HostFlavor", "x.units": 4 } } }));
  root.hearHosts(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2"]) {
    root.put(`root/hosts/${name}`, disabled);
    root.hearStanding(name, []);
    assert.equal(root.put(`root/hosts/${name}`, flavored).status, 200);
    root.hearStanding(name, []);
  }
  root.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  for (let time = 0; time < 2; time += 1) root.hearPools("shop", [{ name: "a", enabled: true }]);
  return root.at<DesiredPooled>("placer", "pooled/");
}
/** A root controller without its store, of which a Placer, or somebody else, keeps that. */
function blank(kept: readonly DesiredPooled[], peer: PeerName = placer): Root {
  const root = new Root();
  root.hearHosts(["h1", "h2", "h3"]);
  for (const forked of new Set([placer, peer]))
    root.step({ kind: "forked", peer: forked, forked: true, itForked: false });
  for (const each of kept) keep(root, each, peer);
  return root;
}
const keep = (root: Root, document: DesiredPooled, peer: PeerName = placer): unknown =>
  root.step({ kind: "kept", peer, key: `pooled/${document.host}`, value: toJson(document) as Json });
const release = (root: Root, ...peers: readonly PeerName[]): void => {
  for (const peer of [placer, ...peers]) root.step({ kind: "forked", peer, forked: false, itForked: false });
};
const told = (root: Root): readonly string[] =>
  root
    .at<DesiredPooled>("placer", "pooled/")
    .map(({ host, flavor, tag, pool }) => `${host} ${flavor} ${pool === null ? "" : `${pool.path} ${tag}`}`.trim());
const refusal = (root: Root, json: JsonObject = text): string => {
  const { status, body } = root.put("", json);
  return status === 200 ? "" : JSON.stringify(body);
};

test("hosts stay of their flavour, and a pool's, where the root controller has lost its store", () => {
  const kept = toldBefore();
  const root = blank(kept);
  assert.match(refusal(root), /orphans release/, "before an operator's word nothing is taken");
  release(root);
  for (const name of ["h1", "h2"]) root.hearStanding(name, ["root-9-1"], kept.find(({ host }) => host === name)?.tag);
  assert.equal(refusal(root), "", "they are enabled, and something stands there");
  const [owned] = kept.filter(({ pool }) => pool !== null);
  const asked = owned?.tag.split(" ")[0];
  assert.deepEqual(
    told(root),
    [`h1 large shop/racks ${asked} false`, "h2 large"],
    "nothing new, as nobody asks for it",
  );
  root.crash();
  assert.deepEqual(told(root), [`h1 large shop/racks ${asked} false`, "h2 large"]);
  root.hearStanding("h1", []);
  assert.deepEqual(told(root), ["h1 large", "h2 large"], "given back once it is empty");
});

test("what is kept goes to nobody else", () => {
  const kept = toldBefore();
  const root = blank(kept);
  release(root);
  assert.equal(refusal(root), "");
  root.hearStanding("h1", ["root-9-1"]);
  root.hearStanding("h2", []);
  root.hearPools("shop", [{ name: "b" }, { name: "c" }]);
  assert.match(told(root)[0] ?? "", /^h1 large shop\/racks .*-a false$/);
  assert.match(told(root)[1] ?? "", /^h2 large shop\/racks .*-b false$/);
});

test("of two words the later claim counts, in whatever order they are heard", () => {
  const [h1] = toldBefore();
  assert.ok(h1?.pool != null && h1.epoch !== undefined);
  const older: DesiredPooled = { ...h1, epoch: h1.epoch - 1, tag: "large", pool: null };
  const second = peerName("placer.2");
  for (const [first, then] of [
    [older, h1],
    [h1, older],
  ] as const) {
    const root = blank([], second);
    keep(root, first);
    keep(root, then, second);
    release(root, second);
    assert.equal(refusal(root, withHosts({ h1: flavored })), "");
    assert.deepEqual(told(root), [`h1 large shop/racks ${h1.tag.replace("true", "false")}`]);
  }
});

test("of each host the later word counts, and one record is left of it", () => {
  const [h1] = toldBefore();
  assert.ok(h1?.pool != null && h1.epoch !== undefined);
  const root = blank([{ ...h1, tag: "root-9-b true" }]);
  keep(root, { ...h1, epoch: h1.epoch + 1, tag: "root-9-c true" });
  release(root);
  assert.equal(refusal(root, withHosts({ h1: flavored })), "");
  assert.deepEqual(told(root), ["h1 large shop/racks root-9-c false"]);
  assert.deepEqual(
    [...root.records.keys()].filter((key) => key.startsWith("pooled/")),
    ["pooled/root-9-c"],
  );
});

test("a host says nothing of that, a lie makes no epoch that is none, and what nobody keeps is refused as ever", () => {
  const kept = toldBefore();
  const host = peerName("host.h1");
  const lied = blank(kept, host);
  release(lied, host);
  assert.match(refusal(lied), /goes into a flavour only disabled and empty/);
  const far = blank(kept.map((each) => ({ ...each, epoch: 2 ** 30 })));
  release(far);
  assert.match(refusal(far), /goes into a flavour only disabled and empty/);
  const other = blank(kept.map((each) => ({ ...each, flavor: "small" })));
  release(other);
  assert.match(refusal(other), /goes into a flavour only disabled and empty/, "it was of another one");
});

test("a store that has a model has its own word of each host, whatever a Placer says that it keeps", () => {
  const [h1] = toldBefore();
  assert.ok(h1?.pool != null && h1.epoch !== undefined);
  const later = { ...h1, epoch: h1.epoch + 9, tag: h1.tag.replace(/-\w+ /, "-z ") };
  const root = blank([h1]);
  release(root);
  assert.equal(refusal(root, withHosts({ h1: flavored })), "");
  const before = told(root);
  assert.equal(before.length, 1);
  keep(root, later);
  assert.deepEqual(told(root), before, "behind the operator's word");
  root.step({ kind: "forked", peer: placer, forked: true, itForked: false });
  keep(root, later);
  release(root);
  assert.deepEqual(told(root), before, "nor by another one, for which the Placer gave the cause");
});

test("a word of a host that no text names goes once nobody asks for it", () => {
  const [h1] = toldBefore();
  assert.ok(h1?.pool != null);
  const root = blank([{ ...h1, host: hostName("nohost") }]);
  release(root);
  assert.equal(refusal(root, withHosts({})), "");
  root.hearStanding("h1", []);
  root.hearPools("shop", []);
  assert.deepEqual(told(root), []);
  assert.deepEqual(
    [...root.records.keys()].filter((key) => key.startsWith("pooled/")),
    [],
  );
});

test("a Placer that is heard only after the operator's word counts as well, until all have been heard", () => {
  const kept = toldBefore();
  const root = blank([]);
  release(root);
  assert.match(refusal(root), /goes into a flavour only disabled and empty/);
  for (const each of kept) keep(root, each);
  assert.equal(refusal(root), "");
});
