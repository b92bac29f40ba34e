import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import type { Changed } from "../../../model/api.ts";
import { planChange } from "../../../model/plan/plan.ts";
import type { PlanStep } from "../../../model/plan/plan-types.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { patch } from "./patch.ts";
import { type Answer, failure, scene } from "./scene.testing.ts";

const cellOf = (memory: number) => {
  const result = checkDocument({ shop: { "x.type": "Cell", web: { "x.type": "VM", "x.memory": memory } } });
  assert.ok(result.ok);
  return result.value;
};
const grown = planChange(cellOf(128), cellOf(256));
const answer = (version: number, dryRun: boolean, plan = grown): Answer => ({
  status: 200,
  body: { plan, version, dryRun } satisfies Changed,
});
const options = { yes: true, wait: false, timeoutMs: 1000, dryRun: false };
const operations = [
  { op: "test", path: "/shop/web/x.memory", value: 128 },
  { op: "replace", path: "/shop/web/x.memory", value: 256 },
];
const refusal = (status: number, code: string, more: object = {}): Answer => ({
  status,
  body: { error: { code, message: "no", ...more } },
});

test("a patch is planned and sent under the version that it was planned for; a dry run sends none", async (t) => {
  const { context, asked, file, printed } = await scene(t, ({ dryRun }) => answer(4, dryRun));
  writeFileSync(file, JSON.stringify(operations));
  await patch(context, file, { ...options, dryRun: true });
  assert.deepEqual(asked, []);
  assert.match(printed.join("\n"), /shop\/web/);
  await patch(context, file, options);
  assert.deepEqual(asked, ['PATCH /cells/shop/model "4"']);
});

test("what others change beside it is planned anew; another plan, or a test that fails, changes nothing", async (t) => {
  let version = 4;
  let plan = grown;
  let late: Answer | null = null;
  const { context, asked, file } = await scene(t, ({ dryRun }) => {
    if (dryRun) return answer(version, true, plan);
    if (late !== null) return late;
    version += 1;
    return version < 7 ? refusal(412, "version-mismatch") : answer(version, false);
  });
  writeFileSync(file, JSON.stringify(operations));
  await patch(context, file, options);
  assert.deepEqual(
    asked,
    ['"4"', '"5"', '"6"'].map((tag) => `PATCH /cells/shop/model ${tag}`),
  );
  late = refusal(412, "patch/test-failed", { patch: { operation: 0, path: "/shop/web", wanted: 128, found: 64 } });
  assert.match(
    (await failure(patch(context, file, options))).message,
    /nothing was changed: no\n {2}wanted 128\n {2}found {2}64/,
  );
  late = refusal(412, "version-mismatch");
  const sent = asked.length;
  const other = patch(context, file, { ...options, yes: true });
  plan = { steps: grown.steps.map((step): PlanStep => ({ ...step, action: "none" })) };
  assert.match((await failure(other)).message, /nothing was changed: the cell shop is not the one any more/);
  assert.ok(asked.length > sent);
});

test("what is wrong with a file is told before anything is asked", async (t) => {
  const { context, asked, file } = await scene(t, () => refusal(500, "asked"));
  const faults = [
    ["{", /is not JSON/],
    ['[{"op": "merge", "path": "/shop"}]', /operation 0 \(merge "\/shop"\): `op` is one of/],
    ['[{"op": "remove", "path": "/shop/a"}, {"op": "remove", "path": "/bank/a"}]', /name the cell with --cell/],
    ['[{"op": "add", "path": "", "value": {}}]', /name the cell with --cell/],
    ["[]", /name the cell with --cell/],
  ] as const;
  for (const [written, message] of faults) {
    writeFileSync(file, written);
    assert.match((await failure(patch(context, file, options))).message, message);
  }
  assert.match((await failure(patch(context, `${file}.no`, options))).message, /cannot be read/);
  assert.deepEqual(asked, []);
});
