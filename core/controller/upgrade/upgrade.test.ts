import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import type { DesiredConnection, DesiredVolume } from "../../documents/vocabulary.ts";
import { rootMeans } from "../model/root.testing.ts";
import { trialTimeoutMs } from "../vm/trial-timeout.ts";
import { World } from "../world.testing.ts";
import { atRest, Cloud, cloudOf, names, roles, service } from "./cloud.testing.ts";
import { mostEnds, provedAfterMs } from "./upgrade.ts";

test("a new image goes in one VM at a time, the own controller's last, and the old volumes go with each proof", () => {
  const cloud = new Cloud();
  assert.deepEqual(cloud.images(), { core: "one", two: "one", three: "one" });
  assert.equal(cloud.volumes(), atRest);
  const { upgraded, plan } = cloud.put("two");
  assert.deepEqual(upgraded, ["shop/two/vm", "shop/three/vm", "shop/core/vm"]);
  assert.ok(
    plan.steps.every(({ losesData }) => !losesData),
    "nothing has to be permitted",
  );
  const seen: string[] = [];
  for (let round = 0; cloud.trying().length > 0; round += 1) {
    assert.ok(round < 10);
    assert.equal(cloud.trying().length, 1);
    seen.push(...cloud.trying());
    cloud.pass(provedAfterMs - 1000);
    assert.deepEqual(cloud.trying(), seen.slice(-1), "not yet");
    cloud.pass(1000);
  }
  assert.deepEqual(seen, ["two", "three", "core"]);
  assert.deepEqual(cloud.images(), { core: "two", two: "two", three: "two" });
  assert.equal(cloud.volumes(), atRest, "nothing old is left");
  assert.deepEqual(
    names.map((name) => [name, cloud.vm(name).incarnation]),
    [
      ["core", 1],
      ["two", 2],
      ["three", 2],
    ],
  );
  assert.equal(cloud.world.documents<DesiredConnection>("storage-manager", "connection").length, 6);
  assert.ok(
    Object.values(cloud.world.phases()).every((phase) => phase === "ready"),
    JSON.stringify(cloud.world.phases()),
  );
});

test("the VM of the own controller keeps both disks until its host has settled", () => {
  const cloud = new Cloud();
  const before = cloud.vm("core");
  cloud.put("two");
  while (!cloud.trying().includes("core")) cloud.pass(provedAfterMs);
  const tried = cloud.vm("core");
  const [old] = before.disks;
  assert.deepEqual(tried.disks, before.disks, "its host can go back");
  assert.deepEqual([tried.incarnation, tried.restart], [1, "host"]);
  assert.deepEqual([tried.trial?.replaces, tried.trial?.withinMs], [old?.connection, trialTimeoutMs]);
  const leases = () =>
    cloud.world
      .documents<DesiredConnection>("storage-manager", "connection")
      .filter(({ vm }) => vm === tried.uid)
      .map(({ uid }) => uid);
  assert.deepEqual(
    leases().sort(),
    [...tried.disks.map(({ connection }) => connection), tried.trial?.disk.connection].sort(),
  );
  // It has proved itself, and its host has not heard that yet.
  const host = peerName(cloud.world.vm("shop/core/vm")?.host ?? "");
  cloud.world.wait(provedAfterMs);
  cloud.world.silent.add(host);
  for (let more = 0; more < 2; more += 1) cloud.world.step({ kind: "timer", name: "upgrade" });
  const now = cloud.vm("core");
  assert.deepEqual([now.trial, now.disks[0]?.connection], [undefined, tried.trial?.disk.connection]);
  assert.equal(leases().length, 3, "the host may be about to go back");
  cloud.world.silent.delete(host);
  cloud.settle();
  assert.deepEqual(leases().sort(), now.disks.map(({ connection }) => connection).sort());
});

test("an image that does not come up: the first VM goes back, nothing more is touched, and everybody can read why", () => {
  const cloud = new Cloud();
  cloud.broken.add("two");
  cloud.put("two");
  assert.deepEqual(cloud.trying(), [], "it has ended twice");
  cloud.pass(1000);
  assert.deepEqual(cloud.images(), { core: "one", two: "one", three: "one" });
  assert.deepEqual(
    names.map((name) => cloud.vm(name).incarnation),
    [1, 1 + mostEnds + 1, 1],
  );
  const { world } = cloud;
  assert.equal(world.phase("shop/two/vm"), "ready");
  assert.equal(
    world.standing("shop/two/bootDisk"),
    "failed: upgrade-went-back shop/two/vm shop/two/boot (ended crashed), upgrade-over",
  );
  assert.equal(world.standing("shop/three/bootDisk"), "waiting: upgrade-stopped shop/two/vm");
  const why = world.ask({ method: "WHY-ELEMENT", path: "shop/two/vm" }).body as unknown as { verdict: string };
  assert.match(why.verdict, /boot volume.*went back|boot volume.*did not come up/);
  cloud.pass(trialTimeoutMs);
  assert.deepEqual([cloud.trying(), cloud.images()], [[], { core: "one", two: "one", three: "one" }]);
  // The old name again: what runs is what is wanted, and nothing is started again for that.
  cloud.put("one");
  assert.deepEqual(
    names.map((name) => cloud.vm(name).incarnation),
    [1, 1 + mostEnds + 1, 1],
  );
  assert.equal(cloud.volumes(), atRest);
  assert.ok(
    Object.values(world.phases()).every((phase) => phase === "ready"),
    JSON.stringify(world.phases()),
  );
  // And a better one.
  cloud.put("three");
  while (cloud.trying().length > 0) cloud.pass(provedAfterMs);
  assert.deepEqual(cloud.images(), { core: "three", two: "three", three: "three" });
  assert.equal(cloud.volumes(), atRest);
});

