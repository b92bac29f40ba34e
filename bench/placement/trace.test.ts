import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { reportOf } from "../measure.ts";
import { type Arrival, arrivalsFrom, arrivalsOfLine, tablesFrom } from "./trace.ts";
import type { TraceReport } from "./trace-process.ts";

const tables = tablesFrom("1,0.75 a\n16,112 d\n", "0 0\n300 1\n600 1\n900 2\n");

test("a line of a trace is VMs with batches, sizes and ends", () => {
  const read = arrivalsOfLine(["600 a,a,|,d,|,a,", "600 U0,U1,|,C38,|,U2,"], 7, tables, "x:1");
  assert.equal(read.batch, 9);
  assert.deepEqual(
    read.arrivals.map(({ batch, cpus, memoryMiB, endsAt }) => [batch, cpus, memoryMiB, endsAt]),
    [
      [7, 1, 768, 600],
      [7, 1, 768, 900],
      [8, 16, 114_688, null],
      [9, 1, 768, 1500],
    ],
  );
  assert.deepEqual(arrivalsOfLine(["600 ", "600 "], 0, tables, "x:1"), { arrivals: [], batch: 0 });
});

test("what is no line of a trace is named, and where", () => {
  for (const [line, sentence] of [
    [["x a,", "x U0,"], 'x:1: seconds expected, found "x"'],
    [["0 a,", "300 U0,"], "x:1: it is about second 0, and its durations about 300"],
    [["0 a,a,", "0 U0,"], "x:1: 3 entries, and 2 durations"],
    [["0 a,|,", "0 U0,U0,"], 'x:1: "|" has duration "U0"'],
    [["0 a,", "0 |,"], 'x:1: U and a bin, or C expected, found "|"'],
    [["0 b,", "0 U0,"], 'x:1: flavours.txt has no flavour "b"'],
    [["0 a,", "0 U9,"], "x:1: duration-bins.txt has no bin 9"],
    [["0 a,", "0 V1,"], 'x:1: U and a bin, or C expected, found "V1"'],
  ] as const)
    assert.throws(() => arrivalsOfLine(line, 0, tables, "x:1"), { message: sentence });
  for (const [flavours, bins, sentence] of [
    ["1 a", "", 'flavours.txt:1: cores, a comma, GB, a space and a flavour expected, found "1 a"'],
    ["1,2 a\n2,2 a", "", "flavours.txt:2: flavour a is there twice"],
    ["1,much a", "", 'flavours.txt:1: GB expected, found "much"'],
    ["", "0 0\n300", 'duration-bins.txt:2: a bin expected, found ""'],
  ] as const)
    assert.throws(() => tablesFrom(flavours, bins), { message: sentence });
});

/** A folder with a trace `t.txt` in it. */
async function withTrace(
  [arrivals, durations]: readonly [string, string],
  use: (file: string, write: (name: string, text: string) => void) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "cells-trace-"));
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  try {
    write("t.txt", arrivals);
    write("t-durations.txt", durations);
    write("flavours.txt", "1,1 a\n16,84 d\n");
    write("duration-bins.txt", "0 0\n300 1\n");
    await use(join(folder, "t.txt"), write);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a trace is read with what lies beside it, in order", () =>
  withTrace(["0 a,|,\n300 a,d,|,\n", "0 U1,|,\n300 C,U0,|,\n"], async (file, write) => {
    const all = async (): Promise<readonly Arrival[]> => {
      const found: Arrival[] = [];
      for await (const arrival of arrivalsFrom(file)) found.push(arrival);
      return found;
    };
    assert.deepEqual(
      (await all()).map(({ second, batch, cpus, endsAt }) => [second, batch, cpus, endsAt]),
      [
        [0, 0, 1, 300],
        [300, 1, 1, null],
        [300, 1, 16, 300],
      ],
    );
    write("t-durations.txt", "0 U1,|,\n");
    await assert.rejects(all, { message: "t.txt:2: there are no durations of it" });
  }));

test("the Placer has a trace's VMs wait where there is no room, and gives them the room of those that end", () =>
  withTrace(["0 d,d,|,d,d,|,\n300 a,|,\n", "0 U1,C,|,C,C,|,\n300 C,|,\n"], async (file) => {
    const program = join(import.meta.dirname, "trace-process.ts");
    const report = await reportOf<TraceReport>(program, file, 1);
    const { arrivals, batches, most, mostWaiting, unlawful, differ, endMs } = report;
    // Three of 84 GiB would fill a host of 256 GiB, less what is kept, and have no room for what each machine takes besides.
    assert.deepEqual(
      { arrivals, batches, most, mostWaiting, unlawful, differ },
      {
        arrivals: 5,
        batches: 3,
        most: 4,
        mostWaiting: 2,
        unlawful: 0,
        differ: 0,
      },
    );
    assert.ok(endMs > 0);
  }));
