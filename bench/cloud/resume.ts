import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Agent, Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { buildTinyImage } from "../../image/build.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, rangeOf, ratios } from "../measure.ts";
import type { Started } from "./resume-process.ts";

const goalMs = 600;
const cacheDirectory = process.env.CELLS_CACHE ?? "/var/cache/cells";

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const image = await buildTinyImage({ cacheDirectory, onProgress: say });
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
  // QEMU's user passes through.
  chmodSync(directory, 0o711);
  const machine = await Machine.start();
  const host = new Agent(
    machine,
    join("../../../../../bench", "resume-process.ts"),
    directory,
    dirname(dirname(image)),
  );
  try {
    await host.call("prepare");
    let number = 0;
    const once = async (how: "boot" | "resume", runs: number[]): Promise<number> => {
      number += 1;
      const { orderedMs, runsMs, remark } = await host.call<Started>("start", how, number);
      if (remark !== null) throw new Error(remark);
      say(`${how}: ${orderedMs.toFixed(0)} ms`);
      runs.push(runsMs);
      return orderedMs;
    };
    const [bootRuns, resumeRuns]: [number[], number[]] = [[], []];
    // The first one of an image also reads its saved memory.
    await once("resume", []);
    const { boot, resume } = await interleave(quick ? 1 : 9, {
      boot: () => once("boot", bootRuns),
      resume: () => once("resume", resumeRuns),
    });
    const line = (what: string, values: readonly number[], atMost: number | null, note?: string): Figure => ({
      what,
      unit: "ms",
      value: median(values),
      range: rangeOf(values),
      atMost,
      ...(note === undefined ? {} : { note }),
    });
    return [
      line("a cold boot, to the answer to a ping", boot, null),
      line("from the saved state, to the answer to a ping", resume, goalMs),
      line("of that, until the guest is itself and has its network card", resumeRuns, null),
      {
        what: "from the saved state against a cold boot",
        unit: "×",
        value: median(resume) / median(boot),
        range: rangeOf(ratios(resume, boot)),
        atMost: null,
      },
    ];
  } finally {
    await host.call("stop").catch(() => undefined);
    await host.stop();
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

export const resume: Bench = {
  title: "A machine from the saved state of its image",
  method:
    "One machine of the image `tiny` (128 MiB, one processor) on a new copy of the image's disk, over NBD with TLS, its " +
    "network through the Diverter. The clock runs from the order to start, before the disk is composed and QEMU is launched, " +
    "to the guest's answer to an echo request of its gateway, sent every 10 ms. Boots and resumes in turn.",
  run,
};

/** `node bench/cloud/resume.ts [--quick]` is `./cells bench resume [--quick]`. */
if (import.meta.main)
  // Not awaited: it imports this very module.
  import("../main.ts")
    .then(({ main }) => main(["resume", ...process.argv.slice(2)]))
    .catch((error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exitCode = 2;
    });
