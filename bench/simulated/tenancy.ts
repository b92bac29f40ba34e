import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { percentile, rangeOf } from "../measure.ts";
import type { TenancyReport } from "./tenancy-process.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "tenancy-process.ts");

interface Size {
  readonly domains: number;
  readonly accounts: number;
  readonly users: number;
  readonly repetitions: number;
}
const whole: Size = { domains: 1_000, accounts: 10_000, users: 50_000, repetitions: 2_000 };
const small: Size = { domains: 50, accounts: 500, users: 2_500, repetitions: 200 };

/** With the settings of memory that a service VM's processes have. */
const settings = ["--disable-warning=ExperimentalWarning", "--expose-gc", "--max-semi-space-size=8"];

async function measured({ domains, accounts, users, repetitions }: Size): Promise<TenancyReport> {
  const size = [domains, accounts, users, repetitions].map(String);
  const directory = await mkdtemp(join(tmpdir(), "cells-bench-tenancy-"));
  const store = join(directory, "state.sqlite");
  const of = async (what: string): Promise<string> => {
    const options = { maxBuffer: 64 * 1024 * 1024 };
    return (await run(process.execPath, [...settings, file, what, store, ...size], options)).stdout;
  };
  try {
    await of("make");
    return JSON.parse(await of("measure")) as TenancyReport;
  } finally {
    await rm(directory, { recursive: true });
  }
}

const worst = (what: string, values: readonly number[], atMost: number, note?: string): Figure => ({
  ...{ what, unit: "ms", value: percentile(values, 0.99), range: rangeOf(values), atMost },
  ...(note === undefined ? {} : { note }),
});

async function measureAll({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const size = quick ? small : whole;
  say(`${size.domains} domains, ${size.accounts} accounts, ${size.users} users`);
  const report = await measured(size);
  return [
    worst("first look at a ticket: issued, asked for, answered; p99", report.firstLooksMs, 5),
    worst("a ticket that the controller knows, p99", report.knownMs, 0.02),
    worst("a signed request verified, p99", report.signedMs, 1),
    {
      ...{ what: "the same, processor time of each", unit: "ms", range: null, atMost: 0.2, note: "5,000 a second" },
      value: report.signedCpuMs,
    },
    worst("`cells can`, p99", report.canMs, 1),
    worst(
      "a user disabled until it is said to all who follow him, p99",
      report.takenBackMs,
      1000,
      "of the step; the network is not in it",
    ),
    { ...{ what: "restored from its store", unit: "s", value: report.restoreMs / 1000, range: null, atMost: 3 } },
    { ...{ what: "of that in the heap", unit: "MiB", value: report.heapMiB, range: null, atMost: null } },
    { ...{ what: "resident memory", unit: "MiB", value: report.residentMiB, range: null, atMost: 160 } },
  ];
}

export const tenancy: Bench = {
  title: "Users: the service tenancy",
  method:
    "The step function over a store on disk, in a process of its own that asks it as its edge does: 1,000 domains, 10,000 accounts with a cell each, 50,000 users, a key for every fifth and a session for every tenth, 2,000 of each question. HTTPS and the commit of what is written are not in it. Debian's `keystone` is not measured beside it yet.",
  run: measureAll,
};
