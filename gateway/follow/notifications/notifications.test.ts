import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { FastifyInstance } from "fastify";
import { peerName } from "../../../model/cell/identifiers.ts";
import { read } from "../../../model/contract/schema.ts";
import { type CellNotice, cellNews, type SubscriptionSummary } from "../../../model/contract/tenancy/subscriptions.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import { Fault } from "../../../model/json/reader.ts";
import { hashCredential } from "../../../runtime/http/bearer.ts";
import { createTestInstallation, eventually, type TestInstallation } from "../../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../../runtime/installation.ts";
import { createObserver } from "../../../runtime/observation/observer.ts";
import { freePort } from "../../../runtime/process/free-port.testing.ts";
import { createGateway } from "../../gateway.ts";
import { listenInside } from "../../shared/listen.ts";
import { askGateway, given } from "../../tenancy/asking.testing.ts";
import { isReceiver } from "./receivers.ts";

/* Notices from end to end: `tenancy` and a cell's controller are processes of their own, this one is the gateway and the receiver. */
const operator = "open-sesame-of-the-operator";
const password = "a horse of another colour";
const secret = "what nobody else knows here";
const main = fileURLToPath(new URL("../../../runtime/main.ts", import.meta.url));
const doors = fileURLToPath(new URL("../../main.ts", import.meta.url));
const addressOf = (number: number): string => `127.${60 + (process.pid % 60)}.${(process.pid >> 6) % 250}.${number}`;
const credentialHashes = [hashCredential(operator)];

let installation: TestInstallation;
let app: FastifyInstance;
let url = "";
let supervisor: Server;
let receiver: Server;
/** Where CaaS asks the gateway. */
let inside = 0;
let endInside: (() => void) | null = null;
let there = "";
/** Whether addresses are judged as in an installation; else the receiver of this test is let in. */
let isStrict = false;
const programs: ChildProcess[] = [];
let said = "";
const posted: { readonly body: string; readonly signature: string }[] = [];
const cells: string[] = [];

