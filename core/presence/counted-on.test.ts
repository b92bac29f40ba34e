import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { countsOnSilence } from "./counted-on.ts";

test("silence says something of hosts, of members of Presence to each other, and of storage servers to who has volumes there", () => {
  const pairs = [
    ["host.h1", "presence.1", true],
    ["host.h1", "host.h2", true],
    ["presence.1", "presence.3", true],
    ["ha-manager.2", "host.h1", true],
    ["agent.s1", "ha-manager", true],
    ["agent.s1", "storage-manager.2", true],
    ["controller.shop", "presence.1", false],
    ["controller.shop", "host.h1", true],
    ["placer", "host.h1", true],
    ["controller.host", "presence.1", false],
    ["agent.host", "controller.agent", false],
    ["agent.s1", "presence.2", false],
    ["storage-manager", "ha-manager", false],
    ["directory", "controller.shop", false],
  ] as const;
  for (const [one, other, counts] of pairs)
    for (const [a, b] of [
      [one, other],
      [other, one],
    ] as const)
      assert.equal(countsOnSilence(peerName(a), peerName(b)), counts, `${a}, ${b}`);
});
