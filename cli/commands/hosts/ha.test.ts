import assert from "node:assert/strict";
import { test } from "node:test";
import type { HaReport } from "../../../model/contract/operator/ha.ts";
import { failure, type Gateway, scene } from "../model/scene.testing.ts";
import { acknowledgeAlert, listAlerts, listHa, orderHa, setMail, setWebhook, whyHa } from "./ha.ts";
import { hostPower, type PowerOptions } from "./power.ts";

const report: HaReport = {
  protected: 2,
  storm: null,
  alerts: [],
  items: [],
  power: [{ host: "h1", kind: "ipmi", address: "10.9.0.1", uuid: "u", said: "its controller reads on" }],
};

/** Of all cells it says these. */
const answers =
  (body: object, cells: readonly object[] = []): Gateway =>
  ({ url }) => ({ status: 200, body: url.startsWith("/cells") ? cells : body });

test("cells ha says whose power can be cut, and what the controller said last; an older HA Manager says nothing of it", async (t) => {
  const { context, printed } = await scene(t, answers(report));
  await listHa(context);
  assert.equal(printed[0], "the power of h1 can be cut by ipmi at 10.9.0.1: its controller reads on");
  const plugged = {
    host: "h2",
    kind: "agent",
    agent: "fence_apc",
    address: "10.9.0.5",
    plug: "7",
    uuid: "",
    said: null,
  };
  const agent = await scene(t, answers({ ...report, power: [plugged] }));
  await listHa(agent.context);
  assert.equal(agent.printed[0], "the power of h2 can be cut by fence_apc at 10.9.0.5, plug 7");
  const { power: _power, ...older } = report;
  const before = await scene(t, answers(older));
  await listHa(before.context);
  assert.match(before.printed[0] ?? "", /^2 running VMs are looked after/);
});

test("of an HA Manager that did not answer it is said that its part is missing, wherever the rest is shown", async (t) => {
  const silent = [{ manager: "ha-manager.2", sentence: "the HA Manager does not answer: it is away" }];
  const { context, printed } = await scene(t, answers({ ...report, silent }));
  await listHa(context);
  await listAlerts(context);
  const line = "what ha-manager.2 looks after is not shown: the HA Manager does not answer: it is away";
  assert.deepEqual(
    printed.filter((each) => each === line),
    [line, line],
  );
  await assert.rejects(
    whyHa(context, "shop/web/vm"),
    /ha-manager\.2 looks after is not shown.*\nnothing was to be done/s,
  );
});

test("of a cell whose HA Manager is gone it is said wherever people look, and where that is not known, that as well", async (t) => {
  const unguarded = "ha-manager.2, which looks after the machines of shop, is gone: do this";
  const services = { placer: 1, storageManager: 1, haManager: 2 };
  const bank = { cell: "bank", version: 1, phases: { ready: 1 }, elements: 1, services };
  const shop = { ...bank, cell: "shop", services: { ...services, unguarded } };
  const { context, printed } = await scene(t, answers(report, [shop, bank]));
  await listHa(context);
  await listAlerts(context);
  assert.equal(printed.filter((line) => line === unguarded).length, 2);
  await assert.rejects(whyHa(context, "shop/web/vm"), /ha-manager\.2, .* is gone: do this\nnothing was to be done/);
  await assert.rejects(
    whyHa(context, "bank/web/vm"),
    /^[^\n]*nothing was to be done/,
    "that is another cell's trouble",
  );
  const bySince = "2026-11-26T20:00:00Z";
  const alert = { kind: "unguarded", subject: "ha-manager.2", since: bySince, sentence: "it is gone" } as const;
  const told = await scene(t, answers({ ...report, alerts: [alert] }, [shop, bank]));
  await listAlerts(told.context);
  assert.ok(!told.printed.includes(unguarded), "the alert says it");
  assert.ok(told.printed.some((line) => /^unguarded +ha-manager\.2 .* it is gone$/.test(line)));
  const deaf = await scene(t, ({ url }) =>
    url.startsWith("/cells")
      ? { status: 503, body: { error: { code: "x", message: "nobody answers" } } }
      : { status: 200, body: report },
  );
  await listHa(deaf.context);
  assert.match(
    deaf.printed[0] ?? "",
    /^whether each cell has an HA Manager that is there is not known: .*nobody answers/,
  );
});

