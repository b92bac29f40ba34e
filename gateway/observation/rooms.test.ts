import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName } from "../../model/cell/identifiers.ts";
import { leastSpare, mergeRooms, worstLoss } from "./rooms.ts";

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

test("of what Placers say would be lost with a host the worst is told, each VM by its cell's whole name", () => {
  assert.equal(worstLoss([]), null);
  const none = { host, vms: 7, stranded: [] };
  const one = { host: hostName("h2"), vms: 2, stranded: [{ cell: "shop.root", path: "shop/web/vm" }] };
  for (const said of [
    [none, one],
    [one, none],
  ])
    assert.deepEqual(worstLoss(said), { host: "h2", vms: 2, stranded: ["shop.root/web/vm"] });
});

test("of several Placers the one counts that knows least room to be kept", () => {
  const lack = { vms: 1, memoryMiB: 100 };
  assert.equal(leastSpare([]), null);
  assert.deepEqual(leastSpare([{ hosts: 1, lack: null }]), { hosts: 1, lack: null });
  assert.deepEqual(
    leastSpare([
      { hosts: 1, lack: null },
      { hosts: 1, lack },
    ]),
    { hosts: 1, lack },
  );
});
