import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, mac } from "../../model/cell/identifiers.ts";
import { canRun, Machine } from "../drivers/network/diverter/testing/namespaces.testing.ts";
import { askNeighbour, type Ip } from "./neighbours.ts";

test("a machine answers its neighbour whatever runs on it, another MAC is not taken for it, and a cut one is silent", {
  skip: !canRun() && "needs root and namespaces",
}, async () => {
  const [here, there] = [await Machine.start(), await Machine.start()];
  try {
    const own = mac("02:00:00:00:01:02");
    here.cable("one", there, "two", own);
    here.run("ip", "address", "add", "10.9.0.1/24", "dev", "one");
    there.run("ip", "address", "add", "10.9.0.2/24", "dev", "two");
    await here.untilUp("one");
    const ip: Ip = async (args) => here.run("ip", ...args);
    const ask = (at = own) => askNeighbour({ address: ipv4("10.9.0.2"), mac: at }, "one", ip);
    assert.equal(await ask(), own);
    assert.notEqual(await ask(mac("02:00:00:00:09:09")), mac("02:00:00:00:09:09"), "nobody has that MAC");
    assert.equal(await ask(), own, "again, though it was asked for at another one");
    there.run("ip", "address", "del", "10.9.0.2/24", "dev", "two");
    assert.equal(await ask(), null, "nobody has the address any more");
  } finally {
    await here.stop();
    await there.stop();
  }
});
