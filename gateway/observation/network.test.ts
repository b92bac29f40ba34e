import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type FastifyInstance, fastify } from "fastify";
import { createNetworkViewManager } from "../../core/eucalyptus/manager.ts";
import { peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { networkConfigurations } from "../../runtime/controller/services/network-configurations.ts";
import { servePeers } from "../../runtime/http/https.ts";
import { createTestInstallation, type TestInstallation } from "../../runtime/installation.testing.ts";
import { createObserver } from "../../runtime/observation/observer.ts";
import { type Asked, runAsked } from "../../runtime/process/asked.ts";
import { RefusedError } from "../requests/refused.ts";
import { registerNetwork } from "./network.ts";

/* An operator's network configuration on its way: from the gateway over mutual TLS to a Network View Manager with its own store. */
const manager = peerName("network-view-manager");
const ends: (() => Promise<unknown>)[] = [];
let installation: TestInstallation;
let app: FastifyInstance;

before(async () => {
  installation = await createTestInstallation("gateway-network");
  app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  app.setErrorHandler((error, _request, reply) =>
    error instanceof RefusedError
      ? reply.status(error.statusCode).send({ error: error.refusal })
      : reply.status(500).send(error),
  );
  registerNetwork(app, (await installation.configure(peerName("gateway"))).configuration);
});
after(async () => {
  await app.close();
  for (const end of ends.reverse()) await end();
  await installation.remove();
});
const ask = async (method: "GET" | "PUT", body?: Json): Promise<[number, string]> => {
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const headers = { "content-type": "application/json" };
  const answer = await app.inject({ method, url: "/network/configuration", headers, ...payload });
  return [answer.statusCode, answer.body];
};

test("a network configuration is set and read, and one with faults names all of them and changes nothing", async () => {
  assert.match((await ask("GET")).join(), /^404.*network\/no-manager.*role `network-view-manager`/);
  const { configuration } = await installation.configure(manager);
  const asked: Asked = { service: null };
  const server = await servePeers(configuration, (...each) => networkConfigurations.handler(asked)(...each));
  ends.push(server.stop);
  assert.match((await ask("GET")).join(), /^503/);
  const service = createNetworkViewManager({ self: manager, hosts: [], address: "10.0.0.19", controllers: [] });
  const running = await runAsked(asked, { configuration, observer: createObserver(manager), service });
  ends.push(() => running.stop());
  assert.match((await ask("GET")).join(), /^404.*there is no network configuration yet/);
  const subnet = { Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" };
  const good = { Mode: "STATIC", InstanceDnsServers: ["10.1.1.1"], Subnets: [subnet], Clusters: [] };

  const [status, text] = await ask("PUT", { ...good, InstanceDnsServers: ["x"], MacPrefix: "y" });
  assert.equal(status, 409);
  assert.match(text, /\/InstanceDnsServers\/0: .*\/MacPrefix: |\/MacPrefix: .*\/InstanceDnsServers\/0: /);
  assert.match((await ask("GET")).join(), /^404/);
  const set = await ask("PUT", good);
  assert.equal(set[0], 200, set[1]);
  assert.match((await ask("GET")).join(), /^200,.*"Mode":"STATIC"/);
});
