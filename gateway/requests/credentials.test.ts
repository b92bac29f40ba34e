import assert from "node:assert/strict";
import { test } from "node:test";
import { hashCredential, newCredential } from "../../runtime/http/bearer.ts";
import { beyondScope, isPlainPath, scopeOf } from "./credentials.ts";

const operator = [hashCredential("open-sesame")];
const { credential } = newCredential("shop");

test("the operator's credential opens everything, a cell's that cell alone", () => {
  const all = scopeOf("Bearer open-sesame", operator);
  const own = scopeOf(`Bearer ${credential}`, operator);
  assert.deepEqual([all, own], [{ kind: "operator" }, { kind: "cell", cell: "shop" }]);
  assert.ok(all !== null && own !== null);
  for (const path of ["/status", "/cells", "/cells/shop/model", "/cells/other/model", "/images/tiny"])
    assert.equal(beyondScope(all, "GET", path), null);
  for (const path of ["/cells", "/cells?x=1", "/cells/shop", "/cells/shop/model/shop/web?state=true"])
    assert.equal(beyondScope(own, "GET", path), null, path);
  assert.match(beyondScope(own, "GET", "/cells/other/model") ?? "", /of the cell "shop" and opens no other.*"other"/);
  for (const path of [
    "/status",
    "/metrics",
    "/events",
    "/images",
    "/orphans",
    "/orphans/controller.shop",
    "/bin",
    "/servers/s1/adopt",
    "/bin/s1/ab-1.1",
    "/cells/",
    "/cells/shop2",
    "/cells/%73hop",
    "//cells/shop",
  ])
    assert.notEqual(beyondScope(own, "GET", path), null, path);
  assert.notEqual(beyondScope(own, "DELETE", "/cells"), null);
});

test("what is no credential has no scope", () => {
  const wrong = [
    undefined,
    "",
    "Bearer",
    "Bearer wrong",
    `Basic ${credential}`,
    `Bearer ${credential}x`,
    "Bearer shop.1.2",
  ];
  for (const header of wrong) assert.equal(scopeOf(header, operator), null, String(header));
});

test("a user's session opens what the table of routes gives it, and below a cell what its controller may serve", () => {
  const user = { kind: "account", account: "ROOT/dev" } as const;
  for (const [method, path] of [
    ["GET", "/cells"],
    ["GET", "/whoami?x=1"],
    ["PUT", "/cells/shop/model"],
    ["POST", "/cells/shop/what-comes-next"],
  ] as const)
    assert.equal(beyondScope(user, method, path), null, path);
  for (const [method, path] of [
    ["GET", "/status"],
    ["HEAD", "/status"],
    ["GET", "/status#x"],
    ["GET", "http://x/status"],
    ["GET", "//status"],
    ["POST", "/ha/release#"],
    ["DELETE", "/images/tiny#x"],
    ["GET", "/%73tatus"],
  ] as const)
    assert.notEqual(beyondScope(user, method, path), null, `${method} ${path}`);
});

test("a path that two may read differently is none", () => {
  for (const url of ["/", "/cells", "/cells?follow=true", "/can?path=http://x/"]) assert.ok(isPlainPath(url), url);
  for (const url of ["", "*", "cells", "http://x/cells", "/cells#x", "/cells?x#y"]) assert.ok(!isPlainPath(url), url);
});
