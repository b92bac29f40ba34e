import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementState } from "../../../model/api.ts";
import type { PowerVerb } from "../../../model/contract/actions/power.ts";
import { planChange } from "../../../model/plan/plan.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { power } from "./power.ts";
import { failure, type Gateway, scene } from "./scene.testing.ts";

const cellOf = (vm: object) => {
  const result = checkDocument({ shop: { "x.type": "Cell", vm: { "x.type": "VM", "x.memory": 64, ...vm } } });
  assert.ok(result.ok);
  return result.value;
};
const options = { wait: true, timeoutMs: 60_000 };

/** A cell with one VM, which is at once what was put. */
const machine = (
  document: object,
  before: Partial<ElementState>,
): Gateway & { readonly put: () => readonly string[] } => {
  const put: string[] = [];
  const gateway: Gateway = ({ method, url, dryRun, body }) => {
    if (url.includes("events")) return { status: 404, body: {} };
    const common = { reason: null, since: "", uid: "c1-1" };
    if (method === "PUT") {
      const [attribute = ""] = /x\.\w+/.exec(url) ?? [];
      const now = { ...document, [attribute]: JSON.parse(body) as unknown };
      if (!dryRun) put.push(`${attribute} ${body}`);
      const plan = planChange(cellOf(document), cellOf(now));
      return { status: 200, body: { plan, version: 5, dryRun } };
    }
    const state =
      put.length === 0 ? { ...common, ...before } : { ...common, phase: "ready", host: "h1", incarnation: 9 };
    const vm = { "x.type": "VM", "x.memory": 64, ...document, $state: state };
    return { status: 200, body: url.includes("/model/shop/vm") ? vm : { shop: { "x.type": "Cell", vm } } };
  };
  return Object.assign(gateway, { put: () => put });
};

test("each verb puts what it takes, and nothing where it is so", async (t) => {
  const runs = { phase: "ready", power: "on" } as const;
  const off = { "x.desiredState": "off" } as const;
  const failed = { phase: "failed", power: "off", stuck: true } as const;
  const cases: readonly (readonly [PowerVerb, object, Partial<ElementState>, readonly string[]])[] = [
    ["stop", {}, runs, ['x.desiredState "off"']],
    ["stop", off, { phase: "ready", power: "off" }, []],
    ["start", off, { phase: "ready", power: "off" }, ['x.desiredState "on"']],
    ["start", {}, runs, []],
    ["start", {}, failed, ["x.restart 1"]],
    ["start", { "x.restart": 4 }, failed, ["x.restart 5"]],
    ["restart", {}, runs, ["x.restart 1"]],
    ["restart", { "x.desiredState": "on", "x.restart": 2 }, runs, ["x.restart 3"]],
  ];
  for (const [verb, document, state, wanted] of cases) {
    const gateway = machine(document, state);
    const { context, printed, asked } = await scene(t, gateway);
    await power(context, verb, "shop/vm", options);
    assert.deepEqual(gateway.put(), wanted, verb);
    for (const request of asked) assert.match(request, / "5"$/, "on the version that was planned");
    assert.equal(/Plan: /.test(printed.join("\n")), wanted.length > 0);
    assert.match(printed.at(-1) ?? "", /^shop\/vm: /);
  }
});

test("a VM that is off is not restarted, and what is no VM is told with those below it", async (t) => {
  const { context } = await scene(t, machine({ "x.desiredState": "off" }, { phase: "ready", power: "off" }));
  const off = await failure(power(context, "restart", "shop/vm", options));
  assert.equal(off.message, "shop/vm is off: `cells start shop/vm` starts it");
  const whole = await failure(power(context, "stop", "shop", options));
  assert.deepEqual([whole.exitCode, whole.message], [2, "shop is no VM; these are: shop/vm"]);
});
