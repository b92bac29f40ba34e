import assert from "node:assert/strict";
import { appendFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "../../model/json/json.ts";
import { openStore } from "./store.ts";

/** The inside of a test in `store.test.ts`: the argument is a small file system of this process's own. */
const [directory = ""] = process.argv.slice(2);
const file = join(directory, "state.sqlite");
const ballast = join(directory, "ballast");
const fill = (): void => {
  for (let step = 1024 * 1024; step >= 4096; ) {
    try {
      appendFileSync(ballast, Buffer.alloc(step, 1));
    } catch {
      step /= 2;
    }
  }
  assert.equal(statfsSync(directory).bavail, 0, "the disk is full");
};
const value = (round: number): Json => ({ text: "x".repeat(500), round });

const zeroth = openStore(file);
zeroth.commit(new Map([["generation", 1]]));
zeroth.close();
// An orderly end has taken the log away: the next life needs its room as well.
const first = openStore(file);
first.commit(new Map([["generation", 2]]));
fill();
first.commit(new Map([["large", "y".repeat(200_000)]]));
first.commit(new Map([["large", null]]));
// Many times over what the log can hold, and as many new documents as a deletion of a large cell makes.
for (let round = 0; round < 2000; round += 1) first.commit(new Map([[`document/${round % 500}`, value(round)]]));
first.commit(new Map([["document/0", null]]));
const kept = first.load().size;
assert.throws(() => {
  for (let round = 0; ; round += 1) first.commit(new Map([[`more/${round}`, value(round)]]));
}, /full/);
assert.ok(first.load().size > kept, "what was committed before is there");
rmSync(ballast);
first.commit(new Map([["document/1", "there is room again"]]));
const all = first.load();
first.close();
const second = openStore(file);
assert.deepEqual(second.load(), all);
assert.equal(all.get("document/1"), "there is room again");
assert.equal(all.has("document/0"), false);
second.close();
