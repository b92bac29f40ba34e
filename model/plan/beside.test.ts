import assert from "node:assert/strict";
import { test } from "node:test";
import { besideLines } from "./beside.ts";

test("what is upgraded, which mode holds and what was not checked are said beside a plan, each for itself", () => {
  assert.deepEqual(besideLines({}), []);
  assert.deepEqual(besideLines({ upgraded: [], unchecked: [] }), []);
  const [upgrade, mode, unchecked] = besideLines({
    upgraded: ["root/core1", "root/core2"],
    networkMode: "SYSTEM",
    unchecked: ["hosts"],
  }).map((lines) => lines.join(" "));
  assert.match(
    upgrade ?? "",
    /one at a time, .* until the new one has proved itself: root\/core1, root\/core2\. One .* goes back/,
  );
  assert.match(mode ?? "", /by the mode SYSTEM/);
  assert.match(unchecked ?? "", /hosts\. What could never be had/);
});
