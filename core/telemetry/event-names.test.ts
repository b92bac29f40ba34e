import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventNames, isEventName } from "./event-names.ts";

const root = join(import.meta.dirname, "../..");

/** Names that a source logs. One without an area is that of a part of its process (`logOf`). */
const namesIn = (text: string, area: string): readonly string[] =>
  [
    ...text.matchAll(/\b(?:log|#log)\(\s*(?:[\w.#]+,\s*)?"([a-z-]+(?:\/[a-z-]+)?)"|kind: "log",\s*event: "([^"]+)"/g),
  ].map(([, called = "", pushed]) => pushed ?? (called.includes("/") ? called : `${area}/${called}`));

test("every name that a source logs is in the table, and is made of an area and what happened", () => {
  const files = globSync("{core,runtime,host,gateway,testbed}/**/*.ts", { cwd: root }).filter(
    (file) => !/\.test(ing)?\.ts$/.test(file) && !file.includes("/testing/"),
  );
  const logged = files.flatMap((file) => {
    const area = file.startsWith("host/storage-agent/") ? "agent" : (file.split("/")[0] ?? "");
    return namesIn(readFileSync(join(root, file), "utf8"), area).map((name) => ({ file, name }));
  });
  assert.ok(logged.length > 30, `only ${logged.length} were found: the pattern has gone blind`);
  assert.deepEqual(
    logged.filter(({ name }) => !isEventName(name)),
    [],
  );
  for (const [name, meaning] of Object.entries(eventNames)) {
    assert.match(name, /^[a-z]+\/[a-z]+(-[a-z]+)*$/);
    assert.ok(meaning.length > 10, name);
  }
});

test("a name that is not in the table would be noticed", () => {
  assert.deepEqual(namesIn('log(state.outbox, "a/b", {}); log("c", {}); push({ kind: "log", event: "d/e" })', "host"), [
    "a/b",
    "host/c",
    "d/e",
  ]);
  assert.ok(!isEventName("host/c"));
});
