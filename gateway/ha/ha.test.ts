import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createHaManager } from "../../core/ha/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { AuditEntry } from "../../model/contract/audit/audit.ts";
import type { HaReport } from "../../model/contract/operator/ha.ts";
import type { Json, JsonObject } from "../../model/json/json.ts";
import { mailNotices, openMailSeal } from "../../runtime/ha/mail.ts";
import { alertNotices, openWebhookSeal } from "../../runtime/ha/notices.ts";
import { haReleases } from "../../runtime/ha/release.ts";
import { servePeers } from "../../runtime/http/https.ts";
import type { PeerHandler } from "../../runtime/http/peer-handler.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerHa } from "./ha.ts";

/* The operator's words on their way: from the gateway over mutual TLS to a real HA Manager, and its refusals back. */
let installation: TestInstallation;
let app: FastifyInstance;
const closers: (() => Promise<void>)[] = [];
const [presence, h1] = [peerName("presence.1"), peerName("host.h1")];
const manager = createHaManager({
  self: peerName("ha-manager"),
  presence: [presence],
  storageManagers: [peerName("storage-manager")],
  hosts: [h1, peerName("host.h2")],
});
let state = manager.restore({ records: new Map(), desiredAt: new Map() });
const give = (input: Parameters<typeof manager.step>[1]) => {
  const stepped = manager.step(state, input, { ms: 1000, wallMs: 1_700_000_000_000 });
  state = stepped.state;
  return stepped.effects;
};

/** What an HA Manager of a later version would say. */
let laterAlert: JsonObject | null = null;
/** Who had something done. */
const had: string[] = [];

before(async () => {
  installation = await createTestInstallation("gateway-ha");
  const { configuration } = await installation.configure(peerName("ha-manager"));
  const request = async (asked: Json, by?: AuditEntry): Promise<Json> => {
    if (by !== undefined) had.push(`${by.who} ${by.source} ${by.verb} ${by.target}`);
    const reply = give({ kind: "request", id: 1, request: asked }).find((effect) => effect.kind === "reply");
    const response = reply?.kind === "reply" ? reply.response : null;
    return laterAlert === null ? response : { ...(response as JsonObject), alerts: [laterAlert] };
  };
  const asked = { service: { request } } as never;
  const notices = alertNotices(await openWebhookSeal(configuration.directory));
  const mail = mailNotices(await openMailSeal(configuration.directory));
  const [words, hooks, mails] = [haReleases, notices, mail].map((each) => each.handler(asked));
  const serve: PeerHandler = (incoming, response) =>
    (mail.answers(incoming.url) ? mails : notices.answers(incoming.url) ? hooks : words)?.(incoming, response);
  closers.push((await servePeers(configuration, serve)).stop);
  app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(400).send(error),
  );
  registerHa(app, (await installation.configure(peerName("gateway"))).configuration);
  give({ kind: "start" });
  const value = {
    vm: "a-1",
    cell: "shop.root",
    path: "shop/web/vm",
    incarnation: 1,
    host: "h1",
    boot: 7,
    lost: "restart",
    priority: 0,
    isolated: "keep",
    storageManager: "storage-manager",
  };
  give({ kind: "desired", from: peerName("controller.shop.root"), key: "protected/a-1", value });
  give({ kind: "request", id: 1, request: { kind: "ha-pause" } });
  const dead = { host: "h1", generation: 1, incarnation: 0, declaredAt: 1, reporters: 1 };
  give({ kind: "actual", from: presence, key: "dead/h1", value: dead });
});
after(async () => {
  await app.close();
  for (const close of closers) await close();
  await installation.remove();
});

const post = async (url: string): Promise<{ readonly status: number; readonly body: HaReport & { error?: Json } }> => {
  const answer = await app.inject({ method: "POST", url });
  return { status: answer.statusCode, body: JSON.parse(answer.body) };
};
const vm = encodeURIComponent("shop.root/web/vm");

test("a VM is left alone and taken up again by its path with its cell's whole name, and refusals come back as they were said", async () => {
  const cancelled = await post(`/ha/cancel?vm=${vm}`);
  assert.equal(cancelled.status, 200);
  assert.deepEqual(had, ["operator 127.0.0.1 cancelHa shop.root/web/vm"]);
  assert.deepEqual(
    cancelled.body.items.map(({ path, step }) => [path, step]),
    [["shop/web/vm", "Cancelled"]],
  );
  const unknown = await post(`/ha/retry?vm=${encodeURIComponent("shop/web/vm")}`);
  assert.equal(unknown.status, 404);
  assert.match(JSON.stringify(unknown.body), /"ha\/nothing".*nothing is being done about shop\/web\/vm/);
  assert.equal((await post(`/ha/retry?vm=${vm}`)).body.items[0]?.step, "Investigating");
  await post("/ha/release");
  const begun = await post(`/ha/cancel?vm=${vm}`);
  assert.equal(begun.status, 409);
  assert.match(JSON.stringify(begun.body), /"ha\/begun".*is at Fencing/);
  assert.equal((await post("/ha/cancel")).status, 400, "which one is to be said");
});

