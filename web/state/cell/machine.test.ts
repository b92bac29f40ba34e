import assert from "node:assert/strict";
import { test } from "node:test";
import { readSpecification } from "../../../model/specification/specification.ts";
import { addMachine, zonesIn } from "./machine.ts";

const text =
  "// Comments are kept.\nshop extends Cell {\n  net extends Subnet { x.size 16; } // ours\n  web extends VM { x.memory 64; }\n}\n";
const wanted = { name: "db", memoryMiB: 128, cpus: 2, subnet: "shop/net", zone: null, group: null, dedication: null };

test("a machine more, with its card, and everything else as it was written", () => {
  const added = addMachine(text, "shop.sf", "shop", wanted);
  assert.ok(added.ok);
  const lines = added.value.split("\n");
  assert.deepEqual(
    lines.filter((line) => !line.includes("db")),
    text.split("\n"),
  );
  const read = readSpecification({ main: "shop.sf", files: { "shop.sf": added.value } });
  assert.ok(read.ok, JSON.stringify(read));
  assert.match(added.value, /db extends VM \{ x\.memory 128; x\.cpus 2; \}/);
  assert.match(
    added.value,
    /dbCard extends VirtualInterface \{ x\.vm "<ref:\.\.\/db>"; x\.subnet "<ref:\/shop\/net>"; \}/,
  );
  const alone = addMachine(text, "shop.sf", "shop", { ...wanted, cpus: 1, subnet: null });
  assert.ok(alone.ok && !alone.value.includes("dbCard") && !alone.value.includes("x.cpus"));
});

test("a name that is none, or stands in the text already, is refused with its reason", () => {
  for (const [name, why] of [
    ["web", /^web stands in the text already/],
    ["x y", /^a name begins with a letter/],
    ['a"; } // ', /^a name begins with a letter/],
    ["", /^a name begins with a letter/],
    ["n".repeat(64), /^a name begins with a letter/],
  ] as const) {
    const added = addMachine(text, "shop.sf", "shop", { ...wanted, name });
    assert.ok(!added.ok, name);
    assert.match(added.error, why);
  }
  assert.ok(!addMachine("kind: yaml", "shop.yaml", "shop", wanted).ok);
});

test("a machine in a zone that is somebody's asks for it by the group that goes with it", () => {
  const acme = { kind: "domain", path: "ROOT/acme" } as const;
  const zones = zonesIn([
    { uid: "1", of: "south", level: "zone", to: acme },
    { uid: "2", of: "h6", level: "host", to: acme },
    { uid: "3", of: "north", level: "zone", to: { kind: "account", path: "ROOT/acme/dev" } },
    { of: null, level: "zone", to: acme },
  ]);
  assert.deepEqual(
    zones.map(({ zone, group }) => `${zone} ${group}`),
    ["north DedicatedGrp-dev", "south DedicatedGrp-domain-acme"],
  );
  const added = addMachine(text, "shop.sf", "shop", { ...wanted, zone: "north", group: "DedicatedGrp-dev" });
  assert.ok(added.ok);
  assert.match(added.value, /x\.placement\.zone "north"; x\.placement\.groups "DedicatedGrp-dev"; \}/);
  const read = readSpecification({ main: "shop.sf", files: { "shop.sf": added.value } });
  assert.ok(read.ok, JSON.stringify(read));
  const alone = addMachine(text, "shop.sf", "shop", { ...wanted, dedication: "preferred" });
  assert.ok(alone.ok);
  assert.match(alone.value, /x\.placement\.dedication "preferred"; \}/);
  assert.ok(readSpecification({ main: "shop.sf", files: { "shop.sf": alone.value } }).ok);
  const wrong = addMachine(text, "shop.sf", "shop", { ...wanted, group: 'x"; }' });
  assert.ok(!wrong.ok);
  assert.match(wrong.error, /^an affinity group has letters/);
});
