import assert from "node:assert/strict";
import { test } from "node:test";
import { noUsage } from "../../../model/check/check-limits.ts";
import type { DesiredCell } from "../../documents/cells.ts";
import { type DesiredCellOwner, type DesiredOwner, tenancy } from "../../documents/tenancy.ts";
import { toJson } from "../../outbox.ts";
import { World } from "../world.testing.ts";
import { childOf, Root, rootWithTenancy } from "./root.testing.ts";

const owners = (root: Root): readonly string[] =>
  root
    .at<DesiredOwner>("tenancy", "owner/")
    .map(({ cell, account, ending }) => `${cell} ${account}${ending === true ? " ending" : ""}`)
    .sort();

test("whose a cell is says the root cell's model, and its controller says it on until nothing is left of the cell", () => {
  const root = new Root();
  root.put("", rootWithTenancy());
  assert.deepEqual(owners(root), []);
  root.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  root.put("root/cells/primary", childOf("primary"));
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/acme/dev"]);
  root.crash();
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/acme/dev"]);
  root.put("root/cells/shop", childOf("shop", "ROOT/others"));
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/others"]);
  root.ask({ method: "DELETE", path: "root/cells/shop" });
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/others ending"]);
  root.crash();
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/others ending"]);
  // The name is another's meanwhile: the cell that ends is still whose it was.
  root.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/acme/dev", "shop ROOT/others ending"]);
  root.endAll();
  assert.deepEqual(owners(root), ["primary null", "shop ROOT/acme/dev"]);
});

test("Storage Managers hear by its UID as well whose a cell is, and that nothing is said of it takes nothing back", () => {
  const root = new Root();
  const told = (): readonly unknown[] => root.at<DesiredCellOwner>("storage-manager", "owner/").map(({ uids }) => uids);
  const say = (uid: string, path: string | null, more: object = {}): void => {
    const value = path === null ? null : toJson({ uid, path, kind: "account", limits: {}, ...more });
    root.step({ kind: "desired", from: tenancy, key: `limits/${uid}`, value });
  };
  root.put("", rootWithTenancy({ cells: { shop: childOf("shop", "ROOT/acme/dev") } }));
  assert.deepEqual(told(), [undefined], "nobody has said it yet");
  say("a1", "ROOT/acme/dev");
  assert.deepEqual(told(), [undefined], "a version before says no domains");
  say("a1", "ROOT/acme/dev", { within: ["d1", "domain.root"] });
  assert.deepEqual(told(), [["a1", "d1", "domain.root"]]);
  assert.equal(root.published.has("tenancy/limits/a1"), false, "nothing bounds it, so nothing is counted");
  root.crash();
  assert.deepEqual(told(), [["a1", "d1", "domain.root"]]);
  say("a1", null);
  root.crash();
  assert.deepEqual(told(), [["a1", "d1", "domain.root"]], "what is absent takes nothing back");
  say("a2", "ROOT/acme/dev", { within: ["d1", "domain.root"] });
  assert.deepEqual(told(), [["a2", "d1", "domain.root"]], "another one has the path now");
  root.put("root/cells/shop", childOf("shop", "ROOT/others"));
  assert.deepEqual(told(), [undefined], "what was said was of the account before");
});

test("with whose a cell is goes what it was granted, also while it ends, and no longer", () => {
  const root = new Root();
  const vms = (): readonly string[] =>
    root.at<DesiredOwner>("tenancy", "owner/").map(({ cell, has }) => `${cell} ${has?.vms ?? "-"}`);
  root.put("", rootWithTenancy({ cells: { shop: childOf("shop", "ROOT/acme/dev") } }));
  assert.deepEqual(vms(), ["shop 0"]);
  const [{ grant } = assert.fail()] = root.at<DesiredCell>("cell-manager", "cell/");
  const quota = (holds: number, asks: object | null) =>
    toJson({ serial: grant.serial, holds: { ...noUsage, vms: holds }, asks });
  root.hearCells({ shop: quota(0, { number: 1, amount: { ...noUsage, vms: 7 } }) });
  assert.deepEqual(vms(), ["shop 7"]);
  root.crash();
  assert.deepEqual(vms(), ["shop 7"]);
  root.ask({ method: "DELETE", path: "root/cells/shop" });
  assert.deepEqual(vms(), ["shop 7"], "it may have them until it has ended");
  root.endAll();
  assert.deepEqual(vms(), []);
});

