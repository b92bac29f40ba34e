import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed } from "../../../model/api.ts";
import { assertConforms } from "../../../model/contract/testing/conforms.testing.ts";
import type { ModelSource, ModelVersion, ModelVersions } from "../../../model/contract/versions.ts";
import { planChange } from "../../../model/plan/plan.ts";
import { readSpecification } from "../../../model/specification/specification.ts";
import { type Answer, failure, type Gateway, scene } from "./scene.testing.ts";
import { diff, rollback, versions } from "./versions.ts";

const texts: Readonly<Record<number, string>> = {
  1: "shop extends Cell {\n  // small\n  web extends VM { x.memory 128; }\n}\n",
  2: "shop extends Cell {\n  // as large as ann wants it\n  web extends VM { x.memory 256; }\n}\n",
};
const time = "2026-11-27T10:00:00.000Z";
const sent = (version: number): ModelVersion => ({
  version,
  time,
  who: "ann@ROOT/acme",
  account: "ROOT/acme/dev",
  verb: "putModel",
  target: "shop",
  changes: { restart: 1 },
  parts: [{ path: "shop/web", action: "restart" }],
  text: { main: "shop.sf", characters: 70 },
});
const patched: ModelVersion = {
  version: 3,
  time,
  who: "op\u001b[31merator",
  verb: "patchModel",
  target: "shop",
  changes: { delete: 1 },
  parts: [{ path: "shop/db", action: "delete" }],
  lost: ["shop/db"],
};
const list: ModelVersions = { version: 3, versions: [patched, sent(2), sent(1)] };
const sourceOf = (version: number): ModelSource => ({
  main: "shop.sf",
  files: { "shop.sf": texts[version] ?? "" },
  version,
  time,
  who: "ann@ROOT/acme",
  since: [patched],
  unknown: 2,
});
const cellOf = (version: number) => {
  const read = readSpecification({ main: "shop.sf", files: { "shop.sf": texts[version] ?? "" } });
  assert.ok(read.ok);
  return read.value;
};
const ok = (body: unknown): Answer => ({ status: 200, body });
const bodies: string[] = [];
const gateway: Gateway = ({ method, url, dryRun, body }) => {
  if (url === "/cells/shop/versions") return ok(list);
  if (url.startsWith("/cells/shop/source")) {
    const version = Number(/version=(\d+)/.exec(url)?.[1] ?? 2);
    if (version in texts) return ok(sourceOf(version));
    const message = `the version ${version} of shop has no text: operator made it by patchModel of shop; there are texts of 1, 2`;
    return { status: 404, body: { error: { code: "not-found", message } } };
  }
  assert.equal(method, "PUT");
  bodies.push(body);
  return ok({ plan: planChange(cellOf(2), cellOf(1)), version: 3, dryRun } satisfies Changed);
};

test("what the examples answer is what the contract says", () => {
  for (const [url, value] of [
    ["/cells/shop/versions", list],
    ["/cells/shop/source", sourceOf(2)],
  ] as const)
    assertConforms("GET", url, { status: 200, type: "application/json", text: JSON.stringify(value) });
});

test("versions are shown with who sent them, as what, and what came of it", async (t) => {
  const { context, printed } = await scene(t, gateway);
  await versions(context, "shop");
  const [head = "", first = "", second = ""] = printed;
  assert.match(head, /^VERSION +SINCE +BY +SENT AS +ITS PLAN$/);
  assert.match(first, /^3 +2026-.* +patchModel shop +1 deleted; the data of shop\/db went$/);
  assert.ok(!printed.join("\n").includes("\u001b"));
  assert.match(second, /^2 .* ann@ROOT\/acme +shop\.sf +1 restarted$/);
  printed.length = 0;
  await versions({ ...context, json: true }, "shop");
  assert.deepEqual(JSON.parse(printed.join("\n")), list);
});

test("texts are compared, and what was changed in other ways since is told", async (t) => {
  const { context, printed } = await scene(t, gateway);
  await diff(context, "shop");
  const text = printed.join("\n");
  assert.match(text, /^--- 1\/shop\.sf\n\+\+\+ 2\/shop\.sf\n@@ -1,4 \+1,4 @@\n shop extends Cell \{\n- {2}\/\/ small/);
  assert.match(
    text,
    /Changed since the text of version 2 of shop, and not in it:\n {2}version 3, patchModel by .*: shop\/db \(delete\)/,
  );
  assert.match(text, /2 changes that are not kept/);
  printed.length = 0;
  await diff({ ...context, json: true }, "shop", "2", "1");
  const { from, to, files, since } = JSON.parse(printed.join("\n"));
  assert.deepEqual([from, to, files[0].file, files[0].lines.length, since], [2, 1, "shop.sf", 9, []]);
  printed.length = 0;
  await diff(context, "shop", "2", "2");
  assert.deepEqual(printed, ["the texts of 2 and 2 are the same"]);
});

test("an earlier text is planned and applied as if it were a file, and by nothing else than its plan", async (t) => {
  const { context, printed, asked } = await scene(t, gateway);
  await rollback(context, "shop", "1", { dryRun: true, yes: false, wait: false, timeoutMs: 1000 });
  assert.deepEqual(asked, []);
  assert.match(printed.join("\n"), /Back to version 1 of shop, shop\.sf:[\s\S]*x\.memory/);
  bodies.length = 0;
  await rollback(context, "shop", undefined, { dryRun: false, yes: true, wait: false, timeoutMs: 1000 });
  assert.deepEqual(asked, ['PUT /cells/shop/model "3"']);
  assert.deepEqual(JSON.parse(bodies.at(-1) ?? "").files, { "shop.sf": texts[2] }, "the newest before the patch");
});

test("what cannot be returned to is refused with the reason, and nothing is changed", async (t) => {
  const { context, asked } = await scene(t, gateway);
  const options = { dryRun: false, yes: true, wait: false, timeoutMs: 1000 };
  const refused = async (version: string) => await failure(rollback(context, "shop", version, options));
  assert.match((await refused("3")).message, /has no text: operator made it by patchModel/);
  for (const word of ["-1", "one", "1e3", "x".repeat(10_000)]) {
    const { exitCode, message } = await refused(word);
    assert.deepEqual(
      [exitCode, message.includes("is no version: `cells versions CELL` shows their numbers")],
      [2, true],
    );
  }
  assert.match((await failure(rollback(context, "shop", "1", { ...options, yes: false }))).message, /add --yes/);
  assert.deepEqual(asked, []);
});
