import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cellName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { toJson } from "../../outbox.ts";
import type { AskName } from "../asks.ts";
import { accountAt, accountPath, payerOf } from "../state.ts";
import { Bench, operator, settled } from "../tenancy.testing.ts";

const root = peerName("controller.root");
const paths = ["ROOT/acme/dev", "ROOT/acme/new", "ROOT/late"] as const;
const path = fc.constantFrom(...paths);
const cell = fc.constantFrom("a", "b", "c", "d");

/** Against a look at all cells, as that was done before. */
function assertKept({ state }: Bench): void {
  const { owners, payers } = state;
  const sum = payers.all.reduce((count, each) => count + payers.cellsOf(each).size, 0);
  assert.equal(sum, owners.size, "each cell has one payer");
  const at = [...state.tables.account.keys()].map((each) => [accountPath(state, each), each] as const);
  for (const each of paths) assert.equal(accountAt(state, each)?.uid, new Map(at).get(each), each);
  for (const each of owners.values()) assert.ok(payers.cellsOf(payerOf(state, each)).has(each), each.cell);
}

/** With a UID that nothing has had, also before a restart. */
let drawn = 0;
function ask(
  bench: Bench,
  name: AskName,
  body: JsonObject,
  parameters: { readonly [name: string]: string } = {},
): void {
  drawn += 1;
  const fresh = { uid: `drawn${drawn}`, number: String(900_000_000_000 + drawn) };
  bench.request({ kind: "ask", by: operator, name, parameters, query: {}, body, password: null, fresh });
}

/** What happens to cells and accounts. */
const happens = fc.oneof(
  fc.record({ kind: fc.constant("say" as const), cell, account: fc.option(path, { freq: 2 }) }),
  fc.record({ kind: fc.constant("gone" as const), cell }),
  fc.record({ kind: fc.constant("add" as const), path }),
  fc.record({ kind: fc.constant("delete" as const), path }),
  fc.record({ kind: fc.constant("give" as const), cell, path: fc.constant(paths[0]) }),
  fc.record({ kind: fc.constant("restart" as const) }),
);

test("who pays for which cell is always as a look at all cells has it", () => {
  let moved = 0;
  fc.assert(
    fc.property(fc.subarray([..."abcd"]), fc.array(happens, { maxLength: 40, size: "max" }), (given, all) => {
      let bench = settled();
      // Records of before a root model said whose cells are.
      for (const name of given) ask(bench, "giveCell", { account: paths[0] }, { cell: `cell-${name}` });
      const said = new Map<string, string | null>();
      const say = (name: string): void => {
        const account = said.get(name);
        const document = { uid: uid(name), cell: cellName(`cell-${name}`), account: account ?? null };
        const value = account === undefined ? null : toJson(document);
        bench.step({ kind: "desired", from: root, key: `owner/${name}`, value });
      };
      for (const each of all) {
        const before = bench.state.payers.all.join();
        if (each.kind === "say") said.set(each.cell, each.account);
        if (each.kind === "gone") said.delete(each.cell);
        if (each.kind === "say" || each.kind === "gone") say(each.cell);
        if (each.kind === "add") ask(bench, "addAccount", { path: each.path });
        if (each.kind === "give") ask(bench, "giveCell", { account: each.path }, { cell: `cell-${each.cell}` });
        if (each.kind === "delete") {
          const account = accountAt(bench.state, each.path)?.uid;
          if (account !== undefined) ask(bench, "deleteAccount", {}, { uid: account });
        }
        if (each.kind === "restart") {
          bench = new Bench(bench.records);
          for (const name of said.keys()) say(name);
          bench.step({ kind: "start" });
        }
        assertKept(bench);
        if ((each.kind === "add" || each.kind === "give") && before !== bench.state.payers.all.join()) moved += 1;
      }
    }),
    { numRuns: 200 },
  );
  assert.ok(moved > 0, "cells came to another account with that account, or by a word");
});
