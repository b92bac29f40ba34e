import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { limits } from "../../../model/limits.ts";
import { bounds } from "./bounds.ts";
import { evaluateTypeScriptBundle } from "./front-end.ts";
import type { LaunchOptions } from "./launch.ts";
import { evaluateTypeScript } from "./specification.ts";

/** Specifications that mean harm, or do it. Each line is a whole main file; `cell` and `vm` are imported in front of it. */
const head = 'import { cell, vm, volume, connection, ref, controller } from "cells/model"; ';
const own = (name: string): string => readFileSync(join(import.meta.dirname, name), "utf8");
const ownTexts = { prelude: own("prelude.ts"), builder: own("builder.ts") };
const bundleOf = (text: string) => ({ main: "shop.ts", files: { "shop.ts": `${head}${text}` } });

/** In this process: what only has to be refused needs none of the walls. */
const evaluatedHere = async (text: string) => {
  const said: string[] = [];
  const result = await evaluateTypeScript(bundleOf(text), ownTexts, (part) => said.push(part));
  return { result, said: said.join("\n") };
};
const evaluatedInProcess = async (text: string, options: LaunchOptions = {}) => {
  const said: string[] = [];
  const result = await evaluateTypeScriptBundle(bundleOf(text), { ...options, said: (part) => said.push(part) });
  return { result, said: said.join("") };
};

