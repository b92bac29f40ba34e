import assert from "node:assert/strict";
import type { AuditRecord, AuditView } from "../../model/contract/audit/audit.ts";
import { viaHeader, viaText } from "../../model/contract/audit/via.ts";

/** What a personality says of a request stands in the record of what it did, at whichever service, and opens nothing. */
export async function tryVia(url: string, operator: string, user: string): Promise<void> {
  const ask = async (line: string, body: object | null, headers: Readonly<Record<string, string>>) => {
    const [method = "GET", path = "/"] = line.split(" ");
    const sent = body === null ? {} : { body: JSON.stringify(body) };
    return fetch(url + path, { method, headers: { "content-type": "application/json", ...headers }, ...sent });
  };
  const last = async (service: string): Promise<AuditRecord | undefined> => {
    const headers = { authorization: `Bearer ${operator}` };
    const view = (await (await ask(`GET /audit?service=${service}`, null, headers)).json()) as AuditView;
    return view.records.at(-1);
  };
  const via = viaText({ personality: "caas", command: "putModel", id: "b7-_9", source: "192.0.2.7" });
  const put = async (note: string, said: string, authorization = `Bearer ${user}`): Promise<number> =>
    (await ask("PUT /cells/shop/model", { shop: { "x.type": "Cell", note } }, { authorization, [viaHeader]: said }))
      .status;
  assert.equal(await put("by a personality", via), 200);
  const its = await last("controller.shop");
  assert.deepEqual(
    [its?.verb, its?.via, its?.source],
    ["putModel", via, "127.0.0.1"],
    "the gateway's word stands beside",
  );
  for (const [at, bad] of ["caas", "caas;put model;1", `caas;${"x".repeat(65)};1`, `${via};more`].entries()) {
    assert.equal(await put(`${at}`, bad), 200);
    assert.equal((await last("controller.shop"))?.via, undefined, bad);
  }
  assert.equal(await put("nobody", via, "Bearer nobody"), 401, "it opens nothing");
  const headers = { authorization: `Bearer ${operator}`, [viaHeader]: via };
  assert.equal((await ask("POST /domains", { path: "ROOT/by-a-door" }, headers)).status, 200);
  const made = await last("tenancy");
  assert.deepEqual([made?.verb, made?.via], ["addDomain", via]);
}
