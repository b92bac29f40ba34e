import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { azureRow } from "./azure-table.ts";
import { numbers, readTrace, withFiles } from "./traces.testing.ts";

/** A row of Azure's table. */
const row = (vm: string, subscription: string, deployment: string, created: number, rest: string): string =>
  `${vm},${subscription},${deployment},${created},${rest}`;
const use = "99.1,3.4,10.2,Delay-insensitive";
const of2017 = [
  row("v/1+a==", "s1", "d1", 600, `900,${use},1,1.75`),
  row("v2", "s2", "d2", 0, `2591700,${use},16,112`),
  row("v3", "s1", "d1", 600, `600,${use},2,3.5`),
  row("v4", "s2", "d3", 300, `,${use},4,7`),
].join("\n");

test("Azure's table of 2017 is put in order of time, with its subscriptions and deployments", () =>
  withFiles({ "vmtable.csv": `${of2017}\n`, "vmtable.csv.gz": gzipSync(of2017) }, async (folder) => {
    for (const name of ["vmtable.csv", "vmtable.csv.gz"]) {
      const { all, bad } = await readTrace(`${folder}/${name}`);
      assert.deepEqual(all.map(numbers), [
        [0, 1, 1, 16, 114_688, 2_591_700],
        [300, 1, 2, 4, 7168, null],
        [600, 0, 0, 1, 1792, 900],
        [600, 0, 0, 2, 3584, 600],
      ]);
      assert.equal(bad.count, 0);
    }
  }));

test("of that of 2019 a bucket counts as its bound, and what is above the last as the power of two after it", () =>
  withFiles(
    { t: [row("a", "s", "d", 5, `9,${use},>24,>64`), row("b", "s", "d", 5, `9,${use},24,32`)].join("\r\n") },
    async (folder) => {
      const { all } = await readTrace(`${folder}/t`);
      assert.deepEqual(
        all.map(({ cpus, memoryMiB }) => [cpus, memoryMiB]),
        [
          [32, 131_072],
          [24, 32_768],
        ],
      );
    },
  ));

test("what is no row of Azure's table is named, and where", () => {
  for (const [line, sentence] of [
    ["", "t:7: 11 values with commas expected, found 0"],
    ["a,b", "t:7: 11 values with commas expected, found 2"],
    [row("a", "", "d", 0, `9,${use},1,1`), "t:7: a subscription expected, found nothing"],
    [row("a", "s", "d", -5, `9,${use},1,1`), 't:7: whole seconds expected as created, found "-5"'],
    [row("a", "s", "d", 0, `soon,${use},1,1`), 't:7: whole seconds expected as deleted, found "soon"'],
    [row("a", "s", "d", 10, `9,${use},1,1`), "t:7: deleted at 9, before it was created at 10"],
    [row("a", "s", "d", 0, `9,${use},many,1`), 't:7: cores expected as 16, 1.75 or >24, more than 0, found "many"'],
    [row("a", "s", "d", 0, `9,${use},1,0`), 't:7: GB expected as 16, 1.75 or >24, more than 0, found "0"'],
  ] as const)
    assert.throws(() => azureRow(line, "t:7"), { message: sentence });
});

test("one row in a thousand may be none, and with the next one it ends", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, at) => row(`v${at}`, "s", "d", at, `,${use},1,1`));
  const lines = [...rows(500), "vmid,created", ...rows(1000)];
  return withFiles({ good: lines.join("\n"), bad: lines.with(600, "x,y").join("\n") }, async (folder) => {
    const { all, bad } = await readTrace(`${folder}/good`);
    assert.equal(all.length, 1500);
    assert.deepEqual(bad.told, ["good:501: 11 values with commas expected, found 2"]);
    await assert.rejects(readTrace(`${folder}/bad`), {
      message:
        "bad:601: 11 values with commas expected, found 2 (with it 2 of 601 lines are none; one in 1000 may be left out)",
    });
  });
});

test("many rows are kept and put in order", () => {
  const count = 5000;
  const lines = Array.from({ length: count }, (_, at) =>
    row(`v${at}`, "s", `d${at}`, (at * 7919) % count, `,${use},1,1`),
  );
  return withFiles({ t: lines.join("\n") }, async (folder) => {
    const { all } = await readTrace(`${folder}/t`);
    assert.deepEqual(
      all.map(({ second, group }) => [second, (group * 7919) % count]),
      Array.from({ length: count }, (_, at) => [at, at]),
    );
  });
});
