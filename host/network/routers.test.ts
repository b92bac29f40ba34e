import assert from "node:assert/strict";
import { test } from "node:test";
import { cidr, ipv4 } from "../../model/cell/identifiers.ts";
import { routerTrouble } from "./routers.ts";

const router = (address: string, answers: boolean) => ({ address: ipv4(address), mac: null, answers, isUsed: answers });

test("a host tells of upstream routers that do not answer, and whether anything gets outside without them", () => {
  assert.equal(routerTrouble([]), null);
  assert.equal(routerTrouble([router("192.0.2.1", true)]), null);
  assert.match(
    routerTrouble([router("192.0.2.1", false)]) ?? "",
    /^its upstream router 192\.0\.2\.1 does not answer ARP, so nothing/,
  );
  assert.match(
    routerTrouble([router("192.0.2.1", false), router("192.0.2.2", true)]) ?? "",
    /192\.0\.2\.1 does not answer ARP; what goes outside takes another one$/,
  );
  const pools = ["203.0.113.0/24", "192.0.2.0/29"].map((pool) => cidr(pool));
  assert.match(
    routerTrouble([router("192.0.2.1", true)], pools) ?? "",
    /^its upstream router 192\.0\.2\.1 is in the external pool 192\.0\.2\.0\/29, .*: take it out of `x\.pools\.external`/,
  );
  assert.equal(routerTrouble([router("192.0.2.9", true)], pools), null);
  assert.equal(routerTrouble([{ ...router("192.0.2.9", true), from: ipv4("192.0.2.10") }], pools), null);
  assert.match(
    routerTrouble([{ ...router("192.0.2.9", true), from: ipv4("192.0.2.5") }], pools) ?? "",
    /^its own address 192\.0\.2\.5 on the way outside is in the external pool 192\.0\.2\.0\/29/,
  );
});
