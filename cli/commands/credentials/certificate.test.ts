import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { PageCertificate } from "../../../model/contract/operator/page-certificate.ts";
import { failure, scene } from "../model/scene.testing.ts";
import { gatewayCertificate, requestCertificate } from "./certificate.ts";

const none: PageCertificate = { certificate: null, asked: null };
const some: PageCertificate = {
  certificate: {
    names: ["cells.example.com"],
    issuer: "CN=Example",
    from: "2026-01-01",
    until: "2027-01-01",
    chain: 2,
  },
  asked: null,
};

test("a request is printed or written, in small letters", async (t) => {
  const bodies: string[] = [];
  const { context, printed, file } = await scene(t, ({ body }) => {
    bodies.push(body);
    return { status: 200, body: { names: ["cells.example.com"], request: "-----BEGIN\nA\u001b[2J\n" } };
  });
  await requestCertificate(context, ["Cells.Example.com"], {});
  assert.deepEqual(bodies, ['{"names":["cells.example.com"]}']);
  assert.ok(!printed.join("").includes("\u001b"));
  await requestCertificate(context, ["cells.example.com"], { out: file });
  assert.match(readFileSync(file, "utf8"), /^-----BEGIN/);
  assert.match(printed.at(-1) ?? "", /is for cells\.example\.com: once your authority has signed it/);
});

test("what is in force is said, also that nothing is, and why", async (t) => {
  let answer = none;
  const asked: string[] = [];
  const { context, printed, file } = await scene(t, ({ method, url }) => {
    asked.push(`${method} ${url}`);
    return { status: 200, body: answer };
  });
  await gatewayCertificate(context, undefined, {});
  assert.match(printed.at(-1) ?? "", /the installation's own certificate, which they do not know/);
  answer = { certificate: null, asked: ["a.example"], fault: "what was kept cannot be read" };
  await gatewayCertificate(context, undefined, {});
  assert.deepEqual(printed.slice(-2), [
    "what was kept cannot be read",
    "asked for a.example: no answer was put in yet (cells gateway certificate FILE)",
  ]);
  answer = some;
  writeFileSync(file, "PEM");
  await gatewayCertificate(context, file, {});
  assert.match(
    printed.at(-1) ?? "",
    /ask for cells\.example\.com are shown a certificate of CN=Example until 2027-01-01, in a chain/,
  );
  await gatewayCertificate(context, undefined, { remove: true });
  assert.deepEqual(asked.slice(-2), ["PUT /page/certificate", "DELETE /page/certificate"]);
  assert.match((await failure(gatewayCertificate(context, file, { remove: true }))).message, /not both/);
  assert.match((await failure(gatewayCertificate(context, `${file}.not`, {}))).message, /cannot be read/);
  assert.equal(asked.length, 4);
});
