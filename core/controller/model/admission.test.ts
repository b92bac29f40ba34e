import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, type PeerName, peerName, serverName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { addressOfferOf } from "../../address/manager.ts";
import type { AgentServer, HostOffers } from "../../documents/vocabulary.ts";
import type { Effect } from "../../env.ts";
import { toJson } from "../../outbox.ts";
import { storageOffersOf } from "../../storage/offers.ts";
import { shop, World } from "../world.testing.ts";

const placer = peerName("placer");
const storageManager = peerName("storage-manager");
const addressManager = peerName("address-manager");
const offers: HostOffers = { hosts: [{ host: "h1", memoryMiB: 4096, cpus: 8, cpuSpeedMHz: 2000 }], complete: true };
const large = shop({ web: { "x.type": "VM", "x.memory": 8192 } });

const hear = (world: World, value: HostOffers): readonly Effect[] =>
  world.step({ kind: "actual", from: placer, key: "hosts", value: toJson(value) });
const replies = (effects: readonly Effect[]) =>
  effects.flatMap((effect) => (effect.kind === "reply" ? [effect.response as { status: number; body: unknown }] : []));

test("a VM that no host can ever hold is refused before anything is touched", () => {
  const world = new World();
  hear(world, offers);
  const response = world.ask({ method: "PUT", path: "", json: large });
  assert.equal(response.status, 400);
  assert.match(JSON.stringify(response.body), /cell\/no-host.*shop\/web.*8192 MiB.*x\.memory 4096/);
  assert.equal(world.state.elements.size, 0);
  assert.equal(world.state.model.version, 0);
  assert.equal(world.ask({ method: "PUT", path: "", json: shop() }).status, 200);
});

test("while a host was never heard of, nothing is impossible: the VM waits", () => {
  const world = new World();
  hear(world, { ...offers, complete: false });
  assert.equal(world.ask({ method: "PUT", path: "", json: large }).status, 200);
  world.settle();
  assert.equal(world.standing("shop/web"), "waiting: no-host h1 memory+h2 memory");
});

test("the first change of a new cell waits until all were heard that say what can be had", () => {
  const world = new World();
  world.crash();
  const request = { kind: "request", id: 900, request: toJson({ method: "PUT", path: "", json: large }) } as const;
  assert.deepEqual(replies(world.step(request)), []);
  assert.equal(world.timers.get("offers-unknown"), 3000);
  hear(world, offers);
  const heard = (peer: PeerName) => replies(world.step({ kind: "reachable", peer, reachable: true }));
  assert.deepEqual(heard(placer), []);
  assert.deepEqual(heard(storageManager), []);
  const [reply] = heard(addressManager);
  assert.equal(reply?.status, 400);
  assert.equal(world.timers.has("offers-unknown"), false);
});

test("a volume that no server and a subnet that no pool could ever give are refused; what only does not fit now waits", () => {
  const world = new World();
  const servers = [{ server: serverName("s1"), address: ipv4("10.0.2.1"), totalMiB: 2000, freeMiB: 10 }];
  const pools = { internalPool: "10.64.0.0/24", externalPool: "198.18.0.0/24", reserved: ["10.64.0.0/28"] };
  const hearAll = (all: readonly (AgentServer | null)[]): void => {
    world.step({ kind: "actual", from: storageManager, key: "storage", value: toJson(storageOffersOf(all)) });
    world.step({ kind: "actual", from: addressManager, key: "addresses", value: toJson(addressOfferOf(pools)) });
  };
  const ask = (element: JsonObject) =>
    world.ask({ method: "PUT", path: "", json: shop({ extra: element }), dryRun: true });
  const volume = (size: number) => ask({ "x.type": "Volume", "x.size": size });
  const subnet = (more: JsonObject) => ask({ "x.type": "Subnet", ...more });
  hearAll(servers);
  assert.match(JSON.stringify(volume(2001)), /"status":400.*cell\/no-storage.*shop\/extra/);
  assert.equal(volume(2000).status, 200);
  assert.match(JSON.stringify(subnet({ "x.size": 256 })), /"status":400.*cell\/no-addresses.*x\.size 128/);
  assert.equal(subnet({ "x.size": 128 }).status, 200);
  assert.match(JSON.stringify(subnet({ "x.cidr": "10.64.0.8/29", "x.size": 8 })), /cell\/no-addresses.*10.64.0.0\/28/);
  assert.equal(subnet({ "x.cidr": "10.64.0.16/28", "x.size": 8 }).status, 200);
  hearAll([...servers, null]);
  assert.equal(volume(2001).status, 200, "a server that was never heard of might hold it");
});

test("a Placer that stays silent holds a change up for a moment only", () => {
  const world = new World();
  world.crash();
  const put = (id: number, json: object) =>
    world.step({ kind: "request", id, request: toJson({ method: "PUT", path: "", json }) });
  assert.deepEqual(replies(put(901, shop())), []);
  const [reply] = replies(world.step({ kind: "timer", name: "offers-unknown" }));
  assert.equal(reply?.status, 200);
  assert.deepEqual(
    replies(put(902, shop())).map(({ status }) => status),
    [200],
    "the next one need not wait",
  );
});
