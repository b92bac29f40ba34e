import assert from "node:assert/strict";
import { test } from "node:test";
import { renderGrowth } from "./size-svg.ts";

test("a drawing of growth is whole XML with everything that is to be read in it", () => {
  const svg = renderGrowth({
    title: "a < b",
    origin: ["commit abc, today"],
    description: "Two sizes & a goal.",
    along: "elements",
    panels: [
      {
        title: "CPU time / s",
        lines: [
          {
            name: "machines",
            points: [
              [100, 0.5],
              [10_000, 40],
            ],
          },
          {
            name: "copies",
            points: [
              [100, 0],
              [10_000, 4],
            ],
          },
        ],
        goal: null,
      },
      { title: "memory / MiB", lines: [{ name: "machines", points: [[100, 90]] }], goal: { size: 10_000, value: 300 } },
    ],
  });
  const open: string[] = [];
  for (const [, end, name = "", empty] of svg.matchAll(/<(\/?)([a-z]+)[^<>]*?(\/?)>/g)) {
    if (end === "/") assert.equal(open.pop(), name);
    else if (empty !== "/") open.push(name);
  }
  assert.deepEqual(open, []);
  for (const said of [
    "a &lt; b",
    "commit abc, today",
    "CPU time / s",
    "memory / MiB",
    "machines",
    "copies",
    "elements",
    "10,000",
  ])
    assert.ok(svg.includes(`>${said}</text>`), said);
  assert.match(svg, /<circle/, "the goal");
  assert.doesNotMatch(svg, /NaN|Infinity|undefined|null/);
});
