import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../../model/api.ts";
import { failure, type Gateway, scene } from "../model/scene.testing.ts";
import { drainHost, moveVm, resumeHost } from "./drain.ts";

const options = { yes: true, wait: true, timeoutMs: 60_000, dryRun: false };
const vm = (state: Partial<ElementState>): object => ({
  "x.type": "VM",
  "x.memory": 64,
  $state: { phase: "ready", reason: null, since: "", uid: "c1-1", power: "on", incarnation: 1, ...state },
});

/** The root cell with hosts, and a cell with a VM, which is as a test says before and after the host is in maintenance. */
const cloud = (
  hosts: object,
  before: Partial<ElementState>,
  after: Partial<ElementState>,
  tried: object = { host: "h2", alerts: [] },
) => {
  const put: string[] = [];
  const gateway: Gateway = ({ method, url, dryRun, body }) => {
    if (url.endsWith("/cells")) return { status: 200, body: [{ cell: "root" }, { cell: "shop" }] };
    if (url.includes("/model/root/hosts") && method === "GET") return { status: 200, body: hosts };
    if (method === "PUT" || method === "POST") {
      if (!dryRun) put.push(`${url.split("/cells/")[1]?.split("?")[0]} ${body}`);
      const moved = { vm: "shop/vm", from: "h1", to: "h2", incarnation: 1, isThere: false };
      const changed = { plan: { steps: [] }, version: 7, dryRun };
      return { status: 200, body: method === "POST" ? moved : changed };
    }
    if (url.includes("/placement/try")) return { status: 200, body: { vm: "shop/vm", from: "h1", hosts: [tried] } };
    const state = put.length === 0 ? before : after;
    if (url.includes("/model/shop/vm")) return { status: 200, body: vm(state) };
    if (url.includes("/cells/shop/model")) return { status: 200, body: { shop: { "x.type": "Cell", vm: vm(state) } } };
    return { status: 200, body: { root: { "x.type": "Cell" } } };
  };
  return Object.assign(gateway, { put });
};
const host = { "x.type": "Host" };
const stays: Partial<ElementState> = {
  host: "h1",
  reason: "it is to leave h1, and runs on there: no other host can hold it: h2: it is full",
  causes: [{ kind: "cannot-leave", host: "h1" as never, refusals: [] }],
};

test("drain shows what will be stopped before it orders anything, and waits until the host is empty", async (t) => {
  const gateway = cloud({ h1: host, h2: host }, { host: "h1" }, { host: "h2", incarnation: 2 });
  const { context, printed, asked } = await scene(t, gateway);
  await drainHost(context, "h1", { ...options, dryRun: true });
  assert.deepEqual(printed, [
    "h1 takes nothing new from then on",
    "! shop/vm  is stopped in order at h1, and starts elsewhere with its data",
  ]);
  assert.deepEqual(gateway.put, []);
  await drainHost(context, "h1", options);
  assert.deepEqual(gateway.put, ['root/model/root/hosts/h1/x.state "maintenance"']);
  assert.match(asked[0] ?? "", / "7"$/, "on the version that was planned");
  assert.match(printed.at(-1) ?? "", /^h1 is empty; `cells host resume h1`/);
});

test("where the root cell refuses it, that is said before anything is asked or ordered, also of what is only looked at", async (t) => {
  const open = cloud({ h1: host, h2: host }, { host: "h1" }, { host: "h1" });
  const error = { code: "specification/invalid", message: "With h1 closed as well, no host would take VMs" };
  const gateway: Gateway = (request) => (request.method === "PUT" ? { status: 400, body: { error } } : open(request));
  for (const dryRun of [true, false]) {
    const { context, questions, asked } = await scene(t, gateway, true);
    const refusal = drainHost(context, "h1", { ...options, yes: false, dryRun });
    await assert.rejects(refusal, /no host would take VMs/);
    assert.deepEqual([questions, asked], [[], []]);
  }
});

test("what cannot leave is named with why, and the code says that not everything is as declared", async (t) => {
  const { context } = await scene(t, cloud({ h1: host, h2: host }, { host: "h1" }, stays));
  const { exitCode, message } = await failure(drainHost(context, "h1", options));
  assert.equal(exitCode, 4);
  assert.match(message, /these are still at h1, and run.*\n {2}shop\/vm: it is to leave h1.*h2: it is full/);
});

test("where only the root controller is left it is said what to do, since no waiting helps", async (t) => {
  const own: Partial<ElementState> = {
    host: "h1",
    reason: "it runs on at h1: it is the root controller's, which another host starts when h1 is off",
    causes: [{ kind: "leaves-with-its-host", host: "h1" as never }],
  };
  const { context } = await scene(t, cloud({ h1: host, h2: host }, { host: "h1" }, own));
  const { exitCode, message } = await failure(drainHost(context, "h1", options));
  assert.equal(exitCode, 4);
  assert.match(message, /^h1 is empty but for shop\/vm, in which the root controller runs: switch h1 off in order/);
});