test("cancel and retry name the VM, and a refusal is said as it came", async (t) => {
  const asked: string[] = [];
  const gateway: Gateway = ({ method, url }) => {
    asked.push(`${method} ${url}`);
    const error = { code: "ha/begun", message: "shop/web/vm is at Fencing" };
    return url.startsWith("/ha/retry") ? { status: 200, body: report } : { status: 409, body: { error } };
  };
  const { context } = await scene(t, gateway);
  await orderHa(context, "retry", "shop/web/vm");
  await assert.rejects(orderHa(context, "cancel", "shop/web/vm"), /is at Fencing/);
  assert.deepEqual(asked, ["POST /ha/retry?vm=shop%2Fweb%2Fvm", "POST /ha/cancel?vm=shop%2Fweb%2Fvm"]);
});

test("a controller is registered with what a file says, never with a word of the command", async (t) => {
  const bodies: string[] = [];
  const uuid = "00112233-4455-6677-8899-aabbccddeeff";
  const gateway: Gateway = ({ body }) => {
    bodies.push(body);
    return { status: 200, body: { host: "h2", kind: "ipmi", address: "10.9.0.2", uuid, power: "on" } };
  };
  const { context, printed, file } = await scene(t, gateway);
  await hostPower(context, "h2", { ipmi: "10.9.0.2", user: "cells", passwordFile: file, cipherSuite: "3" });
  const sent = JSON.parse(bodies[0] ?? "") as Record<string, unknown>;
  assert.deepEqual([sent.kind, sent.address, sent.user, sent.suite], ["ipmi", "10.9.0.2", "cells", 3]);
  assert.match(String(sent.password), /"shop"/, "the file's content");
  assert.deepEqual(printed, [`10.9.0.2 reads h2 as on, with its UUID ${uuid}; nothing was switched`]);
  for (const [options, why] of [
    [{ user: "cells", passwordFile: file }, /say one of --ipmi ADDRESS, --redfish ADDRESS and --agent PROGRAM/],
    [{ ipmi: "a", redfish: "b", user: "cells", passwordFile: file }, /say one of/],
    [{ ipmi: "a", passwordFile: file }, /--user NAME/],
    [{ ipmi: "a", user: "cells", passwordFile: file, cipherSuite: "1" }, /--cipher-suite is 17 or 3, and not 1/],
    [{ redfish: "a", user: "cells", passwordFile: file, fingerprint: "ab" }, /--fingerprint is the SHA-256/],
    [{ ipmi: "a", user: "cells", passwordFile: `${file}.not` }, /cannot be read/],
  ] as const) {
    const { exitCode, message } = await failure(hostPower(context, "h2", options));
    assert.equal(exitCode, 2);
    assert.match(message, why);
  }
  assert.equal(bodies.length, 1, "nothing was asked for any of these");
});

