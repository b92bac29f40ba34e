import assert from "node:assert/strict";
import { test } from "node:test";
import type { FastifyRequest } from "fastify";
import { peerName } from "../../model/cell/identifiers.ts";
import { createTestInstallation } from "../../runtime/installation.testing.ts";
import { lookFor, onceEach, ownerThere } from "./owner-there.ts";

test("where nobody can say who there is, hosts go to nobody but whom there always is", async (t) => {
  const installation = await createTestInstallation("owner-there");
  t.after(() => installation.remove());
  const { configuration } = await installation.configure(peerName("gateway"));
  const isThere = ownerThere(configuration)({ headers: {}, raw: {} } as unknown as FastifyRequest);
  await isThere({ kind: "domain", path: "ROOT" });
  await isThere({ kind: "account", path: "ROOT/operator" });
  for (const [kind, path] of [
    ["domain", "ROOT/amce"],
    ["account", "ROOT/acme/dve"],
    ["domain", "ROOT/operator"],
  ] as const)
    await assert.rejects(
      isThere({ kind, path }),
      (error: { readonly statusCode: number; readonly message: string }) => {
        assert.equal(error.statusCode, 503);
        assert.match(error.message, new RegExp(`a.* ${path} nobody can say: the service tenancy`));
        return true;
      },
    );
});

test("one that is not there is refused, and who is there is named", async () => {
  const ask = async () => [{ path: "ROOT/acme" }, { path: "ROOT/other" }];
  await lookFor({ kind: "domain", path: "ROOT/acme" }, ask);
  await assert.rejects(
    lookFor({ kind: "domain", path: "ROOT/amce" }, ask),
    /no domain ROOT.amce: there are ROOT.acme, ROOT.other/,
  );
});

test("however many one request asks of, each list is fetched once", async () => {
  const fetched: string[] = [];
  const ask = onceEach(async (path) => {
    fetched.push(path);
    return [{ path: "ROOT/acme" }, { path: "ROOT/other" }];
  });
  for (const path of ["ROOT/acme", "ROOT/other", "ROOT/acme"])
    for (const kind of ["domain", "account"] as const) await lookFor({ kind, path }, ask);
  assert.deepEqual(fetched, ["/domains", "/accounts"]);
});
