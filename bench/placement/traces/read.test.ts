import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Ends } from "./ends.ts";
import { seeded } from "./read.ts";
import { readTrace, withFiles } from "./traces.testing.ts";

test("a file that is none of the four formats is refused with what is expected, and one that is not there by its name", async () => {
  await withFiles({ "hosts.txt": "127.0.0.1 localhost\n" }, (folder) =>
    assert.rejects(readTrace(`${folder}/hosts.txt`), {
      message:
        'hosts.txt: in its first lines there is neither "seconds flavour,flavour,|,…" nor a row of Azure\'s vmtable.csv (11 values with commas), and it is no database of SQLite',
    }),
  );
  await assert.rejects(readTrace("/nowhere/t.csv"), { code: "ENOENT" });
});

test("a packed table that was cut is an error, not a shorter trace", () => {
  const rows = Array.from({ length: 2000 }, (_, at) => `v${at},s,d,${at},,1,1,1,Unknown,1,${1 + (at % 7)}`);
  const packed = gzipSync(rows.join("\n"));
  return withFiles({ "t.gz": packed.subarray(0, packed.length - 2000) }, (folder) =>
    assert.rejects(readTrace(`${folder}/t.gz`), { message: /unexpected end of file/ }),
  );
});

test("the seeded generator gives the same VMs each time, in order, each of a size and with an end", async () => {
  const [{ all }, { all: again }] = [await readTrace(seeded(2000)), await readTrace(seeded(2000))];
  assert.deepEqual(all, again);
  assert.equal(all.length, 2000);
  let before = 0;
  for (const { second, cpus, memoryMiB, endsAt } of all) {
    assert.ok(second >= before && cpus >= 1 && memoryMiB >= 768 && (endsAt ?? 0) > second);
    before = second;
  }
  const groups = Map.groupBy(all, ({ group }) => group);
  assert.ok(groups.size > 100);
  assert.ok([...groups.values()].every((each) => new Set(each.map(({ account }) => account)).size === 1));
});

test("what ends comes out in order, and not before its time", () => {
  const ends = new Ends();
  const seconds = Array.from({ length: 300 }, (_, at) => (at * 7919) % 101);
  for (const [vm, second] of seconds.entries()) ends.add(second, vm);
  const first = [...ends.until(40)].map((vm) => seconds[vm] ?? 0);
  assert.deepEqual(
    first,
    seconds.filter((second) => second <= 40).sort((one, other) => one - other),
  );
  assert.deepEqual([...ends.until(40)], []);
  assert.equal([...ends.until(100)].length, 300 - first.length);
});
