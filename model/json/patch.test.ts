import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import fc from "fast-check";
import { applyPatch } from "rfc6902";
import type { Result } from "../result.ts";
import type { Json, JsonObject } from "./json.ts";
import { type PatchFault, patched, patchLimits, readPatch } from "./patch.ts";

const apply = (document: Json, json: Json): Result<Json, PatchFault> => {
  const patch = readPatch(json);
  return patch.ok ? patched(document, patch.value) : patch;
};
const frozen = <T extends Json>(json: T): T => {
  if (typeof json === "object" && json !== null) for (const each of Object.values(json)) frozen(each as Json);
  return Object.freeze(json);
};

interface Vector {
  readonly comment?: string;
  readonly doc: Json;
  readonly patch: Json;
  readonly expected?: Json;
  readonly error?: string;
  readonly disabled?: boolean;
}
const vectors = (file: string): readonly Vector[] =>
  JSON.parse(readFileSync(createRequire(import.meta.url).resolve(`json-patch-test-suite/${file}`), "utf8"));

for (const file of ["tests.json", "spec_tests.json"])
  test(`the public vectors of JSON Patch: ${file}`, () => {
    for (const { comment, doc, patch, expected, error, disabled } of vectors(file)) {
      // What is disabled there has a name twice in one object, which JSON.parse does not show, or expects nothing.
      if (disabled === true && expected === undefined) continue;
      const found = apply(frozen(doc), frozen(patch));
      const at = `${comment}: ${JSON.stringify(patch)} on ${JSON.stringify(doc)}`;
      assert.equal(found.ok, error === undefined, at);
      if (found.ok && expected !== undefined) assert.deepEqual(found.value, expected, at);
    }
  });

const name = fc.constantFrom("a", "b", "0", "c~d/", "1", "-", "");
const part = name.map((text) => text.replaceAll("~", "~0").replaceAll("/", "~1"));
const pointer = fc.array(part, { maxLength: 3 }).map((parts) => parts.map((each) => `/${each}`).join(""));
const valueWith = (lists: boolean): fc.Arbitrary<Json> =>
  fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json>(null, true, 1),
      fc.dictionary(name, tie("json"), { maxKeys: 3, noNullPrototype: true }),
      ...(lists ? [fc.array(tie("json"), { maxLength: 3 })] : []),
    ),
  })).json;
const operationOf = (value: fc.Arbitrary<Json>) =>
  fc.oneof(
    fc.record({ op: fc.constantFrom("add", "replace", "test"), path: pointer, value }),
    fc.record({ op: fc.constant("remove"), path: pointer }),
    fc.record({ op: fc.constantFrom("move", "copy"), from: pointer, path: pointer }),
  );
/** What rfc6902 takes that the RFC does not: it takes the document away, and puts it into itself. */
const isOurs = ({ op, path, from }: JsonObject): boolean =>
  (op === "remove" && path === "") ||
  (op === "move" && (from === "" || `${path}/`.startsWith(`${from}/`) || isMovedAlong(String(path), String(from))));
/** What is taken out of a list gives those behind it other places, before the RFC looks for `path`; the library has looked by then. */
const isMovedAlong = (path: string, from: string): boolean => {
  const list = from.slice(0, from.lastIndexOf("/") + 1);
  return /\/\d+$/.test(from) && path.startsWith(list) && path.slice(list.length).includes("/");
};

/** Null: it is refused. A document that holds no names makes it throw. */
function byLibrary(document: Json, operation: JsonObject): { readonly document: Json } | null {
  const holder = { document };
  const from = operation.from === undefined ? {} : { from: `/document${operation.from}` };
  const within = structuredClone({ ...operation, path: `/document${operation.path}`, ...from });
  try {
    return applyPatch(holder, [within as never])[0] === null ? holder : null;
  } catch {
    return null;
  }
}

// The library takes a name in a list, and puts it beside the items: with lists only what is accepted here is compared.
for (const lists of [true, false])
  test(`what a library makes of patches, this makes of them ${lists ? "with lists" : "without lists"}, and the document stays as it is`, () => {
    const value = valueWith(lists);
    let done = 0;
    fc.assert(
      fc.property(value, fc.array(operationOf(value), { maxLength: 6 }), (document, operations) => {
        const before = JSON.stringify(frozen(document));
        const kept: JsonObject[] = [];
        let expected = JSON.parse(before) as Json;
        for (const each of operations as readonly JsonObject[]) {
          if (isOurs(each)) continue;
          const [found, told] = [
            apply(document, [...kept, each]),
            byLibrary(JSON.parse(JSON.stringify(expected)), each),
          ];
          if (!lists) assert.equal(found.ok, told !== null, `${JSON.stringify(each)} on ${JSON.stringify(expected)}`);
          if (!found.ok) continue;
          assert.deepEqual({ document: found.value }, told);
          expected = found.value;
          kept.push(each);
        }
        assert.equal(JSON.stringify(document), before);
        done += kept.length > 1 ? 1 : 0;
      }),
      { numRuns: 3000 },
    );
    assert.ok(done > 100, `${done} patches of several operations were applied`);
  });

