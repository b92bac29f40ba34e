import assert from "node:assert/strict";
import { test } from "node:test";
import type { InstallationStatus } from "../../../model/api.ts";
import { writtenIn } from "../../../model/cell/tenants/dedication/written.ts";
import { foreseen, guestsOf, linesOf } from "./hardware.ts";

const cluster = { "x.type": "Cluster" };
const hardware = writtenIn({
  root: {
    "x.type": "Cell",
    places: { "x.type": "Component", z1: { "x.type": "Zone", p1: { "x.type": "Pod", c1: cluster, c2: cluster } } },
    hosts: {
      h10: { "x.type": "Host", "x.cluster": "z1/p1/c1" },
      h2: { "x.type": "Host", "x.cluster": "z1/p1/c1", $state: {} },
      h3: { "x.type": "Host" },
    },
    dedications: {
      one: { "x.type": "Dedication", "x.of": "z1/p1", "x.to": "ROOT/acme" },
      "z1-p1-c2": { "x.type": "Dedication", "x.of": "z1/p1/c2", "x.to": "ROOT/acme", "x.account": "dev" },
    },
    cells: { shop: { "x.type": "CellController", "x.account": "ROOT/acme/dev" } },
  },
});

test("places stand below one another, hosts by their numbers, with whose they are and why", () => {
  assert.deepEqual(
    linesOf(hardware).map(({ place, depth, owner, above }) => [
      place,
      depth,
      owner?.path ?? null,
      above?.place ?? null,
    ]),
    [
      ["h3", 0, null, null],
      ["z1", 0, null, null],
      ["z1/p1", 1, "ROOT/acme", null],
      ["z1/p1/c1", 2, null, "z1/p1"],
      ["h2", 3, null, "z1/p1"],
      ["h10", 3, null, "z1/p1"],
      ["z1/p1/c2", 2, "ROOT/acme/dev", "z1/p1"],
    ],
  );
});

test("before a dedication it is said what would be released by itself, and what stands against it", () => {
  const acme = { kind: "domain", path: "ROOT/acme" } as const;
  assert.deepEqual(foreseen(hardware, "z1", acme, []), { isAllowed: true, released: ["z1/p1"] });
  const other = foreseen(hardware, "z1", { kind: "domain", path: "ROOT/bolt" }, []);
  assert.ok(!other.isAllowed && /z1\/p1 in z1 is dedicated to the domain ROOT\/acme/.test(other.refused.why));
  const machine = (cell: string, path: string) => ({ cell, path });
  const status = {
    hosts: [
      {
        host: "h3",
        machines: [machine("bank", "bank/db"), machine("root", "root/placer"), machine("shop", "shop/web")],
      },
    ],
  } as unknown as InstallationStatus;
  const guests = guestsOf(hardware, status);
  assert.deepEqual(
    guests.map(({ vm, account }) => `${vm} ${account}`),
    ["bank/db ROOT/operator", "shop/web ROOT/acme/dev"],
  );
  const taken = foreseen(hardware, "h3", { kind: "account", path: "ROOT/acme/dev" }, guests);
  assert.ok(!taken.isAllowed && /VMs of others run in h3: bank\/db at h3/.test(taken.refused.why));
});

test("of a root cell without a model nothing is known", () => {
  for (const model of [null, {}, { root: 1 }]) assert.equal(linesOf(writtenIn(model)).length, 0);
});
