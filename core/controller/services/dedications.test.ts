import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredCellOwner, DesiredDedicated, DesiredMarks } from "../../documents/tenancy.ts";
import { childOf, Root, rootWithTenancy } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";

const places: JsonObject = {
  z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: { "x.type": "Cluster" }, c11: { "x.type": "Cluster" } } },
};
const at = (cluster: string): JsonObject => ({ "x.type": "Host", "x.cluster": cluster });
const dedicated = (of: string, to: string, account?: string): JsonObject => ({
  "x.type": "Dedication",
  "x.of": of,
  "x.to": to,
  ...(account === undefined ? {} : { "x.account": account }),
});
const cloud = (more: JsonObject = {}): Root => {
  const root = new Root();
  root.put("", rootWithTenancy(more));
  root.hearHosts(["h1", "h2", "h3"]);
  for (const [path, json] of [
    ["root/places/z1", places.z1 as JsonObject],
    ["root/hosts/h1", at("z1/p1/c1")],
    ["root/hosts/h2", at("z1/p1/c11")],
  ] as const)
    assert.equal(root.put(path, json).status, 200);
  return root;
};
const told = (root: Root): readonly string[] =>
  root
    .at<DesiredDedicated>("placer", "dedicated/")
    .map(({ host, of, level, to }) => `${host} ${of} ${level} ${to.kind} ${to.path}`);
const refusal = (root: Root, path: string, json: JsonObject): readonly [unknown, string] => {
  const { status, body } = root.put(path, json);
  assert.equal(status, 400, JSON.stringify(body));
  const [first] = (body as { error: { diagnostics: readonly JsonObject[] } }).error.diagnostics;
  return [first?.code, `${first?.message} | ${first?.hint}`];
};

test("an installation that says nothing of places and owners says nothing of them to Placers", () => {
  const root = new Root();
  root.put("", rootWithTenancy());
  root.hearHosts(["h1"]);
  assert.deepEqual([told(root), root.at("placer", "owner/")], [[], []]);
});

test("whoever places VMs hears one rule for each host that is somebody's, and whose cells are", () => {
  const root = cloud({ shop: childOf("shop", "ROOT/acme/dev"), ours: childOf("ours") });
  root.put("root/dedications/rack", dedicated("z1/p1", "ROOT/acme"));
  assert.deepEqual(told(root), ["h1 z1/p1 pod domain ROOT/acme", "h2 z1/p1 pod domain ROOT/acme"]);
  root.put("root/dedications/one", dedicated("h1", "ROOT/acme", "dev"));
  root.put("root/dedications/other", dedicated("h3", "ROOT/other"));
  root.crash();
  assert.deepEqual(told(root), [
    "h1 h1 host account ROOT/acme/dev",
    "h2 z1/p1 pod domain ROOT/acme",
    "h3 h3 host domain ROOT/other",
  ]);
  assert.deepEqual(root.at<DesiredCellOwner>("placer", "owner/"), [{ cell: "shop", account: "ROOT/acme/dev" }]);
  assert.deepEqual(root.at("storage-manager", "owner/"), [{ cell: "shop", account: "ROOT/acme/dev" }]);
  root.ask({ method: "DELETE", path: "root/dedications/rack" });
  root.put("root/hosts/h1", at("z1/p1/c11"));
  assert.deepEqual(told(root), ["h1 h1 host account ROOT/acme/dev", "h3 h3 host domain ROOT/other"]);
});

test("a root specification that is applied again leaves alone places and owners that it does not name", () => {
  const root = cloud();
  root.put("root/dedications/rack", dedicated("z1", "ROOT/acme"));
  root.put("", rootWithTenancy());
  assert.equal(told(root).length, 2);
  assert.deepEqual((root.model("root/places") as Record<string, Json>).z1, places.z1);
});

test("what the very same owner has below goes into what he gets above, and what others have stays or stands against it", () => {
  const root = cloud();
  const names = (): readonly string[] =>
    Object.keys(root.model("root/dedications") as JsonObject).filter((name) => name !== "$state");
  root.put("root/dedications/a", dedicated("h1", "ROOT/acme", "dev"));
  root.put("root/dedications/b", dedicated("z1/p1/c11", "ROOT/acme", "dev"));
  root.put("root/dedications/c", dedicated("h3", "ROOT/acme", "dev"));
  assert.equal(root.put("root/dedications/pod", dedicated("z1/p1", "ROOT/acme", "dev")).status, 200);
  assert.deepEqual(names(), ["c", "pod"]);
  assert.deepEqual(told(root).slice(0, 2), [
    "h1 z1/p1 pod account ROOT/acme/dev",
    "h2 z1/p1 pod account ROOT/acme/dev",
  ]);
  assert.equal(root.put("root/dedications/zone", dedicated("z1", "ROOT/acme")).status, 200, "a domain's, around it");
  assert.deepEqual(names(), ["c", "pod", "zone"]);
  assert.match(refusal(root, "root/dedications/zone", dedicated("z1", "ROOT/other"))[1], /z1\/p1 stands in z1/);
});

