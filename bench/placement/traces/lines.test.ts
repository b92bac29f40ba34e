import assert from "node:assert/strict";
import { test } from "node:test";
import { arrivalsOfLine, tablesFrom } from "./lines.ts";
import { readTrace, withFiles } from "./traces.testing.ts";

const tables = tablesFrom("1,0.75 a\n16,112 d\n", "0 0\n300 1\n600 1\n900 2\n");

test("a line of a trace is VMs with batches, sizes and ends", () => {
  const read = arrivalsOfLine(["600 a,a,|,d,|,a,", "600 U0,U1,|,C38,|,U2,"], 7, tables, "x:1");
  assert.equal(read.batch, 9);
  assert.deepEqual(
    read.arrivals.map(({ group, cpus, memoryMiB, endsAt }) => [group, cpus, memoryMiB, endsAt]),
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

const beside = { "flavours.txt": "1,1 a\n16,84 d\n", "duration-bins.txt": "0 0\n300 1\n" };
const [arrivals, durations] = ["0 a,|,\n300 a,d,|,\n", "0 U1,|,\n300 C,U0,|,\n"];

test("a trace of lines is read with what lies beside it, in order", () =>
  withFiles({ ...beside, "t.txt": arrivals, "t-durations.txt": durations }, async (folder) => {
    const { all, bad } = await readTrace(`${folder}/t.txt`);
    assert.deepEqual(
      all.map(({ second, account, group, cpus, endsAt }) => [second, account, group, cpus, endsAt]),
      [
        [0, 0, 0, 1, 300],
        [300, 1, 1, 1, null],
        [300, 1, 1, 16, 300],
      ],
    );
    assert.equal(bad.count, 0);
  }));

test("one bad line is left out and named, and no batch goes on over it", () =>
  withFiles(
    { ...beside, "t.txt": "0 a,\n300 b,|,\n600 a,|,\n", "t-durations.txt": "0 C,\n300 C,|,\n600 C,|,\n" },
    async (folder) => {
      const { all, bad } = await readTrace(`${folder}/t.txt`);
      assert.deepEqual(
        all.map(({ second, group }) => [second, group]),
        [
          [0, 0],
          [600, 1],
        ],
      );
      assert.deepEqual(bad.told, ['t.txt:2: flavours.txt has no flavour "b"']);
    },
  ));

test("lines and durations that are not as many, or that go back in time, are refused", async () => {
  for (const [lines, how, message] of [
    [arrivals, "0 U1,|,\n", "t.txt:2: there are no durations of it"],
    ["0 a,|,\n", durations, "t.txt: there are more durations than lines of it"],
    [
      "300 a,|,\n0 a,|,\n0 a,|,\n",
      "300 C,|,\n0 C,|,\n0 C,|,\n",
      "t.txt:3: second 0 comes after 300 (with it 2 of 3 lines are none; one in 1000 may be left out)",
    ],
  ] as const)
    await withFiles({ ...beside, "t.txt": lines, "t-durations.txt": how }, (folder) =>
      assert.rejects(readTrace(`${folder}/t.txt`), { message }),
    );
});
