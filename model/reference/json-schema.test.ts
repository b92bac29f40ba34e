import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import type { AttributeKind } from "../cell/attributes/kinds.ts";
import { cellAttributes } from "../cell/attributes/of-cells.ts";
import type { ElementType } from "../cell/cell.ts";
import { attributeSchema, commonAttributes, elementSchemas, elementTypes } from "../cell/schema.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { checkDocument } from "../specification/specification.ts";
import { cells } from "../testing/cells.testing.ts";
import { specificationSchema } from "./json-schema.ts";

const seed = process.env.CELLS_SEED === undefined ? {} : { seed: Number(process.env.CELLS_SEED) };
const schema = specificationSchema();
const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: false });
const validate = ajv.compile(schema);

const faultOf = (document: JsonObject): string | null => {
  const read = checkDocument(document);
  return read.ok ? null : `${read.error[0]?.code} ${read.error[0]?.message}`;
};
/** Whether the schema takes it; that it refuses nothing which the checks take is asserted on the way. */
const takes = (document: JsonObject): boolean => {
  if (validate(document)) return true;
  const why = JSON.stringify(validate.errors?.[0]);
  assert.notEqual(
    faultOf(document),
    null,
    `the checks accept what the schema refuses: ${why}\n${JSON.stringify(document)}`,
  );
  return false;
};

test("it is a schema", () => {
  assert.ok(ajv.validateSchema(schema), JSON.stringify(ajv.errors));
  // Plain data in canonical JSON: nothing is undefined, and a copy is equal.
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
});

test("what the checks accept validates", (context) => {
  let [count, accepted] = [0, 0];
  fc.assert(
    fc.property(cells, (document) => {
      count++;
      if (faultOf(document) === null) accepted++;
      takes(document);
    }),
    { numRuns: 300, ...seed },
  );
  context.diagnostic(`${accepted} of ${count} accepted`);
  assert.ok(accepted > count / 2, `${accepted} of ${count}`);
});

/** Values that hit what some kind takes or just does not. */
const values: readonly Json[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  15,
  16,
  1.5,
  255,
  256,
  65_535,
  65_536,
  2 ** 31,
  1e300,
  "",
  "a",
  "A",
  "on",
  "yes",
  "rw",
  "tcp",
  "udp",
  "icmp",

  "0",
  "80",
  "0080",
  "00000",
  "65536",
  "80-90",
  "90-80",
  "1-65536",
  "-1",
  "10.0.0.1",
  "10.0.0.256",
  "010.0.0.1",
  "10.0.0.0/8",
  "10.0.0.1/8",

  "10.0.0.0/33",
  "internet",
  "controller",
  "02:00:00:00:00:01",
  "01:00:00:00:00:01",
  "02-00-00-00-00-01",
  "-a",
  "a-",
  "a.b",
  "\u212a",

  "<ref:/shop/e0>",
  "<ref:/shop/e1>",
  "<ref:/shop/e2>",
  "ref:/shop/e0",
  "<ref:../e0>",
  "<ref:/params/p>",
  "<ref:/shop/e0",
  "<REF:/a>",
  "< ref:/a>",

  "ref:/a b",
  "ref:",
  "<ref:>",
  "<ref://other.example.com/>",
  "<ref://other.example.com>",
  "<ref://other.example.com/a>",
  "<ref:///a>",
  "<ref://-/a>",

  "VM",
  "Volume",
  "Cell",
  "Group",
  {},
  { a: 1 },
  { "x.type": "VM", "x.memory": 16 },
  { "x.memory": 16 },
  [],
  [1],
  ["a"],
  "a\n",
  "\n",
];
const newNames = [
  "x.memory",
  "x.size",
  "x.foo",
  "x.",
  "x.placement.a",
  "x.placement.",
  "x.placement.a.b",
  "a",
  "",
  ".",
  "..",
  "a/b",
  "x",
  "x.type",
  "x.name",
];

/** The document with one attribute, chosen by `where`, made something else. */
function mutated(document: JsonObject, where: number, kind: number, value: number): JsonObject {
  const holders: Record<string, Json>[] = [];
  const copy = structuredClone(document) as Record<string, Json>;
  const visit = (object: Record<string, Json>): void => {
    holders.push(object);
    for (const each of Object.values(object)) if (isObject(each)) visit(each as Record<string, Json>);
  };
  visit(copy);
  const holder = holders[where % holders.length] ?? copy;
  const names = Object.keys(holder);
  const name = names[value % Math.max(1, names.length)] ?? "a";
  const other = structuredClone(values[value % values.length] ?? null);
  if (kind === 0) delete holder[name];
  else if (kind === 1) holder[name] = other;
  else if (kind === 2) holder[newNames[where % newNames.length] ?? "a"] = other;
  else if (holder[name] !== undefined) {
    holder[newNames[value % newNames.length] ?? "a"] = holder[name];
    delete holder[name];
  }
  return copy;
}

test("what it refuses of mutated cells, the checks refuse", (context) => {
  let [count, refused] = [0, 0];
  const numbers = fc.nat(100_000);
  fc.assert(
    fc.property(
      cells,
      fc.array(fc.tuple(numbers, fc.nat(3), numbers), { minLength: 1, maxLength: 3 }),
      (document, changes) => {
        count++;
        const changed = changes.reduce((each, [where, kind, value]) => mutated(each, where, kind, value), document);
        if (!takes(changed)) refused++;
      },
    ),
    { numRuns: 1500, ...seed },
  );
  context.diagnostic(`${refused} of ${count} refused`);
  assert.ok(refused > count / 10, `${refused} of ${count}`);
});