test("of an agent everything is said that it is told, and that the plug is the machine's is the operator's word", async (t) => {
  const bodies: string[] = [];
  const gateway: Gateway = ({ body }) => {
    bodies.push(body);
    return { status: 200, body: { host: "h2", kind: "agent", address: "10.9.0.5", uuid: "", power: "on" } };
  };
  const { context, printed, file } = await scene(t, gateway);
  const agent = { agent: "fence_apc", address: "10.9.0.5", user: "cells", passwordFile: file };
  await hostPower(context, "h2", { ...agent, plug: "7,8", option: ["ssh=1", "cmd_prompt=apc>"] });
  const { password: _password, ...sent } = JSON.parse(bodies[0] ?? "") as Record<string, unknown>;
  assert.deepEqual(sent, {
    kind: "agent",
    agent: "fence_apc",
    address: "10.9.0.5",
    user: "cells",
    plug: "7,8",
    options: { ssh: "1", cmd_prompt: "apc>" },
  });
  assert.match(
    printed[0] ?? "",
    /^fence_apc at 10.9.0.5, plug 7,8, reads on, twice, while h2 is up; nothing was switched/,
  );
  assert.match(printed[0] ?? "", /it counts by your word$/);
  for (const [options, why] of [
    [{ ...agent, address: undefined }, /--address ADDRESS/],
    [{ ...agent, user: undefined }, /--user NAME/],
    [{ ...agent, ipmi: "10.9.0.2" }, /say one of/],
    [{ ...agent, option: ["ssh"] }, /--option is NAME=VALUE, and not ssh/],
    [{ ...agent, cipherSuite: "3" }, /are not said of an --agent/],
    [{ ipmi: "10.9.0.2", user: "cells", plug: "7" }, /--plug is said of an --agent alone/],
  ] as const) {
    const { exitCode, message } = await failure(hostPower(context, "h2", options as PowerOptions));
    assert.equal(exitCode, 2);
    assert.match(message, why);
  }
  assert.equal(bodies.length, 1);
});

test("cells alerts says what waits, who looks after it, and where it is told to", async (t) => {
  const alert = { kind: "unfenced", subject: "h2", since: "2026-11-26T20:00:00Z", sentence: "bring s1 back" } as const;
  const told: HaReport = {
    ...report,
    alerts: [alert, { ...alert, kind: "paused", subject: "", acknowledged: "2026-11-26T20:01:00Z" }],
    webhook: { url: "https://pager.example.com/cells", waiting: 2, said: "no answer within 10 s" },
  };
  const { context, printed } = await scene(t, answers(told));
  await listAlerts(context);
  assert.equal(
    printed[0],
    "alerts are told to https://pager.example.com/cells; 2 to be told there: no answer within 10 s",
  );
  assert.match(printed[2] ?? "", /^unfenced +h2 +2026-11-26T20:00:00Z +bring s1 back$/);
  assert.match(printed[3] ?? "", /^paused .* \(acknowledged 2026-11-26T20:01:00Z\) bring s1 back$/);
  const none = await scene(t, answers(report));
  await listAlerts(none.context);
  assert.deepEqual(none.printed, ["nothing waits for you"]);
});

test("cells alerts says what the gateway warns of, too", async (t) => {
  const warnings = ["the page's certificate for cells.example.com ends in 3 days\u001b[2J"];
  const status = { services: [], hosts: [], servers: [], warnings };
  const others = answers(report);
  const { context, printed } = await scene(t, (asked) =>
    asked.url === "/status" ? { status: 200, body: status } : others(asked),
  );
  await listAlerts(context);
  assert.deepEqual(printed, [
    "the page's certificate for cells.example.com ends in 3 days\ufffd[2J",
    "nothing waits for you",
  ]);
});

test("kinds, types and steps of a later version are shown as they are, without control characters", async (t) => {
  const alert = { kind: "luke\u001bwarm", subject: "h2", since: "2026-11-26T20:00:00Z", sentence: "see to it" };
  const item = {
    type: "Evacuation",
    step: "Thinking",
    vm: "a-1",
    cell: "shop",
    path: "shop/vm",
    incarnation: 1,
    host: "h2",
    reason: "h2 is lukewarm",
    outcome: null,
    held: null,
    fencedBy: "hammer",
    investigators: [],
    fencers: [],
    scheduled: "2026-11-26T20:00:00Z",
    since: "2026-11-26T20:00:00Z",
  };
  const { context, printed } = await scene(t, answers({ ...report, alerts: [alert], items: [item] }));
  await listAlerts(context);
  assert.match(printed[1] ?? "", /^luke\ufffdwarm +h2 .* see to it$/);
  await listHa(context);
  assert.match(printed.at(-1) ?? "", /^Thinking +Evacuation +shop\/vm +h2 .* h2 is lukewarm$/);
});

