import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { presenceKey } from "../presence.ts";
import { documentsOf } from "./table.ts";

const host = peerName("host.h1");
const life = { host: "h1", generation: 1, incarnation: 0 };

test("a document that repeats its key is what was said; one that names another is a fault that says where", () => {
  const read = documentsOf("presence");
  const good = read("actual", host, presenceKey.report("h2"), { ...life, host: "h2" });
  assert.deepEqual(good.ok ? good.value : good.error, { ...life, host: "h2" });
  const other = read("actual", host, presenceKey.report("h2"), { ...life, host: "h3" });
  assert.match(other.ok ? "" : other.error, /host.*"h3".*"h2"/);
  const unknown = read("actual", host, "nothing/h2", life);
  assert.match(unknown.ok ? "" : unknown.error, /nothing is known under such a key/);
});
