import assert from "node:assert/strict";
import { test } from "node:test";
import type { Changed } from "../../../model/api.ts";
import { elementPath } from "../../../model/cell/identifiers.ts";
import { destroysDataRefusal } from "../../../model/plan/data-loss.ts";
import { planChange } from "../../../model/plan/plan.ts";
import type { PlanStep } from "../../../model/plan/plan-types.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { apply, plan, remove, type WaitOptions } from "./change.ts";
import { type Answer, failure, type Gateway, scene } from "./scene.testing.ts";

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

test("what is held is given up by name, whatever the model has at its path by now", async (t) => {
  const held = {
    ...one("Volume", "deleting"),
    $state: {
      phase: "deleting",
      reason: "it is held",
      since: "",
      uid: "c1-1",
      causes: [{ kind: "held-for-copy", domain: "primary.cells.internal", path: "primary/a", target: "shop/db" }],
    },
  };
  let looks = 0;
  let isLast = false;
  const { context, asked, printed } = await scene(t, ({ method, url, dryRun }) => {
    if (method === "DELETE")
      return changed({ plan: planChange(cellOf({ db: { "x.type": "Volume", "x.size": 8 } }), null), dryRun });
    if (url.includes("events")) return { status: 404, body: {} };
    if (!url.includes("/model")) return known;
    looks += 1;
    const db = isLast && looks > 2 ? one("Volume", "ready") : held;
    return { status: 200, body: { shop: { "x.type": "Cell", db } } };
  });
  const drop = { ...options, dropHeld: true, wait: true, allowDestroy: ["shop/db"] };
  const late = await failure(remove(context, "shop", { ...drop, timeoutMs: 1 }));
  assert.match(late.message, /To lift that: .*`cells delete shop\/db --drop-held`/);
  looks = 0;
  isLast = true;
  await remove(context, "shop", { ...drop, timeoutMs: 60_000 });
  assert.match(asked.at(-1) ?? "", /^DELETE \/cells\/shop\/model\?allowDestroy=shop%2Fdb&dropHeld=true "4"/);
  assert.ok(looks > 2, "it has waited");
  assert.match(printed.at(-1) ?? "", /^shop is gone/);
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

test("apply of a text without any element does not wait for those that no text has", async (t) => {
  const plan = planChange(volumes, cellOf({}));
  const one = (type: string, phase: string) => ({
    "x.type": type,
    $state: { phase, reason: null, since: "", uid: "c1-1" },
  });
  let looks = 0;
  const { context, file, printed } = await scene(t, ({ method, dryRun, url }) => {
    if (method === "PUT") return changed({ plan, dryRun });
    if (url.includes("events")) return { status: 404, body: {} };
    if (!url.includes("/model")) return { status: 200, body: [{ ...known.body[0], elements: 3 }] };
    looks += 1;
    const log = looks < 3 ? { log: one("Volume", "deleting") } : {};
    return { status: 200, body: { shop: { "x.type": "Cell", hosts: { h1: one("Host", "ready") }, ...log } } };
  });
  await apply(context, file, {
    ...options,
    wait: true,
    timeoutMs: 60_000,
    allowDestroy: ["shop/db", "shop/log"],
  });
  assert.ok(looks >= 3, "it has waited for its own");
  assert.match(printed.at(-1) ?? "", /^shop is as declared/);
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
    path: elementPath("shop/log"),
    type: "Volume",
    action: "delete",
    causes: [],
    waitsFor: [],
    losesData: true,
    loss: { sizeMiB: 2 },
  };
  const { context, file } = await scene(t, ({ method, dryRun }) =>
    method === "GET" ? known : dryRun ? changed({}) : { status: 409, body: { error: destroysDataRefusal([step]) } },
  );
  const { message } = await failure(apply(context, file, options));
  assert.match(message, /^this would destroy the data of a volume.*\n {2}shop\/log .*\n.*--allow-destroy shop\/log\n/);
});

const one = (type: string, phase: string, more: object = {}) => ({
  "x.type": type,
  $state: { phase, reason: null, since: "", uid: "c1-1", ...more },
});
const verdict = "shop/log is held up: there is no such image. To lift that: `cells image add`";
/** A cell of two volumes that is changed, with what it comes to. */
const settled =
  (plan: ReturnType<typeof planChange>, document: object): Gateway =>
  ({ method, dryRun, url }) => {
    if (method === "PUT") return changed({ plan, dryRun });
    if (url.includes("events")) return { status: 404, body: {} };
    if (url.includes("why")) return { status: 200, body: { path: "", checks: [], verdict } };
    if (!url.includes("/model")) return known;
    return { status: 200, body: { shop: { "x.type": "Cell", ...document } } };
  };
const waiting: WaitOptions = { yes: true, wait: true, timeoutMs: 600_000 };

test("apply stops where what it touches does not become ready, and says which and what to do", async (t) => {
  const failed = { reason: "there is no image", stuck: true };
  const created = settled(planChange(null, cellOf({ db: { "x.type": "Volume", "x.size": 4 } })), {
    db: one("Volume", "failed", failed),
  });
  const { context, file } = await scene(t, created);
  const { exitCode, message } = await failure(apply(context, file, waiting));
  assert.equal(exitCode, 4);
  assert.match(message, /^1 of 1 elements do not become ready before something is changed:\n.*there is no image\n/);
  assert.ok(message.endsWith(verdict), message);
});

test("what waits for something and is not touched by the change is told and not waited for", async (t) => {
  const document = { db: { "x.type": "Volume", "x.size": 4 } };
  const plan = planChange(cellOf(document), cellOf({ ...document, log: { "x.type": "Volume", "x.size": 2 } }));
  const gateway = settled(plan, { db: one("Volume", "waiting", { reason: "no room" }), log: one("Volume", "ready") });
  const { context, file } = await scene(t, gateway);
  const { exitCode, message } = await failure(apply(context, file, waiting));
  assert.equal(exitCode, 4);
  assert.match(message, /^Not ready, and not touched by this change:\n.*shop\/db .*no room\n/);
});

test("an unchanged file over what has failed says so in its plan, and apply does not wait for it", async (t) => {
  const same = planChange(volumes, volumes);
  const reason = "its guest powered off by itself; it stays off because x.restartOnFailure is false";
  const failed = [{ path: elementPath("shop/vm"), type: "VM", reason }] as const;
  const gateway = settled(same, { db: one("Volume", "failed", { stuck: true }) });
  const { context, file, printed } = await scene(t, (request) => {
    const answer = gateway(request);
    return request.method === "PUT" ? { ...answer, body: { ...(answer.body as Changed), failed } } : answer;
  });
  await plan(context, file, { all: false });
  const said = `  shop/vm (VM): ${reason}; \`cells start shop/vm\` starts it again`;
  assert.deepEqual(printed.slice(1), ["Failed, and left so by this:", said]);
  assert.equal((await failure(apply(context, file, waiting))).exitCode, 4);
});

test("Ctrl-C leaves a change that goes on, and says how to see it or take it back", async (t) => {
  const created = settled(planChange(null, volumes), { db: one("Volume", "working") });
  let looks = 0;
  const { context, file } = await scene(t, (request) => {
    if (request.method === "GET" && request.url.includes("/model") && ++looks === 2) process.emit("SIGINT");
    return created(request);
  });
  const others = process.listenerCount("SIGINT");
  const { exitCode, message } = await failure(apply(context, file, { ...waiting, timeoutMs: 4_000 }));
  assert.equal(exitCode, 130);
  assert.match(
    message,
    /goes on without this command: `cells watch shop` shows it\. `cells delete shop` takes it back\.$/,
  );
  assert.equal(process.listenerCount("SIGINT"), others);
});

test("plan's exit code tells whether something would change, where that is asked for", async (t) => {
  const codes: unknown[] = [];
  for (const [steps, detailedExitCode] of [
    [planChange(volumes, volumes), true],
    [planChange(null, volumes), true],
    [planChange(null, volumes), false],
  ] as const) {
    const { context, file } = await scene(t, ({ method }) => (method === "GET" ? known : changed({ plan: steps })));
    process.exitCode = 0;
    await plan(context, file, { all: false, detailedExitCode });
    codes.push(process.exitCode);
  }
  process.exitCode = 0;
  assert.deepEqual(codes, [0, 2, 0]);
});

const away: Answer = {
  status: 502,
  body: { error: { code: "controller-unreachable", message: "the controller of the root cell does not answer" } },
};
test("a controller that is away is named and asked again, and a change of which the answer was lost is made once", async (t) => {
  const smaller = planChange(volumes, cellOf({ db: { "x.type": "Volume", "x.size": 8 } }));
  const allowDestroy = ["shop/log"];
  let [plans, sent] = [0, 0];
  const { context, file, asked, warned } = await scene(t, ({ method, dryRun }) => {
    if (method === "GET") return known;
    if (dryRun) {
      plans += 1;
      if (plans === 1) return away;
      return plans === 2 ? changed({ plan: smaller }) : changed({ version: 5 });
    }
    sent += 1;
    return sent === 1 ? away : { status: 412, body: { error: { code: "overtaken", message: "it has version 5" } } };
  });
  await apply(context, file, { ...options, allowDestroy, timeoutMs: 10_000 });
  assert.deepEqual([plans, asked.length], [3, 2], "asked once more each time, and once whether it was accepted");
  assert.match(warned[0] ?? "", /^the controller of the root cell does not answer\nit is asked again for up to 10 s/);
});

test("a removal of which the answer was lost is made once, and who is away while it is waited for is asked again", async (t) => {
  for (const answer of [
    { status: 412, body: { error: { code: "overtaken", message: "it has version 5" } } },
    { status: 404, body: { error: { code: "no-element", message: "there is no shop/db" } } },
  ] as const) {
    let [sent, looks] = [0, 0];
    const { context, asked, warned, printed } = await scene(t, ({ method, url, dryRun }) => {
      if (method === "GET" && url !== "/cells") return known;
      if (method === "GET") {
        looks += 1;
        return looks === 1 ? away : { status: 200, body: [] };
      }
      if (dryRun) return sent === 0 ? changed({ plan: planChange(volumes, null) }) : { ...answer, status: 404 };
      sent += 1;
      return sent === 1 ? away : answer;
    });
    await remove(context, "shop", { ...options, allowDestroy: ["shop/db", "shop/log"], wait: true, timeoutMs: 10_000 });
    assert.equal(asked.length, 2);
    assert.equal(warned.length, 2, "for the change, and for the look");
    assert.match(printed.join("\n"), /shop is gone/);
  }
});

test("who is away for longer than a command may take is told of, and other refusals are told at once", async (t) => {
  const gone = await scene(t, () => away);
  const { exitCode, message } = await failure(remove(gone.context, "shop", { ...options, timeoutMs: 1500 }));
  assert.deepEqual([exitCode, message], [1, "the controller of the root cell does not answer"]);
  assert.deepEqual([gone.asked, gone.warned.length], [[], 1]);
  const busy: Answer = { status: 503, body: { error: { code: "busy", message: "it is busy" } } };
  const other = await scene(t, () => busy);
  assert.equal((await failure(remove(other.context, "shop", options))).message, "it is busy");
  assert.deepEqual(other.warned, []);
});