/** A sound cell in which an element of the type has that attribute. */
function holding(type: ElementType | "Cell", name: string, value: Json): JsonObject {
  const sound: Readonly<Record<ElementType, JsonObject>> = {
    VM: { "x.memory": 128 },
    Volume: { "x.size": 16 },
    VolumeCopy: { "x.image": "<ref:/shop/volume>" },
    Subnet: { "x.size": 8 },
    VolumeConnection: { "x.vm": "<ref:/shop/vm>", "x.volume": "<ref:/shop/volume>" },
    VirtualInterface: { "x.vm": "<ref:/shop/vm>", "x.subnet": "<ref:/shop/subnet>" },
    NetworkRule: { "x.address1": "<ref:/shop/vm>", "x.address2": "internet" },
    VolumeGrant: { "x.volume": "<ref:/shop/volume>", "x.vm": "<ref:/shop/vm>", "x.grant": "copy" },
    CellController: { "x.cell": { child: { "x.type": "Cell" } } },
    Host: {},
    Domain: {},
    Account: {},
    Role: { "x.rules": ["allow cell.read"] },
    Zone: {},
    Pod: {},
    Cluster: {},
    Dedication: { "x.of": "h1", "x.to": "ROOT/acme" },
    AffinityGroup: { "x.kind": "host anti-affinity" },

    Offering: { "x.memory": 512 },
    HostFlavor: { "x.units": 4 },
    Pool: {},
    PoolHost: { "x.pool": "<ref:/shop/pool>", "x.flavor": "large" },
  };
  const element = (of: ElementType, more: JsonObject = {}): JsonObject => ({ "x.type": of, ...sound[of], ...more });
  const beside = { vm: element("VM"), volume: element("Volume"), subnet: element("Subnet"), pool: element("Pool") };
  if (type === "Cell") return { shop: { "x.type": "Cell", [name]: value, ...beside } };
  if (type === "Domain" || type === "Account" || type === "Role")
    return { root: { "x.type": "Cell", tenants: { it: element(type, { [name]: value }) } } };
  return { shop: { "x.type": "Cell", ...beside, it: element(type, { [name]: value }) } };
}
/** A value that no attribute of the kind takes; undefined where any is one. */
function wrongFor(kind: AttributeKind): Json | undefined {
  const wrong: Readonly<Record<Exclude<AttributeKind["kind"], "integer" | "data">, Json>> = {
    boolean: "yes",
    choice: "neither",
    text: 7,
    label: "no label",
    networks: ["10.0.0.0/33"],
    groups: ["10.0.0.1"],
    labels: ["no label"],
    rules: ["perhaps cell.read"],
    words: ["neither"],
    addresses: ["10.0.0.256"],
    address: "10.0.0.256",
    network: "10.0.0.0/33",
    mac: "01:00:00:00:00:01",
    link: "vm",
    domain: "other.example.com",
    end: "everywhere",
    ports: "80-",
    path: 7,
  };
  if (kind.kind === "data") return undefined;
  return kind.kind === "integer" ? kind.minimum - 1 : wrong[kind.kind];
}

for (const type of [...elementTypes, "Cell"] as const)
  test(`of each attribute of ${type}, a wrong value is refused by the schema and by the checks`, () => {
    const table = type === "Cell" ? cellAttributes : elementSchemas[type];
    const control = holding(type, "note", 1);
    assert.deepEqual([takes(control), faultOf(control)], [true, null]);
    for (const [name, { kind, required }] of Object.entries({ ...table, ...commonAttributes })) {
      const wrongs =
        name === "x.type"
          ? ["Group", 7]
          : [
              wrongFor(kind),
              ...(kind.kind === "integer" ? [kind.maximum + 1, 1.5, "16"] : []),
              ...(required ? [null] : []),
            ];
      for (const wrong of wrongs) {
        if (wrong === undefined) continue;
        const document = holding(type, name, wrong);
        assert.equal(takes(document), false, `${name} ${JSON.stringify(wrong)}`);
      }
    }
    for (const stray of ["x.unknown", "x.Memory", "x."]) assert.equal(takes(holding(type, stray, 1)), false, stray);
    assert.ok(attributeSchema(type, "x.public"));
  });

test("a place where a literal may stand takes a reference", () => {
  for (const type of elementTypes)
    for (const [name, { kind }] of Object.entries(elementSchemas[type]))
      if (kind.kind !== "link" && kind.kind !== "end" && name !== "x.cell")
        assert.ok(validate(holding(type, name, "<ref:/params/it>")), `${type} ${name}`);
});

test("a document holds a cell, and names that only the author knows", () => {
  assert.ok(!takes({}) && !takes({ shop: { "x.type": "VM" } }));
  assert.ok(
    takes({ $schema: "cells.schema.json", shop: { "x.type": "Cell" }, template: { "x.type": "VM", "x.memory": "?" } }),
  );
  assert.ok(
    !takes({ "My Shop": { "x.type": "Cell" } }) && takes({ "My Shop": { "x.type": "Cell", "x.name": "shop" } }),
  );
  assert.ok(!takes({ shop: { "x.type": "Cell", "a/b": {} } }) && takes({ shop: { "x.type": "Cell", "a/b": 1 } }));
  assert.ok(!takes({ shop: { "x.type": "Cell", group: { "x.size": 1 } } }));
  assert.ok(!takes({ shop: { "x.type": "Cell", inner: { "x.type": "Cell" } } }));
});
