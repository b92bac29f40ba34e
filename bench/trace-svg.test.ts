import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sample } from "./figure-6/trace.ts";
import { type Chart, inXml, renderChart, stepFor, stepPath } from "./trace-svg.ts";

const samples: readonly Sample[] = [
  { second: 0, answering: [0, 0], wanted: [1, 1] },
  { second: 1, answering: [1, 0], wanted: [1, 1] },
  { second: 2, answering: [1, 1], wanted: [2, 2] },
  { second: 3, answering: [0, 2], wanted: [2, 2] },
];
const chart: Chart = {
  title: "a < b",
  origin: ["commit abc, today", "others worked"],
  description: "Two cells & a fault.",
  cells: ["alpha", "beta"],
  samples,
  marks: [
    { fromSecond: 1, toSecond: 2, text: 'power "cut"' },
    { fromSecond: 3, toSecond: null, text: "back" },
  ],
};
const all = (svg: string, pattern: RegExp): readonly string[] =>
  [...svg.matchAll(pattern)].map(([, found = ""]) => found);

test("a drawing is whole XML with everything that is to be read in it", () => {
  const svg = renderChart(chart);
  const open: string[] = [];
  for (const [, end, name = "", empty] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g)) {
    if (end === "/") assert.equal(open.pop(), name);
    else if (empty !== "/") open.push(name);
  }
  assert.deepEqual(open, []);
  assert.doesNotMatch(svg.replaceAll(/&(amp|lt|gt|quot);/g, ""), /&/);
  const words = all(svg, /<text[^>]*>([^<]*)</g);
  for (const said of [
    "a &lt; b",
    "commit abc, today",
    "others worked",
    "cell alpha",
    "cell beta",
    "power &quot;cut&quot;",
    "back",
  ])
    assert.ok(words.includes(said), said);
  assert.ok(words.includes("time / s") && words.includes("VMs that answer"), "axes with units");
  assert.match(svg, /<desc[^>]*>Two cells &amp; a fault\. commit abc/);
  assert.match(svg, /prefers-color-scheme: dark/);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined|null/);
});

test("everything lies inside of the drawing, and two marks' words on two lines", () => {
  const svg = renderChart(chart);
  const [, wide = 0, high = 0] = (/viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? []).map(Number);
  const inside = (values: readonly string[], most: number): void => {
    assert.ok(values.length > 3);
    for (const value of values.map(Number)) assert.ok(value >= 0 && value <= most, String(value));
  };
  inside(all(svg, / x[12]?="([^"]*)"/g), wide);
  inside(all(svg, / y[12]?="([^"]*)"/g), high);
  const [first, second] = all(svg, /y="([^"]*)"[^>]*class="said"/g);
  assert.notEqual(first, second);
  assert.equal(all(svg, /class="(band)"/g).length, 1, "only what lasts has a ground");
});

test("a value holds until the next sample", () => {
  const same = { seconds: 9, vms: 9, x: (second: number) => second, y: (count: number) => count };
  const values = [0, 0, 1, 1, 3, 3].map((value, second) => [second, value] as const);
  assert.equal(stepPath(values, same), "M0 0H2V1H4V3H5");
  assert.equal(stepPath([], same), "");
});

test("steps of the axes are 1, 2 or 5 times a power of ten", () => {
  assert.deepEqual(
    [1, 8.6, 10.1, 23, 51, 140, 1300].map((largest) => stepFor(largest, 10)),
    [1, 1, 2, 5, 10, 20, 200],
  );
});

test("texts are fit for XML", () => {
  assert.equal(inXml('a<b>&"c"\u0000\u001b'), "a&lt;b&gt;&amp;&quot;c&quot;");
});
