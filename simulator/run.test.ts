import assert from "node:assert/strict";
import { test } from "node:test";
import { boundMs, runHistory } from "./run.ts";
import { parseHistory } from "./world/history.ts";

const small = parseHistory(`
  hosts 2
  servers 1
  seed 3
  at 100 apply c1 vm:a1:256 vm:a2:256:data rule:a1>a2:80
  until 5000
`);

test("a cell is deployed in virtual time and comes to rest", async () => {
  const { faults, settledAfterMs, log } = await runHistory(small, { keepLog: true });
  assert.deepEqual(faults, []);
  assert.equal(settledAfterMs, 500);
  assert.equal([...log.matchAll(/ machine\.h\d+ started /g)].length, 2, "both machines started, once");
});

test("the same history gives the same log to the byte, another seed another one", async () => {
  const [first, second] = [await runHistory(small, { keepLog: true }), await runHistory(small)];
  assert.equal(first.digest, second.digest);
  assert.ok(first.log.length > 1000);
  const other = await runHistory({ ...small, seed: 4 });
  assert.notEqual(first.digest, other.digest);
});

test("machines that wait their turn are waited for, however long that is by their cell's rate", async () => {
  const vms = Array.from({ length: 16 }, (_, at) => `vm:a${at}:64`).join(" ");
  const history = parseHistory(`
    hosts 1
    servers 1
    memory 4096
    at 100 apply c1 ${vms} limit:vmStartsPerMinute:1
    until 2000
  `);
  const { faults, settledAfterMs } = await runHistory(history);
  assert.deepEqual(faults, []);
  assert.ok((settledAfterMs ?? 0) > boundMs, `${settledAfterMs}`);
});

test("what is not as wanted is told: a machine that may not start is missed", async () => {
  const history = parseHistory(`
    hosts 1
    servers 1
    memory 512
    at 100 apply c1 vm:a1:256
    at 150 apply c1 vm:a1:256 vm:a2:256
    until 2000
  `);
  const { faults, settledAfterMs } = await runHistory(history);
  assert.equal(settledAfterMs, null);
  assert.ok(
    faults.some((fault) => fault.includes("c1/a2 runs 0 times")),
    faults.join("\n"),
  );
});
