import assert from "node:assert/strict";
import { test } from "node:test";
import { cookieIn, cookieSet, hostFault, pageFault } from "./page-request.ts";

const isOwnName = (name: string): boolean => name === "cloud.example";
const own = { host: "cloud.example", origin: "https://cloud.example", "cells-page": "1" };
const faultOf = (method: string, headers: Record<string, string | undefined>, isEncrypted = true) =>
  pageFault({ method, headers: { ...own, ...headers }, isEncrypted }, isOwnName)?.refusal.code ?? null;

test("what the gateway's own page asks is taken, and nothing that another site can have a browser ask", () => {
  assert.equal(faultOf("POST", {}), null);
  assert.equal(faultOf("GET", { origin: undefined, "cells-page": undefined }), null);
  assert.equal(faultOf("POST", { host: "127.0.0.1:8443", origin: "https://127.0.0.1:8443" }), null);
  assert.equal(faultOf("POST", { host: "[::1]:8443", origin: "https://[::1]:8443" }), null);
  assert.equal(faultOf("POST", { host: "127.0.0.1:80", origin: "http://127.0.0.1:80" }, false), null);
  assert.equal(faultOf("POST", { "sec-fetch-site": "same-origin" }), null);

  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    assert.equal(faultOf(method, { "cells-page": undefined }), "page-foreign", method);
    for (const origin of [
      "https://evil.example",
      "null",
      "",
      undefined,
      "https://cloud.example.evil.example",
      "https://cloud.example:444",
      "http://cloud.example",
      "https://CLOUD.example",
      "cloud.example",
    ])
      assert.equal(faultOf(method, { origin }), "page-foreign", `${method} ${origin}`);
  }
  for (const site of ["cross-site", "same-site"])
    assert.equal(faultOf("GET", { "sec-fetch-site": site }), "page-foreign");
  const rebound = { host: "evil.example", origin: "https://evil.example" };
  for (const method of ["GET", "POST"]) assert.equal(faultOf(method, rebound), "page-host");
});

test("a page is under an address or a name of the certificate, however that is written, and under nothing else", () => {
  for (const host of [
    "cloud.example",
    "cloud.example:443",
    "CLOUD.example",
    "localhost:1",
    "10.0.0.2",
    "[fd00::1]:8443",
  ])
    assert.equal(hostFault(host, isOwnName), null, host);
  for (const host of [
    undefined,
    "",
    "evil.example",
    "cloud.example.evil.example",
    "evil.example:443",
    "cloud.example@evil.example",

    "evil.example#cloud.example",
    "127.0.0.1.evil.example",
    "cloud.example/x",
    "a b",
    `${"a".repeat(10_000)}.example`,
  ])
    assert.equal(hostFault(host, isOwnName)?.statusCode, 403, host?.slice(0, 80));
});

test("the cookie is ours alone: of that name, once, and as we made it", () => {
  const value = "a".repeat(43);
  const given = cookieSet(value, 60);
  assert.equal(given, `__Host-cells=${value}; Max-Age=60; Path=/; HttpOnly; Secure; SameSite=Strict`);
  assert.equal(cookieIn({ cookie: `other=1; __Host-cells=${value}` }), value);
  for (const cookie of [
    "",
    "__Host-cells=",
    "__Host-cells=short",
    `cells=${value}`,
    `__host-cells=${value}`,
    `x__Host-cells=${value}`,
    `__Host-cells=${value}; __Host-cells=${"b".repeat(43)}`,
  ])
    assert.equal(cookieIn({ cookie }), null, cookie);
  assert.equal(cookieIn({}), null);
});
