import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/identifiers.ts";
import type { HostOffers } from "../documents.ts";
import type { Effect } from "../env.ts";
import { toJson } from "../outbox.ts";
import { shop, World } from "./world.testing.ts";

const placer = peerName("placer");
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
  assert.match(world.phase("shop/web"), /^waiting: no host can hold it/);
});

test("the first change of a new cell waits until the Placer was heard", () => {
  const world = new World();
  world.crash();
  const request = { kind: "request", id: 900, request: toJson({ method: "PUT", path: "", json: large }) } as const;
  assert.deepEqual(replies(world.step(request)), []);
  assert.equal(world.timers.get("hosts-unknown"), 3000);
  hear(world, offers);
  const [reply] = replies(world.step({ kind: "reachable", peer: placer, reachable: true }));
  assert.equal(reply?.status, 400);
  assert.equal(world.timers.has("hosts-unknown"), false);
});

test("a Placer that stays silent holds a change up for a moment only", () => {
  const world = new World();
  world.crash();
  const put = (id: number, json: object) =>
    world.step({ kind: "request", id, request: toJson({ method: "PUT", path: "", json }) });
  assert.deepEqual(replies(put(901, shop())), []);
  const [reply] = replies(world.step({ kind: "timer", name: "hosts-unknown" }));
  assert.equal(reply?.status, 200);
  assert.deepEqual(
    replies(put(902, shop())).map(({ status }) => status),
    [200],
    "the next one need not wait",
  );
});
