import assert from "node:assert/strict";
import { test } from "node:test";
import { viaBy, viaIn, viaText } from "./via.ts";

test("what a personality says is kept as it says it, and what is no such word is nothing", () => {
  const via = { personality: "caas", command: "addVolume", id: "b7-_9Zx" };
  assert.equal(viaText(via), "caas;addVolume;b7-_9Zx");
  for (const source of ["192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7", "fe80::1%eth0"]) {
    const said = viaText({ ...via, source });
    assert.equal(viaIn(said), said);
  }
  const by = viaBy(viaText({ ...via, source: "192.0.2.7" }), "t1-42");
  assert.equal(viaIn(by), "caas;addVolume;t1-42_b7-_9Zx;192.0.2.7");
  for (const odd of ["x".repeat(200), "a;b\n", ""]) assert.ok(viaIn(viaBy(viaText(via), odd)) !== undefined, odd);
  const long = "x".repeat(10_000);
  for (const bad of [
    ...["", "caas", "caas;addVolume", "caas;add volume;1", ";;", "Caas;a;1", "caas;a;1;", "caas;a;1;::1;more"],
    ...[
      "caas;a\n;1",
      "caas;a;1\n",
      "caas;\u001b[2J;1",
      `${long};a;1`,
      `caas;${long};1`,
      `caas;a;${long}`,
      `caas;a;1;${long}`,
    ],
  ])
    assert.equal(viaIn(bad), undefined, bad.slice(0, 40));
  assert.equal(viaIn(["caas;a;1", "caas;a;1"]), undefined);
  assert.equal(viaIn(undefined), undefined);
});
