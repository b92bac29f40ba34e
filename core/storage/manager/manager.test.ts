import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { elementPath, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { AgentVolume } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { connection, copyOf, StorageWorld, shop, volume } from "./manager.testing.ts";
import { createStorageManager } from "./manager.ts";

const image = (name: string) => ({ kind: "image", image: name }) as const;
const empty = { kind: "empty" } as const;
const oneServer = () => new StorageWorld({ s1: { freeMiB: 10_000, images: { tiny: 100 } } });

test("volumes spread by free space, images go where the image is, and every place is durable first", () => {
  const world = new StorageWorld({ s1: { freeMiB: 5000 }, s2: { freeMiB: 4000, images: { tiny: 100 } } });
  world.want("volume/a-1", volume("a-1", empty, 2000));
  world.want("volume/a-2", volume("a-2", empty, 100));
  world.want("volume/a-3", volume("a-3", image("tiny")));
  world.settle();
  assert.deepEqual(
    [world.volume("a-1")?.server, world.volume("a-2")?.server, world.volume("a-3")?.server],
    ["s1", "s2", "s2"],
  );
  assert.deepEqual(world.volume("a-3"), { phase: "ready", reason: null, server: "s2", sizeMiB: 100 });
});

test("what its server says of a damaged image is passed on as such, while that server is heard", () => {
  const world = new StorageWorld({ s1: { freeMiB: 500, images: { tiny: 100 } } });
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.settle();
  const s1 = world.agent("s1");
  const reason = 'the disk of image "tiny" is damaged';
  const said = s1.actual.get("volume/a-1") as JsonObject;
  world.say(s1, "volume/a-1", { ...said, phase: "waiting", reason, sizeMiB: null, badImage: true });
  world.settle();
  assert.deepEqual([world.volume("a-1")?.reason, world.volume("a-1")?.noImage], [reason, true]);
  world.cut(s1);
  assert.equal(world.volume("a-1")?.noImage, undefined, "somebody may be replacing it there");
});

test("what cannot be placed says why and is retried when that changes", () => {
  const world = new StorageWorld({ s1: { freeMiB: 50, images: { tiny: 100 } } });
  world.want("volume/a-1", volume("a-1", image("windows")));
  assert.equal(world.volume("a-1")?.reason, 'no image "windows"; there are: tiny');
  assert.equal(world.volume("a-1")?.noImage, true, "nobody but who adds it can change that");
  world.want("volume/a-2", volume("a-2", empty, 70));
  assert.match(world.volume("a-2")?.reason ?? "", /no storage server has room for 70 MiB: s1 has 50 MiB free/);
  assert.equal(world.volume("a-2")?.noRoom, true, "nobody but who makes room can change that");
  world.say(world.agent("s1"), "server", { server: "s1", address: "10.0.2.1", totalMiB: 900, freeMiB: 800 });
  world.say(world.agent("s1"), "image/windows", { name: "windows", digest: "w", sizeMiB: 300 });
  world.settle();
  assert.equal(world.volume("a-1")?.sizeMiB, 300);
  assert.equal(world.volume("a-2")?.phase, "ready");
  const away = oneServer();
  away.cut(away.agent("s1"));
  away.want("volume/a-1", volume("a-1", empty, 1));
  assert.deepEqual(away.volume("a-1"), {
    phase: "waiting",
    reason: "no storage server is reachable (s1)",
    server: null,
    sizeMiB: null,
  });
  away.connect(away.agent("s1"));
  away.settle();
  assert.equal(away.volume("a-1")?.phase, "ready");
});

test("a copy of a copy, and so on, is refused with the number, and whoever copies one of the first goes on", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", image("tiny")));
  for (let at = 2; at <= 17; at += 1) world.want(`volume/a-${at}`, volume(`a-${at}`, copyOf(`a-${at - 1}`)));
  for (let round = 0; round < 20; round += 1) world.settle();
  assert.equal(world.volume("a-16")?.phase, "ready");
  assert.equal(world.volume("a-17")?.phase, "failed");
  assert.match(world.volume("a-17")?.reason ?? "", /"shop\/a-16" is the last of 16 volumes of which each is a copy/);
  world.want("volume/a-17", volume("a-17", copyOf("a-3")));
  world.settle();
  assert.equal(world.volume("a-17")?.phase, "ready");
});