const start = async (name: string, change: Partial<ProcessConfiguration>, program = main): Promise<void> => {
  const { file } = await installation.configure(peerName(name), { change });
  const child = spawn(process.execPath, [program, file], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  programs.push(child);
};
const startCell = async (cell: string): Promise<void> => {
  cells.push(cell);
  const number = cells.length;
  const names = { cell, cellUid: `c${number}`, cellNumber: number, domain: "cells.internal" };
  const controller = { ...names, mac: `02:00:00:00:00:0${number}`, credentialHashes };
  await start(`controller.${cell}`, { role: "controller", address: addressOf(1 + number), controller });
};
before(async () => {
  installation = await createTestInstallation("notifications");
  const supervisorSocket = join(installation.directory, "supervisor");
  supervisor = createServer(async ({ method, url: path = "" }, response) => {
    const cell = path.split("/")[2] ?? "";
    if (method === "POST" && !cells.includes(cell)) await startCell(cell);
    response.setHeader("content-type", "application/json").end(JSON.stringify(method === "GET" ? cells : {}));
  });
  supervisor.listen(supervisorSocket);
  await once(supervisor, "listening");
  receiver = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString();
      posted.push({ body, signature: String(request.headers["cells-signature"]) });
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  there = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook?who=ann`;
  await start("tenancy", { role: "tenancy", tenancy: { credentialHashes } });
  const gateway = { listenFd: -1, supervisorSocket, credentialHashes };
  const { configuration } = await installation.configure(peerName("gateway"), { change: { role: "gateway", gateway } });
  app = createGateway(configuration, createObserver(configuration.name), {
    receivers: async () => (address) => (isStrict ? isReceiver(address, []) : address === "127.0.0.1"),
  });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  inside = await freePort();
  endInside = await listenInside(app, configuration, { address: "127.0.0.1", port: inside });

  await eventually("tenancy answers", async () => (await ask("GET", "/whoami")).status === 200);
});
after(async () => {
  endInside?.();
  await app?.close();
  for (const child of programs) {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  supervisor?.close();
  receiver?.close();
  await installation?.remove();
});
const ask = (method: string, path: string, credential = operator, body?: Json | object) =>
  askGateway(url, [method, path], credential, body);
const done = async (...asked: Parameters<typeof ask>): Promise<JsonObject> => given(await ask(...asked), asked);
const notices = (): readonly CellNotice[] => posted.map(({ body }) => JSON.parse(body) as CellNotice);
const textOf = ({ kind, cell, events }: CellNotice): string =>
  [kind, cell, ...events.map(({ event, path, phase }) => `${event} ${path ?? ""} ${phase ?? "-"}`)].join(", ");
const off = { "x.type": "VM", "x.memory": 64, "x.desiredState": "off" };

test("whoever may read a cell is told at his URL what becomes of it, signed, until he may not; what leads inside is never posted to", async () => {
  await done("POST", "/accounts", operator, { path: "ROOT/dev" });
  const made = await done("POST", "/users", operator, {
    name: "ann",
    account: "ROOT/dev",
    role: "account-admin",
    password,
  });
  const { session: ann } = (await done("POST", "/logins", operator, { user: "ann", domain: "ROOT", password })) as {
    readonly session: string;
  };
  const model = { shop: { "x.type": "Cell", web: off } };
  await eventually("the cell is made", async () => (await ask("PUT", "/cells/shop/model", ann, model)).status === 200);
  const asked = { url: there, secret, cells: ["shop"] };
  const first = (await done("POST", "/subscriptions", ann, asked)) as unknown as SubscriptionSummary;
  await eventually("the test and the beginning are there", () => posted.length >= 2);
  assert.equal(textOf(notices()[0] as CellNotice), "test, ");
  assert.match(textOf(notices()[1] as CellNotice), /^began, shop, cell {2}\w+$/);

  await done("PATCH", "/cells/shop/model", ann, [{ op: "add", path: "/shop/db", value: off }]);
  const seen = (text: RegExp): boolean => notices().some((notice) => text.test(textOf(notice)));
  await eventually("the new VM is told", () => seen(/^changed, shop,.*vm shop\/db \w+/));
  await done("PATCH", "/cells/shop/model", ann, [{ op: "remove", path: "/shop/db" }]);
  await eventually("that it has gone is told", () => seen(/^changed, shop,.*vm shop\/db -/));
  for (const { body, signature } of posted) {
    const [, seconds = "", hash] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
    assert.equal(hash, createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex"));
    const { kind, cell, events, more } = JSON.parse(body) as CellNotice;
    if (kind !== "test") assert.ok(!(read(cellNews, { kind, cell, events, more } as never) instanceof Fault), body);
  }
  assert.deepEqual(
    notices().map(({ number }) => number),
    posted.map((_, at) => at + 1),
  );

  // The same receiver, judged as in an installation.
  isStrict = true;
  const before = posted.length;
  await done("PATCH", "/cells/shop/model", ann, [{ op: "add", path: "/shop/mail", value: off }]);
  const listed = async (): Promise<SubscriptionSummary> =>
    ((await done("GET", "/subscriptions", ann)) as unknown as readonly SubscriptionSummary[])[0] ?? assert.fail();
  await eventually("it is refused", async () => (await listed()).said !== null);
  assert.match((await listed()).said ?? "", /^it leads to an address that not everybody on the Internet reaches/);
  assert.equal(posted.length, before);
  isStrict = false;
  await eventually("it comes once it may", () => seen(/vm shop\/mail/));

  // The user is disabled: nothing more is read or told for him.
  await done("PUT", `/users/${made.uid}`, operator, { state: "disabled" });
  const last = posted.length;
  await done("PATCH", "/cells/shop/model", operator, [{ op: "remove", path: "/shop/mail" }]);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  assert.equal(posted.length, last);
  await done("PUT", `/users/${made.uid}`, operator, { state: "enabled" });
  const { session: again } = (await done("POST", "/logins", operator, { user: "ann", domain: "ROOT", password })) as {
    readonly session: string;
  };
  await done("DELETE", `/subscriptions/${first.uid}`, again);
  for (const each of [secret, password, ann]) assert.ok(!said.includes(each), "no process has said a secret");
});

test("who may see persistent volumes is told what becomes of them, which CaaS says by a session that opens nothing else", async () => {
  // No user makes that one: it is there before CaaS is.
  await startCell("primary");
  const primary = { primary: { "x.type": "Cell", volumes: {} } };
  await eventually("the primary cell is made", async () => {
    return (await ask("PUT", "/cells/primary/model", operator, primary)).status === 200;
  });
  const part = { note: "CaaS", path: "primary/volumes", access: "write" };
  const { credential } = (await done("POST", "/cells/primary/credentials", operator, part)) as {
    readonly credential: string;
  };
  const credentialFile = join(installation.directory, "caas.credential");
  writeFileSync(credentialFile, credential);
  const httpPort = await freePort();
  const listen = { address: "127.0.0.1", port: httpPort };
  const personality = { listen, gateway: { address: "127.0.0.1", port: inside }, credentialFile };
  await start("personality.caas", { role: "personality.caas", httpPort, personality }, doors);
  await done("POST", "/accounts", operator, { path: "ROOT/ops" });
  await done("POST", "/users", operator, { name: "bob", account: "ROOT/ops", role: "account-admin", password });
  const { session } = (await done("POST", "/logins", operator, { user: "bob", domain: "ROOT", password })) as {
    readonly session: string;
  };
  await eventually("CaaS answers", async () => (await ask("GET", "/volumes", session)).status === 200);
  posted.length = 0;
  await done("POST", "/subscriptions", session, { url: there, secret, cells: [], volumes: true });
  const seen = (text: RegExp): boolean => notices().some((notice) => text.test(textOf(notice)));
  await eventually("the beginning is told", () => seen(/^began, primary$/));
  const { uid } = await done("POST", "/volumes", session, { name: "data", sizeMiB: 64 });
  await eventually("the new one is told", () =>
    seen(new RegExp(`^changed, primary, volume primary/volumes/${uid}/v1 \\w+$`)),
  );
  const hers = posted.length;
  await done("POST", "/volumes", operator, { name: "others", sizeMiB: 64 });
  await done("DELETE", `/volumes/${uid}?allowDestroy=${uid}`, session);
  await eventually("that it is gone is told", () => seen(new RegExp(`volume primary/volumes/${uid}/v1 -$`)));
  for (const { events } of notices().slice(hers))
    assert.ok(
      events.every(({ path }) => path?.includes(String(uid)) === true),
      "and nothing of others'",
    );
});
