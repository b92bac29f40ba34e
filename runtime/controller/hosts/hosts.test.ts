import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { Root, rootWithTenancy } from "../../../core/controller/model/root.testing.ts";
import type { ControllerRequest } from "../../../core/controller/requests/requests.ts";
import { toJson } from "../../../core/outbox.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { hashCredential } from "../../http/bearer.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import { recordResponse } from "../../http/response.testing.ts";
import { createTestInstallation, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { hostHandler } from "./hosts.ts";

/** What is refused before the authority is asked; what it is asked is tried with one in `testbed/hosts/joining.test.ts`. */
let installation: TestInstallation;
let configuration: ProcessConfiguration;
const operator = "o".repeat(43);
const hash = "a".repeat(64);
const other = "b".repeat(64);
const join = { address: "10.0.1.2", host: hash, agent: other };
const controller = {
  cell: "root",
  cellUid: "root",
  cellNumber: 1,
  domain: "cells.internal",
  mac: "02:00:0a:00:00:1f",
  credentialHashes: [hashCredential(operator)],
  root: { management: "10.0.0.0/16", authority: { address: "10.0.0.31", fingerprint: hash } },
};

before(async () => {
  installation = await createTestInstallation("hosts");
  ({ configuration } = await installation.configure(peerName("controller.root")));
  // Nobody listens there.
  const peers = { authority: "127.0.0.1:1:1", "host.h1": "10.0.1.1", "agent.h2": "10.0.1.2:7130:7131" };
  writeFileSync(configuration.peersFile, JSON.stringify({ peers }));
});
after(() => installation.remove());

let root = new Root();
const asked = async (
  name: string,
  body: unknown,
  { credential = operator, isRoot = true }: { readonly credential?: string; readonly isRoot?: boolean } = {},
): Promise<{ readonly status: number; readonly message: string }> => {
  const recorded = recordResponse();
  const { root: _root, ...elsewhere } = controller;
  const incoming = {
    peer: peerName("gateway"),
    method: "PUT",
    url: `/cells/root/hosts/${name}`,
    headers: { authorization: `Bearer ${credential}` },
    body: Readable.from([Buffer.from(typeof body === "string" ? body : JSON.stringify(body))]),
  } as unknown as PeerRequest;
  const request = async (request: Json): Promise<Json> => toJson(root.ask(request as unknown as ControllerRequest));
  const context = { configuration, controller: isRoot ? controller : elsewhere, request };
  await hostHandler(context, incoming, recorded.response, { rest: [name], byOperator: credential === operator });
  return { status: recorded.status, message: JSON.parse(recorded.text).error.message };
};

test("the operator's credential alone lets machines in, and at the root cell alone", async () => {
  assert.equal((await asked("h2", join, { credential: "root.00000000.secret" })).status, 403);
  assert.equal((await asked("h2", join, { isRoot: false })).status, 404);
  // With it, and there, the authority is asked; which is away.
  const passed = await asked("h2", join);
  assert.equal(passed.status, 502);
  assert.match(passed.message, /the authority does not answer/);
});

test("names, addresses and hashes that are none are refused with a sentence", async () => {
  for (const name of ["H2", "h.2", "-h", "h".repeat(54), ""]) assert.equal((await asked(name, join)).status, 400, name);
  for (const body of [
    "",
    "{",
    "7",
    "null",
    "[]",
    "x".repeat(5000),

    { ...join, address: "10.0.1.256" },
    { ...join, address: 7 },
    { ...join, host: "token" },
    { ...join, agent: "token" },
    { ...join, agent: hash },
    { address: "10.0.1.2" },
    { ...join, as: {} },
    { ...join, as: { tags: "ssd" } },
    { ...join, as: { flavor: "Large" } },
    { ...join, as: { account: "dev" } },
  ]) {
    const { status, message } = await asked("h2", body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(message, /the body is \{"address"/);
  }
});

test("an address is one of the underlay, and nobody else's", async () => {
  for (const [address, expected] of [
    ["192.168.1.1", /not on the underlay/],
    ["10.0.0.0", /not on the underlay/],
    ["10.0.255.255", /not on the underlay/],
    ["10.0.1.1", /the address of host\.h1/],
    ["127.0.0.1", /not on the underlay/],
  ] as const) {
    const { status, message } = await asked("h2", { ...join, address });
    assert.equal(status, 409, address);
    assert.match(message, expected);
  }
  assert.equal((await asked("h2", join)).status, 502, "its own storage agent may be there");
  assert.equal((await asked("h3", join)).status, 409);
});

test("what a machine joins as is looked at before its tokens are enrolled, and written after that", async () => {
  root = new Root();
  root.put("", rootWithTenancy());
  root.hearHosts(["h1"]);
  const wrong = await asked("h2", { ...join, as: { cluster: "z1/p1/c1" } });
  assert.equal(wrong.status, 400);
  assert.match(wrong.message, /which is none/);
  assert.equal((await asked("h2", { ...join, as: { tags: ["ssd"] } })).status, 502, "the authority is away");
  assert.deepEqual(root.model("root/hosts"), { h1: { "x.type": "Host" } });
});
