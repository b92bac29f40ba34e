import assert from "node:assert/strict";
import { test } from "node:test";
import type { Figure } from "../bench.ts";
import { renderChart } from "../trace-svg.ts";
import { hostToLose } from "./figure-6-faults.ts";
import { cells, chartOf, controllerFigures, hostFigures, jsonOf, runs, type Trace } from "./figure-6-report.ts";
import { failuresBetween, type Spell, samplesOf } from "./trace.ts";

const spell = (vm: string, host: string, from: number, to: number | null = null): Spell => ({
  vm,
  host,
  fromMs: from * 1000,
  toMs: to === null ? null : to * 1000,
});
const from = { commit: "abc", time: "2026-01-01T00:00Z", machine: "2 × CPU", load: 1, others: 0 };

/** Three VMs for each cell, one each 10 s; the fault is at 19 s; a host's is known for certain at 40 s, and over at 55 s. */
const trace = (spells: readonly Spell[], host: string | null): Trace => {
  const due = [0, 10_000, 20_000];
  const span = { startMs: 0, endMs: 60_000 };
  const cuts = host === null ? [] : [{ host, atMs: 19_000 }];
  return {
    ...span,
    plan: { vmsOfCell: 3, vmsBeforeFault: 2, darkIntervals: 2, tailMs: 0 },
    intervalMs: 10_000,
    happened:
      host === null
        ? { atMs: 19_000, endMs: 40_000, declaredMs: null, overMs: null, cuts }
        : { atMs: 19_000, endMs: 55_000, declaredMs: 27_000, overMs: 40_000, cuts },
    due,
    spells,
    samples: samplesOf(spells, cells, [due, due], span),
    failures: failuresBetween(spells, 19_000, 60_000),
  };
};
const figureOf = (figures: readonly Figure[], pattern: RegExp): number => {
  const found = figures.filter(({ what }) => pattern.test(what));
  assert.equal(found.length, 1, `${pattern} of\n${figures.map(({ what }) => what).join("\n")}`);
  return found[0]?.value ?? Number.NaN;
};

test("of a killed controller: nothing lost, who waited, and that the other cell kept its line", () => {
  const run = trace(
    [
      spell("alpha/m1/vm", "h1", 4),
      spell("beta/m1/vm", "h2", 5),
      spell("alpha/m2/vm", "h3", 14),
      spell("beta/m2/vm", "h1", 15),
      spell("beta/m3/vm", "h2", 26),
      spell("alpha/m3/vm", "h3", 44),
    ],
    null,
  );
  const figures = controllerFigures(run);
  assert.equal(figureOf(figures, /VMs lost of alpha/), 0);
  assert.equal(figureOf(figures, /VMs lost of beta/), 0);
  assert.equal(figureOf(figures, /beta off its own line/), 0.1);
  assert.equal(figureOf(figures, /alpha off its own line/), 2);
  assert.equal(figureOf(figures, /until it answers again/), 21);
  assert.equal(figureOf(figures, /next VM of alpha/), 24);
  const fallen = { ...run, failures: failuresBetween([spell("beta/m1/vm", "h2", 5, 30)], 19_000, 60_000) };
  assert.equal(figureOf(controllerFigures(fallen), /VMs lost of beta/), 1, "a loss would show");
});

test("of a host without power: what was lost, when it came back, and who waited with it", () => {
  const run = trace(
    [
      spell("alpha/m1/vm", "h1", 4, 19),
      spell("beta/m1/vm", "h1", 5, 19),
      spell("alpha/m2/vm", "h3", 14),
      spell("beta/m3/vm", "h2", 25),
      spell("beta/m1/vm", "h3", 48),
      spell("alpha/m1/vm", "h2", 50),
      spell("beta/m2/vm", "h3", 51),
      spell("alpha/m3/vm", "h2", 24),
    ],
    "h1",
  );
  const figures = hostFigures(run);
  assert.equal(figureOf(figures, /VMs lost of alpha/), 1);
  assert.equal(figureOf(figures, /VMs lost of beta/), 1);
  assert.equal(figureOf(figures, /declared dead/), 8);
  assert.equal(figureOf(figures, /from the power cut/), 31);
  assert.equal(figureOf(figures, /fenced after/), 21);
  assert.equal(figureOf(figures, /on another host/), 2);
  assert.equal(figureOf(figures, /waited too/), 1);
  const away = trace([spell("alpha/m1/vm", "h1", 4, 19)], "h1");
  assert.equal(figureOf(hostFigures(away), /from the power cut/), Number.POSITIVE_INFINITY, "one that stays away");
});

test("each is drawn, and what the drawing is made of is JSON", () => {
  for (const name of runs) {
    const run = trace(
      [spell("alpha/m1/vm", "h1", 4, 19), spell("alpha/m1/vm", "h1", 50)],
      name === "host" ? "h1" : null,
    );
    const chart = chartOf(run, name, "commit **abc**");
    const times = chart.marks.map(({ fromSecond }) => fromSecond);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    assert.match(renderChart(chart), /commit abc</);
    const document = JSON.parse(jsonOf(run, chart, from)) as { readonly samples: readonly unknown[] };
    assert.equal(document.samples.length, 61);
    assert.deepEqual(document.samples[10], [10, 1, 0, 2, 2]);
  }
});

test("the host that is lost has VMs of both cells", () => {
  const answering = [
    spell("alpha/m1/vm", "h1", 1),
    spell("alpha/m2/vm", "h1", 1),
    spell("alpha/m3/vm", "h1", 1),
    spell("alpha/m4/vm", "h2", 1),
    spell("beta/m1/vm", "h2", 1),
  ];
  assert.equal(hostToLose(answering, cells), "h2");
  assert.equal(hostToLose(answering.slice(0, 4), cells), "h1");
  assert.throws(() => hostToLose([], cells), /no VM answers/);
});