test("a chain of copies that is there already, however long, ends nobody", () => {
  const world = oneServer();
  const record = { client: shop, cell: "shop", agent: "agent.s1", source: { kind: "overlay" }, sizeMiB: 100 };
  for (let at = 0; at < 20_000; at += 1) {
    const [origin, path] = [at === 0 ? null : `b-${at - 1}`, `shop/b-${at}`];
    world.records.set(`volume/b-${at}`, { ...record, origin, path, frozen: true, made: true });
  }
  const ready = { phase: "ready", reason: null, sizeMiB: 100, usedMiB: 1, boot: null };
  assert.doesNotThrow(() => {
    world.restart();
    world.say(world.agent("s1"), "volume/b-0", ready);
    world.say(world.agent("s1"), "readers/b-0", { phase: "working", reason: "not yet", layer: null });
  });
  world.want("volume/a-1", volume("a-1", empty, 10));
  world.settle();
  assert.equal(world.volume("a-1")?.phase, "ready");
});

test("a volume that the manager cannot work with is set aside and named, and all others go on", () => {
  const world = oneServer();
  // As no version of it writes: a mistake of ours, or of a disk.
  const broken = { client: shop, cell: "shop", path: "shop/a-1", agent: null, source: null, origin: null, sizeMiB: 1 };
  world.records.set("volume/a-1", { ...broken, frozen: true });
  world.wanted.set("a-1", { from: shop, key: "volume/a-1", value: toJson(volume("a-1", empty, 10)) });
  assert.doesNotThrow(() => world.restart());
  world.want("volume/a-2", volume("a-2", empty, 10));
  world.settle();
  assert.equal(world.volume("a-2")?.phase, "ready");
  assert.ok(world.events.includes("document/refused"));
});

test("what somebody uploaded is for the cell of the persistent volumes: no other is told of it, or gets it by its name", () => {
  const upload = `upload-${"0".repeat(16)}-${"1".repeat(32)}`;
  const world = new StorageWorld({ s1: { freeMiB: 5000, images: { [upload]: 8, tiny: 100 } } });
  const primary = peerName("controller.primary");
  world.want("volume/a-1", volume("a-1", image(upload)));
  assert.equal(world.volume("a-1")?.reason, `no image "${upload}"; there are: tiny`);
  world.want("volume/a-2", volume("a-2", image("other")));
  assert.equal(world.volume("a-2")?.reason, 'no image "other"; there are: tiny');
  world.want("volume/p-1", { ...volume("p-1", image(upload)), cell: "primary" as never }, primary);
  world.settle();
  assert.equal(world.volume("p-1", primary)?.phase, "ready");
  assert.equal(world.volume("a-1")?.phase, "waiting");
  // What is said of a persistent volume its owner reads, and an upload is anybody's.
  world.want("volume/p-2", { ...volume("p-2", image("other")), cell: "primary" as never }, primary);
  assert.equal(world.volume("p-2", primary)?.reason, 'no image "other"; there are: tiny');
});

test("the services' own image is the root cell's: to every other cell there is none, and it is not told of it", () => {
  const world = new StorageWorld({ s1: { freeMiB: 5000, images: { service: 100, "service-2": 100, tiny: 100 } } });
  const root = peerName("controller.root");
  world.want("volume/a-1", volume("a-1", image("service")));
  assert.equal(world.volume("a-1")?.reason, 'no image "service"; there are: tiny');
  world.want("volume/a-2", volume("a-2", image("service-2")));
  assert.equal(world.volume("a-2")?.reason, 'no image "service-2"; there are: tiny', "nor the next one");
  world.want("volume/r-1", { ...volume("r-1", image("service")), cell: "root" as never }, root);
  world.settle();
  assert.equal(world.volume("r-1", root)?.phase, "ready");
  assert.equal(world.volume("a-1")?.phase, "waiting");
});

