import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Bundle, Cell } from "../cell/cell.ts";
import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { scalarText } from "../smartfrog/text/print.ts";
import { readSpecification } from "../specification/specification.ts";

/*
 * SmartFrog and JSON are equal ways to write a cell. Cells are made as data, with templates and links that only SmartFrog
 * has, written in both languages, and read from both. `CELLS_SEED` repeats a run.
 */
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** What SmartFrog writes in a way of its own; JSON has what it means. */
interface Written {
  readonly json: Json;
  readonly smartFrog: string;
}
type Entries = readonly (readonly [name: string, value: Written])[];

const string = (value: string): string => scalarText({ kind: "string", value });
const word = (name: string): string => (/^[a-z][a-zA-Z0-9.]*$/.test(name) ? name : string(name));
const reserved = new Set(["extends", "true", "false"]);
const named = (name: string): string => (reserved.has(name) ? string(name) : word(name));

function number(value: number): string {
  if (Object.is(value, -0)) return "-0.0D";
  if (!Number.isInteger(value)) return `${value}D`;
  if (Math.abs(value) < 2 ** 31) return String(value);
  return Number.isSafeInteger(value) ? `${value}L` : `${value}D`;
}
const isList = (json: Json): json is readonly Json[] => Array.isArray(json);
/** A value of JSON; an object inside an array cannot be written in SmartFrog. */
function literal(json: Json): Written {
  const smartFrog = (value: Json): string => {
    if (isObject(value))
      return `extends { ${Object.entries(value)
        .map(([name, item]) => `${string(name)} ${smartFrog(item)};`)
        .join(" ")} }`;
    if (isList(value)) return `[${value.map(smartFrog).join(", ")}]`;
    if (value === null) return "NULL";
    if (typeof value === "number") return number(value);
    return typeof value === "string" ? string(value) : String(value);
  };
  return { json, smartFrog: smartFrog(json) };
}
const component = (prototypes: string, entries: Entries, also: Entries = []): Written => ({
  json: Object.fromEntries([...also, ...entries].map(([name, { json }]) => [name, json])) as JsonObject,
  smartFrog: `extends ${prototypes}{\n${entries.map(([name, { smartFrog }]) => `${named(name)} ${smartFrog};`).join("\n")}\n}`,
});
const element = (type: string, entries: Entries): Written =>
  component(`${type} `, entries, [["x.type", literal(type)]]);
/** A link to an element at a path of the document, in one of the forms of the language. */
const linkTo = (path: string, form: number): Written => {
  const text = `<ref:/${path}>`;
  if (form === 0) return { json: text, smartFrog: `ROOT:${path.replaceAll("/", ":")}` };
  return form === 1 ? literal(text) : literal(`ref:/${path}`);
};

