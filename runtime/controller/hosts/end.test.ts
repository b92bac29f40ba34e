import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import type { Effect, Input } from "../../../core/env.ts";
import { createPresence } from "../../../core/presence/group/group.ts";
import type { GroupState } from "../../../core/presence/group/state.ts";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { hashCredential } from "../../http/bearer.ts";
import { type PeerServer, peerRequest, servePeers } from "../../http/https.ts";
import type { PeerRequest } from "../../http/peer-handler.ts";
import { recordResponse } from "../../http/response.testing.ts";
import { createTestInstallation, type TestInstallation } from "../../installation.testing.ts";
import type { ProcessConfiguration } from "../../installation.ts";
import { hostEnds } from "../../presence/host-end.ts";
import { hostHandler } from "./hosts.ts";

/** The operator's word on its way: from the root controller's edge to real members of the Presence group, over mutual TLS. */
const names = ["presence.1", "presence.2", "presence.3"].map(peerName);
const h1 = peerName("host.h1");
const operator = "o".repeat(43);
const instant = { ms: 0, wallMs: 5 };
let installation: TestInstallation;
let root: ProcessConfiguration;
let shop: ProcessConfiguration;
const servers: PeerServer[] = [];

/** The service of a member that heard h1 and hears it no more, until it is told otherwise. */
class Member {
  readonly service: ReturnType<typeof createPresence>;
  state: GroupState;
  constructor(name: PeerName) {
    this.service = createPresence({ self: name, members: names, hosts: [h1] });
    this.state = this.service.restore({ records: new Map(), desiredAt: new Map() });
    this.step({ kind: "start" });
  }
  hears(reachable: boolean): void {
    this.step({ kind: "reachable", peer: h1, reachable });
  }
  says(generation: number, boot: number): void {
    const value = { host: "h1", generation, incarnation: 0, answers: true, boot };
    this.step({ kind: "actual", from: h1, key: "presence/self", value });
  }
  step(input: Input): readonly Effect[] {
    const { state, effects } = this.service.step(this.state, input, instant);
    this.state = state;
    return effects;
  }
  async request(request: Json): Promise<Json> {
    const reply = this.step({ kind: "request", id: 1, request }).find((effect) => effect.kind === "reply");
    return reply?.kind === "reply" ? reply.response : null;
  }
  get ended(): number | undefined {
    return [...this.state.hosts.values()][0]?.declared?.ended;
  }
}
const members: Member[] = [];

before(async () => {
  installation = await createTestInstallation("host-end");
  ({ configuration: root } = await installation.configure(peerName("controller.root")));
  ({ configuration: shop } = await installation.configure(peerName("controller.shop")));
  for (const name of names) {
    const { configuration } = await installation.configure(name);
    // The third one is away.
    if (name === names[2]) continue;
    const member = new Member(name);
    members.push(member);
    const asked = { service: { request: (request: Json) => member.request(request) } } as never;
    servers.push(await servePeers(configuration, hostEnds.handler(asked)));
  }
});
after(async () => {
  for (const server of servers) await server.stop();
  await installation.remove();
});

const controllerOf = (cell: string) => ({
  cell,
  cellUid: cell,
  cellNumber: 1,
  domain: "cells.internal",
  mac: "02:00:0a:00:00:1f",
  credentialHashes: [hashCredential(operator)],
});
interface Answered {
  readonly status: number;
  readonly body: { readonly [name: string]: Json };
  readonly message: string;
}
const asked = async (method: string, body: unknown = "", credential = operator, cell = "root"): Promise<Answered> => {
  const recorded = recordResponse();
  const incoming = {
    peer: peerName("gateway"),
    method,
    url: "/cells/root/hosts/h1/end",
    headers: { authorization: `Bearer ${credential}` },
    body: Readable.from([Buffer.from(typeof body === "string" ? body : JSON.stringify(body))]),
  } as unknown as PeerRequest;
  const request = (): Promise<never> => Promise.reject(new Error("the model is not asked"));
  const context = { configuration: root, controller: controllerOf(cell), request };
  await hostHandler(context, incoming, recorded.response, { rest: ["h1", "end"], byOperator: credential === operator });
  const json = JSON.parse(recorded.text);
  return { status: recorded.status, body: json, message: json.error?.message ?? "" };
};
const word = (boot: number, generation = 2) => ({ powerIsOff: true, generation, boot });

test("the operator's credential alone, at the root cell alone, and with the word itself", async () => {
  assert.equal((await asked("PUT", word(100), "root.00000000.secret")).status, 403);
  assert.equal((await asked("GET", "", operator, "shop")).status, 404);
  for (const body of [
    "",
    "{",
    "null",
    { generation: 2, boot: 100 },
    { ...word(100), powerIsOff: "yes" },
    "x".repeat(5000),
  ]) {
    const { status, message } = await asked("PUT", body);
    assert.equal(status, 400);
    assert.match(message, /powerIsOff/);
  }
  assert.equal((await asked("POST")).status, 404);
});

test("a member takes it from nobody but the root cell's controller and the HA Manager", async () => {
  const [name = h1] = names;
  const put = { method: "PUT", path: "/hosts/h1/end", body: JSON.stringify({ generation: 2, boot: 100 }) } as const;
  const refused = await peerRequest(shop, name, put);
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /root cell's controller and the HA Manager alone/);
  const wrong = await peerRequest(root, name, { ...put, body: '{"boot": "x"}' });
  assert.equal(wrong.status, 400);
  await wrong.text();
  assert.equal(members[0]?.ended, undefined);
});

test("what any member has against it counts; what one of them knows is enough; and it is about that life alone", async () => {
  const [first, second] = members;
  assert.ok(first !== undefined && second !== undefined);
  for (const member of members) member.hears(false);
  assert.match((await asked("PUT", word(100))).message, /nobody knows of any life of host h1/);
  first.says(2, 100);
  second.hears(true);
  assert.deepEqual(
    [(await asked("GET")).status, (await asked("GET")).body.against],
    [200, "host h1 is being heard: it runs"],
  );
  const heard = await asked("PUT", word(100));
  assert.deepEqual([heard.status, heard.message], [409, "host h1 is being heard: it runs"]);
  second.hears(false);
  assert.match((await asked("PUT", word(99))).message, /in another life since/);
  assert.match((await asked("PUT", word(100, 1))).message, /in another life since/);
  assert.deepEqual(
    members.map(({ ended }) => ended),
    [undefined, undefined],
  );
  const taken = await asked("PUT", word(100));
  assert.deepEqual(taken.body, { host: "h1", generation: 2, boot: 100, against: null, ended: 100 });
  assert.deepEqual(
    members.map(({ ended }) => ended),
    [100, 100],
  );
});

test("where no member answers that is said", async () => {
  for (const server of servers.splice(0)) await server.stop();
  const { status, message } = await asked("GET");
  assert.equal(status, 502);
  assert.match(message, /no member of the Presence group answers: presence\.1, presence\.2, presence\.3/);
});
