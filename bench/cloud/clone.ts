import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VolumeFiles } from "../../host/storage-agent/volume-files.ts";
import { ipv4, uid } from "../../model/cell/identifiers.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, percentile, ratios } from "../measure.ts";

/** GiB: a clone's size is its origin's. */
const sizes = [1, 32, 1024] as const;

async function run({ quick }: BenchOptions): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "cells-bench-"));
  try {
    // The storage user passes through.
    chmodSync(directory, 0o711);
    const files = new VolumeFiles({ directory, imagesDirectory: directory, address: ipv4("127.0.0.1"), httpPort: 1 });
    await files.prepare();
    const clone = (gib: number) => async (): Promise<number> => {
      const volume = uid(`${randomBytes(4).toString("hex")}-1`);
      const start = performance.now();
      await files.create(volume, { kind: "overlay" }, gib * 1024);
      const spent = performance.now() - start;
      await files.remove(volume, { about: null, overlay: true, manager: null });
      return spent;
    };
    const [small, middle, large] = sizes;
    const variants = { small: clone(small), middle: clone(middle), large: clone(large) };
    await interleave(2, variants);
    const measured = await interleave(quick ? 4 : 60, variants);
    const line = (gib: number, values: readonly number[]): Figure => ({
      what: `a clone of ${gib} GiB`,
      unit: "ms",
      value: median(values),
      range: [percentile(values, 0.1), percentile(values, 0.9)],
      atMost: 20,
    });
    const each = ratios(measured.large, measured.small);
    return [
      line(small, measured.small),
      line(middle, measured.middle),
      line(large, measured.large),
      {
        what: `${large} GiB against ${small} GiB`,
        unit: "×",
        value: median(measured.large) / median(measured.small),
        range: [percentile(each, 0.1), percentile(each, 0.9)],
        atMost: 1.5,
        note: "flat",
      },
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export const clone: Bench = {
  title: "Clone of a volume at the storage agent",
  method:
    "From the agent's order to a file that is on the disk and may be served, synchronised; wall time, sizes in turn; " +
    "the range is from the 10th to the 90th percentile.",
  run,
};
