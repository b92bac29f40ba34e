import assert from "node:assert/strict";
import { test } from "node:test";
import { dedicationElement, freeName } from "./written.ts";

test("a dedication's element says whose the place is, under a label that no other has", () => {
  const names = new Map([["z1/p1/c1", "z1-p1-c2"]]);
  assert.equal(freeName("z1/p1/c2", { names }), "z1-p1-c2-2");
  assert.equal(freeName("h3", { names }), "h3");
  assert.deepEqual(dedicationElement("z1/p1/c2", { kind: "account", path: "ROOT/acme/dev" }), {
    "x.type": "Dedication",
    "x.of": "z1/p1/c2",
    "x.to": "ROOT/acme",
    "x.account": "dev",
  });
  assert.deepEqual(dedicationElement("h3", { kind: "domain", path: "ROOT/acme" }), {
    "x.type": "Dedication",
    "x.of": "h3",
    "x.to": "ROOT/acme",
  });
});