test("one that runs and does not answer goes back when its time is over; not while its host is away", () => {
  const cloud = new Cloud();
  cloud.world.put(cloudModel("two"));
  const { uid } = cloud.vm("two");
  cloud.world.ended.set(`${uid}@2`, { health: "starting", phase: "working", reason: "it starts" });
  cloud.world.settle();
  assert.deepEqual(cloud.trying(), ["two"]);
  const host = peerName(cloud.world.vm("shop/two/vm")?.host ?? "");
  cloud.world.wait(trialTimeoutMs - 1000);
  cloud.world.silent.add(host);
  cloud.world.settle();
  cloud.world.wait(trialTimeoutMs);
  cloud.world.silent.delete(host);
  cloud.world.settle();
  assert.deepEqual(cloud.trying(), ["two"], "it is counted anew");
  cloud.world.wait(trialTimeoutMs);
  cloud.world.fire("upgrade");
  assert.deepEqual(cloud.trying(), []);
  assert.equal(
    cloud.world.standing("shop/two/bootDisk"),
    "failed: upgrade-went-back shop/two/vm shop/two/boot (upgrade-timed-out seconds=240 (said host.h1)), upgrade-over",
  );
});
const cloudModel = cloudOf;

test("the host of the own controller's VM goes back: the record says so, and the new disk is let go", () => {
  const cloud = new Cloud();
  cloud.put("two");
  while (!cloud.trying().includes("core")) cloud.pass(provedAfterMs);
  const { trial, uid } = cloud.vm("core");
  const connection = trial?.disk.connection ?? assert.fail("it is tried");
  cloud.world.ended.set(`${uid}@1`, { health: "answering", trial: { connection, boots: false, refused: "no answer" } });
  cloud.world.settle();
  assert.equal(cloud.vm("core").trial, undefined);
  assert.equal(
    cloud.world.standing("shop/core/bootDisk"),
    "failed: upgrade-went-back shop/core/vm shop/core/boot (said host.h1), upgrade-over",
  );
  const leased = () =>
    cloud.world.documents<DesiredConnection>("storage-manager", "connection").some((each) => each.uid === connection);
  assert.ok(leased(), "until its host is settled");
  cloud.settle();
  assert.ok(!leased());
  assert.deepEqual(cloud.images(), { core: "one", two: "two", three: "two" });
});

test("the former image in the middle of an upgrade, and another one", () => {
  const cloud = new Cloud();
  cloud.put("two");
  cloud.pass(provedAfterMs);
  assert.deepEqual(cloud.trying(), ["three"]);
  cloud.put("one");
  assert.deepEqual(cloud.trying(), ["two"], "what was upgraded goes back to what it had");
  while (cloud.trying().length > 0) cloud.pass(provedAfterMs);
  assert.deepEqual(cloud.images(), { core: "one", two: "one", three: "one" });
  assert.equal(cloud.vm("core").incarnation, 1);
  assert.equal(cloud.volumes(), atRest);
  cloud.put("two");
  cloud.put("three");
  assert.deepEqual(cloud.trying(), ["two"]);
  while (cloud.trying().length > 0) cloud.pass(provedAfterMs);
  assert.deepEqual(cloud.images(), { core: "three", two: "three", three: "three" });
  assert.equal(cloud.volumes(), atRest);
});