test("of the root controller's own VM it is said beforehand that it stays, and of others of the root cell that they go", async (t) => {
  const open = cloud({ h1: host, h2: host }, {}, {});
  const why = "the root controller runs in root/core1 itself: another host starts it when its own is off";
  const asked: string[] = [];
  const gateway: Gateway = (request) => {
    const { method, url, dryRun, body } = request;
    if (url.includes("/cells/root/moves")) {
      asked.push(`${dryRun} ${body}`);
      const isOwn = String(body).includes("core1");
      return isOwn ? { status: 409, body: { error: { code: "refused", message: why } } } : open(request);
    }
    const at = { host: "h1" };
    if (method === "GET" && url.includes("/cells/root/model") && !url.includes("/model/root/hosts"))
      return {
        status: 200,
        body: { root: { "x.type": "Cell", core1: vm(at), core2: vm(at), off: vm({ ...at, power: "off" }) } },
      };
    return open(request);
  };
  const { context, printed } = await scene(t, gateway);
  await drainHost(context, "h1", { ...options, dryRun: true });
  assert.deepEqual(printed.slice(1), [
    `! root/core1  stays at h1: ${why}`,
    "! root/core2  is stopped in order at h1, and starts elsewhere with its data",
    "  root/off  is placed elsewhere when it starts",
  ]);
  assert.deepEqual(asked, ['true {"vm":"root/core1","to":"h1"}', 'true {"vm":"root/core2","to":"h1"}']);
});

test("a host that is none is told with those that are; nobody who cannot be asked is drained without --yes", async (t) => {
  const gateway = cloud({ h1: host, h2: host }, { host: "h1" }, { host: "h1" });
  const { context } = await scene(t, gateway);
  const unknown = await failure(drainHost(context, "h9", options));
  assert.deepEqual([unknown.exitCode, unknown.message], [2, "there is no host h9; the hosts are h1, h2"]);
  const unasked = await failure(drainHost(context, "h1", { ...options, yes: false }));
  assert.match(unasked.message, /add --yes/);
  assert.deepEqual(gateway.put, []);
  const no = await scene(t, gateway, false);
  assert.match((await failure(drainHost(no.context, "h1", { ...options, yes: false }))).message, /nothing was changed/);
  assert.deepEqual(gateway.put, []);
});

test("resume takes back what drain wrote, and nothing where it is so", async (t) => {
  const gateway = cloud({ h1: { ...host, "x.state": "maintenance" }, h2: host }, {}, {});
  const { context, printed } = await scene(t, gateway);
  await resumeHost(context, "h2");
  assert.deepEqual([gateway.put, printed], [[], ["h2 takes VMs already"]]);
  await resumeHost(context, "h1");
  assert.deepEqual(gateway.put, ['root/model/root/hosts/h1/x.state "enabled"']);
});

test("move says before what is stopped where, and waits for the next incarnation", async (t) => {
  const gateway = cloud({}, { host: "h1" }, { host: "h2", incarnation: 2 });
  const { context, printed } = await scene(t, gateway);
  await moveVm(context, "shop/vm", "h2", { ...options, dryRun: true });
  assert.deepEqual(gateway.put, []);
  await moveVm(context, "shop/vm", "h2", options);
  assert.deepEqual(gateway.put, ['shop/moves {"vm":"shop/vm","to":"h2"}']);
  assert.deepEqual(printed.slice(-2), [
    "! shop/vm  is stopped in order at h1, and starts at h2 with its data",
    "shop/vm runs at h2",
  ]);
  const alerts = [{ kind: "E1", says: "it leaves a host that is dedicated for one that is everybody's" }];
  const refusal = { kind: "memory", why: "64 MiB are asked for, 8 are free", lifts: "56 MiB more are free" };
  for (const [tried, said] of [
    [{ host: "h2", alerts }, /^! alert E1: it leaves a host/],
    [{ host: "h2", alerts: [], refusal }, /^! h2 does not take it now: 64 MiB .* It runs on where it is, until 56 MiB/],
  ] as const) {
    const before = await scene(t, cloud({}, { host: "h1" }, { host: "h2", incarnation: 2 }, tried));
    await moveVm(before.context, "shop/vm", "h2", { ...options, dryRun: true });
    assert.match(before.printed[1] ?? "", said);
  }
  const stuck = await scene(t, cloud({}, { host: "h1" }, stays));
  const { exitCode, message } = await failure(moveVm(stuck.context, "shop/vm", "h2", options));
  assert.equal(exitCode, 4);
  assert.match(message, /shop\/vm has not moved yet: it is to leave h1/);
});
