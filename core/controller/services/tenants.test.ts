import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredDeclared } from "../../documents/tenancy.ts";
import { Root, rootWithTenancy } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";

const tenancy = peerName("tenancy");
const tenants = (more: JsonObject = {}): JsonObject => ({
  acme: {
    "x.type": "Domain",
    "x.limits.vms": 5,
    dev: { "x.type": "Account", "x.state": "locked" },
    ops: { "x.type": "Role", "x.rules": ["deny vm.console", "allow vm.*"] },
    ...more,
  },
});
const declared = (root: Root): readonly DesiredDeclared[] => root.at<DesiredDeclared>("tenancy", "declared/");
const paths = (root: Root): readonly string[] => declared(root).map(({ kind, path }) => `${kind} ${path}`);
/** The service says of each document what it says of one. */
function say(root: Root, phase: string, reason: string | null, isSaid = (_: DesiredDeclared): boolean => true): void {
  for (const document of declared(root)) {
    if (!isSaid(document)) continue;
    const key = `controller.root/declared/${document.uid}`;
    root.step({ kind: "actual", from: tenancy, key, value: { phase, reason, tag: document.tag } });
  }
}
const started = (): Root => {
  const root = new Root();
  root.put("", rootWithTenancy({ tenants: tenants() }));
  root.step({ kind: "reachable", peer: tenancy, reachable: true });
  return root;
};

test("what the root cell declares of tenants is desired where they are kept, for as long as it stands there", () => {
  const root = started();
  assert.deepEqual(paths(root), ["domain ROOT/acme", "account ROOT/acme/dev", "role ROOT/acme/ops"]);
  const [acme, dev, ops] = declared(root);
  assert.deepEqual([acme?.at, acme?.kind === "domain" && acme.limits], ["root/tenants/acme", { vms: 5 }]);
  assert.equal(dev?.kind === "account" && dev.state, "locked");
  assert.deepEqual(ops?.kind === "role" && [ops.reach, ops.rules.length], ["account", 2]);
  const before = declared(root);
  root.crash();
  assert.deepEqual(declared(root), before);
  root.put("root/tenants/acme/dev", { "x.type": "Account" });
  assert.deepEqual(
    declared(root).map(({ uid }) => uid),
    before.map(({ uid }) => uid),
  );
  assert.equal(declared(root)[0]?.tag, before[0]?.tag);
  assert.notEqual(declared(root)[1]?.tag, before[1]?.tag);
  root.put("", rootWithTenancy({ tenants: { acme: { "x.type": "Domain" } } }));
  assert.deepEqual(paths(root), ["domain ROOT/acme"]);
  root.put("", rootWithTenancy());
  assert.deepEqual(paths(root), []);
});

test("each is as declared once that is said of what is declared now, and says what it waits for", () => {
  const root = started();
  const phases = (): readonly string[] =>
    [...root.records]
      .filter(([key]) => key.startsWith("element/"))
      .map(([, value]) => value as JsonObject)
      .filter(({ path }) => String(path).startsWith("root/tenants/"))
      .map(({ path, phase, causes }) => `${path} ${phase} ${JSON.stringify(causes)}`);
  assert.match(phases()[0] ?? "", /root\/tenants\/acme waiting .*service-asked.*tenancy/);
  say(root, "ready", null);
  assert.deepEqual(
    phases().map((each) => each.split(" ")[1]),
    ["ready", "ready", "ready"],
  );
  // What was said is said of what was declared before.
  root.put("root/tenants/acme/dev", { "x.type": "Account", "x.state": "disabled" });
  assert.match(phases()[1] ?? "", /dev waiting .*service-asked/);
  say(root, "waiting", "ROOT/acme/dev is being deleted", ({ kind }) => kind === "account");
  assert.match(phases()[1] ?? "", /dev waiting .*is being deleted/);
  say(root, "ready", null);
  assert.match(phases()[1] ?? "", /dev ready/);
  root.step({ kind: "reachable", peer: tenancy, reachable: false });
  root.put("root/tenants/acme/more", { "x.type": "Account" });
  assert.match(phases().find((each) => each.includes("more")) ?? "", /more waiting .*service-unreachable/);
});

test("one that leaves the model is there until the service has let go of it, and says who is away", () => {
  const root = started();
  say(root, "ready", null);
  const [, { uid } = assert.fail()] = declared(root);
  root.step({ kind: "reachable", peer: tenancy, reachable: false });
  root.ask({ method: "DELETE", path: "root/tenants/acme/dev" });
  assert.deepEqual(paths(root), ["domain ROOT/acme", "role ROOT/acme/ops"]);
  const record = (): JsonObject | undefined => root.records.get(`element/${uid}`) as JsonObject | undefined;
  assert.equal(record()?.deleting, true);
  assert.match(JSON.stringify(record()?.causes), /service-unreachable/);
  root.step({ kind: "reachable", peer: tenancy, reachable: true });
  root.step({ kind: "actual", from: tenancy, key: `controller.root/declared/${uid}`, value: null });
  root.step({ kind: "released", peer: tenancy, key: `declared/${uid}` });
  assert.equal(record(), undefined);
});

test("in a cell of a tenant nothing of this can stand", () => {
  const world = new World();
  const answer = world.ask({
    method: "PUT",
    path: "",
    json: { shop: { "x.type": "Cell", tenants: { dev: { "x.type": "Account" } } } },
  });
  assert.equal(answer.status, 400, JSON.stringify(answer.body));
  assert.match(JSON.stringify(answer.body), /cell\/tenants.*root cell alone/);
});