test("an alert is acknowledged by its kind and subject, and one that is not open is refused", async () => {
  await post("/ha/pause");
  const answer = await post("/alerts/acknowledge?kind=paused");
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.ok(answer.body.alerts?.find(({ kind }) => kind === "paused")?.acknowledged !== undefined);
  assert.equal(had.at(-1), "operator 127.0.0.1 acknowledgeAlert paused");
  const unknown = await post("/alerts/acknowledge?kind=unfenced&subject=h9");
  assert.equal(unknown.status, 404);
  assert.match(JSON.stringify(unknown.body), /there is no open alert .*unfenced.* about h9; `cells alerts` shows/);
  assert.equal((await post("/alerts/acknowledge")).status, 400, "which one is to be said");
});

test("an HA Manager of a later version is passed on with kinds of alerts that the gateway does not know", async () => {
  laterAlert = { kind: "lukewarm", subject: "h1", since: "2026-11-26T20:00:00Z", sentence: "h1 is lukewarm" };
  const answer = await app.inject({ method: "GET", url: "/ha" });
  assert.equal(answer.statusCode, 200, answer.body);
  assert.deepEqual(JSON.parse(answer.body).alerts, [laterAlert]);
  laterAlert = null;
});

test("a webhook goes to the HA Manager with its secret sealed, and none that leads into the installation does", async () => {
  const put = async (body: object): Promise<{ readonly status: number; readonly text: string }> => {
    const headers = { "content-type": "application/json" };
    const answer = await app.inject({ method: "PUT", url: "/alerts/webhook", headers, payload: JSON.stringify(body) });
    return { status: answer.statusCode, text: answer.body };
  };
  const secret = "correct horse battery staple";
  for (const url of [
    "http://10.0.0.2/",
    "https://localhost:8443/x",
    "http://169.254.169.254/latest",
    "http://[::1]/",
  ]) {
    const { status, text } = await put({ url, secret });
    assert.deepEqual(
      [status, /alerts\/webhook.*a webhook is outside of them/.test(text)],
      [409, true],
      `${url}: ${text}`,
    );
  }
  for (const body of [
    { url: "ftp://192.0.2.7/", secret },
    { url: "http://u:p@192.0.2.7/", secret },
    { url: "http://192.0.2.7/" },
  ])
    assert.equal((await put(body)).status, 400, JSON.stringify(body));
  const short = await put({ url: "http://192.0.2.7/", secret: "short" });
  assert.deepEqual([short.status, short.text.includes('"short"')], [400, false], "what is wrong is not shown again");
  assert.deepEqual(await put({ url: "http://192.0.2.7/cells", secret }), {
    status: 200,
    text: '{"url":"http://192.0.2.7/cells"}',
  });
  assert.equal(had.at(-1), "operator 127.0.0.1 setWebhook webhook");
  assert.deepEqual(state.notices.receiver?.url, "http://192.0.2.7/cells");
  assert.ok(!JSON.stringify(state.notices.receiver).includes(secret));
  const removed = await app.inject({ method: "DELETE", url: "/alerts/webhook" });
  assert.equal(removed.body, '{"wasThere":true}');
});

test("a mail server goes to the HA Manager with its password sealed, and none that is inside does", async () => {
  const put = async (body: object): Promise<{ readonly status: number; readonly text: string }> => {
    const headers = { "content-type": "application/json" };
    const answer = await app.inject({ method: "PUT", url: "/alerts/mail", headers, payload: JSON.stringify(body) });
    return { status: answer.statusCode, text: answer.body };
  };
  const login = { user: "cells", password: "correct horse battery staple" };
  const word = { server: "192.0.2.7:465", from: "cells@example.com", to: "oncall@example.com", login };
  for (const server of ["10.0.0.2", "localhost:25", "169.254.169.254", "127.0.0.1:587"]) {
    const { status, text } = await put({ ...word, server });
    assert.deepEqual([status, /alerts\/mail.*a mail server is outside of them/.test(text)], [409, true], text);
  }
  for (const wrong of [
    { to: "oncall@example.com, all@example.com" },
    { from: "cells@example.com\r\nBcc: all@example.com" },
    { server: "-oProxyCommand" },
    { login: { user: "cells" } },
    { ca: "no certificate" },
  ])
    assert.equal((await put({ ...word, ...wrong })).status, 400, JSON.stringify(wrong));
  const text = '{"server":"192.0.2.7:465","to":"oncall@example.com"}';
  assert.deepEqual(await put(word), { status: 200, text });
  assert.equal(had.at(-1), "operator 127.0.0.1 setMail mail");
  assert.equal(state.mail.receiver?.server, "192.0.2.7:465");
  assert.ok(!JSON.stringify(state.mail.receiver).includes(login.password));
  const report = await app.inject({ method: "GET", url: "/ha" });
  assert.match(
    report.body,
    /"mail":\{"server":"192\.0\.2\.7:465","to":"oncall@example\.com","waiting":1,"said":null\}/,
  );
  const removed = await app.inject({ method: "DELETE", url: "/alerts/mail" });
  assert.equal(removed.body, '{"wasThere":true}');
});
