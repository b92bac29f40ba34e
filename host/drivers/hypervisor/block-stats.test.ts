import assert from "node:assert/strict";
import { test } from "node:test";
import { uid } from "../../../model/cell/identifiers.ts";
import { octetsOfDisks } from "./block-stats.ts";
import type { Qmp } from "./qmp.ts";

test("a machine's process that does not answer is asked once, keeps nobody waiting again, and counts when it answers", async () => {
  const answers: ((value: unknown) => void)[] = [];
  const qmp: Qmp = { execute: () => new Promise((resolve) => answers.push(resolve)), close: () => undefined };
  const look = async () => [...(await octetsOfDisks([{ vm: uid("ab-1"), qmp }])).values()];
  assert.deepEqual(await Promise.all([look(), look()]), [[], []]);
  const before = performance.now();
  for (let times = 0; times < 3; times += 1) assert.deepEqual(await look(), []);
  assert.ok(performance.now() - before < 1000);
  assert.equal(answers.length, 1);
  const stats = [{ stats: { rd_bytes: 512, wr_bytes: 1024 } }];
  answers[0]?.(stats);
  await new Promise(setImmediate);
  const [one, other] = [look(), look()];
  answers[1]?.(stats);
  assert.deepEqual([await one, await other, answers.length], [[1536], [1536], 2], "who ask at once share one answer");
});
