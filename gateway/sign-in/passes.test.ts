import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusedError } from "../requests/refused.ts";
import { Passes, passMs } from "./passes.ts";

function clocked() {
  const clock = { ms: 0 };
  return { clock, passes: new Passes(() => clock.ms) };
}
const admitted = (passes: Passes, shown: string, line: string): string | number => {
  const [method = "GET", url = "/"] = line.split(" ");
  const headers = { authorization: `Bearer ${shown}` };
  try {
    passes.admit({ headers, method, url });
  } catch (error) {
    if (error instanceof RefusedError) return error.statusCode;
    throw error;
  }
  return headers.authorization;
};

test("what stands for a credential opens what persistent volumes take, and nothing beside it", () => {
  const { passes } = clocked();
  const { shown } = passes.give("session.of-ann");
  assert.match(shown, /^pass\./);
  for (const line of [
    "GET /whoami",
    "GET /cells",
    "GET /accounts",
    "GET /quotas",
    "GET /cells/shop/model",
    "GET /cells/shop/model/shop/disk?state=true",
    "PATCH /cells/shop/model?dryRun=true",
    "GET /uploads",
    "DELETE /uploads/1",
  ])
    assert.equal(admitted(passes, shown, line), "Bearer session.of-ann", line);
  for (const line of [
    "GET /volumes",
    "POST /volumes",
    "PUT /uploads/1",
    "POST /uploads/1",
    "PUT /cells/shop/model",
    "DELETE /cells/shop/model",
    "DELETE /cells/shop/model/shop/disk",
    "POST /cells/shop/credentials",
    "POST /cells/shop/sessions",
    "GET /cells/shop/events",
    "GET /users",
    "POST /keys",
    "PUT /whoami/password",
    "GET /login",
    "POST /login/codes",
    "GET /follow",
    "GET /nothing",
    "GET /cells/shop/",
  ])
    assert.equal(admitted(passes, shown, line), 403, line);
  assert.equal(admitted(passes, "session.of-ann", "GET /users"), "Bearer session.of-ann", "his own is his own");
  const never = `${shown.slice(0, -1)}${shown.endsWith("A") ? "B" : "A"}`;
  assert.equal(admitted(passes, never, "GET /whoami"), 401);
});

test("it is over after ten minutes, or once the request that it was given for is", () => {
  const { clock, passes } = clocked();
  const short = passes.give("of ann");
  short.over();
  assert.equal(passes.open(short.shown), "of ann", "work goes on for a little when a client has left");
  const again = passes.give("of ann");
  assert.equal(again.shown, short.shown, "whoever asks often has one");
  assert.notEqual(passes.give("of bob").shown, short.shown);
  clock.ms = passMs;
  assert.equal(passes.open(again.shown), "of ann", "an upload may last");
  assert.notEqual(passes.give("of ann").shown, again.shown);
  again.over();
  again.over();
  assert.equal(passes.open(again.shown), null);
  assert.equal(admitted(passes, again.shown, "GET /whoami"), 401);
});

test("so many are kept, and whoever asks newly ends nobody's whose request is under way", () => {
  const { passes } = clocked();
  const [lasting, over] = [passes.give("lasting"), passes.give("over")];
  over.over();
  for (let at = 0; at < 2000; at += 1) passes.give(`of ${at}`).over();
  assert.equal(passes.open(lasting.shown), "lasting");
  assert.equal(passes.open(over.shown), null);
});
