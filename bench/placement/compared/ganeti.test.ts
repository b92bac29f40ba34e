import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { reportOf } from "../../measure.ts";
import type { AlikeReport } from "./alike-process.ts";
import { nodeOf, placedOf } from "./ganeti.ts";

test("what hspace and hail say is read, and what they do not say is an error", () => {
  assert.equal(
    placedOf("HTS_TRL_INST_CNT=30\nHTS_TSPEC='32768,1048576,8,12=30'\nHTS_ALLOC_INSTANCES=12\nHTS_OK=1\n"),
    42,
  );
  assert.throws(() => placedOf("HTS_TRL_INST_CNT=30\n"), { message: "hspace does not say HTS_ALLOC_INSTANCES" });
  assert.equal(nodeOf('{"success":true,"info":"","result":["node-01-015"]}'), "node-01-015");
  assert.throws(() => nodeOf('{"success":false,"info":"no room","result":[]}'), {
    message: "hail finds no node: no room",
  });
});

test("our Placer places what they are asked for, all of it", async () => {
  const { placed, tookMs } = await reportOf<AlikeReport>(join(import.meta.dirname, "alike-process.ts"), 20, 100);
  assert.equal(placed, 100);
  assert.ok(tookMs > 0);
});