test("what is no place, no owner, or another's is refused, with what would be right", () => {
  const root = cloud();
  root.put("root/dedications/rack", dedicated("z1/p1", "ROOT/acme"));
  root.put("root/dedications/own", dedicated("h3", "ROOT/acme", "dev"));
  const faults: readonly (readonly [path: string, json: JsonObject, code: string, says: RegExp])[] = [
    [
      "root/hosts/h3",
      at("z1/p1/c2"),
      "cell/place",
      /the cluster "z1\/p1\/c2", which is none \| .*z1\/p1\/c1, z1\/p1\/c11/,
    ],
    ["root/places/p9", { "x.type": "Pod" }, "cell/place", /stands elsewhere than as `root\/places\/<zone>\/<pod>`/],
    ["root/places/h1", { "x.type": "Zone" }, "cell/place", /A zone and a host are both called `h1`/],
    ["root/z9", { "x.type": "Zone" }, "cell/place", /`root\/z9` is a Zone, and stands elsewhere/],
    [
      "root/dedications/x",
      dedicated("z1/p1/c2", "ROOT/acme"),
      "cell/dedication",
      /There is no .* "z1\/p1\/c2" \| Did you mean `z1\/p1\/c1/,
    ],
    ["root/dedications/x", dedicated("z1", "acme"), "cell/dedication", /"acme" is no path of a domain/],
    [
      "root/dedications/x",
      dedicated("z1/p1", "ROOT/acme"),
      "cell/dedication",
      /z1\/p1 is dedicated already, by `root\/dedications\/rack`/,
    ],
    [
      "root/dedications/x",
      dedicated("h1", "ROOT/other"),
      "cell/dedication",
      /h1 stands in z1\/p1, which is dedicated to the domain ROOT\/acme, and ROOT\/other is not in/,
    ],
    ["root/d", dedicated("h1", "ROOT/acme"), "cell/dedication", /stands elsewhere than as `root\/dedications\/<name>`/],
  ];
  for (const [path, json, code, says] of faults) {
    const [is, text] = refusal(root, path, json);
    assert.equal(is, code, text);
    assert.match(text, says);
  }
  root.put("root/dedications/rack", dedicated("z1/p1", "ROOT/acme", "ops"));
  assert.match(
    refusal(root, "root/hosts/h3", at("z1/p1/c1"))[1],
    /what is an account's is not dedicated again/,
    "a move",
  );
});

test("a cell that is not the root cell has no places and gives nothing to anybody", () => {
  const cell = { "x.type": "Cell", racks: dedicated("h1", "ROOT/acme"), places };
  const answer = new World().ask({ method: "PUT", path: "", json: { shop: cell } });
  assert.equal(answer.status, 400);
  assert.match(JSON.stringify(answer.body), /whose hosts are says the root cell alone/);
});

test("Placers hear what VMs may ask for of a host: where it stands, its tags and its properties", () => {
  const root = cloud();
  const marks = () => root.at<DesiredMarks>("placer", "marks/");
  assert.deepEqual(marks(), [
    { host: "h1", cluster: "z1/p1/c1" },
    { host: "h2", cluster: "z1/p1/c11" },
  ]);
  const h1 = { ...at("z1/p1/c1"), "x.tags": ["ssd"], "x.properties": { gpu: "a100", sriov: 8 } };
  assert.equal(root.put("root/hosts/h1", h1).status, 200);
  root.crash();
  assert.deepEqual(marks()[0], {
    host: "h1",
    cluster: "z1/p1/c1",
    tags: ["ssd"],
    properties: { gpu: "a100", sriov: 8 },
  });
  assert.equal(root.put("root/hosts/h1", { "x.type": "Host" }).status, 200);
  assert.deepEqual(marks(), [{ host: "h2", cluster: "z1/p1/c11" }]);
  assert.deepEqual(refusal(root, "root/hosts/h1", { "x.type": "Host", "x.properties": { gpu: true } }), [
    "schema/value",
    '`x.properties` has texts and whole numbers by names, at most 64 | Write it as `x.properties extends DATA { gpu "a100"; sriov 8; }`.',
  ]);
});

test("what a change would give to whom is shown beforehand, where it does not declare him and he has it not already", () => {
  const root = new Root();
  root.put("", rootWithTenancy({ places: { z1: { "x.type": "Zone" }, z2: { "x.type": "Zone" } } }));
  root.hearHosts(["h1"]);
  const of = (what: string, to: string, account?: string): JsonObject => ({
    "x.type": "Dedication",
    "x.of": what,
    "x.to": to,
    ...(account === undefined ? {} : { "x.account": account }),
  });
  const shown = (inside: JsonObject, dryRun = true): unknown => {
    const { status, body } = root.ask({ method: "PUT", path: "", json: rootWithTenancy(inside), dryRun });
    assert.equal(status, 200, JSON.stringify(body));
    return (body as JsonObject).dedicates;
  };
  const places = { z1: { "x.type": "Zone" }, z2: { "x.type": "Zone" } };
  const given = {
    places,
    dedications: { a: of("z1", "ROOT/acme", "dev"), b: of("z2", "ROOT"), c: of("h1", "ROOT/new") },
  };
  const [a, c] = [
    { path: "root/dedications/a", of: "z1", to: { kind: "account", path: "ROOT/acme/dev" } },
    { path: "root/dedications/c", of: "h1", to: { kind: "domain", path: "ROOT/new" } },
  ];
  assert.deepEqual(shown(given), [a, c], "ROOT is always there");
  assert.deepEqual(shown({ ...given, tenants: { new: { "x.type": "Domain" } } }), [a], "it declares that one");
  assert.equal(shown(given, false), undefined, "of what is made nothing is said");
  assert.equal(shown(given), undefined, "it is so");
  assert.deepEqual(shown({ places, dedications: { a: of("z1", "ROOT/acme", "ops") } }), [
    { ...a, to: { kind: "account", path: "ROOT/acme/ops" } },
  ]);
  const many = (of: (at: number) => JsonObject): JsonObject =>
    Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`r${at}`, of(at)]));
  const wide = many(() => ({ "x.type": "Zone" }));
  const all = shown({ places: wide, dedications: many((at) => of(`r${at}`, "ROOT/acme", `a${at}`)) });
  assert.equal((all as readonly unknown[]).length, 300, "each of them, or who is not told nobody looks for");
});