test("a VM waits for the other members of Presence to be well", () => {
  const cloud = new Cloud();
  const { uid, incarnation } = cloud.vm("core");
  cloud.world.ended.set(`${uid}@${incarnation}`, { health: "starting", phase: "working", reason: "it starts" });
  cloud.world.settle();
  cloud.world.put(cloudModel("two"));
  assert.deepEqual(cloud.trying(), ["three"], "who is no member need not wait");
  assert.equal(cloud.world.standing("shop/two/bootDisk"), "waiting: upgrade-one-at-a-time shop/three/vm");
  cloud.world.ended.set(`${uid}@${incarnation}`, { health: "starting", phase: "working", reason: "it starts" });
  const three = cloud.vm("three");
  cloud.world.ended.set(`${three.uid}@${three.incarnation}`, { health: "answering" });
  cloud.world.settle();
  cloud.world.wait(provedAfterMs);
  cloud.world.fire("upgrade");
  assert.deepEqual(cloud.trying(), []);
  assert.equal(cloud.world.standing("shop/two/bootDisk"), "waiting: upgrade-awaits shop/core/vm well");
  cloud.settle();
  assert.deepEqual(cloud.trying(), ["two"]);
});

test("a VM that ends while it waits for its turn starts from what it ran from", () => {
  const cloud = new Cloud();
  cloud.put("two");
  const { uid, incarnation } = cloud.vm("three");
  cloud.world.ended.set(`${uid}@${incarnation}`, { phase: "failed", power: "off", ended: "crashed", reason: "killed" });
  cloud.world.settle();
  assert.deepEqual([cloud.vm("three").incarnation, cloud.imageOf("three")], [2, "one"]);
  assert.deepEqual(cloud.trying(), ["two"]);
});

test("who waits for room holds nobody up: what is tried may be what makes some", () => {
  const cloud = new Cloud();
  const { uid, incarnation, memoryMiB } = cloud.vm("three");
  // Of the three, two fit: the third one ends, and its next incarnation has no place.
  for (const host of cloud.world.hosts.keys()) cloud.world.hosts.set(host, 0);
  cloud.world.hosts.set(hostName("h1"), 2 * memoryMiB);
  cloud.world.ended.set(`${uid}@${incarnation}`, { phase: "failed", power: "off", ended: "crashed", reason: "killed" });
  cloud.world.settle();
  assert.equal(cloud.world.vm("shop/three/vm"), null, cloud.world.phase("shop/three/vm"));
  cloud.world.put(cloudOf("two"));
  assert.deepEqual(cloud.trying(), ["two"]);
});

test("a machine with its boot volume alone goes back to the former image, too, when that is wanted again", () => {
  const { dataDisk: _disk, data: _data, vm, ...rest } = service("four");
  const four = { ...rest, vm: { ...(vm as JsonObject), "x.data": { service: { roles: { placer: {} } } } } };
  const cloud = new Cloud();
  cloud.put("one", { four });
  cloud.put("two", { four });
  for (let round = 0; round < 10 && !cloud.trying().includes("four"); round += 1) cloud.pass(provedAfterMs);
  assert.equal(cloud.imageOf("four"), "two");
  cloud.put("one", { four });
  for (let round = 0; round < 10; round += 1) cloud.pass(provedAfterMs);
  assert.equal(cloud.imageOf("four"), "one");
});

test("a controller of this version goes on from what a later one wrote, and loses nothing of it", () => {
  const cloud = new Cloud();
  const { world } = cloud;
  const id = cloud.vm("two").uid;
  world.records.set("novelty/1", { of: "the next version" });
  world.records.set(`vm/${id}`, { ...(world.records.get(`vm/${id}`) as JsonObject), novelty: 1 });
  world.crash();
  cloud.settle();
  cloud.put("two");
  while (cloud.trying().length > 0) cloud.pass(provedAfterMs);
  assert.deepEqual(cloud.images(), { core: "two", two: "two", three: "two" });
  assert.deepEqual(world.records.get("novelty/1"), { of: "the next version" });
  assert.equal((world.records.get(`vm/${id}`) as JsonObject).novelty, 1);
});

/** What may happen between any two steps. */
const events = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(500, provedAfterMs, trialTimeoutMs),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("image" as const), image: fc.constantFrom("one", "two", "bad") }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "crash" as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("kill" as const), name: fc.constantFrom("two", "three") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("host" as const), host: fc.constantFrom("h1", "h2") }) },
);

test("the VM that the root controller is to run in changes as it likes until it was started once", () => {
  const world = new World({ root: rootMeans });
  const put = (more: JsonObject): number => {
    const core = { ...service("core"), vm: { ...(service("core").vm as JsonObject), ...more } };
    return world.ask({ method: "PUT", path: "", json: cloudOf("one", { core }) }).status;
  };
  assert.equal(put({}), 200);
  assert.equal(put({ "x.memory": 320 }), 200);
  world.settle();
  assert.equal(world.vm("shop/core/vm")?.document.memoryMiB, 320);
  assert.equal(put({ "x.memory": 160 }), 400);
});