test("a server that is away or full is named at its volumes and at what is made of them, and nothing is made anew", () => {
  const world = new StorageWorld({ s1: { freeMiB: 5000, images: { tiny: 100 } }, s2: { freeMiB: 6000 } });
  const [s1, s2] = [world.agent("s1"), world.agent("s2")];
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.settle();
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.settle();
  assert.equal(world.volume("a-2")?.server, "s2");
  const asked = () => world.desiredAt.get(s1.name)?.get("volume/a-1") as { readonly made?: boolean } | undefined;
  assert.equal(asked()?.made, true, "from its first ready on, it can be lost");
  world.cut(s1);
  const away = "storage server s1 is not reachable";
  assert.deepEqual(world.volume("a-1"), {
    phase: "ready",
    reason: away,
    available: false,
    server: "s1",
    sizeMiB: 100,
    frozen: true,
  });
  assert.equal(world.volume("a-2")?.reason, `${away}, which has its origin "shop/a-1"`);
  assert.equal(world.volume("a-2")?.phase, "ready");
  world.want("volume/a-3", volume("a-3", image("tiny")));
  assert.equal(world.volume("a-3")?.reason, 'no image "tiny"; there are: none; not reachable: s1');
  assert.equal(world.volume("a-3")?.noImage, undefined, "who is not heard may have it");
  world.want("connection/a-9", connection("a-9", "a-2", "a-8"));
  world.settle();
  assert.equal(world.connection("a-9")?.phase, "ready", "what is served is served, whoever is away");
  world.connect(s1);
  world.settle();
  assert.deepEqual(world.volume("a-2"), { phase: "ready", reason: null, server: "s2", sizeMiB: 100 });
  world.say(s2, "server", { server: "s2", address: "10.0.2.2", totalMiB: 6000, freeMiB: 0 });
  assert.match(world.volume("a-2")?.reason ?? "", /^storage server s2 is full/);
  assert.equal(world.volume("a-1")?.reason, null);
  world.say(s2, "server", { server: "s2", address: "10.0.2.2", totalMiB: 6000, freeMiB: 1 });
  assert.equal(world.volume("a-2")?.available, undefined);
});

test("a copy freezes its origin, may be larger but not smaller, and composes its chain with the origin's kernel", () => {
  const world = new StorageWorld({ s1: { freeMiB: 9000, images: { tiny: 100 } }, s2: { freeMiB: 9000 } });
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.want("volume/a-3", volume("a-3", copyOf("a-1"), 50));
  world.want("volume/a-4", volume("a-4", copyOf("a-2"), 200));
  assert.match(world.volume("a-2")?.reason ?? "", /no volume a-1 is visible/);
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.settle();
  assert.equal(world.volume("a-2")?.server, "s2");
  assert.equal(world.volume("a-3")?.phase, "failed");
  assert.match(world.volume("a-3")?.reason ?? "", /at least its size of 100 MiB, not 50 MiB/);
  world.want("connection/a-9", connection("a-9", "a-4", "a-8"));
  world.settle();
  const attachment = world.connection("a-9")?.attachment;
  assert.deepEqual(
    attachment?.layers.map(({ volume: id, writable }) => [id, writable]),
    [
      ["a-4", true],
      ["a-2", false],
      ["a-1", false],
    ],
  );
  assert.equal(attachment?.epoch, 1);
  assert.equal(attachment?.sizeMiB, 200);
  assert.equal(attachment?.boot?.digest, "b");
  // The origin itself is read-only for good.
  world.want("connection/a-10", connection("a-10", "a-1", "a-7"));
  world.settle();
  assert.equal(world.connection("a-10")?.attachment?.epoch, 0);
});

