import assert from "node:assert/strict";
import { test } from "node:test";
import { planChange } from "../../../model/plan/plan.ts";
import { checkDocument } from "../../../model/specification/specification.ts";
import { forceStop } from "./force-stop.ts";
import { failure, type Gateway, scene } from "./scene.testing.ts";

const cellOf = (state: "on" | "off") => {
  const vm = { "x.type": "VM", "x.memory": 64, "x.desiredState": state };
  const result = checkDocument({ shop: { "x.type": "Cell", vm } });
  assert.ok(result.ok);
  return result.value;
};
const answer = {
  vm: "shop/vm",
  host: "h1",
  incarnation: 3,
  unchecked: ["nobody has seen that incarnation 3 has ended"],
  checked: ["its volumes are given to nobody"],
};
const gateway: Gateway = ({ method, url, dryRun }) => {
  if (url.includes("forced-stops")) return { status: 200, body: answer };
  if (method === "PUT")
    return { status: 200, body: { plan: planChange(cellOf("on"), cellOf("off")), version: 5, dryRun } };
  const $state = { phase: "waiting", power: "on", host: "h1", incarnation: 3, reason: null, since: "", uid: "c1-1" };
  return { status: 200, body: { "x.type": "VM", "x.memory": 64, $state } };
};
const options = { yes: false, timeoutMs: 1000 };

test("it says what nobody has looked at, asks, switches the VM off and frees it", async (t) => {
  const { context, asked, printed, questions } = await scene(t, gateway, true);
  await forceStop(context, "shop/vm", options);
  assert.match(printed[0] ?? "", /^! shop\/vm {2}nobody has seen that incarnation 3 has ended/);
  assert.match(printed.at(-1) ?? "", /incarnation 3 counts as stopped, without the word of h1/);
  assert.deepEqual(questions, ["Free shop/vm of h1?"]);
  assert.deepEqual(
    asked.map((request) => request.replace(/\?.*| (undefined|").*/, "")),
    ["PUT /cells/shop/model/shop/vm/x.desiredState", "POST /cells/shop/forced-stops"],
  );
});

test("where nobody says yes nothing is changed", async (t) => {
  const no = await scene(t, gateway, false);
  assert.equal((await failure(forceStop(no.context, "shop/vm", options))).message, "nothing was changed");
  const nobody = await scene(t, gateway);
  assert.match((await failure(forceStop(nobody.context, "shop/vm", options))).message, /add --yes/);
  assert.deepEqual([...no.asked, ...nobody.asked], []);
  await forceStop(nobody.context, "shop/vm", { ...options, yes: true });
  assert.equal(nobody.asked.length, 2);
});
