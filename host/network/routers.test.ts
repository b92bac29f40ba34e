import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4 } from "../../model/cell/identifiers.ts";
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
});
