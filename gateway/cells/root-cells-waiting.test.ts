import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Ipv4, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { hashCredential } from "../../runtime/http/bearer.ts";
import { type PeerServer, servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import type { ProcessConfiguration } from "../../runtime/installation.ts";
import { RefusedError } from "../requests/refused.ts";
import { createRootCells } from "./root-cells.ts";

/** What the gateway says while a root controller, here a stand-in, has no cell for it. */
const authorization = "Bearer open-sesame";
let installation: TestInstallation;
let root: PeerServer | null = null;
let rootConfiguration: ProcessConfiguration;
let gateway: ProcessConfiguration;
const asked: string[] = [];
let answers: Readonly<Record<string, readonly [status: number, json: Json]>> = {};

before(async () => {
  installation = await createTestInstallation("waiting");
  const address = "127.0.0.1" as Ipv4;
  rootConfiguration = (await installation.configure(peerName("controller.root"), { change: { address } }))
    .configuration;
  root = await servePeers(rootConfiguration, ({ method, url, headers }, response) => {
    assert.equal(headers.authorization, authorization);
    asked.push(`${method} ${url}`);
    const [status, json] = answers[`${method} ${url.split("?")[0]}`] ?? [200, {}];
    // As if held back for a moment.
    setTimeout(() => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json)), 5);
  });
  gateway = (await installation.configure(peerName("gateway"))).configuration;
});
after(async () => {
  await root?.stop();
  await installation.remove();
});

const noUsers = { ticketFor: () => assert.fail("there are no users"), forget: () => undefined };
const cells = (longestMs: number) => createRootCells(gateway, [hashCredential("open-sesame")], noUsers, longestMs);
/** Long enough for some requests on a busy machine. */
const notLongMs = 1_500;
const refusalOf = async (longestMs: number, cell = "shop"): Promise<RefusedError> => {
  const error = await cells(longestMs)
    .make(cell, authorization, new AbortController().signal)
    .then(
      () => assert.fail("it was made"),
      (thrown: unknown) => thrown,
    );
  assert.ok(error instanceof RefusedError, String(error));
  return error;
};
const state = (phase: string, reason: string | null): Json => ({ $state: { phase, reason } });

test("a controller that does not start in time is said to be on its way, with what holds it up", async () => {
  const verdict = 'root/controllers/my--shop/vm is held up at "placement": no host has 160 MiB';
  answers = {
    "GET /cells/root/model/root/cells/my-shop": [200, state("working", "its controller is being made")],
    "GET /cells/root/why": [200, { verdict }],
  };
  const { statusCode, message } = await refusalOf(notLongMs, "my-shop");
  assert.equal(statusCode, 503);
  assert.match(
    message,
    /has not started within .* no host has 160 MiB. It goes on: .*cells delete root\/cells\/my-shop/,
  );
  assert.ok(asked.includes("GET /cells/root/why?element=root%2Fcontrollers%2Fmy--shop%2Fvm"), asked.join("\n"));
  answers = { ...answers, "GET /cells/root/why": [404, { error: { code: "not-found", message: "no element" } }] };
  assert.match((await refusalOf(notLongMs, "my-shop")).message, /its controller is being made/);
  // Applied again, once it has started; and taken back.
  answers = { "GET /cells/root/model/root/cells/my-shop": [200, state("ready", null)] };
  await cells(60_000).make("my-shop", authorization, new AbortController().signal);
  asked.length = 0;
  await cells(60_000).end("my-shop", authorization);
  assert.deepEqual(asked, ["DELETE /cells/root/model/root/cells/my-shop"]);
});

test("what the root cell refuses, the client is told as it is; what cannot be made leaves nothing behind", async () => {
  const error = { code: "cell/limits", message: "with it root would have 5 VMs, and 4 are allowed" };
  answers = { "PUT /cells/root/model/root/cells/shop": [400, { error }] };
  const refused = await refusalOf(5_000);
  assert.deepEqual([refused.statusCode, refused.refusal], [400, error]);
  answers = {
    "GET /cells/root/model/root/cells/shop": [200, state("failed", "the name shop is that of another cell")],
  };
  asked.length = 0;
  assert.match((await refusalOf(5_000)).message, /could not be made: the name shop is that of another cell/);
  assert.equal(asked.at(-1), "DELETE /cells/root/model/root/cells/shop");
});

test("without the root controller, the cells that are there are known, and none is made or ended", async () => {
  await installation.configure(peerName("controller.shop"));
  await root?.stop();
  root = null;
  assert.equal(await cells(100).has("shop"), true);
  assert.equal(await cells(100).has("none"), false);
  assert.deepEqual([...(await cells(100).names(authorization))].sort(), ["root", "shop"]);
  assert.equal(await cells(100).isMade("shop", authorization), true);
  assert.match((await refusalOf(100, "new")).message, /the controller of the root cell, .* does not answer/);
  await assert.rejects(cells(100).end("shop", authorization), /does not answer/);
  assert.equal(cells(100).mayEnd("Bearer shop.00000000.x"), false);
  assert.equal(cells(100).mayEnd(authorization), true);
});