test("an alert is acknowledged by what is shown of it; a webhook's secret comes from a file, never from the command", async (t) => {
  const asked: string[] = [];
  const gateway: Gateway = ({ method, url, body }) => {
    asked.push(`${method} ${url} ${body}`.trim());
    if (method === "PUT") return { status: 200, body: { url: JSON.parse(body).url } };
    return { status: 200, body: method === "DELETE" ? { wasThere: true } : report };
  };
  const { context, printed, file } = await scene(t, gateway);
  await acknowledgeAlert(context, "held", "shop:shop/web");
  await acknowledgeAlert(context, "paused", undefined);
  assert.deepEqual(asked, [
    "POST /alerts/acknowledge?kind=held&subject=shop%3Ashop%2Fweb",
    "POST /alerts/acknowledge?kind=paused",
  ]);
  const url = "https://pager.example.com/cells";
  await setWebhook(context, url, { secretFile: file });
  const { secret } = JSON.parse(asked[2]?.slice("PUT /alerts/webhook ".length) ?? "") as { readonly secret: string };
  assert.match(secret, /"shop"/, "the file's content");
  assert.match(printed.at(-1) ?? "", /^alerts are told to https:\/\/pager\.example\.com\/cells, and a first notice/);
  await setWebhook(context, undefined, { remove: true });
  assert.equal(printed.at(-1), "alerts are told to nobody any more");
  for (const [where, options, why] of [
    [undefined, {}, /say a URL, or --remove/],
    [url, { remove: true }, /say a URL, or --remove/],
    [url, { secretFile: `${file}.not` }, /cannot be read/],
  ] as const) {
    const { exitCode, message } = await failure(setWebhook(context, where, options));
    assert.equal(exitCode, 2);
    assert.match(message, why);
  }
});

test("a mail server's password comes from a file, and only where somebody logs in", async (t) => {
  const asked: string[] = [];
  const gateway: Gateway = ({ method, url, body }) => {
    asked.push(`${method} ${url} ${body}`.trim());
    if (method === "PUT") return { status: 200, body: { server: "mail.example.com", to: "oncall@example.com" } };
    return { status: 200, body: { wasThere: true } };
  };
  const { context, printed, file } = await scene(t, gateway);
  const options = { server: "mail.example.com", from: "cells@example.com" };
  await setMail(context, "oncall@example.com", options);
  assert.equal(asked[0], `PUT /alerts/mail ${JSON.stringify({ ...options, to: "oncall@example.com" })}`);
  await setMail(context, "oncall@example.com", { ...options, user: "cells", passwordFile: file });
  const { login } = JSON.parse(asked[1]?.slice("PUT /alerts/mail ".length) ?? "") as {
    readonly login: { readonly user: string; readonly password: string };
  };
  assert.equal(login.user, "cells");
  assert.match(login.password, /"shop"/, "the file's content");
  assert.match(
    printed.at(-1) ?? "",
    /^alerts are told to oncall@example\.com by mail\.example\.com, and a first message/,
  );
  await setMail(context, undefined, { remove: true });
  assert.equal(printed.at(-1), "alerts are told to nobody by mail any more");
  for (const [to, wrong, why] of [
    [undefined, options, /say an address, or --remove/],
    ["oncall@example.com", { from: "cells@example.com" }, /say --server and --from/],
    ["oncall@example.com", { ...options, passwordFile: file }, /say --user/],
    ["oncall@example.com", { ...options, user: "cells", passwordFile: `${file}.not` }, /cannot be read/],
  ] as const) {
    const { exitCode, message } = await failure(setMail(context, to, wrong));
    assert.equal(exitCode, 2);
    assert.match(message, why);
  }
});
