import assert from "node:assert/strict";
import { test } from "node:test";
import { RefusedError } from "../requests/refused.ts";
import { lookFor } from "./owner-there.ts";

test("a host is given to a domain or an account that is there, and to no other", async () => {
  const asked: string[] = [];
  const ask = (answer: unknown) => async (path: string) => {
    asked.push(path);
    return answer as never;
  };
  const accounts = [{ path: "ROOT/acme/dev", cells: [] }, { path: "ROOT/operator" }];
  await lookFor({ kind: "account", path: "ROOT/acme/dev" }, ask(accounts));
  await lookFor({ kind: "domain", path: "ROOT/acme" }, ask([{ path: "ROOT/acme" }]));
  assert.deepEqual(asked, ["/accounts", "/domains"]);
  const refusal = async (answer: unknown, path = "ROOT/acme/ops"): Promise<string> => {
    const error = await lookFor({ kind: "account", path }, ask(answer)).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof RefusedError);
    return `${error.statusCode} ${error.refusal.message}`;
  };
  assert.equal(
    await refusal(accounts),
    "400 there is no account ROOT/acme/ops: there are ROOT/acme/dev, ROOT/operator",
  );
  assert.equal(await refusal([]), "400 there is no account ROOT/acme/ops: none is there");
  const many = Array.from({ length: 25 }, (_, at) => ({ path: `ROOT/a${at}` }));
  assert.match(await refusal(many), /ROOT\/a19, and 5 more$/);
  assert.match(await refusal({ no: "list" }), /^502 what the service tenancy says cannot be read/);
});
