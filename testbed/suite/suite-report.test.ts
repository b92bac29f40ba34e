import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { LogLine } from "../../core/distribution/node/types.ts";
import type { EventName } from "../../core/telemetry/event-names.ts";
import { lineWriterTo } from "../../runtime/observation/observer.ts";
import { bootsIn } from "./boots.ts";
import { suiteReport } from "./suite-report.ts";

test("the last lines of a run: its stages, its ten slowest files, and what they booted", () => {
  const files = Array.from({ length: 11 }, (_, at) => [String(at * 1000), `core/${at}.test.ts`]);
  const lines = suiteReport({
    stages: [
      ["30", "types"],
      ["870", "the testbed", "62"],
    ],
    files: [...files, ["200000", "testbed/again.test.ts"], ["100000", "testbed/again.test.ts"]],
    boots: [
      ["testbed/again.test.ts", "1", "3"],
      ["testbed/again.test.ts", "1", "3"],
    ],
  });
  assert.deepEqual(lines.slice(0, 6), [
    "== minutes per stage",
    "   0.5 types",
    "  14.5 the testbed (62 % of the processors)",
    "  15.0 all",
    "== the slowest files, in seconds, and what their testbeds booted",
    "   300 testbed/again.test.ts: 2 clouds, 6 guests",
  ]);
  assert.equal(lines.length, 15, "ten files");
  assert.equal(lines.at(-1), "     2 core/2.test.ts");
});

test("a run that failed before any test ran has stages only", () => {
  assert.deepEqual(suiteReport({ stages: [["6", "types"]], files: [], boots: [] }), [
    "== minutes per stage",
    "   0.1 types",
    "   0.1 all",
  ]);
});

test("clouds and guests are counted from a testbed's logs", () => {
  const logs = mkdtempSync(join(tmpdir(), "cells-boots-"));
  try {
    const log = (file: string, ...events: readonly (readonly [EventName, LogLine["fields"]])[]): void => {
      const writer = lineWriterTo({ write: (line) => appendFileSync(join(logs, file), line) });
      for (const [event, fields] of events) writer({ service: "host.h1", event, fields, wallMs: 0 });
    };
    const stage = (incarnation: number, name: string): readonly [EventName, LogLine["fields"]] => [
      "machine/stage",
      { vm: "shop-1", incarnation, stage: name },
    ];
    const up = ["supervisor/started", { members: 9 }] as const;
    log("supervisor.log", up, ["service/started", { pid: 7 }], up);
    appendFileSync(join(logs, "h1.log.1"), '"machine/stage","fields":{"vm":"cut"}}\n');
    log("h1.log.1", stage(1, "starting"));
    log("h1.log", stage(1, "running"), stage(1, "ended"), stage(2, "starting"));
    log("h2.log", ["machine/stage", { vm: "shop-1", stage: "gone" }]);
    assert.deepEqual(bootsIn(logs), { clouds: 2, guests: 2 });
  } finally {
    rmSync(logs, { recursive: true, force: true });
  }
});
