import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Changed } from "../../model/api.ts";
import { elementPath } from "../../model/cell/identifiers.ts";
import { destroysDataRefusal } from "../../model/plan/data-loss.ts";
import { planChange } from "../../model/plan/plan.ts";
import type { PlanStep } from "../../model/plan/plan-types.ts";
import { checkDocument } from "../../model/specification/specification.ts";
import { Client } from "../connection/client.ts";
import { plain } from "../output/terminal.ts";
import type { Context } from "../program/context.ts";
import { CommandFailure } from "../program/failure.ts";
import { apply, plan, remove, type WaitOptions } from "./change.ts";

/** The commands against a gateway that answers what a test says, at a terminal where `answer` is typed; null: none. */
interface Scene {
  readonly context: Context;
  /** Method, URL and If-Match of each request that would change something. */
  readonly asked: string[];
  readonly printed: string[];
  readonly questions: string[];
  readonly file: string;
}
interface Answer {
  readonly status: number;
  readonly body: unknown;
}
type Gateway = (request: { readonly method: string; readonly url: string; readonly dryRun: boolean }) => Answer;

const scene = async (t: TestContext, gateway: Gateway, answer: boolean | null = null): Promise<Scene> => {
  const [asked, printed, questions]: [string[], string[], string[]] = [[], [], []];
  const server = createServer((incoming: IncomingMessage, response) => {
    const { method = "", url = "" } = incoming;
    const dryRun = url.includes("dryRun=true");
    if (method !== "GET" && !dryRun) asked.push(`${method} ${url} ${incoming.headers["if-match"]}`);
    const { status, body } = gateway({ method, url, dryRun });
    incoming.resume().once("end", () => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const directory = mkdtempSync(join(tmpdir(), "cells-change-"));
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const file = join(directory, "shop.json");
  writeFileSync(file, JSON.stringify({ shop: { "x.type": "Cell", db: { "x.type": "Volume", "x.size": 4 } } }));
  const client = new Client({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credential: "secret",
  });
  const terminal: Context["terminal"] = {
    ...{ paint: plain, colour: false, live: false, columns: 100, canAsk: answer !== null },
    print: (text) => void printed.push(text),
    warn: () => undefined,
    draw: () => undefined,
    settle: () => undefined,
    ask: async (question) => {
      questions.push(question);
      return answer === true;
    },
  };
  return { context: { terminal, json: false, client: () => client }, asked, printed, questions, file };
};

const cellOf = (made: object) => {
  const result = checkDocument({ shop: { "x.type": "Cell", ...made } });
  assert.ok(result.ok);
  return result.value;
};
const volumes = cellOf({ db: { "x.type": "Volume", "x.size": 8 }, log: { "x.type": "Volume", "x.size": 2 } });
const changed = (body: Partial<Changed>): Answer => ({
  status: 200,
  body: { plan: { steps: [] }, version: 4, dryRun: true, ...body },
});
const gone = planChange(volumes, null);
const known = { status: 200, body: [{ cell: "shop", version: 4, phases: {}, elements: 2 }] } as const;
const deleting: Gateway = ({ method }) => (method === "GET" ? known : changed({ plan: gone }));
const options: WaitOptions = { yes: true, wait: false, timeoutMs: 1000 };
const failure = async (work: Promise<void>): Promise<CommandFailure> => {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof CommandFailure, String(error));
    return error;
  }
  throw new Error("it did not fail");
};

test("where nobody can be asked, the option that is missing is named and nothing is sent", async (t) => {
  const { context, asked } = await scene(t, deleting);
  const { exitCode, message } = await failure(remove(context, "shop", options));
  assert.equal(exitCode, 1);
  assert.match(message, /shop\/db \(Volume\) is deleted: up to 8 MiB that were written to it would be lost/);
  assert.match(message, /--allow-destroy shop\/log,shop\/db\n/);
  const part = await failure(remove(context, "shop", { ...options, allowDestroy: ["shop/log"] }));
  assert.match(part.message, /--allow-destroy shop\/db\n/);
  const neither = await failure(remove(context, "shop", { ...options, yes: false }));
  assert.match(neither.message, /--allow-destroy shop\/log,shop\/db\n(.*\n)*and --yes$/);
  assert.deepEqual(asked, []);
});

test("the named volumes and the planned version go along", async (t) => {
  const { context, asked, questions } = await scene(t, deleting);
  await remove(context, "shop", { ...options, allowDestroy: ["shop/log,shop/x", "shop/db"] });
  assert.deepEqual(asked, ['DELETE /cells/shop/model?allowDestroy=shop%2Flog%2Cshop%2Fx&allowDestroy=shop%2Fdb "4"']);
  assert.deepEqual(questions, []);
});

test("a person is asked with the volumes named, with --yes too, and a yes is what names them", async (t) => {
  const { context, asked, questions, printed } = await scene(t, deleting, true);
  await remove(context, "shop", { ...options, allowDestroy: ["shop/log"] });
  assert.deepEqual(questions, ["Delete shop? The data of shop/db is lost."]);
  assert.ok(printed.some((line) => /^ {2}shop\/db \(Volume\) is deleted: up to 8 MiB/.test(line)));
  assert.deepEqual(asked, ['DELETE /cells/shop/model?allowDestroy=shop%2Flog&allowDestroy=shop%2Fdb "4"']);
  const careful = await scene(t, deleting, false);
  assert.equal((await failure(remove(careful.context, "shop", options))).message, "nothing was changed");
  assert.deepEqual(careful.asked, []);
});

test("plan says which option applying it needs", async (t) => {
  const smaller = planChange(volumes, cellOf({ db: { "x.type": "Volume", "x.size": 4 } }));
  const { context, file, printed } = await scene(t, ({ method }) =>
    method === "GET" ? known : changed({ plan: smaller }),
  );
  await plan(context, file, { all: false });
  assert.equal(printed.at(-1), "Applying it without being asked needs --allow-destroy shop/db,shop/log");
});

test("plan names the service VMs that are upgraded, and what becomes of one that does not come up", async (t) => {
  const upgraded = ["root/core2/vm", "root/core1/vm"].map((path) => elementPath(path));
  const { context, file, printed } = await scene(t, ({ method }) =>
    method === "GET" ? known : changed({ plan: planChange(volumes, volumes), upgraded }),
  );
  await plan(context, file, { all: false });
  assert.match(
    printed.join(" "),
    /one at a time.*proved itself: root\/core2\/vm, root\/core1\/vm\. One that does not come up goes back/,
  );
});

test("the plan of a cell that is not there is the gateway's, and says what was not checked", async (t) => {
  const created = planChange(null, volumes);
  const answer = changed({ plan: created, version: 0, unchecked: ["hosts", "storage"] });
  const { context, printed, file } = await scene(t, ({ dryRun }) => (dryRun ? answer : { status: 404, body: {} }));
  await plan(context, file, { all: false });
  assert.match(printed.join("\n"), /Plan: 2 to create, 0 unchanged\.\nNot checked, .*: hosts, storage\.\n/);
  const diagnostics = [{ code: "cell/no-host", message: "No host could hold it" }];
  const error = { code: "invalid-specification", message: "it is wrong", diagnostics };
  const refused = await scene(t, () => ({ status: 400, body: { error } }));
  assert.match((await failure(plan(refused.context, refused.file, { all: false }))).message, /No host could hold it/);
});

test("apply says so when somebody changed the cell since it was planned", async (t) => {
  const busy = planChange(
    volumes,
    cellOf({ log: { "x.type": "Volume", "x.size": 3 }, db: { "x.type": "Volume", "x.size": 8 } }),
  );
  const error = { code: "version-mismatch", message: "the model has version 5, not 4" };
  const { context, file, asked } = await scene(t, ({ method, dryRun }) =>
    method === "GET" ? known : dryRun ? changed({ plan: busy }) : { status: 412, body: { error } },
  );
  const { exitCode, message } = await failure(apply(context, file, options));
  assert.equal(exitCode, 1);
  assert.match(message, /nothing was changed: .*\(the model has version 5, not 4\)\. `cells plan .*shop\.json` shows/);
  assert.deepEqual(asked, ['PUT /cells/shop/model "4"']);
});

test("apply waits for what its plan touches, not for what others add and take away meanwhile", async (t) => {
  const before = cellOf({ db: { "x.type": "Volume", "x.size": 4 }, log: { "x.type": "Volume", "x.size": 2 } });
  const plan = planChange(before, cellOf({ db: { "x.type": "Volume", "x.size": 4 } }));
  const one = (type: string, phase: string, reason: string | null = null) => ({
    "x.type": type,
    $state: { phase, reason, since: "", uid: "c1-1" },
  });
  // Others make a cell, and take one away that does not go.
  const cells = {
    theirs: one("CellController", "waiting", "its VM starts"),
    old: one("Volume", "deleting", "it is used"),
  };
  let looks = 0;
  const { context, file, printed } = await scene(t, ({ method, dryRun, url }) => {
    if (method === "PUT") return changed({ plan, dryRun });
    if (url.includes("events")) return { status: 404, body: {} };
    if (!url.includes("/model"))
      return { status: 200, body: [{ ...known.body[0], phases: { deleting: 2 }, elements: 4 }] };
    looks += 1;
    const db = one("Volume", looks < 2 ? "working" : "ready");
    const log = looks < 4 ? { log: one("Volume", "deleting", "it is being removed") } : {};
    return { status: 200, body: { shop: { "x.type": "Cell", db, cells, ...log } } };
  });
  await apply(context, file, { ...options, wait: true, timeoutMs: 60_000, allowDestroy: ["shop/log"] });
  assert.ok(looks >= 4, "it has waited for its own");
  assert.match(printed.at(-1) ?? "", /^shop is as declared: /);
  assert.doesNotMatch(printed.join("\n"), /theirs/);
  // Its own that do not go are named.
  const stuck = await scene(t, ({ method, dryRun, url }) => {
    if (method === "PUT") return changed({ plan, dryRun });
    if (!url.includes("/model"))
      return { status: 200, body: [{ ...known.body[0], phases: { deleting: 2 }, elements: 4 }] };
    const log = one("Volume", "deleting", "it is the origin of another");
    return { status: 200, body: { shop: { "x.type": "Cell", db: one("Volume", "ready"), cells, log } } };
  });
  const wait = { ...options, wait: true, timeoutMs: 1, allowDestroy: ["shop/log"] };
  const late = await failure(apply(stuck.context, stuck.file, wait));
  assert.match(late.message, /shop\/log .*it is the origin of another/);
});

test("a cell that is deleted is gone when the gateway knows none of that name, whatever it says of it before", async (t) => {
  const summary = (elements: number, phases: Readonly<Record<string, number>>) => [
    { ...known.body[0], elements, phases },
  ];
  const left = [summary(2, { deleting: 2 }), summary(0, {}), summary(0, { unreachable: 1 }), []];
  let looks = 0;
  const { context, printed } = await scene(t, ({ method, url, dryRun }) => {
    if (method === "DELETE") return changed({ plan: gone, dryRun });
    if (url.includes("events")) return { status: 404, body: {} };
    looks += 1;
    return { status: 200, body: left[Math.min(looks, left.length) - 1] };
  });
  const wait = { ...options, wait: true, timeoutMs: 60_000, allowDestroy: ["shop/db", "shop/log"] };
  await remove(context, "shop", wait);
  assert.equal(looks, left.length);
  assert.match(printed.at(-1) ?? "", /^shop is gone/);
  left[left.length - 1] = summary(0, {});
  const late = await failure(remove(context, "shop", { ...wait, timeoutMs: 1 }));
  assert.match(late.message, /nothing of shop is left, and its controller has not ended/);
});

test("a cell that was deleted and begins anew is applied to its new versions", async (t) => {
  let plans = 0;
  const { context, file, asked } = await scene(t, ({ method, dryRun, url }) => {
    if (method === "GET") return known;
    if (dryRun) plans += 1;
    const version = plans > 1 ? 0 : 7;
    if (dryRun || asked.length > 1) return changed({ plan: planChange(null, volumes), version });
    return { status: 412, body: { error: { code: "version-mismatch", message: url } } };
  });
  await apply(context, file, options);
  assert.deepEqual(asked, ['PUT /cells/shop/model "7"', 'PUT /cells/shop/model "0"']);
});

test("what the controller says of data is told whole, also of a text", async (t) => {
  const step: PlanStep = {
    ...{ path: elementPath("shop/log"), type: "Volume", action: "delete", causes: [], waitsFor: [] },
    ...{ losesData: true, loss: { sizeMiB: 2 } },
  };
  const { context, file } = await scene(t, ({ method, dryRun }) =>
    method === "GET" ? known : dryRun ? changed({}) : { status: 409, body: { error: destroysDataRefusal([step]) } },
  );
  const { message } = await failure(apply(context, file, options));
  assert.match(message, /^this would destroy the data of a volume.*\n {2}shop\/log .*\n.*--allow-destroy shop\/log\n/);
});