const name = fc.oneof(
  fc.constantFrom("a", "x1", "extends", "LAZY", "a b", "", "true", "é", "__proto__"),
  fc.string({ maxLength: 4 }),
);
const { data } = fc.letrec<{ data: Json }>((tie) => ({
  data: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" })).filter((value) => !/ref:/i.test(value)),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(
      tie("data").filter((item) => !/\{/.test(JSON.stringify(item))),
      { maxLength: 3 },
    ),
    fc
      .uniqueArray(fc.tuple(name, tie("data")), { maxLength: 3, selector: ([key]) => key })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));
const form = fc.nat(2);
const machine = fc.record({
  memory: fc.integer({ min: 16, max: 4096 }),
  template: fc.boolean(),
  data,
  disks: fc.uniqueArray(fc.tuple(fc.nat(3), form), { maxLength: 3, selector: ([volume]) => volume }),
  nets: fc.uniqueArray(fc.tuple(fc.nat(2), form), { maxLength: 2, selector: ([net]) => net }),
  host: fc.option(fc.constantFrom("h1", "Host2")),
  on: fc.boolean(),
});

const anyCell = fc
  .record({
    volumes: fc.array(
      fc.record({ size: fc.integer({ min: 1, max: 99 }), origin: fc.option(fc.tuple(fc.nat(3), form)) }),
      { minLength: 1, maxLength: 4 },
    ),
    subnets: fc.array(fc.integer({ min: 4, max: 64 }), { minLength: 1, maxLength: 3 }),
    machines: fc.array(machine, { maxLength: 3 }),
    rules: fc.array(fc.tuple(fc.nat(2), form, fc.integer({ min: 1, max: 65_535 })), { maxLength: 2 }),
    group: fc.boolean(),
    open: fc.boolean(),
  })
  .map((made): Readonly<Record<"sf" | "json", string>> => {
    const template: Entries = [
      ["x.memory", literal(64)],
      ["x.priority", literal(7)],
      ["x.data", literal({ role: "web" })],
    ];
    const at = made.group ? "c/group" : "c";
    const inside: [string, Written][] = made.volumes.map(({ size, origin }, index) => [
      `vol${index}`,
      origin && origin[0] < index
        ? element("VolumeCopy", [["x.image", linkTo(`${at}/vol${origin[0]}`, origin[1])]])
        : element("Volume", [["x.size", literal(size)]]),
    ]);
    for (const [index, size] of made.subnets.entries())
      inside.push([`net${index}`, element("Subnet", [["x.size", literal(size)]])]);
    made.machines.forEach(({ memory, data: given, disks, nets, host, on, template: templated }, index) => {
      const own: [string, Written][] = [
        ["x.memory", literal(memory)],
        ["x.data", literal(given)],
        ["x.desiredState", { json: on ? "on" : "off", smartFrog: `IF ${on} THEN "on" ELSE "off" FI` }],
      ];
      for (const [volume, how] of disks.filter(([each]) => each < made.volumes.length))
        own.push([
          `disk${volume}`,
          element("VolumeConnection", [
            ["x.vm", literal("<ref:..>")],
            ["x.volume", linkTo(`${at}/vol${volume}`, how)],
          ]),
        ]);
      for (const [net, how] of nets.filter(([each]) => each < made.subnets.length)) {
        const nic: [string, Written][] = [
          ["x.vm", literal("<ref:..>")],
          ["x.subnet", linkTo(`${at}/net${net}`, how)],
        ];
        if (host)
          nic.push(["x.vifName", { json: `${host}${index}${net}`, smartFrog: `("${host}" ++ ${index} ++ ${net})` }]);
        own.push([`nic${net}`, element("VirtualInterface", nic)]);
      }
      const inherited: Entries = [["x.type", literal("VM")], ...(templated ? template : [])];
      // A part before the template, of which the template changes a value but not the place.
      const before: Entries = [["x.priority", literal(3)]];
      const prototypes = templated ? "{ x.priority 3; }, Base, " : "VM ";
      inside.push([`vm${index}`, component(prototypes, own, templated ? [...before, ...inherited] : inherited)]);
    });
    made.rules.forEach(([net, how, port], index) => {
      if (net < made.subnets.length)
        inside.push([
          `rule${index}`,
          element("NetworkRule", [
            ["x.address1", literal("internet")],
            ["x.address2", linkTo(`${at}/net${net}`, how)],
            ["x.port2", literal(port)],
          ]),
        ]);
    });
    const policy: Entries = [["x.policy.subnetConnectivity", literal(made.open)]];
    const cell = element("Cell", [...policy, ...(made.group ? ([["group", component("", inside)]] as const) : inside)]);
    const base = element("VM", template);
    return {
      sf: `Base ${base.smartFrog}\nc ${cell.smartFrog}`,
      json: JSON.stringify({ Base: base.json, c: cell.json }),
    };
  });

function read(main: string, text: string): Cell {
  const bundle: Bundle = { main, files: { [main]: text } };
  const result = readSpecification(bundle);
  assert.ok(result.ok, `${JSON.stringify(result)}\n${text}`);
  return result.value;
}
/** Elements as plain data without positions, in order. */
const plain = (cell: Cell): unknown =>
  JSON.parse(
    JSON.stringify({ ...cell, elements: [...cell.elements.values()].map((each) => ({ ...each, position: null })) }),
  );

test("a cell written in SmartFrog and in JSON is one cell", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(anyCell, ({ sf, json }) => {
      const [one, other] = [read("a.sf", sf), read("a.json", json)];
      // In the order in which it is written too, but for what `ref:` and `<ref:>` have in common.
      assert.equal(JSON.stringify(one.document), JSON.stringify(other.document), sf);
      assert.deepEqual(plain(one), plain(other), sf);
    }),
    { seed, numRuns: 200 },
  );
});