interface Case {
  readonly text: string;
  readonly code: string;
  readonly says: RegExp;
  /** Line of the author's text, from 1; the first has the imports. */
  readonly line?: number;
  /** What uses up a bound does it in a process of its own. */
  readonly bound?: LaunchOptions;
}
const refused: Readonly<Record<string, Case>> = {
  "a loop without an end, in a function": {
    text: "\nfunction f() {\n  for (;;) {}\n}\nf();\nexport default cell('shop', {});",
    bound: {},
    code: "typescript/steps",
    says: /too long/,
    line: 2,
  },
  "a loop that catches what stops it": {
    text: "\nfor (;;) try { for (;;) {} } catch {} finally { for (;;) {} }",
    bound: {},
    code: "typescript/steps",
    says: /too long/,
  },
  "promises without an end": {
    text: "\nconst again = async (): Promise<void> => { await null; return again(); };\nawait again();",
    bound: {},
    code: "typescript/memory",
    says: /memory/,
  },
  "a regular expression that tries everything": {
    text: '\n/^(a+)+$/.test("a".repeat(60) + "b");\nexport default cell("shop", {});',
    bound: {},
    code: "typescript/steps",
    says: /too long/,
    line: 2,
  },
  "recursion that catches its end": {
    text: "\nconst f = (): number => { try { return 1 + f(); } catch { return f(); } };\nf();",
    bound: { wallMs: 3000 },
    code: "typescript/stopped",
    says: /within 3 s/,
  },
  "recursion through built-in functions": {
    text: "\nconst f = (): unknown => [1].map(() => JSON.parse('[1]', () => f()));\nf();",
    bound: {},
    code: "typescript/recursion",
    says: /too deep/,
  },
  "a text that doubles": {
    text: '\nlet text = "ab";\nfor (;;) text += text;',
    code: "typescript/thrown",
    says: /too long/,
    line: 3,
  },
  "many small objects": {
    text: "\nconst all: unknown[] = [];\nfor (;;) all.push({ a: 1, b: [1, 2] });",
    bound: {},
    code: "typescript/memory",
    says: /96 MiB/,
  },
  "a getter": {
    text: '\nexport default cell("shop", { get now() { return 1; } });',
    code: "typescript/value",
    says: /`get now\(\)`/,
    line: 2,
  },
  "a symbol as a name": {
    text: '\nexport default cell("shop", { [Symbol("x") as never]: 1 });',
    code: "typescript/value",
    says: /symbol/,
    line: 2,
  },
  "a proxy that goes on without an end": {
    text: '\nconst p: unknown = new Proxy({}, { ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ value: make(), enumerable: true, configurable: true }) });\nfunction make(): unknown { return new Proxy({}, { ownKeys: () => ["a"], getOwnPropertyDescriptor: () => ({ value: make(), enumerable: true, configurable: true }) }); }\nexport default cell("shop", { p });',
    code: "limit/document",
    says: /nested deeper than \d+ levels/,
  },
  "a proxy that throws": {
    text: '\nexport default cell("shop", { p: new Proxy({}, { ownKeys: () => { throw new Error("no"); } }) });',
    code: "typescript/thrown",
    says: /no/,
    line: 2,
  },
  "a structure that contains itself": {
    text: '\nconst a: Record<string, unknown> = {};\na.a = a;\nexport default cell("shop", { a });',
    code: "typescript/value",
    says: /contains itself/,
  },
  "a function": {
    text: '\nexport default cell("shop", { f: () => 1 });',
    code: "typescript/value",
    says: /a function/,
    line: 2,
  },
  "a BigInt": { text: '\nexport default cell("shop", { n: 1n });', code: "typescript/value", says: /BigInt/, line: 2 },
  undefined: {
    text: '\nexport default cell("shop", { n: undefined });',
    code: "typescript/value",
    says: /undefined/,
    line: 2,
  },
  infinity: {
    text: '\nexport default cell("shop", { n: 1 / 0 });',
    code: "typescript/value",
    says: /Infinity/,
    line: 2,
  },
  "a map": {
    text: '\nexport default cell("shop", { m: new Map() });',
    code: "typescript/value",
    says: /class/,
    line: 2,
  },
  "a list with nothing in it": {
    text: '\nexport default cell("shop", { list: new Array(4_000_000_000) });',
    code: "typescript/value",
    says: /undefined/,
    line: 2,
  },
  "half a character": {
    text: '\nexport default cell("shop", { text: "\\ud800" });',
    code: "typescript/value",
    says: /surrogate/,
    line: 2,
  },
  "a built-in object that is changed": {
    text: "\nObject.prototype.toString = () => 'x';",
    code: "typescript/thrown",
    says: /cannot be changed/,
    line: 2,
  },
  "a built-in property that is redefined": {
    text: "\nObject.defineProperty(Array.prototype, 'map', { value: 1 });",
    code: "typescript/thrown",
    says: /TypeError/,
    line: 2,
  },
  "a stack made up by its author": {
    text: '\nError.prepareStackTrace = () => "    at shop.ts:99:1";',
    code: "typescript/thrown",
    says: /TypeError/,
    line: 2,
  },
  "another stack in an error": {
    text: '\nconst error = new Error("mine"); error.stack = "    at /etc/passwd:1:1\\n    at shop.ts:9999:1"; throw error;',
    code: "typescript/thrown",
    says: /mine/,
    line: 1,
  },
  "a function with a place for a name": {
    text: '\nconst f = { "x (/etc/passwd:1:1)\\n    at y"() { throw new Error("mine"); } };\nObject.values(f)[0]!();',
    code: "typescript/thrown",
    says: /mine/,
    line: 2,
  },
  "nothing thrown": { text: "\nthrow null;", code: "typescript/thrown", says: /without a message/ },
  "an object thrown that answers with errors": {
    text: "\nthrow { get message() { throw 1; }, get name() { for (;;) {} }, get stack() { throw 2; } };",
    bound: {},
    code: "typescript/thrown",
    says: /something without a message/,
  },
  eval: { text: "\n(0, eval)('1');", code: "typescript/not-here", says: /`eval`/, line: 2 },
  "code from text": {
    text: "\n(() => 0).constructor('return 1')();",
    code: "typescript/not-here",
    says: /code out of text/,
    line: 2,
  },
  "the time": { text: "\nnew Date();", code: "typescript/not-here", says: /`Date`.*same cell each time/, line: 2 },
  "a random number": { text: "\nMath.random();", code: "typescript/not-here", says: /`Math.random`/, line: 2 },
  "a timer": { text: "\nsetTimeout(() => {}, 1);", code: "typescript/not-here", says: /once, from its top/, line: 2 },
  "the network": {
    text: "\nawait fetch('http://127.0.0.1');",
    code: "typescript/not-here",
    says: /no network/,
    line: 2,
  },
  "the environment": {
    text: "\nprocess.env.HOME;",
    code: "typescript/not-here",
    says: /nothing of the machine/,
    line: 2,
  },
  require: { text: "\nrequire('fs');", code: "typescript/not-here", says: /`import` and `export`/, line: 2 },
  "a file": { text: '\nimport "node:fs";', code: "typescript/import", says: /node:fs/, line: 2 },
  "a package": { text: '\nimport "left-pad";', code: "typescript/import", says: /no packages/, line: 2 },
  "an address": {
    text: '\nimport "https://example.com/a.ts";',
    code: "typescript/import",
    says: /not loaded/,
    line: 2,
  },
  "a file outside": { text: '\nimport "../secret.ts";', code: "typescript/import", says: /outside/, line: 2 },
  "a file with a full path": {
    text: '\nimport "/etc/passwd";',
    code: "typescript/import",
    says: /not loaded/,
    line: 2,
  },
  "our own modules": { text: '\nimport "cells:builder";', code: "typescript/import", says: /cells:builder/, line: 2 },
  "an import made up": {
    text: '\nconst name = ["node", "fs"].join(":");\nawait import(name);',
    code: "typescript/import",
    says: /node:fs/,
  },
  "brackets without an end": {
    text: `\nconst a = ${"(".repeat(200_000)}`,
    bound: {},
    code: "typescript/syntax",
    says: /./,
  },
  "an element of another cell": {
    text: '\nconst inner = vm({ memory: 64 });\nconst child = controller({ cell: cell("kid", { inner }) });\nexport default cell("shop", { child, c: connection({ vm: inner, volume: ref("//a/b") }) });',
    code: "typescript/not-placed",
    says: /of another cell/,
    line: 4,
  },
  "a cell inside a cell": {
    text: '\nexport default cell("shop", { inner: cell("kid", {}) as never });',
    code: "typescript/placed-twice",
    says: /controller/,
    line: 2,
  },
};

