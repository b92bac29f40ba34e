import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { unitsOfASecond } from "../../model/testing/cpu-unit.testing.ts";
import { hostileTexts } from "../../model/testing/hostile.testing.ts";
import type { HostileOutcome } from "../../model/testing/hostile-process.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";
import type { ReadCosts } from "./specification-process.ts";
import { jsonnetText, smartFrogText, vmsFor } from "./specification-texts.ts";

const reader = fileURLToPath(new URL("specification-process.ts", import.meta.url));
const cells = fileURLToPath(new URL("../../cells", import.meta.url));
const hostileReader = fileURLToPath(new URL("../../model/testing/hostile-process.testing.ts", import.meta.url));

/** Runs a program to its end; its output, and how long the whole process took. */
export function measured(
  command: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly output: string; readonly ms: number }> {
  return new Promise((resolve, reject) => {
    const start = process.hrtime.bigint();
    const child = spawn(command, args, { env: environment, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (data: Buffer) => {
      if (output.length < 100_000) output += data;
    });
    child.stderr.on("data", (data: Buffer) => {
      errors = `${errors}${data}`.slice(-2000);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const ms = Number(process.hrtime.bigint() - start) / 1e6;
      if (code === 0) resolve({ output, ms });
      else reject(new Error(`${command} ${args[0] ?? ""} ended with ${signal ?? code}: ${errors}`));
    });
  });
}

/** A Node process of this repository that finds what V8 compiled before, as every process of an installation does. */
export const measuredNode = (
  cache: string,
  args: readonly string[],
): Promise<{ readonly output: string; readonly ms: number }> =>
  measured(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
    ...process.env,
    NODE_COMPILE_CACHE: cache,
  });

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-specification-"));
  try {
    return [
      ...(await againstJsonnet(directory, quick, say)),
      ...(await growth(directory, quick, say)),
      ...(await hostile(directory, quick, say)),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

type Say = BenchOptions["say"];

async function againstJsonnet(directory: string, quick: boolean, say: Say): Promise<readonly Figure[]> {
  const vms = 5000;
  const [ours, theirs] = [join(directory, "vms.sf"), join(directory, "vms.jsonnet")];
  writeFileSync(ours, smartFrogText(vms));
  writeFileSync(theirs, jsonnetText(vms));
  const environment = { ...process.env, HOME: directory, XDG_CACHE_HOME: join(directory, "cache") };
  const read = async (): Promise<number> => (await measured(cells, ["spec", "check", ours], environment)).ms;
  const evaluate = async (): Promise<number> => (await measured("jsonnet", [theirs, "-o", "/dev/null"])).ms;
  await evaluate().catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT" ? new Error("there is no jsonnet to compare with: apt-get install jsonnet") : error;
  });
  // The first two fill the compile cache.
  await read();
  await read();
  say(`${vms} machines from one template, and jsonnet`);
  const times = await interleave(quick ? 3 : 21, { read, evaluate });
  const against = ratios(times.read, times.evaluate);
  const line = (what: string, values: readonly number[]): Figure => ({
    what,
    unit: "ms",
    value: median(values),
    range: rangeOf(values),
    atMost: null,
  });
  return [
    {
      what: `${vms} VMs: read, resolved and checked, against jsonnet`,
      unit: "×",
      value: median(against),
      range: rangeOf(against),
      atMost: 1,
      note: "whole processes",
    },
    line(`${vms} VMs: ours`, times.read),
    line(`${vms} VMs: jsonnet`, times.evaluate),
  ];
}

async function growth(directory: string, quick: boolean, say: Say): Promise<readonly Figure[]> {
  const sizes = quick ? [20_000, 40_000] : [100_000, 250_000, 500_000, 1_000_000];
  const perAttribute: { readonly size: number; readonly ns: readonly number[] }[] = [];
  for (const size of sizes) {
    say(`${size} attributes`);
    const file = join(directory, `growth-${size}.sf`);
    writeFileSync(file, smartFrogText(vmsFor(size)));
    const ns: number[] = [];
    for (let round = 0; round < (quick ? 1 : 5); round++) {
      const { output } = await measuredNode(join(directory, "compiled"), [reader, file]);
      ns.push(((JSON.parse(output) as ReadCosts).ms * 1e6) / size);
    }
    perAttribute.push({ size, ns });
  }
  const lines = perAttribute.map(
    ({ size, ns }): Figure => ({
      what: `each of ${size.toLocaleString("en")} attributes`,
      unit: "ns",
      value: median(ns),
      range: rangeOf(ns),
      atMost: null,
      note: "CPU time of reading",
    }),
  );
  const [least, most] = [perAttribute[0]?.ns ?? [], perAttribute.at(-1)?.ns ?? []];
  const ratio = median(most) / median(least);
  return [...lines, { what: "most against fewest", unit: "×", value: ratio, range: null, atMost: 1.25 }];
}

const msOfUnit = 1000 / unitsOfASecond;
/**
 * The texts of `model/specification/hostile.test.ts`. What each costs is told in units of work, of which that test holds 100:
 * beside other programs the same work takes twice as much CPU time, and so does the unit.
 */
async function hostile(directory: string, quick: boolean, say: Say): Promise<readonly Figure[]> {
  say("hostile texts");
  let slowest = { name: "", cpuMs: 0, units: 0 };
  let largest = { name: "", memoryMiB: 0 };
  for (const name of Object.keys(hostileTexts).slice(0, quick ? 5 : undefined)) {
    const heap = ["--max-old-space-size=150", "--max-semi-space-size=8"];
    const { output } = await measuredNode(join(directory, "compiled"), [...heap, hostileReader, name]);
    const { cpuMs, units, memoryMiB } = JSON.parse(output) as HostileOutcome;
    if (units > slowest.units) slowest = { name, cpuMs, units };
    if (memoryMiB > largest.memoryMiB) largest = { name, memoryMiB };
  }
  return [
    {
      what: "slowest hostile text",
      unit: "ms",
      value: slowest.units * msOfUnit,
      range: null,
      atMost: 1000,
      note: `CPU time where a unit of work takes ${msOfUnit} ms; ${slowest.cpuMs} ms in this run: ${slowest.name}`,
    },
    {
      what: "largest hostile text",
      unit: "MiB",
      value: largest.memoryMiB,
      range: null,
      atMost: 256,
      note: largest.name,
    },
  ];
}

export const specification: Bench = {
  title: "Reading a specification",
  method:
    "`./cells spec check` as a user runs it, of many VMs made from one template, in turn with Debian's jsonnet evaluating " +
    "the same structure: whole processes. After its first runs ours finds its own code compiled (`cells` keeps that for each user). " +
    "Then the CPU time of reading for each attribute as they become more, and the slowest and the largest of the hostile " +
    "texts of the tests.",
  run,
};
