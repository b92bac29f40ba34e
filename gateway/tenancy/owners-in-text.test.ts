import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { Json } from "../../model/json/json.ts";
import type { PeerResponse } from "../../runtime/http/https.ts";
import type { Forwarded } from "../requests/forward.ts";
import { refused } from "../requests/refused.ts";
import { givesHosts, requireOwners } from "./owners-in-text.ts";

const what: Forwarded = {
  method: "PATCH",
  url: "/cells/root/model?allowDestroy=root%2Fdisk",
  headers: { authorization: "Bearer x", "idempotency-key": "once" },
  body: Buffer.from("[]"),
  signal: new AbortController().signal,
  source: "",
  follows: false,
};
const answer = (status: number, body: Json | string): PeerResponse =>
  ({
    status,
    headers: {},
    body: Readable.from([Buffer.from(typeof body === "string" ? body : JSON.stringify(body))]),
  }) as unknown as PeerResponse;
const owner = { kind: "account", path: "ROOT/acme/dve" } as const;
const gives = {
  dedicates: ["z1", "z2"].map((of) => ({ path: "root/dedications/racks", of, to: owner })),
  plan: {},
  dryRun: true,
};

test("whom a change of the root cell gives hosts to is looked up before it is made, whoever sends it", async () => {
  const asked: Forwarded[] = [];
  const looked: unknown[] = [];
  const ask = async (each: Forwarded): Promise<PeerResponse> => {
    asked.push(each);
    return answer(200, gives as unknown as Json);
  };
  await requireOwners(what, ask, async (to) => void looked.push(to));
  assert.deepEqual(looked, [owner], "though two things are given to him");
  const [{ method, url, headers, body } = what] = asked;
  assert.deepEqual(
    [method, url, headers, body],
    ["PATCH", "/cells/root/model?allowDestroy=root%2Fdisk&dryRun=true", { authorization: "Bearer x" }, what.body],
    "the same change, only shown, and not as the one that is made once",
  );
  const nobody = async (): Promise<void> => {
    throw refused(400, "bad-request", "there is no account ROOT/acme/dve: there are ROOT/acme/dev");
  };
  await assert.rejects(requireOwners(what, ask, nobody), {
    statusCode: 400,
    message: /^root\/dedications\/racks gives z1 to ROOT\/acme\/dve: there is no account .*ROOT\/acme\/dev$/,
  });
});

test("a change that gives nothing is made without a question, and what is wrong with it is said as it is made", async () => {
  const nobody = async (): Promise<void> => assert.fail("nobody is asked");
  for (const each of [answer(200, { plan: {} }), answer(400, { error: {} }), answer(403, "no JSON")])
    await requireOwners(what, async () => each, nobody);
  const shut = async (): Promise<PeerResponse> => {
    throw refused(404, "not-found", "there is no such cell");
  };
  await requireOwners(what, shut, nobody);
  const away = async (): Promise<PeerResponse> => {
    throw refused(502, "controller-unreachable", "it does not answer");
  };
  await assert.rejects(requireOwners(what, away, nobody), { statusCode: 502 });
  for (const each of [answer(200, "no JSON"), answer(200, { dedicates: [{ path: 7 }] })])
    await assert.rejects(
      requireOwners(what, async () => each, nobody),
      { statusCode: 502 },
    );
});

test("a change that names neither the place nor the type of a dedication is planned once", () => {
  const gives = (name: string | undefined, text: string | null, url = "/cells/root/model"): boolean =>
    givesHosts(name, { url, body: text === null ? null : Buffer.from(text) });
  const dedication = 'racks extends Dedication { x.of "z1"; x.to "ROOT/acme"; }';
  const names = ["putModel", "putElement", "patchModel", "deleteModel", "getModel", undefined];
  assert.deepEqual(
    names.map((name) => gives(name, dedication)),
    [true, true, true, false, false, false],
  );
  const [patch, plain] = ['[{"op":"copy","from":"/root/dedications/a","path":"/root/d"}]', '{"x.type":"Host"}'];
  assert.deepEqual(
    [gives("patchModel", patch), gives("putElement", plain), gives("putElement", null)],
    [true, false, false],
  );
  assert.equal(gives("putElement", '{"x.to":"ROOT/acme"}', "/cells/root/model/root/dedications/racks"), true);
  assert.equal(gives("putElement", '{"x.to":"ROOT/acme"}', "/cells/root/model/root/%64edications/racks"), true);
  assert.equal(gives("putElement", '{"x.type":"\\u0044edication"}'), true, "a letter by its number");
});