test("a copy waits while its origin is being written, also while its VM only restarts", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.settle();
  world.want("connection/a-3", connection("a-3", "a-1", "a-8"));
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.settle();
  assert.match(world.volume("a-2")?.reason ?? "", /"shop\/a-1" is being written by VM a-8 \(incarnation 1 on h1\)/);
  world.want("connection/a-3", connection("a-3", "a-1", "a-8", 2));
  world.settle();
  assert.equal(world.volume("a-2")?.phase, "waiting");
  assert.equal(world.connection("a-3")?.attachment?.epoch, 3);
  world.want("connection/a-3", null);
  assert.equal(world.volume("a-2")?.phase, "waiting");
  world.settle();
  assert.equal(world.connection("a-3"), undefined);
  assert.equal(world.volume("a-2")?.phase, "ready");
});

test("one writer: the second waits and is told who holds it, and gets the next epoch after the fence", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", empty, 10));
  world.settle();
  world.want("connection/a-2", connection("a-2", "a-1", "a-8"));
  world.want("connection/a-3", connection("a-3", "a-1", "a-9"));
  world.settle();
  assert.match(world.connection("a-3")?.reason ?? "", /"shop\/a-1" is being written by VM a-8 \(incarnation 1 on h1\)/);
  world.want("connection/a-2", null);
  assert.equal(world.connection("a-2")?.phase, "deleting");
  assert.equal(world.connection("a-2")?.attachment, null);
  assert.equal(world.connection("a-3")?.phase, "waiting");
  world.arrive(0);
  assert.equal(world.connection("a-2"), undefined, "withdrawn once the agent has confirmed the fence");
  world.settle();
  assert.equal(world.connection("a-3")?.attachment?.epoch, 3);
});

test("an unreachable server is not fenced by time: its connection stays until the agent has confirmed", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", empty, 10));
  world.want("connection/a-2", connection("a-2", "a-1", "a-8"));
  world.settle();
  world.cut(world.agent("s1"));
  world.want("connection/a-2", connection("a-2", "a-1", "a-8", 2, "h2"));
  world.restart();
  world.settle();
  assert.notEqual(world.connection("a-2")?.phase, "ready");
  world.connect(world.agent("s1"));
  world.settle();
  assert.equal(world.connection("a-2")?.incarnation, 2);
  assert.equal(world.connection("a-2")?.attachment?.epoch, 3);
});

test("deleting waits for connections and copies, says who, and ends when the agent has removed the bytes", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.want("volume/a-2", volume("a-2", copyOf("a-1")));
  world.want("connection/a-3", connection("a-3", "a-2", "a-8"));
  world.settle();
  world.want("volume/a-1", null);
  world.want("volume/a-2", null);
  world.settle();
  assert.match(world.volume("a-1")?.reason ?? "", /origin of "shop\/a-2"/);
  assert.match(world.volume("a-2")?.reason ?? "", /still connected to VM a-8/);
  world.restart();
  assert.equal(world.volume("a-1")?.phase, "deleting");
  world.want("connection/a-3", null);
  world.settle();
  assert.deepEqual([...world.published.keys()], []);
  assert.deepEqual([...world.records.keys()], ["recovery"]);
  assert.deepEqual([...world.agent("s1").desired.keys()], []);
});

test("another cell sees a volume only through a grant, and cannot take its UID", () => {
  const world = oneServer();
  const other = peerName("controller.other");
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.settle();
  world.want("volume/b-1", volume("b-1", copyOf("a-1"), null, "other"), other);
  world.want("volume/a-1", volume("a-1", empty, 5, "other"), other);
  assert.match(world.volume("b-1", other)?.reason ?? "", /no volume a-1 is visible/);
  assert.match(world.volume("a-1", other)?.reason ?? "", /belongs to an element of another cell/);
  world.want("grant/a-2", { uid: "a-2", volume: "a-1", to: { domain: "other.cells.internal" }, grant: "copy" });
  world.settle();
  assert.equal(world.volume("b-1", other)?.phase, "ready");
  // The provider's cell goes; the origin stays until the last copy is gone.
  world.want("volume/a-1", null);
  world.settle();
  assert.equal(world.volume("a-1"), undefined);
  assert.ok(world.records.has("volume/a-1"));
  world.restart();
  world.settle();
  assert.equal(world.volume("b-1", other)?.phase, "ready");
  assert.ok(world.agent("s1").desired.has("readers/a-1"));
  world.want("volume/b-1", null, other);
  world.settle();
  assert.ok(!world.records.has("volume/a-1"));
  assert.deepEqual([...world.agent("s1").desired.keys()], []);
});

