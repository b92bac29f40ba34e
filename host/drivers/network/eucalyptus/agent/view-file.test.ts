import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { actualInstance } from "../../../../../core/documents/readers/eucalyptus.ts";
import { documentsOf } from "../../../../../core/documents/readers/table.ts";
import type { Effect, Service } from "../../../../../core/env.ts";
import { createNetworkViewManager } from "../../../../../core/eucalyptus/manager.ts";
import { ipv4, peerName } from "../../../../../model/cell/identifiers.ts";
import type { Json } from "../../../../../model/json/json.ts";
import { networkConfigurations } from "../../../../../runtime/controller/services/network-configurations.ts";
import { peerRequest, servePeers } from "../../../../../runtime/http/https.ts";
import { createTestInstallation } from "../../../../../runtime/installation.testing.ts";
import { createObserver } from "../../../../../runtime/observation/observer.ts";
import type { Asked } from "../../../../../runtime/process/asked.ts";
import { runService } from "../../../../../runtime/process/process.ts";
import { placedOf } from "../../../../network/network-view.ts";
import { host } from "../../../../service/manager.testing.ts";
import { createHostManager } from "../../../../service/manager.ts";
import { soon, World } from "../packets/world.testing.ts";
import { machineFile, startAgent } from "./agent.ts";
import { ViewFile } from "./view-file.ts";

/*
 * The whole way with real services and tools: an operator's configuration at the Network View Manager's door, a view over mutual TLS to a
 * Host Manager, its file, rules in a network namespace, a guest that gets its address and reaches its gateway, and the word about that back.
 */
const [manager, shop, h1, gateway] = ["network-view-manager", "controller.shop", "host.h1", "gateway"].map(
  peerName,
) as [
  ReturnType<typeof peerName>,
  ReturnType<typeof peerName>,
  ReturnType<typeof peerName>,
  ReturnType<typeof peerName>,
];
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.4"],
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.15"] }],
};
const group = { uid: "net", cell: "shop", ingress: [], egress: [] };
const instance = { uid: "web", cell: "shop", path: "shop/web", host: "h1", groups: ["net"] };

/** What a cell's controller says of a VM in such a mode, and hears. */
const client = (heard: (value: Json) => void): Service<null> => ({
  restore: () => null,
  step: (state, input) => {
    if (input.kind === "actual" && input.key.endsWith("instance/web")) heard(input.value);
    const desire = (key: string, value: Json): Effect => ({ kind: "desire", to: manager, key, value });
    const effects: readonly Effect[] =
      input.kind === "start"
        ? [
            { kind: "subscribe", to: manager, prefix: `${shop}/` },
            desire("security-group/net", group),
            desire("instance/web", instance),
          ]
        : [];
    return { state, effects };
  },
  entitled: () => false,
  accepts: () => false,
  read: documentsOf("controller"),
});

const world = new World();
const ends: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const end of ends.reverse()) await end();
  await world.end();
});

test("from a network configuration to a guest that reaches its gateway, and the word about it back", async () => {
  const installation = await createTestInstallation("network-view");
  ends.push(installation.remove);
  const configured = async (name: typeof manager) => (await installation.configure(name)).configuration;
  const [node, guest] = [await world.machine(), await world.machine()];
  for (const [name, type] of [
    ["eno1", "veth"],
    ["br9", "bridge"],
  ] as const)
    node.run("ip", "link", "add", name, "type", type);

  // The host: its manager, the view's file, and the agent that looks there.
  const directory = join(world.directory, "network");
  mkdirSync(directory);
  writeFileSync(join(directory, machineFile), "VNET_PUBINTERFACE=eno1\nVNET_BRIDGE=br9\n");
  const views = new ViewFile(directory, (why) => assert.fail(why));
  const offered = { cluster: "one", peer: "node", onView: views.put } as const;
  const own = { ...host, address: ipv4("127.0.0.1") };
  const runs = await runService({
    configuration: await configured(h1),
    observer: createObserver(h1),
    service: createHostManager({ host: own, wake: () => undefined, network: offered }),
  });
  ends.push(() => runs.stop());

  const observer = createObserver(manager);
  const asked: Asked = { service: null };
  const of = await configured(manager);
  const server = await servePeers(of, (...each) => networkConfigurations.handler(asked)(...each));
  ends.push(server.stop);
  const options = { self: manager, hosts: [h1], address: "10.0.0.19", controllers: [shop] };
  asked.service = await runService({ configuration: of, observer, service: createNetworkViewManager(options) });
  ends.push(async () => asked.service?.stop());
  let said: Json = null;
  const controller = await runService({
    configuration: await configured(shop),
    observer: createObserver(shop),
    service: client((value) => {
      said = value;
    }),
  });
  ends.push(() => controller.stop());

  const operator = await configured(gateway);
  const put = async (document: Json): Promise<[number, string]> => {
    const order = { method: "PUT", path: "/configuration", body: JSON.stringify(document) };
    const answer = await peerRequest(operator, manager, { ...order, headers: { "content-type": "application/json" } });
    return [answer.status, await answer.text()];
  };
  const [status, text] = await put({ ...configuration, Mode: "EGDE", PublicIps: ["10.0.0.1-9"] });
  assert.equal(status, 409);
  assert.match(text, /\/Mode: .*; \/PublicIps\/0: /, "all faults, with their places");
  assert.equal((await put(configuration))[0], 200);

  const agent = await startAgent({
    directory,
    self: { address: own.address, peer: "node" },
    run: world.run(node),
    signals: new EventEmitter(),
    log: () => undefined,
    told: (allocation) =>
      void runs.request({ kind: "network-placed", placed: placedOf(allocation) } as unknown as Json).catch(() => null),
  });
  ends.push(() => agent.leave());
  views.follow(agent);
  const known = () => actualInstance.of(said);
  assert.ok(await soon(() => known()?.phase === "ready"), JSON.stringify([said, agent.state]));
  assert.equal(known()?.address, "10.9.0.10");

  // A guest in the place of the tap.
  const tap = `vn_${known()?.id}`;
  node.run("ip", "link", "delete", "dev", tap);
  node.cable(tap, guest, "eth0", known()?.mac?.toLowerCase());
  await agent.look();
  assert.ok(world.lease(guest), "a lease");
  assert.match(guest.run("ip", "-4", "address", "show", "dev", "eth0"), /10\.9\.0\.10\/24/);
  assert.ok(guest.succeeds("ping", "-c", "1", "-W", "1", "10.9.0.1"), "the gateway answers");

  // A configuration that would move it is refused, and says whom.
  const [moved, why] = await put({
    ...configuration,
    Clusters: [{ ...configuration.Clusters[0], PrivateIps: ["10.9.0.12"] }],
  });
  assert.equal(moved, 409);
  assert.match(why, new RegExp(`in use would be others: ${known()?.id}`));
});