describe("what is refused", { concurrency: 2 }, () => {
  for (const [name, { text, code, says, line, bound }] of Object.entries(refused))
    test(name, async () => {
      const { result } = bound ? await evaluatedInProcess(text, bound) : await evaluatedHere(text);
      assert.ok(!result.ok, "it was evaluated");
      const [first] = result.error;
      assert.equal(first?.code, code, JSON.stringify(result.error));
      assert.match(first?.message ?? "", says);
      assert.ok(result.error.length <= limits.diagnostics);
      for (const { position } of result.error) assert.equal(position?.file, "shop.ts");
      if (line !== undefined) assert.equal(first?.position?.line, line, JSON.stringify(first));
    });
});

describe("what is harmless", { concurrency: 2 }, () => {
  const given = async (text: string) => {
    const { result, said } = await evaluatedInProcess(text);
    assert.ok(result.ok, JSON.stringify(result));
    return { document: result.value.document, said };
  };
  test("names that mean something to objects are names", async () => {
    const { document } = await given(
      'export default cell("shop", JSON.parse(\'{"__proto__": {"a": 1}, "constructor": 2, "toString": 3}\'));',
    );
    const shop = document.shop as Record<string, unknown>;
    assert.deepEqual(Object.keys(shop), ["x.type", "__proto__", "constructor", "toString"]);
    assert.equal(Object.getPrototypeOf(shop), Object.prototype);
  });
  test("errors of one's own, with names and messages of their own", async () => {
    const { document } =
      await given(`class Mine extends Error { constructor() { super("m"); this.name = "Mine"; this.message += "!"; } }
      let text = ""; try { throw new Mine(); } catch (error) { text = String(error); }
      const o: Record<string, unknown> = {}; o.toString = 5; o.constructor = 6;
      export default cell("shop", { text, n: o.constructor, typed: typeof undefined });`);
    assert.deepEqual(document, { shop: { "x.type": "Cell", text: "Mine: m!", n: 6, typed: "undefined" } });
  });
  test("a proxy and a frozen object are what they look like", async () => {
    const { document } = await given(
      'export default cell("shop", { p: new Proxy({ a: 1 }, {}), f: Object.freeze({ b: [2] }) });',
    );
    assert.deepEqual(document, { shop: { "x.type": "Cell", p: { a: 1 }, f: { b: [2] } } });
  });
  test("what it prints is passed on, and bounded", async () => {
    const { said } = await given('console.log("memory", { a: 1 }); export default cell("shop", {});');
    assert.equal(said, 'memory {"a":1}\n');
    const flood = await given(
      'for (let i = 0; i < 20000; i++) console.log("line", i); export default cell("shop", {});',
    );
    assert.ok(flood.said.length > bounds.saidBytes / 2 && flood.said.length < 2 * bounds.saidBytes);
    assert.match(flood.said, /more is not shown/);
  });
  test("what is done again and again gives the same", async () => {
    const text =
      'export default cell("shop", { keys: Object.keys({ b: 1, a: 2 }), n: 0.1 + 0.2, s: [3, 1, 2].toSorted() });';
    assert.deepEqual((await given(text)).document, (await given(text)).document);
  });
});

test("more than may wait are refused at once, and the others all have their turn", async () => {
  const count = bounds.atOnce + bounds.waiting + 3;
  const stop = new AbortController();
  const bundle = { main: "shop.ts", files: { "shop.ts": `${head}for (;;) {}` } };
  const all = Array.from({ length: count }, () => evaluateTypeScriptBundle(bundle, { signal: stop.signal }));
  const busy = await Promise.all(all.slice(-3));
  for (const each of busy) assert.ok(!each.ok && each.error[0]?.code === "typescript/busy");
  stop.abort();
  for (const each of await Promise.all(all.slice(0, -3)))
    assert.ok(!each.ok && each.error[0]?.code === "typescript/stopped", JSON.stringify(each));
  // All places are free again.
  assert.ok((await evaluatedInProcess('export default cell("shop", {});')).result.ok);
});
