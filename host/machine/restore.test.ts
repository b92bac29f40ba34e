import assert from "node:assert/strict";
import { test } from "node:test";
import { takeWord } from "./restore.ts";

const known = new Map<string, string | null>([
  ["host.h1", "10.0.1.1:1:1"],
  ["host.h2", null],
  ["agent.h2", "10.0.1.2:2:2"],
  ["gateway", "10.0.0.31:1:1"],
]);
const word = (poweredOff: readonly string[], lostServers: readonly string[] = []) =>
  takeWord({ poweredOff, lostServers }, known, "h1");

test("the operator's word is about every host of the backup, and about servers that it has", () => {
  assert.deepEqual(word(["h2", "h1"]), []);
  assert.throws(() => word(["h1"]), /nobody has said of h2 that nothing runs there.*--powered-off h1,h2$/);
  assert.throws(() => word(["h1", "h2"], ["h1"]), /no storage server h1; it has h2: leave it out/);
  assert.throws(
    () => takeWord({ poweredOff: ["h1", "h2"], lostServers: ["h2"] }, known, "h2"),
    /cannot be lost as well/,
  );
});

test("a host that joined after the backup was made is taken at the operator's word; a name that none can have is not", () => {
  assert.deepEqual(word(["h1", "h9", "h2", "h8"]), ["h8", "h9"]);
  assert.throws(() => word(["h1", "h22"]), /nobody has said of h2 .*--powered-off h1,h2,h22$/, "it was meant for h2");
  for (const name of ["h_9", "host.h9", "10.0.1.9"])
    assert.throws(() => word(["h1", "h2", name]), /no host can have the name/);
});