test("what is copied stands in two places, and a change of one is none of the other", () => {
  const found = apply(frozen({ a: { b: { c: 1 } } }), [
    { op: "add", path: "/a/b/d", value: { e: [] } },
    { op: "copy", from: "/a", path: "/z" },
    { op: "add", path: "/a/b/d/e/-", value: 7 },
    { op: "replace", path: "/z/b/c", value: 2 },
    { op: "copy", from: "/a/b", path: "/a/b/d/f" },
    { op: "remove", path: "/a/b/d/f/c" },
  ]);
  assert.deepEqual(found, {
    ok: true,
    value: { a: { b: { c: 1, d: { e: [7], f: { d: { e: [7] } } } } }, z: { b: { c: 2, d: { e: [] } } } },
  });
});

test("a value of a patch is not changed by what comes after it", () => {
  const patch = frozen([
    { op: "add", path: "/a", value: { b: 1 } },
    { op: "add", path: "/a/c", value: 2 },
    { op: "copy", from: "/a", path: "/d" },
  ]);
  for (let count = 0; count < 2; count += 1)
    assert.deepEqual(apply({}, patch), { ok: true, value: { a: { b: 1, c: 2 }, d: { b: 1, c: 2 } } });
});

test("an object keeps the order of its names, and a new one goes last", () => {
  const found = apply({ a: 1, b: 2, c: 3 }, [
    { op: "add", path: "/b", value: 4 },
    { op: "add", path: "/d", value: 5 },
    { op: "replace", path: "/a", value: 6 },
  ]);
  assert.equal(found.ok && JSON.stringify(found.value), '{"a":6,"b":4,"c":3,"d":5}');
});

test("a name that means something to the language is a name", () => {
  const document = JSON.parse('{"__proto__": {"x": 1}, "b": {}}') as Json;
  const found = apply(document, [
    { op: "test", path: "/__proto__/x", value: 1 },
    { op: "add", path: "/b/__proto__", value: { polluted: true } },
    { op: "add", path: "/b/__proto__/more", value: true },
    { op: "replace", path: "/__proto__/x", value: 2 },
  ]);
  const text = '{"__proto__":{"x":2},"b":{"__proto__":{"polluted":true,"more":true}}}';
  assert.equal(found.ok && JSON.stringify(found.value), text);
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  for (const path of ["/constructor", "/toString/name", "/b/hasOwnProperty"])
    assert.equal(apply(document, [{ op: "remove", path }]).ok, false);
});

const faultOf = (document: Json, patch: Json): PatchFault | null => {
  const found = apply(document, patch);
  return found.ok ? null : found.error;
};

test("a test that fails says where, what was wanted, and what was found", () => {
  const document = { shop: { vm: { "x.memory": 256 }, long: "x".repeat(5000) } };
  const at = (path: string, value: Json) =>
    faultOf(document, [
      { op: "test", path: "", value: document },
      { op: "test", path, value },
    ]);
  assert.deepEqual(at("/shop/vm/x.memory", 512), {
    kind: "test-failed",
    operation: 1,
    path: "/shop/vm/x.memory",
    wanted: 512,
    found: 256,
    message: 'operation 1 (test "/shop/vm/x.memory"): what is there is another value than the test names',
  });
  assert.deepEqual(at("/shop/db", { "x.type": "VM" }), {
    kind: "test-failed",
    operation: 1,
    path: "/shop/db",
    wanted: { "x.type": "VM" },
    message: 'operation 1 (test "/shop/db"): nothing is there',
  });
  assert.deepEqual(at("/shop/long", null), {
    kind: "test-failed",
    operation: 1,
    path: "/shop/long",
    wanted: null,
    message: 'operation 1 (test "/shop/long"): what is there is another value than the test names',
  });
  assert.equal(at("/shop/vm", { "x.memory": 256 }), null);
});

