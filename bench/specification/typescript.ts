import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";
import { measuredNode } from "./specification.ts";
import { smartFrogText, typescriptText } from "./specification-texts.ts";

const cli = fileURLToPath(new URL("../../cli/main.ts", import.meta.url));

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-typescript-"));
  try {
    const vms = quick ? 200 : 5000;
    const [small, typescript, smartFrog] = ["small.ts", "vms.ts", "vms.sf"].map((name) => join(directory, name));
    writeFileSync(small ?? "", typescriptText(1));
    writeFileSync(typescript ?? "", typescriptText(vms));
    writeFileSync(smartFrog ?? "", smartFrogText(vms));
    const cache = join(directory, "compiled");
    const check = (file: string | undefined) => async (): Promise<number> =>
      (await measuredNode(cache, [cli, "spec", "check", file ?? ""])).ms;
    say(`${vms} machines from one function, and from one template`);
    await check(typescript)();
    await check(smartFrog)();
    const rounds = { typescript: check(typescript), smartFrog: check(smartFrog), small: check(small) };
    const times = await interleave(quick ? 1 : 7, rounds);
    const against = ratios(times.typescript, times.smartFrog);
    const line = (what: string, values: readonly number[], atMost: number | null = null): Figure => ({
      what,
      unit: "ms",
      value: median(values),
      range: rangeOf(values),
      atMost,
    });
    return [
      {
        what: `${vms} VMs in TypeScript against SmartFrog`,
        unit: "×",
        value: median(against),
        range: rangeOf(against),
        atMost: 12,
        note: "whole processes of `cells spec check`",
      },
      line(`${vms} VMs: TypeScript`, times.typescript),
      line(`${vms} VMs: SmartFrog`, times.smartFrog),
      line("one VM: TypeScript", times.small),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const typescript: Bench = {
  title: "A specification in TypeScript",
  method:
    "`cells spec check` of many VMs from one function, in turn with the same cell from one SmartFrog template. TypeScript " +
    "is evaluated in QuickJS in a process of its own behind its walls, whose start is in the figure for one VM.",
  run,
};
