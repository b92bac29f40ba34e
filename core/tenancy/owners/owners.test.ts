import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import type { DesiredOwner } from "../../documents/tenancy.ts";
import { toJson } from "../../outbox.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

/** What the root controller says; null: it has taken that back. */
const say = (bench: Bench, id: string, cell: string, account: string | null, more: object = {}): void => {
  const document: DesiredOwner = { uid: uid(id), cell: cellName(cell), account, ...more };
  bench.step({ kind: "desired", from: peerName("controller.root"), key: `owner/${id}`, value: toJson(document) });
};
const unsay = (bench: Bench, id: string): void =>
  void bench.step({ kind: "desired", from: peerName("controller.root"), key: `owner/${id}`, value: null });
const session = (bench: Bench, user: string, domain = "ROOT/acme"): string =>
  bench.logIn(user, domain, `of ${user}`) ?? assert.fail(user);
const hashOf = (child: string, by: string): string => `${child}-${by}`.replace(/[^a-z0-9]/g, "-");
const rootTicket = (bench: Bench, by: string, child: string, hash = hashOf(child, by)) => {
  const { status } = bench.request({ kind: "ticket", session: by, hash, cell: "root", child: cellName(child) });
  return status === 200 ? bench.look("root", hash) : status;
};
/** A root cell with `shop` of ann's account, `bank` of bob's, and what is the operator's. */
const kept = (): Bench => {
  const bench = settled();
  say(bench, "r-1", "primary", null);
  say(bench, "r-2", "shop", "ROOT/acme/dev");
  say(bench, "r-3", "bank", "ROOT/acme/ops");
  say(bench, "r-4", "vault", null);
  return bench;
};

test("a gateway that lies claims no cell and frees none: whose it is says the root cell's model alone", () => {
  const bench = kept();
  const ann = session(bench, "ann");
  const shown: string[] = [];
  const isAnns = (cell: string): boolean => bench.ticket(ann, cell, `t${shown.push(cell)}`) === 200;
  assert.deepEqual(["shop", "bank", "vault", "primary", "new"].map(isAnns), [true, false, false, false, false]);
  for (const cell of ["bank", "vault", "primary", "new"]) {
    // That the cell is not there yet is what the gateway says.
    bench.request({
      kind: "ask",
      by: { session: ann },
      name: "claimCell",
      parameters: { cell },
      query: { isThere: false },
      body: {},
      password: null,
      fresh: { uid: "x", number: "1" },
    });
    assert.equal(isAnns(cell), false, cell);
    assert.ok(!bench.records.has(`owner/${cell}`) || cell === "bank", cell);
  }
  bench.ask({ session: ann }, "freeCell", {}, { cell: "shop" });
  bench.ask(operator, "freeCell", {}, { cell: "shop" });
  assert.equal(isAnns("shop"), true);
  assert.equal(
    bench.ask({ session: session(bench, "dora") }, "giveCell", { account: "ROOT/acme/ops" }, { cell: "shop" }).status,
    403,
  );
  assert.equal(isAnns("shop"), true);
});

test("what was given before the root cell's model said such things counts, until that says otherwise", () => {
  const bench = settled();
  const ann = session(bench, "ann");
  say(bench, "r-1", "shop", null);
  assert.equal(bench.ticket(ann, "shop", "one"), 200);
  bench.look("shop", "one");
  say(bench, "r-1", "shop", "ROOT/acme/ops");
  assert.equal(bench.worth("shop", "one")?.open, false, "from then on, also what is open");
  say(bench, "r-1", "shop", null);
  bench.ask(operator, "giveCell", { account: "ROOT/acme/ops" }, { cell: "shop" });
  assert.equal(bench.ticket(ann, "shop", "two"), 404, "the record of before is gone with the next owner");
  unsay(bench, "r-1");
});

