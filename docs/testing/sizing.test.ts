import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { machineShares } from "../../core/placer/machine-memory.ts";
import { readBundle, readRoot } from "../../host/bootstrap/bootstrap.ts";
import { overheadMiB } from "../../host/service/planner.ts";
import { sizes } from "../../image/service-states.ts";
import { processMetrics } from "../../runtime/observation/metrics.ts";
import { createServiceNumbers } from "../../runtime/observation/service-numbers.ts";

/** What docs/sizing.md says of sizes follows from the specifications and the code that it is about. */
const page = readFileSync(join(import.meta.dirname, "../sizing.md"), "utf8");
const root = join(import.meta.dirname, "../../examples/root");

const memories = async (file: string): Promise<readonly number[]> => {
  const { elements } = readRoot(await readBundle(join(root, file)));
  return [...elements.values()].flatMap((element) => (element.type === "VM" ? [element.memoryMiB] : []));
};
const shown = (mib: number): string => mib.toLocaleString("en");
const controllerMiB = 160;
const nothing = { queued: 0, timers: 0, storeBytes: 0 };

test("what each profile sets aside is the sum of its VMs and their machines", async () => {
  const primary = [...(await memories("primary.sf")), controllerMiB];
  for (const profile of ["small", "large"]) {
    const all = [...(await memories(`${profile}.sf`)), ...primary];
    const guests = all.reduce((sum, each) => sum + each, 0);
    const counted = all.reduce((sum, each) => sum + each + machineShares(each) * overheadMiB, 0);
    const [row = ""] = page.split("\n").filter((line) => line.startsWith(`| \`${profile}\` |`));
    assert.ok(row.endsWith(`| ${shown(guests)} MiB | ${shown(counted)} MiB |`), `${guests} and ${counted}: ${row}`);
  }
  assert.ok(page.includes(`| ${controllerMiB} MiB | ${controllerMiB + overheadMiB} MiB |`));
});

test("the sizes that start quickly are those that are saved", () => {
  const rows = [...page.matchAll(/^\| (\d+) MiB \| (\d) \| /gm)].map(([, memory, cpus]) => `${memory} ${cpus}`);
  assert.deepEqual(
    rows,
    sizes.map(({ memoryMiB, cpus }) => `${memoryMiB} ${cpus}`),
  );
});

test("the numbers that it tells to look at are there", async () => {
  const known = new Set(
    [...(await processMetrics()), ...createServiceNumbers(() => undefined).metrics(nothing)].map(({ name }) => name),
  );
  const named = [...page.matchAll(/`((?:cells|nodejs|process)_[a-z_]+)`/g)].map(([, name = ""]) => name);
  assert.ok(named.length >= 3);
  assert.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
});