test("with whose a cell is goes what it uses, as it was for as long as nobody says anything of it", () => {
  const root = new Root();
  const running = (): readonly string[] =>
    root.at<DesiredOwner>("tenancy", "owner/").map(({ cell, uses }) => `${cell} ${uses?.vms ?? "-"}`);
  root.put("", rootWithTenancy({ cells: { shop: childOf("shop", "ROOT/acme/dev") } }));
  const [{ grant } = assert.fail()] = root.at<DesiredCell>("cell-manager", "cell/");
  const quota = { serial: grant.serial, holds: noUsage, asks: null };
  const uses = (vms: number) => ({ vms, memoryMiB: 64 * vms, cpus: vms, storageMiB: 0 });
  root.hearCells({ shop: toJson(quota) });
  assert.deepEqual(running(), ["shop -"], "a controller of a version before does not say it");
  root.hearCells({ shop: toJson({ ...quota, uses: uses(3) }) });
  assert.deepEqual(running(), ["shop 3"]);
  root.hearCells({ shop: toJson({ ...quota, uses: null }) });
  assert.deepEqual(running(), ["shop 3"], "it does not know it now");
  root.hearCells({ shop: null });
  assert.deepEqual(running(), ["shop 3"], "its controller was not heard");
  root.hearCells({ shop: toJson({ ...quota, uses: uses(1) }) });
  assert.deepEqual(running(), ["shop 1"]);
  root.ask({ method: "DELETE", path: "root/cells/shop" });
  root.hearCells({ shop: toJson({ ...quota, uses: uses(0) }) });
  assert.deepEqual(running(), ["shop 0"]);
  root.endAll();
  assert.deepEqual(running(), []);
});

test("tickets that the root controller follows, and whose its cells are, are apart", () => {
  const root = new Root();
  root.put("", rootWithTenancy({ cells: { shop: childOf("shop", "ROOT/acme/dev") } }));
  root.step({ kind: "request", id: 1, request: { method: "TICKET-WORTH", hash: "t" } });
  assert.equal(root.at("tenancy", "").length, 2);
  root.crash();
  assert.deepEqual(owners(root), ["shop ROOT/acme/dev"]);
  assert.deepEqual(root.at("tenancy", "look/"), [], "whoever has the ticket shows it again");
});

test("an installation without users tells nobody, until a cell is given away", () => {
  const root = new Root();
  root.put("", { root: { "x.type": "Cell", cells: { shop: childOf("shop") } } });
  assert.deepEqual(owners(root), []);
  root.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  root.put("root/cells/shop", childOf("shop"));
  assert.deepEqual(owners(root), ["shop null"], "that it is the operator's again is said as well");
});

test("what gives a cell to nobody is refused, with what would be right", () => {
  const root = new Root();
  root.put("", rootWithTenancy());
  const bad = ["", "dev", "ROOT", "ROOT/", "root/dev", "ROOT/Dev", "/ROOT/dev", "ROOT//dev", `ROOT/${"x".repeat(64)}`];
  for (const account of [...bad, "x".repeat(10_000), "ROOT/acme/dev\n"]) {
    const { status, body } = root.put("root/cells/shop", childOf("shop", account));
    assert.equal(status, 400, account);
    assert.match(JSON.stringify(body), /cell\/account.*no path of an account|x\.account/, account);
  }
  assert.equal(root.at("cell-manager", "cell/").length, 0, "nothing was touched");
  const door = { ...childOf("primary", "ROOT/acme/dev"), "x.gateway": "10.0.0.40" };
  assert.match(JSON.stringify(root.put("root/cells/primary", door).body), /way in is the operator's/);
  const world = new World({ cellManager: true });
  const answer = world.ask({
    method: "PUT",
    path: "",
    json: { shop: { "x.type": "Cell", web: childOf("web", "ROOT/acme/dev") } },
  });
  assert.match(JSON.stringify(answer.body), /only the root cell says of its child cells/);
  assert.deepEqual(world.documents("tenancy", "owner"), []);
});

test("who asks for a name hears of all that have it, wherever they stand and also while they end", () => {
  const root = new Root();
  root.put("", rootWithTenancy({ apart: { one: childOf("shop", "ROOT/acme/dev") } }));
  const named = (name: string) => root.ask({ method: "CHILDREN-NAMED", name }).body;
  assert.deepEqual(named("shop"), [{ path: "root/apart/one", account: "ROOT/acme/dev", ending: false }]);
  assert.deepEqual(named("one"), []);
  root.ask({ method: "DELETE", path: "root/apart/one" });
  assert.deepEqual(named("shop"), [{ path: "root/apart/one", account: "ROOT/acme/dev", ending: true }]);
});
