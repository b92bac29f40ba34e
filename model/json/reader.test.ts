import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "./json.ts";
import {
  absentAs,
  byKind,
  checked,
  count,
  dictionary,
  document,
  either,
  Fault,
  integer,
  json,
  list,
  maximumCount,
  nullable,
  object,
  oneOf,
  optional,
  pattern,
  secret,
  text,
} from "./reader.ts";

interface Interface {
  readonly mac: string;
  readonly port?: number;
}
interface Machine {
  readonly uid: string;
  readonly interfaces: readonly Interface[];
  readonly boot: number | null;
}
const mac = pattern(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/, "a MAC address");
const machine = object<Machine>({
  uid: text(8),
  interfaces: list(object<Interface>({ mac, port: optional(integer(1, 10)) }), 3),
  boot: nullable(count),
});
const good = { uid: "vm-1", interfaces: [{ mac: "02:00:00:00:00:01", port: 7 }], boot: null };
const said = (value: Json): string => {
  const result = machine(value);
  assert.ok(result instanceof Fault, JSON.stringify(value));
  return result.toString();
};

test("a fault names the place, what was found and what would be right", () => {
  const bad = { ...good, interfaces: [good.interfaces[0] ?? {}, { mac: "02-00" }] };
  assert.equal(said(bad), 'at interfaces[1].mac: found "02-00", must be a MAC address');
  assert.equal(said({ uid: "vm-1", boot: 1 }), "at interfaces: found nothing, must be a list");
  assert.equal(
    said({ ...good, boot: -1 }),
    `at boot: found -1, must be a whole number from 0 to ${maximumCount}, or null`,
  );
  assert.equal(
    said({ ...good, interfaces: [{ mac: "02:00:00:00:00:01", port: null }] }).split(":")[0],
    "at interfaces[0].port",
  );
  assert.equal(
    said({ ...good, interfaces: Array(4).fill(good.interfaces[0]) }),
    "at interfaces: found a list of 4, must be a list of at most 3",
  );
  assert.equal(said("x".repeat(1000)), `found "${"x".repeat(40)}…", must be an object`);
  assert.equal(said([]), "found a list of 0, must be an object");
});

test("fields that a type does not know are let through and left out; without them nothing is copied", () => {
  assert.equal(machine(good), good);
  const next = { ...good, later: 1, interfaces: [{ mac: "02:00:00:00:00:01", also: [] }] };
  assert.deepEqual(machine(next), { ...good, interfaces: [{ mac: "02:00:00:00:00:01" }] });
  const hostile = JSON.parse('{"__proto__": {"boot": 1}, "uid": "a", "interfaces": [], "constructor": 1}') as Json;
  assert.equal(said(hostile), `at boot: found nothing, must be a whole number from 0 to ${maximumCount}, or null`);
});

test("numbers count only within their range, and texts only as UTF-8 can carry them", () => {
  for (const number of [maximumCount + 1, 2 ** 53, -1, 0.5, 1e308])
    assert.ok(count(number) instanceof Fault, `${number}`);
  assert.equal(count(maximumCount), maximumCount);
  assert.ok(text(8)("\ud800") instanceof Fault);
});

test("of a secret only its length is said", () => {
  const key = secret(pattern(/^[0-9a-f]+$/, "hexadecimal digits"));
  assert.equal(String(key("geheim")), "found a text of 6 characters, must be hexadecimal digits");
  const layer = either(object({ key }), object({ none: oneOf(true) }), "a key or none");
  assert.ok(!String(layer({ key: "geheim" })).includes("geheim"));
});

test("kinds, choices, conditions, dictionaries and what a previous version leaves out", () => {
  type Shape = { readonly kind: "a"; readonly size: number } | { readonly kind: "b" };
  const shape = byKind<Shape>({
    a: object<Extract<Shape, { kind: "a" }>>({
      kind: oneOf("a"),
      size: checked(count, (size) => (size % 2 === 0 ? null : "even")),
    }),
    b: object<Extract<Shape, { kind: "b" }>>({ kind: oneOf("b") }),
  });
  assert.deepEqual(shape({ kind: "a", size: 2 }), { kind: "a", size: 2 });
  assert.equal(String(shape({ kind: "a", size: 1 })), "at size: found 1, must be even");
  assert.equal(String(shape({ kind: "toString" })), 'at kind: found "toString", must be "a" or "b"');
  const sizes = dictionary(count, /^[a-z]+$/, 2);
  assert.ok(sizes({ a: 1, B: 2 }) instanceof Fault && sizes({ a: 1, b: 2, c: 3 }) instanceof Fault);
  assert.equal(absentAs(0, count)(undefined), 0);
});

test("free JSON is bounded in its depth, and reading it does not end the process", () => {
  let deep: Json = 1;
  for (let level = 0; level < 5000; level += 1) deep = [deep];
  assert.ok(json(deep) instanceof Fault);
  assert.deepEqual(json({ any: [1, null] }), { any: [1, null] });
});

test("a document is about what its key names, and is read once", () => {
  let reads = 0;
  const counted = document<Machine>(
    (value) => {
      reads += 1;
      return machine(value);
    },
    { key: { field: "uid", of: ({ uid }) => uid } },
  );
  assert.equal(counted.of(good, "vm-1"), good);
  assert.equal(counted.of(good, "vm-2"), null);
  assert.equal(counted.of(good), good);
  assert.equal(reads, 1);
  assert.equal(counted.of(null), null);
});
