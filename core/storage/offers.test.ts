import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, peerName, serverName } from "../../model/cell/identifiers.ts";
import { storageOffers } from "../documents/readers/storage.ts";
import { toJson } from "../outbox.ts";
import { StorageWorld } from "./manager/manager.testing.ts";
import { createStorageManager } from "./manager/manager.ts";
import { storageOffersOf } from "./offers.ts";

const server = (name: string, totalMiB: number, freeMiB: number) => ({
  server: serverName(name),
  address: ipv4("10.0.2.1"),
  totalMiB,
  freeMiB,
});

test("an offer is what the servers could hold when they are empty, and what is free of it in steps", () => {
  assert.deepEqual(storageOffersOf([server("s1", 6400, 250), server("s2", 3200, 3199)]), {
    totalMiB: 9600,
    freeMiB: 200 + 3150,
    largestFreeMiB: 3150,
    largestMiB: 6400,
    largestCopyMiB: 128_000,
    promisableMiB: 192_000,
    complete: true,
    saysGrants: true,
  });
  assert.equal(storageOffersOf([server("s1", 6400, 250), null]).complete, false);
  assert.deepEqual([storageOffersOf([]).largestMiB, storageOffersOf([]).complete], [0, true]);
});

test("an offer can be read whatever a server says of itself", () => {
  const most = 2 ** 48;
  const offers = storageOffersOf([server("s1", most, most), server("s2", most, most), server("s3", 6400, 250)]);
  assert.ok(storageOffers.of(toJson(offers)) !== null);
  assert.deepEqual([offers.largestMiB, offers.promisableMiB], [most, most]);
});

test("images are offered once by name, as large as the largest of them, and those of services to nobody", () => {
  const image = (name: string, sizeMiB: number) => ({ name, sizeMiB, digest: "d" });
  const { images } = storageOffersOf(
    [],
    [image("tiny", 64), image("service", 900), image("debian", 2048), image("tiny", 72)],
  );
  assert.deepEqual(images, [
    { name: "debian", sizeMiB: 2048 },
    { name: "tiny", sizeMiB: 72 },
  ]);
});

test("the Storage Manager says it to every controller, and again only when it is something else", () => {
  const world = new StorageWorld({ s1: { freeMiB: 6400 }, s2: { freeMiB: 640 } });
  assert.deepEqual(world.offered, storageOffersOf([server("s1", 12_800, 6400), server("s2", 1280, 640)]));
  const service = createStorageManager({ self: peerName("storage-manager"), agents: [peerName("agent.s1")] });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const says = (freeMiB: number) => {
    const value = { ...server("s1", 6400, freeMiB) };
    const step = service.step(state, { kind: "actual", from: peerName("agent.s1"), key: "server", value }, now);
    state = step.state;
    return step.effects.some((effect) => effect.kind === "publish" && effect.key === "storage");
  };
  const now = { ms: 0, wallMs: 0 };
  const first = service.step(state, { kind: "start" }, now);
  state = first.state;
  const started = first.effects.find((effect) => effect.kind === "publish");
  assert.equal(started?.kind === "publish" && JSON.stringify(started.value).includes('"complete":false'), true);
  assert.deepEqual([says(250), says(249), says(201), says(199)], [true, false, false, true]);
  assert.equal(service.entitled(state, peerName("controller.shop"), "storage"), true);
  assert.equal(service.entitled(state, peerName("host.h1"), "storage"), false);
});

test("what an offer calls impossible is never placed, and the largest that it names is", () => {
  const world = new StorageWorld({ s1: { freeMiB: 100 } });
  const [agent] = [...world.agents.values()];
  assert.ok(agent !== undefined);
  const empty = { server: "s1", address: "10.0.2.1", totalMiB: 100, freeMiB: 100 };
  world.input({ kind: "actual", from: agent.name, key: "server", value: empty });
  const { largestMiB } = world.offered as { largestMiB: number };
  const volume = (uid: string, sizeMiB: number) => ({
    uid,
    cell: "shop",
    path: `shop/${uid}`,
    origin: { kind: "empty" },
    sizeMiB,
    access: "rw",
  });
  world.want("volume/too-large", volume("too-large", largestMiB + 1));
  world.want("volume/largest", volume("largest", largestMiB));
  assert.deepEqual(
    [...world.records.keys()].filter((key) => key.startsWith("volume/")),
    ["volume/largest"],
  );
});
