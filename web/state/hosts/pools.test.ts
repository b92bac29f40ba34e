import assert from "node:assert/strict";
import { test } from "node:test";
import { flavorChange, formOfPool, poolChange, poolCommands, whyNoFlavor } from "./pools.ts";

const pool = { uid: "u", cell: "shop", path: "shop/racks", name: "racks", account: null, hosts: 0 } as const;

test("of a pool only what is another one is written, and what is left empty goes", () => {
  const before = { ...pool, authorised: ["ROOT/a"], cpuRatio: 4 };
  const form = formOfPool(before);
  assert.equal(poolChange(before, form), null);
  assert.deepEqual(poolChange(before, { ...form, cpuRatio: " ", fill: "pack" }), {
    kind: "set",
    path: "shop/racks",
    attributes: { "x.cpuRatio": null, "x.fill": "pack" },
  });
  assert.deepEqual(poolChange(before, { ...form, authorised: "ROOT/b,\n ROOT/c" }), {
    kind: "set",
    path: "shop/racks",
    attributes: { "x.authorised": ["ROOT/b", "ROOT/c"] },
  });
});

test("nobody at all is another thing than whoever has the cell", () => {
  const own = { ...pool, authorised: null };
  assert.equal(poolChange(own, formOfPool(own)), null);
  const nobody = { ...formOfPool(own), isNamed: true };
  assert.deepEqual(poolChange(own, nobody), { kind: "set", path: "shop/racks", attributes: { "x.authorised": [] } });
  const back = { ...formOfPool({ ...pool, authorised: [] }), isNamed: false };
  assert.deepEqual(poolChange({ ...pool, authorised: [] }, back), {
    kind: "set",
    path: "shop/racks",
    attributes: { "x.authorised": null },
  });
});

test("the command line is told to do the same", () => {
  const before = { ...pool, authorised: null, cpuRatio: 4, images: ["debian"] };
  const form = formOfPool(before);
  assert.deepEqual(poolCommands(before, form), []);
  assert.deepEqual(poolCommands(before, { ...form, cpuRatio: "8", isNamed: true, authorised: "ROOT/a ROOT/b" }), [
    "cells pool set shop/racks --cpu-ratio 8 --images debian",
    "cells pool authorise shop/racks ROOT/a ROOT/b",
  ]);
  assert.deepEqual(
    poolCommands({ ...pool, authorised: ["ROOT/a"] }, { ...form, isNamed: true, authorised: "", cpuRatio: "" }),
    ["cells pool authorise shop/racks none"],
  );
});

test("a flavour is made, or what of it is another is written", () => {
  const path = "root/flavors/large";
  assert.deepEqual(flavorChange(null, { name: "large", description: " ", units: 4 }), {
    kind: "add",
    path,
    type: "HostFlavor",
    attributes: { "x.units": 4 },
  });
  assert.equal(whyNoFlavor("small", ["large"]), null);
  assert.match(whyNoFlavor("large", ["large"]) ?? "", /already/);
  for (const name of ["", "a/b", "<b>", "A", "-a"]) assert.match(whyNoFlavor(name, []) ?? "", /small letters/, name);
  const before = { description: "64 GiB", units: 4 };
  assert.equal(flavorChange(before, { name: "large", ...before }), null);
  assert.deepEqual(flavorChange(before, { name: "large", description: "", units: 5 }), {
    kind: "set",
    path,
    attributes: { "x.description": null, "x.units": 5 },
  });
});