test("what cannot be read or done is refused with its operation and its pointer", () => {
  const document = { shop: { list: [1, 2], vm: { "x.memory": 256 } } };
  const add = { op: "add", path: "/shop/x", value: 1 };
  const faults: readonly (readonly [Json, number | null, string | null, RegExp])[] = [
    [{}, null, null, /a patch is a list of operations/],
    [[add, 7], 1, null, /^operation 1: an operation is an object/],
    [[{ op: "merge", path: "/a", value: 1 }], 0, "/a", /^operation 0 \(merge "\/a"\): `op` is one of add, remove/],
    [[{ op: "add", path: 7, value: 1 }], 0, "", /`path` is a text/],
    [[{ op: "add", path: "shop", value: 1 }], 0, "shop", /`path` begins with \//],
    [[{ op: "add", path: "/a~2", value: 1 }], 0, "/a~2", /a ~ that is not followed by 0 or 1/],
    [[{ op: "add", path: "/".repeat(300), value: 1 }], 0, "/".repeat(300), /has more than 256 parts/],
    [[{ op: "add", path: "/a" }], 0, "/a", /there is no `value`/],
    [[{ op: "copy", path: "/a" }], 0, "/a", /`from` is a text/],
    [[{ op: "move", from: "/shop", path: "/shop/vm/a" }], 0, "/shop/vm/a", /cannot be moved into itself/],
    [[add, { op: "remove", path: "/shop/y" }], 1, "/shop/y", /nothing is there/],
    [[{ op: "replace", path: "/shop/vm/x.cpus", value: 1 }], 0, "/shop/vm/x.cpus", /nothing is there/],
    [[{ op: "add", path: "/shop/db/disk", value: 1 }], 0, "/shop/db/disk", /what it would stand in is not there/],
    [[{ op: "add", path: "/shop/vm/x.memory/a", value: 1 }], 0, "/shop/vm/x.memory/a", /no object and no list/],
    [[{ op: "add", path: "/shop/list/3", value: 1 }], 0, "/shop/list/3", /the list has 2 items/],
    [[{ op: "add", path: "/shop/list/01", value: 1 }], 0, "/shop/list/01", /an index is 0, 1 and so on/],
    [[{ op: "remove", path: "/shop/list/-" }], 0, "/shop/list/-", /nothing is there/],
    [[{ op: "copy", from: "/shop/y", path: "/a" }], 0, "/shop/y", /nothing is there/],
    [[{ op: "move", from: "/shop/y", path: "/a" }], 0, "/shop/y", /nothing is there/],
    [[{ op: "remove", path: "" }], 0, "", /cannot be taken away/],
  ];
  for (const [patch, operation, path, message] of faults) {
    const fault = faultOf(document, patch);
    assert.deepEqual([fault?.kind, fault?.operation, fault?.path], ["invalid", operation, path], JSON.stringify(patch));
    assert.match(fault?.message ?? "", message);
  }
});

test("what a patch costs is bounded: operations, depth, and what its copies make", () => {
  const add = { op: "add", path: "/a", value: 1 };
  assert.ok(apply({}, Array(patchLimits.operations).fill(add)).ok);
  const many = faultOf({}, Array(patchLimits.operations + 1).fill(add));
  assert.deepEqual([many?.kind, many?.operation], ["invalid", patchLimits.operations]);
  const nested = (depth: number): Json => {
    let value: Json = [];
    for (let at = 1; at < depth; at += 1) value = [value];
    return value;
  };
  assert.ok(apply({}, [{ op: "add", path: "/a", value: nested(patchLimits.depth) }]).ok);
  for (const depth of [patchLimits.depth + 1, 200_000]) {
    const fault = faultOf({}, [{ op: "add", path: "/a", value: nested(depth) }]);
    assert.match(fault?.message ?? "", /nested deeper than 256 levels/);
  }
  const doubling = Array.from({ length: 40 }, (_, at) => ({ op: "copy", from: "", path: `/${at}` }));
  assert.match(faultOf({ x: 1 }, doubling)?.message ?? "", /copies at most 200000 values/);
  const long = { long: "x".repeat(1_000_000) };
  const texts = Array.from({ length: 40 }, (_, at) => ({ op: "copy", from: "/long", path: `/${at}` }));
  assert.deepEqual([faultOf(long, texts)?.operation, faultOf(long, texts)?.path], [16, "/long"]);
});

test("what moves make deep is looked through all the same", () => {
  const deep = (value: Json): Json => {
    let all = value;
    for (let at = 0; at < 250; at += 1) all = [all];
    return all;
  };
  const place = "/0".repeat(249);
  const patch: Json[] = [{ op: "add", path: "/a", value: deep([]) }];
  for (let count = 0; count < 300; count += 1)
    patch.push(
      { op: "add", path: "/b", value: deep([]) },
      { op: "move", from: "/a", path: `/b${place}/0/0` },
      { op: "move", from: "/b", path: "/a" },
    );
  assert.match(faultOf({}, [...patch, { op: "test", path: "/a", value: deep([]) }])?.message ?? "", /another value/);
  assert.ok(apply({}, [...patch, { op: "copy", from: "/a", path: "/c" }]).ok);
});

test("a thousand changes of a large document cost little more than one", () => {
  const group = Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`vm${at}`, { "x.type": "VM" }]));
  const document = frozen({ shop: group });
  const changes = (count: number): number => {
    const patch = Array.from({ length: count }, (_, at) => ({ op: "add", path: `/shop/vm${at}/x.memory`, value: at }));
    const begin = performance.now();
    assert.ok(apply(document, patch).ok);
    return performance.now() - begin;
  };
  changes(1000);
  const [one, all] = [Math.min(...[1, 2, 3, 4, 5].map(() => changes(1))), changes(1000)];
  assert.ok(all < 20 * one + 50, `${all} ms for a thousand, ${one} ms for one`);
});
