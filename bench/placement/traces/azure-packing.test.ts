import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { test } from "node:test";
import { numbers, readTrace, withFiles } from "./traces.testing.ts";

type Rows = readonly (readonly SQLInputValue[])[];
/** Type, machine, share of its processors, of its memory. */
const types: Rows = [
  [1, 16, 0.5, 0.25],
  [1, 17, 0.1, 0.1],
  [2, 16, 1, 0.5],
  [3, 17, 0.2, 0.001],
  [3, 18, 0.1, 0.2],
];
function write(file: string, vmTypes: Rows, vms: Rows): void {
  using database = new DatabaseSync(file);
  database.exec(`
    CREATE TABLE vmType (id INTEGER PRIMARY KEY, vmTypeId INTEGER, machineId INTEGER, core REAL, memory REAL);
    CREATE TABLE vm (vmId INTEGER PRIMARY KEY, tenantId INTEGER, vmTypeId INTEGER, priority INTEGER, starttime REAL, endtime REAL)`);
  const type = database.prepare("INSERT INTO vmType (vmTypeId, machineId, core, memory) VALUES (?, ?, ?, ?)");
  for (const each of vmTypes) type.run(...each);
  const vm = database.prepare(
    "INSERT INTO vm (tenantId, vmTypeId, priority, starttime, endtime) VALUES (?, ?, 0, ?, ?)",
  );
  for (const each of vms) vm.run(...each);
}
const withDatabase = (vmTypes: Rows, vms: Rows, use: (file: string) => Promise<void>): Promise<void> =>
  withFiles({}, async (folder) => {
    const file = join(folder, "p.sqlite");
    write(file, vmTypes, vms);
    await use(file);
  });

test("Azure's packing trace: shares of a host, days, and what was there before", () =>
  withDatabase(
    types,
    [
      [7, 2, 0.5, 1],
      [8, 1, -2.25, null],
      [7, 1, 0.5, 0.75],
      [9, 3, -2.25, -1],
    ],
    async (file) => {
      const { all, bad } = await readTrace(file);
      const halfDay = 43_200;
      assert.deepEqual(all.map(numbers), [
        [-194_400, 0, 0, 50, 190, null],
        // Not for the machine that most types have: the largest shares that it has anywhere.
        [-194_400, 1, 1, 20, 140, -86_400],
        [halfDay, 2, 2, 100, 440, 86_400],
        [halfDay, 2, 2, 50, 190, 64_800],
      ]);
      assert.equal(bad.count, 0);
    },
  ));

test("a bad row of it is left out and named, and with a second one it ends", () =>
  withDatabase(
    types,
    [
      [7, 2, 0.5, 0.25],
      [7, 1, 1, null],
    ],
    async (file) => {
      const { all, bad } = await readTrace(file);
      assert.equal(all.length, 1);
      assert.deepEqual(bad.told, ["p.sqlite, row 1 of vm: it ends on day 0.25, before it starts on 0.5"]);
    },
  ));

for (const [what, row, sentence] of [
  ["a type that is none", [7, 5, 0, null], 'vmType has no type "5"'],
  ["no start", [7, 1, null, null], "days expected as starttime, found nothing"],
  ["an end that is no number", [7, 1, 0, "late"], 'days expected as endtime, found "late"'],
  ["no tenant", [null, 1, 0, null], "a tenantId expected, found nothing"],
] as const)
  test(`a row with ${what} says so`, () =>
    withDatabase(types, [row, [7, 1, 1, null], row], (file) =>
      assert.rejects(readTrace(file), (error: Error) => {
        const form =
          /^p\.sqlite, row [13] of vm: (.*) \(with it 2 of [23] lines are none; one in 1000 may be left out\)$/;
        assert.equal(form.exec(error.message)?.[1], sentence);
        return true;
      }),
    ));

test("types with shares that are none, and a database of something else, are refused", async () => {
  await withDatabase([[1, 16, 7, 0.5]], [], (file) =>
    assert.rejects(readTrace(file), {
      message: 'p.sqlite, row 1 of vmType: a share of a machine expected as core, more than 0 and at most 1, found "7"',
    }),
  );
  await withFiles({}, async (folder) => {
    const file = join(folder, "other.sqlite");
    using database = new DatabaseSync(file);
    database.exec("CREATE TABLE other (a)");
    await assert.rejects(readTrace(file), {
      message: "other.sqlite: a database with the tables vm and vmType expected: no such table: vmType",
    });
  });
});
