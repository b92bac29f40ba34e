import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementAnswer } from "../../../model/api.ts";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import type { DesiredConnection } from "../../documents/vocabulary.ts";
import { shop, World } from "../world.testing.ts";
import { shownCauses } from "./shown-causes.testing.ts";

const why = (world: World, path: string): ElementAnswer => {
  const { status, body } = world.ask({ method: "WHY-ELEMENT", path });
  assert.equal(status, 200, JSON.stringify(body));
  return body as unknown as ElementAnswer;
};
const storageManager = peerName("storage-manager");
const failing = ({ checks }: ElementAnswer): readonly string[] =>
  checks.filter(({ passes }) => !passes).map(({ check }) => check);
/** What blocks, by kinds and facts. */
const blocking = ({ checks }: ElementAnswer): string => shownCauses(checks.find(({ passes }) => !passes)?.causes ?? []);
const vm = (more: object) => ({ "x.type": "VM", "x.memory": 1024, "x.desiredState": "on", ...more });

test("a VM that runs is held up by nothing, and says what it rests on", () => {
  const world = new World();
  world.put(shop());
  const answer = why(world, "shop/web");
  assert.deepEqual(failing(answer), []);
  assert.ok(answer.checks.some(({ check }) => check === "shop/golden"));
  assert.equal(answer.verdict, "shop/web is as declared");
});

test("no host has room: each host with its reason, and what would lift it", () => {
  const world = new World();
  world.put(shop({ web: vm({ "x.memory": 8192 }) }));
  const answer = why(world, "web");
  assert.deepEqual(failing(answer), ["host h1", "host h2"]);
  assert.equal(blocking(answer), "no-host h1 memory");
  assert.match(answer.verdict, /held up at "host h1": needs 8192 MiB.*To lift that: h1: ask for at most \d+ MiB$/);
});

test("a VM that waits for a host says where it ran last, and one that never ran says nothing of it", () => {
  const world = new World();
  world.put(shop());
  const { host, incarnation } = world.state.vms.get(world.uidOf("shop/web"))?.run ?? assert.fail();
  const told = (): readonly string[] =>
    why(world, "shop/web").checks.flatMap(({ check, detail }) => (check === "ran last" ? [detail] : []));
  assert.deepEqual(told(), [], "it runs");
  world.put(shop({ web: vm({ "x.memory": 8192 }) }));
  world.settle();
  assert.deepEqual(told(), [`incarnation ${incarnation} was at ${host}`]);
  const other = new World();
  other.put(shop({ web: vm({ "x.memory": 8192 }) }));
  assert.deepEqual(
    why(other, "shop/web").checks.filter(({ check }) => check === "ran last"),
    [],
  );
});

test("the cause comes before its effects: a volume that nobody can make, seen from its VM and from its connection", () => {
  const world = new World();
  world.put(shop({ web: vm({ "x.desiredState": "off" }) }));
  for (const path of ["shop/golden", "shop/dbDisk"]) world.slowVolumes.add(world.uidOf(path));
  world.put(shop());
  world.settle();
  for (const path of ["shop/web", "shop/webBoot", "shop/webDisk"]) {
    const answer = why(world, path);
    assert.equal(failing(answer)[0], "shop/golden", path);
    assert.equal(blocking(answer), "said storage-manager", path);
  }
});

test("one that has not answered its probes yet is waited for, whether it would be started again or not", () => {
  for (const restartOnFailure of [true, false]) {
    const world = new World();
    world.put(shop({ web: vm({ "x.restartOnFailure": restartOnFailure, "x.liveness.protocol": "icmp" }) }));
    const key = `${world.uidOf("shop/web")}@1`;
    world.ended.set(key, { health: "starting" });
    world.settle();
    const waiting = why(world, "shop/web").checks.find(({ passes }) => !passes);
    assert.match(waiting?.lifts ?? "", /^nothing needs to be done/);
    world.ended.set(key, { health: "answering" });
    world.settle();
    assert.deepEqual(failing(why(world, "shop/web")), []);
  }
});

test("what was switched off, and what failed for good, say what starts them", () => {
  const world = new World();
  world.put(shop({ web: vm({ "x.desiredState": "off" }), db: vm({ "x.restartOnFailure": false }) }));
  assert.match(why(world, "shop/web").verdict, /x.desiredState is "off". To lift that: `cells start shop\/web`/);
  const run = world.vm("shop/db");
  assert.ok(run !== null);
  world.ended.set(`${world.uidOf("shop/db")}@${run.document.incarnation}`, {
    power: "off",
    ended: "crashed",
    phase: "failed",
    reason: "its QEMU process ended unexpectedly",
  });
  world.settle();
  assert.equal(blocking(why(world, "shop/db")), "ended crashed, not-restarted shop/db");
});

test("a lost host is named", () => {
  const world = new World();
  world.put(shop());
  const host = world.vm("shop/web")?.host ?? "";
  world.silent.add(peerName(host));
  world.settle();
  const name = hostName(host.slice("host.".length));
  const answer = why(world, "shop/web");
  assert.deepEqual([failing(answer)[0], blocking(answer)], [`host ${name} answers`, `host-unreachable ${name}`]);
});

