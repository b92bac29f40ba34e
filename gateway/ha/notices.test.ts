import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { AlertNotice } from "../../model/contract/operator/ha.ts";
import { alertNotices, openWebhookSeal } from "../../runtime/ha/notices.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { startHaManager, until } from "./manager.testing.ts";
import { followNotices, isOutside, outsideOf, postNotice } from "./notices.ts";

const anywhere = (): boolean => true;
const secret = "correct horse battery staple";

interface Posted {
  readonly body: string;
  readonly headers: IncomingMessage["headers"];
}
/** A machine of the operator's; `statuses` in turn, the last one from then on. */
const receiver = async (context: TestContext, ...statuses: readonly number[]) => {
  const posted: Posted[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      posted.push({ body: Buffer.concat(parts).toString(), headers: request.headers });
      const status = statuses[Math.min(posted.length, statuses.length) - 1] ?? 200;
      response.writeHead(status, status === 302 ? { location: "/elsewhere" } : {}).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { posted, url: `http://127.0.0.1:${port}/cells?a=1`, stop: () => server.close() };
};

test("addresses of the installation, of this machine and of nobody are not posted to, in whatever form", () => {
  for (const address of ["10.0.0.2", "10.0.255.1", "127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254", "224.0.0.1"])
    assert.ok(!isOutside(address), address);
  for (const address of ["255.255.255.255", "::1", "::", "fe80::1", "ff02::1", "::ffff:10.0.0.2", "64:ff9b::a00:2"])
    assert.ok(!isOutside(address), address);
  for (const address of ["2002:a00:2::1", "pager", ""]) assert.ok(!isOutside(address), address);
  for (const address of ["192.0.2.7", "10.1.0.1", "192.168.1.5", "2001:db8::7"]) assert.ok(isOutside(address), address);
});

test("a name that leads inside is refused with what it leads to, and so is an address that is written another way", async (context) => {
  for (const url of [
    "http://localhost/",
    "http://0x7f.1/",
    "http://2130706433/",
    "https://[::1]:8443/",
    "http://10.2/",
  ])
    await assert.rejects(outsideOf(new URL(url)), /leads to .*, which is an address of the installation/, url);
  assert.equal(await outsideOf(new URL("https://192.0.2.7/x")), "192.0.2.7");
  const there = await receiver(context, 200);
  const notice = { number: 1, url: there.url, body: "{}", signature: "t=1,v1=0" };
  assert.match((await postNotice(notice)) ?? "", /127\.0\.0\.1, which is an address of/);
  assert.deepEqual(there.posted, [], "nothing was sent");
  there.stop();
});

test("only 2xx is an answer: a redirect is not followed, and who does not answer is said", async (context) => {
  const there = await receiver(context, 302, 500, 204);
  const notice = { number: 1, url: there.url, body: "{}", signature: "t=1,v1=0" };
  assert.match((await postNotice(notice, anywhere)) ?? "", /answered with 302, and only 2xx is an answer/);
  assert.match((await postNotice(notice, anywhere)) ?? "", /answered with 500/);
  assert.equal(await postNotice(notice, anywhere), null);
  assert.equal(there.posted.length, 3);
  there.stop();
  assert.match((await postNotice({ ...notice, url: "http://127.0.0.1:1/" }, anywhere)) ?? "", /ECONNREFUSED/);
});

test("alerts go from a real HA Manager over mutual TLS to the operator's machine, signed, once each, also when it was away", async (context) => {
  const { configuration, gateway, request, written, now, remove } = await startHaManager("gateway-notices");
  const seal = await openWebhookSeal(configuration.directory);
  const served = await servePeers(configuration, alertNotices(seal).handler({ service: { request } } as never));
  const there = await receiver(context, 200, 503, 200);
  let connections = 0;
  const connected = (message: unknown): void => {
    if ((message as { readonly socket: Socket }).socket.localPort === served.port) connections += 1;
  };
  subscribe("net.server.socket", connected);
  const end = followNotices(gateway, anywhere);
  try {
    await request({ kind: "ha-webhook-set", webhook: { url: there.url, sealed: seal.seal(secret) } });
    await until(() => there.posted.length === 1);
    await request({ kind: "ha-pause" });
    await request({ kind: "ha-release" });
    await until(() => there.posted.length === 4);
    const told = there.posted.map(({ body }) => JSON.parse(body) as AlertNotice);
    assert.deepEqual(
      told.map(({ number, event, alert }) => `${number} ${event} ${alert?.kind ?? ""}`.trim()),
      ["1 test", "2 opened paused", "2 opened paused", "3 ended paused"],
    );
    for (const { body, headers } of there.posted) {
      const [, seconds = "", hash] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["cells-signature"])) ?? [];
      assert.equal(hash, createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex"));
      assert.ok(Math.abs(Number(seconds) - Date.now() / 1000) < 60);
      assert.equal(headers["cells-notice"], `${(JSON.parse(body) as AlertNotice).number}`);
    }
    await until(() => now().notices.queue.size === 0);
    assert.ok(!written.join().includes(secret), "the secret is in no record and in no event");
    assert.equal(connections, 1, "all of it was asked and said over one connection");
  } finally {
    unsubscribe("net.server.socket", connected);
    end();
    there.stop();
    await served.stop();
    await remove();
  }
});