test("it answers each grant with what it grants, after a restart and after a change as well", () => {
  const world = oneServer();
  const granted = { volume: "a-1", to: { domain: "other.cells.internal" }, grant: "copy" };
  const said = () => world.published.get("controller.shop/grant/a-2") as unknown;
  const ready = { phase: "ready", reason: null };
  world.want("volume/a-1", volume("a-1", image("tiny")));
  world.want("grant/a-2", { uid: "a-2", ...granted });
  assert.deepEqual(said(), { ...ready, grants: granted });
  world.restart();
  assert.deepEqual(said(), { ...ready, grants: granted });
  world.want("grant/a-2", { uid: "a-2", ...granted, grant: "connect" });
  assert.deepEqual(said(), { ...ready, grants: { ...granted, grant: "connect" } });
  world.want("grant/a-2", { uid: "a-2", ...granted, grant: "everything" });
  assert.match(JSON.stringify(said()), /"failed".*the grant document is malformed/);
  world.want("grant/a-2", null);
  assert.equal(said(), undefined);
});

test("an epoch that only the agent remembers is fenced before anything is granted", () => {
  const world = oneServer();
  world.want("volume/a-1", volume("a-1", empty, 10));
  world.settle();
  world.explain();
  const agent = world.agent("s1");
  const stranger = connection("x", "a-1", "a-77", 4, "h9");
  agent.leases.set("a-1", { epoch: 7, holder: { vm: stranger.vm, incarnation: 4, host: stranger.host } });
  world.say(agent, "lease/a-1", world.leaseActual(agent, "a-1"));
  world.want("connection/a-2", connection("a-2", "a-1", "a-8"));
  world.settle();
  assert.equal(world.connection("a-2")?.attachment?.epoch, 9);
});

test("malformed documents fail with a sentence and harm nobody; clients see only their own", () => {
  const world = oneServer();
  world.want("volume/a-1", { uid: "a-1", nonsense: true });
  world.want("connection/a-1", { uid: "a-2" });
  assert.equal(world.volume("a-1")?.phase, "failed");
  assert.ok(!world.service.accepts(peerName("host.h1"), "volume/a-1"));
  assert.ok(!world.service.accepts(shop, "server"));
  assert.ok(world.service.accepts(shop, "volume/a-1"));
});

const step = fc.oneof(
  fc.record({ do: fc.constant("volume" as const), id: fc.nat(2), there: fc.boolean() }),
  fc.record({
    do: fc.constant("connection" as const),
    id: fc.nat(3),
    of: fc.nat(2),
    incarnation: fc.integer({ min: 1, max: 3 }),
    there: fc.boolean(),
  }),
  fc.record({ do: fc.constant("arrive" as const), index: fc.nat(5) }),
  fc.record({ do: fc.constant("cut" as const) }),
  fc.record({ do: fc.constant("connect" as const) }),
  fc.record({ do: fc.constant("restart" as const) }),
);

