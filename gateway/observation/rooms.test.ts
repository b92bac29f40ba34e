import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../model/cell/identifiers.ts";
import { mergeRooms } from "./rooms.ts";

const host = hostName("h1");
const web = { cell: "shop", path: "shop/web/vm", to: "h2", reason: null };
const db = { ...web, path: "shop/db/vm" };

test("each Placer's VMs are told of, and one that has heard the operator is enough", () => {
  const merged = mergeRooms([
    { host, leaving: [] },
    { host, closed: "maintenance", leaving: [web] },
    { host, closed: "maintenance", leaving: [db] },
    { host: hostName("h2"), leaving: [] },
  ]);
  assert.deepEqual(merged.get("h1"), { administration: "maintenance", leaving: [web, db] });
  assert.deepEqual(merged.get("h2"), {});
});