test("what the storage of a VM that runs is held up by stands at its lease", () => {
  const world = new World();
  world.put(shop());
  const [key, desire] =
    [...(world.desired.get(storageManager) ?? [])].find(([each]) => each.startsWith("connection/")) ?? [];
  const { incarnation } = desire as unknown as DesiredConnection;
  const reason = "storage server s1 is older than others know it";
  const value = { phase: "waiting", reason, incarnation, attachment: null };
  world.step({ kind: "actual", from: storageManager, key: `controller.shop/${key}`, value });
  const lease = why(world, "shop/web").checks.find(({ check }) => check.startsWith("lease of"));
  assert.equal(lease?.detail, reason);
});

test("a group and the cell: what holds up the first of their elements that is not as declared", () => {
  const world = new World();
  world.put(shop({ tier: { web: vm({ "x.memory": 8192 }), app: vm({}) } }));
  for (const path of ["shop/tier", "tier", "shop"]) {
    const answer = why(world, path);
    assert.deepEqual([answer.type, answer.phase === "ready"], [path === "shop" ? "Cell" : "group", false], path);
    assert.ok(failing(answer).length > 0, "its own checks are shown");
  }
  assert.match(
    why(world, "tier").verdict,
    /^1 of 2 elements of shop\/tier are not as declared; first shop\/tier\/web is held up at "host h1": needs 8192 MiB/,
  );
  world.put(shop({ tier: { app: vm({}) } }));
  assert.equal(why(world, "shop/tier").verdict, "shop/tier is as declared: its only element is ready");
  assert.match(why(world, "shop").verdict, /^shop is as declared: all \d+ elements are ready$/);
  const { status, body } = world.ask({ method: "WHY-ELEMENT", path: "shop/teir" });
  assert.deepEqual([status, /Did you mean shop\/tier/.test(JSON.stringify(body))], [404, false], "elements are meant");
  assert.match(
    JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/tier/ap" }).body),
    /Did you mean shop\/tier\/app\?/,
  );
});

test("of a group what has failed is told before what waits, whatever it is called", () => {
  const world = new World();
  world.put(shop({ tier: { a: vm({ "x.memory": 8192 }), b: vm({ "x.restartOnFailure": false }), c: vm({}) } }));
  assert.match(why(world, "tier").verdict, /not as declared; first shop\/tier\/a /);
  world.ended.set(`${world.uidOf("shop/tier/b")}@1`, { phase: "failed", power: "off", ended: "exited" });
  world.settle();
  const { phase, verdict } = why(world, "tier");
  assert.equal(phase, "failed");
  assert.match(verdict, /^2 of 3 elements of shop\/tier are not as declared; first shop\/tier\/b /);
});

test("an element that is not there is a refusal that says where to look", () => {
  const world = new World();
  world.put(shop());
  const { status, body } = world.ask({ method: "WHY-ELEMENT", path: "shop/none" });
  assert.equal(status, 404);
  assert.match(JSON.stringify(body), /shop\/none is no element of the cell shop.*cells get shop --state/);
  const listed = JSON.stringify(world.ask({ method: "GET", path: "", state: true }).body);
  for (const { path } of world.state.elements.values()) {
    assert.ok(listed.includes(`"${path.split("/").at(-1)}":{"x.type"`), path);
    assert.equal(world.ask({ method: "WHY-ELEMENT", path }).status, 200, path);
  }
});

test("where nobody makes child cells, one says so and what to do instead", () => {
  const world = new World();
  const child = { "x.type": "CellController", "x.cell": { sub: { "x.type": "Cell" } } };
  world.put({ shop: { "x.type": "Cell", child } });
  world.settle();
  assert.equal(world.standing("shop/child"), "failed: no-cell-manager");
});

test("what an element is said to wait for and what `why` finds are the same causes", () => {
  const world = new World();
  const same = (when: string): void => {
    for (const { path, phase, causes, type } of world.state.elements.values()) {
      const answer = why(world, path);
      assert.deepEqual([answer.phase, answer.causes ?? []], [phase, causes], `${path} ${when}`);
      const blocked = answer.checks.some(({ passes }) => !passes);
      const isOff = type === "VM" && failing(answer)[0] === "wanted on";
      if (phase === "waiting" || phase === "failed") assert.ok(blocked, `${path} ${when}: ${world.standing(path)}`);
      if (phase === "ready" && causes.length === 0) assert.ok(!blocked || isOff, `${path} ${when}: ${answer.verdict}`);
      for (const { passes, causes: found, detail } of answer.checks)
        assert.ok(passes || found !== undefined || detail.startsWith("it is "), `${path} ${when}: ${detail}`);
    }
  };
  world.silent.add(peerName("storage-manager"));
  world.put(shop());
  same("while the Storage Manager is silent");
  world.silent.clear();
  world.settle();
  same("when all is there");
  world.silent.add(peerName("host.h1"));
  world.settle();
  same("while a host is silent");
  world.silent.clear();
  world.put(shop({ db: vm({ "x.memory": 8192 }) }));
  same("without room");
});
