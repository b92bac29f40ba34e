import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, rangeOf } from "../measure.ts";
import { measuredNode } from "./specification.ts";
import type { ReadCosts } from "./specification-process.ts";
import { elementsText } from "./specification-texts.ts";

const reader = fileURLToPath(new URL("specification-process.ts", import.meta.url));

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-plan-"));
  try {
    const elements = quick ? 1000 : 10_000;
    const [from, to] = [join(directory, "from.sf"), join(directory, "to.sf")];
    writeFileSync(from, elementsText(elements, 64));
    writeFileSync(to, elementsText(elements, 128));
    say(`${elements} elements`);
    const ms: number[] = [];
    const checked: number[] = [];
    for (let round = 0; round < (quick ? 2 : 11); round++) {
      const { output } = await measuredNode(join(directory, "compiled"), [reader, from, to]);
      const { ms: planned, checkMs = 0 } = JSON.parse(output) as ReadCosts;
      ms.push(planned);
      checked.push(planned + checkMs);
    }
    const note = `${elements.toLocaleString("en")} elements on either side, a tenth of the machines changed`;
    const line = (what: string, values: readonly number[], why?: string): Figure => ({
      what,
      unit: "ms",
      value: median(values),
      range: rangeOf(values),
      atMost: 300,
      ...(why === undefined ? {} : { note: why }),
    });
    return [line("plan", ms, note), line("plan and the check of it", checked)];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const plan: Bench = {
  title: "A plan between two large cells",
  method:
    "The time of one plan, the first of its process, so that nothing of it was compiled for speed before; a process for " +
    "each measurement.",
  run,
};
