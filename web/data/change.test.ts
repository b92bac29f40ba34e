import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused } from "./api.ts";
import { prepared } from "./change.ts";

test("what is there already is not written over beside its text", async ({ mock }) => {
  const files = { "shop.sf": "shop extends Cell {\n  net extends Subnet { x.size 8; }\n}\n" };
  const source = { version: 7, main: "shop.sf", files, time: "", who: "", since: [], unknown: 0 };
  const model = { shop: { "x.type": "Cell", net: { "x.type": "Subnet", "x.size": 8 } } };
  mock.method(globalThis, "fetch", async (path: string) =>
    Response.json(path.endsWith("/source") ? source : model, { headers: { etag: '"7"' } }),
  );
  const add = (path: string) => prepared("shop", [{ kind: "add", path, type: "Subnet", attributes: {} }]);
  await assert.rejects(add("shop/net"), (error) => error instanceof Refused && /is there already/.test(error.message));
  assert.equal((await add("shop/other")).method, "PUT");
});
