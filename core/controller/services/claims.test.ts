import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { DesiredClaim } from "../../documents/pools.ts";
import type { DesiredDedicated } from "../../documents/tenancy.ts";
import { childOf, Root, rootWithTenancy } from "../model/root.testing.ts";

const owned = (account: string) => ({
  "x.type": "Dedication",
  "x.of": "h1",
  "x.to": "ROOT/acme",
  "x.account": account,
});
const cloud = (): Root => {
  const root = new Root();
  root.put("", rootWithTenancy({ shop: childOf("shop", "ROOT/acme/dev"), ours: childOf("ours") }));
  root.hearHosts(["h1", "h2"]);
  return root;
};
const claims = (root: Root): readonly string[] =>
  ["h1", "h2"].flatMap((host) =>
    root.at<DesiredClaim>(`host.${host}`, "claim/").map(({ epoch, rule }) => `${host} ${epoch} ${rule?.to.path}`),
  );
const epochs = (root: Root): readonly (number | undefined)[] =>
  root.at<DesiredDedicated>("placer", "dedicated/").map(({ epoch }) => epoch);

test("a host that is somebody's hears it itself, by an epoch that grows with each change and that Placers hear as well", () => {
  const root = cloud();
  assert.deepEqual(claims(root), [], "hosts that are everybody's hear nothing");
  root.put("root/dedications/one", owned("dev"));
  assert.deepEqual([claims(root), epochs(root)], [["h1 1 ROOT/acme/dev"], [1]]);
  root.crash();
  assert.deepEqual([claims(root), epochs(root)], [["h1 1 ROOT/acme/dev"], [1]], "it is the same word");
  root.ask({ method: "DELETE", path: "root/dedications/one" });
  assert.deepEqual(claims(root), ["h1 2 undefined"], "a host that did not hear the first word hears that it is over");
  root.put("root/dedications/one", owned("dev"));
  assert.deepEqual([claims(root), epochs(root)], [["h1 3 ROOT/acme/dev"], [3]], "no epoch comes twice");
});

test("a host that has taken a later word than the root controller knows is claimed above it", () => {
  const root = cloud();
  root.put("root/dedications/one", owned("dev"));
  root.step({
    kind: "actual",
    from: peerName("host.h1"),
    key: "controller.root/claim/h1",
    value: { epoch: 7 },
  });
  assert.deepEqual([claims(root), epochs(root)], [["h1 8 ROOT/acme/dev"], [8]]);
  root.step({
    kind: "actual",
    from: peerName("host.h1"),
    key: "controller.root/claim/h1",
    value: { epoch: 8 },
  });
  assert.deepEqual(epochs(root), [8]);
});

test("a host that lies about what it has taken has no epoch become one that is none", () => {
  const root = cloud();
  root.put("root/dedications/one", owned("dev"));
  const say = (epoch: number): unknown =>
    root.step({
      kind: "actual",
      from: peerName("host.h1"),
      key: "controller.root/claim/h1",
      value: { epoch },
    });
  for (const epoch of [2 ** 48, 2 ** 53 - 1, 2 ** 30]) say(epoch);
  assert.deepEqual([claims(root), epochs(root)], [["h1 1 ROOT/acme/dev"], [1]]);
  root.put("root/dedications/one", owned("ops"));
  assert.deepEqual([claims(root), epochs(root)], [["h1 2 ROOT/acme/ops"], [2]]);
  say(2 ** 20);
  assert.deepEqual(epochs(root), [2 ** 20 + 1], "a newer store may have made many changes");
});

test("a claim that a Placer has placed by, and of which no host has heard, is followed by a later one", () => {
  const root = cloud();
  const say = (host: string, epoch: number, by = "placer"): unknown =>
    root.step({
      kind: "actual",
      from: peerName(by),
      key: `controller.root/claim/${host}`,
      value: { epoch },
    });
  root.put("root/dedications/one", owned("dev"));
  say("h1", 1);
  assert.deepEqual(claims(root), ["h1 1 ROOT/acme/dev"], "it is the present one");
  say("h1", 5);
  assert.deepEqual([claims(root), epochs(root)], [["h1 6 ROOT/acme/dev"], [6]]);
  root.crash();
  assert.deepEqual(epochs(root), [6], "which is durable");
  // A host that is everybody's by this store: whoever was placed by the lost word is refused there, and placed anew.
  say("h2", 3);
  assert.deepEqual(claims(root), ["h1 6 ROOT/acme/dev", "h2 4 undefined"]);
  say("h2", 2 ** 40);
  assert.deepEqual(claims(root), ["h1 6 ROOT/acme/dev", "h2 4 undefined"], "within bounds");
});

test("hosts hear whose cells are, of those of no account as well, and nobody else does", () => {
  const root = cloud();
  const said = [...root.published].filter(([key]) => key.startsWith("owner/")).sort();
  assert.deepEqual(
    said.splice(1, 1),
    [["owner/root", { cell: "root", account: null }]],
    "there is a word of each cell",
  );
  assert.deepEqual(said, [
    ["owner/ours", { cell: "ours", account: null }],
    ["owner/shop", { cell: "shop", account: "ROOT/acme/dev" }],
  ]);
  assert.ok(root.entitled("host.h1", "owner/shop"));
  for (const peer of ["controller.shop", "controller.ours", "placer", "gateway"])
    assert.ok(!root.entitled(peer, "owner/shop"), peer);
});