test("of the VM that the root controller runs in, whatever but its boot volume would need a restart is refused", () => {
  const cloud = new Cloud();
  const put = (name: string, more: JsonObject, image = "one") => {
    const changed = { ...service(name), vm: { ...(service(name).vm as JsonObject), ...more } };
    return cloud.world.ask({ method: "PUT", path: "", json: cloudOf(image, { [name]: changed }) });
  };
  const codes = (response: ReturnType<typeof put>): readonly string[] => {
    const { error } = response.body as { error?: { diagnostics?: readonly { code: string }[] } };
    return error?.diagnostics?.map(({ code }) => code) ?? [];
  };
  const moreRoles = { service: { roles: { ...roles.core, placer: {} } } };
  for (const more of [{ "x.memory": 320 }, { "x.cpus": 2 }, { "x.data": moreRoles }]) {
    assert.deepEqual(codes(put("core", more)), ["cell/own-vm"]);
    // Nor with another image: it would be left out.
    assert.deepEqual(codes(put("core", more, "two")), ["cell/own-vm"]);
  }
  cloud.settle();
  assert.deepEqual([cloud.images(), cloud.vm("core").memoryMiB], [{ core: "one", two: "one", three: "one" }, 160]);
  assert.equal(put("core", { "x.restartOnFailure": false }).status, 200, "what needs no restart changes");
  assert.equal(put("two", { "x.memory": 320 }).status, 200);
  cloud.settle();
  assert.deepEqual([cloud.vm("two").memoryMiB, cloud.vm("two").incarnation], [320, 2]);
  cloud.put("two");
  assert.deepEqual(cloud.trying(), ["two"]);
});

test("whatever happens: one at a time, always something to go back to, and in the end what is wanted if it works", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  let tried = 0;
  let wentBack = 0;
  const property = fc.property(
    fc.array(events, { minLength: 12, maxLength: 25, size: "max" }),
    fc.boolean(),
    (happenings, crashing) => {
      const cloud = new Cloud();
      const { world } = cloud;
      world.crashing = crashing;
      cloud.broken.add("bad");
      let image = "one";
      const check = (): void => {
        assert.ok(cloud.trying().length <= 1, "one at a time");
        tried += cloud.trying().length;
        for (const { uid, upgrade } of world.state.vms.values()) {
          if (upgrade === undefined) continue;
          wentBack += upgrade.refused === undefined ? 0 : 1;
          assert.ok(
            world
              .documents<DesiredVolume>("storage-manager", "volume")
              .some((each) => each.uid === upgrade.from.volume),
            `${world.state.elements.get(uid)?.path} has nothing to go back to`,
          );
        }
        const leases = world.documents<DesiredConnection>("storage-manager", "connection");
        for (const name of names) {
          const document = world.vm(`shop/${name}/vm`)?.document;
          for (const { connection, attachment } of document?.disks ?? [])
            assert.ok(
              leases.some((lease) => lease.uid === connection && lease.volume === attachment.volume),
              `${name} has a disk that is not leased`,
            );
        }
      };
      for (const happening of happenings) {
        if (happening.kind === "pass") cloud.pass(happening.ms);
        else if (happening.kind === "image") {
          image = happening.image;
          cloud.put(image);
        } else if (happening.kind === "crash") world.crash();
        else if (happening.kind === "kill") {
          const document = world.vm(`shop/${happening.name}/vm`)?.document;
          if (document !== undefined)
            world.ended.set(`${document.uid}@${document.incarnation}`, {
              phase: "failed",
              power: "off",
              ended: "crashed",
              reason: "killed",
            });
          world.settle();
        } else {
          world.silent.add(peerName(`host.${hostName(happening.host)}`));
          world.settle();
          check();
          world.silent.clear();
          world.settle();
        }
        cloud.settle();
        check();
      }
      if (image === "bad") {
        image = "one";
        cloud.put("one");
      }
      for (let round = 0; round < 30; round += 1) {
        cloud.pass(provedAfterMs);
        check();
      }
      // A VM that was killed on trial twice went back: the image was not at fault, and the next one is tried.
      if ([...world.state.vms.values()].some(({ upgrade }) => upgrade?.refused !== undefined)) {
        image = "last";
        cloud.put(image);
        for (let round = 0; round < 30; round += 1) cloud.pass(provedAfterMs);
      }
      assert.deepEqual(cloud.images(), { core: image, two: image, three: image });
      assert.equal(cloud.volumes(), atRest);
    },
  );
  // Whatever the seed draws, one is tried and proved, and one is tried and goes back.
  const put = (image: "two" | "bad") => ({ kind: "image" as const, image });
  const pass = ([500, provedAfterMs, trialTimeoutMs] as const).map((ms) => ({ kind: "pass" as const, ms }));
  const example = [put("two"), ...pass, ...pass, ...pass, put("bad"), ...pass, ...pass];
  fc.assert(property, { seed, numRuns: Number(process.env.CELLS_RUNS ?? 10), examples: [[example, false]] });
  assert.ok(tried > 1 && wentBack > 1, `${tried} tried, ${wentBack} went back`);
});
