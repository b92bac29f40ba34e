import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4 } from "../../model/cell/identifiers.ts";
import { announces, announcingTrouble } from "./announced.ts";

const address = (last: number, isRouted = true) => ({
  address: ipv4(`198.18.0.${last}`),
  sinceMs: last === 10 ? 0 : null,
  isRouted,
});

test("a host says what it announces and to whom, and why nobody is told", () => {
  const all = [address(10), address(11)];
  const now = { table: 100, peers: ["192.0.2.1"], addresses: all };
  assert.deepEqual(announces(now), {
    to: ["192.0.2.1"],
    addresses: [
      { address: "198.18.0.10", since: "1970-01-01T00:00:00.000Z" },
      { address: "198.18.0.11", since: null },
    ],
  });
  assert.equal(announcingTrouble(now), null);
  assert.equal(announcingTrouble({ ...now, peers: [], addresses: [] }), null, "there is nothing to tell");
  assert.match(
    announcingTrouble({ ...now, peers: [] }) ?? "",
    /^no router is told of 198\.18\.0\.10 and 1 more: this machine has no BGP connection/,
  );
  assert.match(
    announcingTrouble({ ...now, addresses: [address(10), address(11, false)] }) ?? "",
    /^table 100 has no route for 198\.18\.0\.11, so/,
  );
});
