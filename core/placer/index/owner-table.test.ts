import assert from "node:assert/strict";
import { test } from "node:test";
import { cellName, peerName } from "../../../model/cell/identifiers.ts";
import { OwnerTable } from "./owner-table.ts";

test("whose a cell is, and which cells an account has, is what was said last", () => {
  const [shop, back, inShop] = [cellName("shop"), cellName("back"), peerName("controller.team.shop")];
  const owners = new OwnerTable([[shop, "ROOT/a1"]]);
  const cellsOf = (account: string): readonly string[] => [...owners.cellsOf(account)].sort();
  assert.equal(owners.accountOf(inShop), "ROOT/a1", "a cell within a cell goes with the one around it");
  assert.equal(owners.accountOf(peerName("controller.back")), null);
  owners.set(back, "ROOT/a1");
  assert.equal(owners.accountOf(peerName("controller.back")), "ROOT/a1", "who was nobody's is asked for anew");
  assert.deepEqual(cellsOf("ROOT/a1"), ["back", "shop"]);
  owners.set(shop, "ROOT/a2");
  assert.equal(owners.accountOf(inShop), "ROOT/a2", "and who was another's");
  assert.deepEqual([cellsOf("ROOT/a1"), cellsOf("ROOT/a2")], [["back"], ["shop"]]);
  assert.equal(owners.delete(shop), true);
  assert.equal(owners.delete(shop), false);
  assert.deepEqual([owners.accountOf(inShop), cellsOf("ROOT/a2"), owners.size], [null, [], 1]);
  const copy = new OwnerTable(owners);
  copy.set(back, "ROOT/a3");
  assert.deepEqual([cellsOf("ROOT/a1"), cellsOf("ROOT/a3")], [["back"], []], "a copy is its own");
});