test("a cell that ends is whose it was until nothing is left of it, and contradicting words give it to nobody", () => {
  const bench = kept();
  const [ann, bob] = [session(bench, "ann"), session(bench, "bob")];
  say(bench, "r-2", "shop", "ROOT/acme/dev", { ending: true });
  say(bench, "r-9", "shop", "ROOT/acme/ops");
  assert.deepEqual([bench.ticket(ann, "shop", "a"), bench.ticket(bob, "shop", "b")], [200, 404]);
  unsay(bench, "r-2");
  assert.deepEqual([bench.ticket(ann, "shop", "c"), bench.ticket(bob, "shop", "d")], [404, 200]);
  say(bench, "r-10", "shop", "ROOT/acme/dev");
  assert.deepEqual([bench.ticket(ann, "shop", "e"), bench.ticket(bob, "shop", "f")], [404, 404]);
});

test("an account that is not there has no cell, and is deleted only when its cells have ended", () => {
  const bench = kept();
  say(bench, "r-2", "shop", "ROOT/acme/none");
  assert.equal(bench.ticket(session(bench, "ann"), "shop", "a"), 404);
  const accounts = bench.ask(operator, "listAccounts").body as unknown as readonly {
    path: string;
    uid: string;
    cells: string[];
  }[];
  const ops = accounts.find(({ path }) => path === "ROOT/acme/ops");
  assert.deepEqual(ops?.cells, ["bank"]);
  const gone = () => bench.ask(operator, "deleteAccount", {}, { uid: ops?.uid ?? "" });
  assert.match(JSON.stringify(gone().body), /still has the cell bank/);
  say(bench, "r-3", "bank", "ROOT/acme/ops", { ending: true });
  assert.equal(gone().status, 409);
  unsay(bench, "r-3");
  bench.ask(operator, "giveCell", { account: "ROOT/operator" }, { cell: "bank" });
  assert.equal(gone().status, 200);
});

test("at the root controller a ticket is for one name: one's own cell, or one that nobody has", () => {
  const bench = kept();
  const [ann, bob, dora] = [session(bench, "ann"), session(bench, "bob"), session(bench, "dora")];
  const own = rootTicket(bench, ann, "shop");
  assert.ok(typeof own === "object" && own.open && own.child === "shop" && own.account === "ROOT/acme/dev");
  const free = rootTicket(bench, bob, "new");
  assert.ok(typeof free === "object" && free.account === "ROOT/acme/ops" && free.child === "new");
  for (const child of ["bank", "vault", "primary", "root", "controller", "web.shop"])
    assert.equal(rootTicket(bench, ann, child), 404, child);
  const below = rootTicket(bench, dora, "shop");
  assert.ok(
    typeof below === "object" && below.account === "ROOT/acme/dev",
    "who administers the domain, for its account",
  );
  assert.equal(rootTicket(bench, session(bench, "lea", "ROOT/acme/sub"), "other"), 404, "who makes none has none");
  assert.equal(bench.ticket(ann, "root", "whole"), 404, "and none is for the root cell as a whole");
  // Somebody else was faster: the ticket is worth nothing more.
  say(bench, "r-20", "new", "ROOT/acme/dev");
  assert.equal(bench.worth("root", hashOf("new", bob))?.open, false);
  assert.equal(bench.look("shop", hashOf("shop", ann))?.open, false, "nor is it at the cell's own controller");
});

test("after a store was lost, accounts that are made anew by their paths have the cells that they had", () => {
  const bench = Bench.started();
  say(bench, "r-1", "shop", "ROOT/acme/dev");
  say(bench, "r-2", "bank", "ROOT/acme/ops");
  bench.step({ kind: "behind", peer: peerName("controller.shop") });
  assert.equal(bench.ask(operator, "addDomain", { path: "ROOT/acme" }).status, 200);
  const made = bench.ask(operator, "addAccount", { path: "ROOT/acme/dev" });
  assert.deepEqual((made.body as { readonly cells?: Json }).cells, ["shop"]);
});