test("property: one writer per volume and epoch, whatever is lost, late or restarted", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = oneServer();
      const agent = world.agent("s1");
      /** (volume, epoch) → holder: an epoch never has two. */
      const holders = new Map<string, string>();
      const check = () => {
        const writers = new Set<string>();
        for (const [key, value] of world.published) {
          if (!key.includes("/connection/")) continue;
          const { attachment, incarnation } = value as unknown as NonNullable<ReturnType<StorageWorld["connection"]>>;
          if (attachment === null || attachment.epoch === 0) continue;
          assert.ok(!writers.has(attachment.volume), `two writers of ${attachment.volume}`);
          writers.add(attachment.volume);
          const holder = `${key} ${incarnation}`;
          const epoch = `${attachment.volume} ${attachment.epoch}`;
          assert.equal(holders.get(epoch) ?? holder, holder);
          holders.set(epoch, holder);
          const held = agent.leases.get(attachment.volume);
          assert.equal(held?.epoch, attachment.epoch, "what is ready is what the agent holds");
        }
        // A withdrawn connection can write nothing any more.
        for (const [id, { holder }] of agent.leases) {
          if (holder === null) continue;
          const known = [...world.records].some(
            ([key, record]) => key.startsWith("connection/") && JSON.stringify(record).includes(`"vm":"${holder.vm}"`),
          );
          assert.ok(known, `${id} is held by ${holder.vm}, whose connection is gone`);
        }
      };
      // Volume 1 is a copy of volume 0; volume 2 is on its own. UIDs are never used again, so a deleted one stays so.
      const deleted = new Set<number>();
      for (const now of steps) {
        if (now.do === "volume") {
          if (!now.there) deleted.add(now.id);
          const origin = now.id === 1 ? copyOf("a-0") : empty;
          const document = volume(`a-${now.id}`, origin, now.id === 1 ? null : 10);
          if (!now.there || !deleted.has(now.id)) world.want(`volume/a-${now.id}`, now.there ? document : null);
        } else if (now.do === "connection") {
          const document = connection(`c-${now.id}`, `a-${now.of}`, `vm-${now.id}`, now.incarnation);
          world.want(`connection/c-${now.id}`, now.there ? document : null);
        } else if (now.do === "arrive") world.arrive(now.index);
        else if (now.do === "cut") world.cut(agent);
        else if (now.do === "connect") world.connect(agent);
        else world.restart();
        check();
      }
      world.connect(agent);
      world.settle();
      check();
      // Nothing is stuck: every volume that is wanted and used has exactly one writer or is an origin.
      for (const key of world.wanted.keys()) {
        const id = key.split("/")[2] ?? "";
        if (key.includes("/volume/a-2")) assert.equal(world.volume(id)?.phase, "ready");
      }
      for (const wanted of [...world.wanted.values()]) world.want(wanted.key, null);
      world.settle();
      assert.deepEqual([...world.published.keys()], []);
      assert.deepEqual([...world.records.keys()], ["recovery"]);
    }),
    { numRuns: 3000 },
  );
});

test("a tombstone that arrived is waited for no more, that one and at that server alone", () => {
  const agents = ["agent.s1", "agent.s2"].map(peerName);
  const [s1 = peerName("x"), s2 = s1] = agents;
  const at = { ms: 0, wallMs: 0 };
  const service = createStorageManager({ self: peerName("storage-manager"), agents });
  const releasingAt = new Map(agents.map((agent) => [agent, new Set(["volume/a-1", "lease/a-1"])]));
  const state = service.restore({ records: new Map(), desiredAt: new Map(), releasingAt });
  const waits = (agent: typeof s1): readonly string[] => [...(state.outbox.releasing.get(agent) ?? [])];
  service.step(state, { kind: "released", peer: s1, key: "volume/a-1" }, at);
  assert.deepEqual([waits(s1), waits(s2)], [["lease/a-1"], ["volume/a-1", "lease/a-1"]]);
  // Other news of the same key ends no waiting, and nobody else's word does.
  service.step(state, { kind: "released", peer: peerName("agent.s9"), key: "lease/a-1" }, at);
  service.step(state, { kind: "reachable", peer: s1, reachable: true }, at);
  assert.deepEqual(waits(s1), ["lease/a-1"]);
});

test("a volume that is renamed has its new path in what is said of it, and in what its server keeps", () => {
  const world = oneServer();
  world.want("volume/v", volume("v", empty, 64));
  world.settle();
  const renamed = elementPath("shop/front/data");
  world.want("volume/v", { ...volume("v", empty, 64), path: renamed });
  world.settle();
  const atServer = (): string | undefined =>
    (world.agent("s1").desired.get("volume/v") as unknown as AgentVolume).about?.path;
  assert.equal(atServer(), renamed);
  world.restart();
  world.settle();
  assert.equal(atServer(), renamed);
  world.cut(world.agent("s1"));
  world.want("connection/c", connection("c", "v", "vm"));
  world.settle();
  assert.match(world.connection("c")?.reason ?? "", /"shop\/front\/data"/);
});
