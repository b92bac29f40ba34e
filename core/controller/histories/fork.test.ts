import assert from "node:assert/strict";
import { test } from "node:test";
import { elementPath, hostName, type PeerName, peerName, uid } from "../../../model/cell/identifiers.ts";
import type { DesiredSubnet } from "../../documents/network/network.ts";
import type { CellPolicy, DesiredVm } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { createController } from "../controller.ts";
import { childGrant, goneVolume, options, shop, World } from "../world.testing.ts";
import { mostTakenBack } from "./fork.ts";

const manager = peerName("storage-manager");
const forked = (world: World, isForked: boolean): void =>
  void world.step({ kind: "forked", peer: manager, forked: isForked, itForked: false });

test("a controller with an older store refuses changes, stops nothing, and takes what runs for what it is", () => {
  const world = new World();
  world.put(shop());
  const web = world.vm("shop/web")?.document as DesiredVm;
  forked(world, true);
  const refused = world.ask({ method: "DELETE", path: "" });
  assert.equal(refused.status, 409);
  assert.match(JSON.stringify(refused.body), /lost or is older than what storage-manager holds.*cells orphans release/);
  assert.match(
    JSON.stringify(world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body),
    /held up at \\"the store of the cell's controller/,
  );
  const host = peerName("host.h1");
  const [key, run] = [`controller.shop/vm/${web.uid}`, world.state.vms.get(web.uid)?.run];
  const ended = { phase: "failed", reason: null, incarnation: 1, power: "off", ended: "crashed" };
  world.step({ kind: "actual", from: host, key, value: ended });
  assert.deepEqual(world.state.vms.get(web.uid)?.run, run, "nor does it start anything");
  world.step({ kind: "forked", peer: host, forked: true, itForked: false });
  world.step({ kind: "kept", peer: host, key: `vm/${web.uid}`, value: toJson({ ...web, incarnation: 7 }) });
  const before = world.state.counters.nextNumber;
  const cell = world.state.options.cellUid;
  world.step({ kind: "kept", peer: manager, key: `volume/${cell}-${before + 40}`, value: {} });
  assert.equal(world.state.vms.get(web.uid)?.run?.incarnation, 7);
  assert.equal(world.state.counters.nextNumber, before + 41);
  assert.equal(world.vm("shop/web")?.document.incarnation, 1, "nothing is said while it stands still");
  world.step({ kind: "forked", peer: host, forked: false, itForked: false });
  forked(world, false);
  assert.equal(world.state.vms.get(web.uid)?.run?.stage, "running");
});

test("a controller that restarts is held up by no fork at tenancy, whose release nobody would tell it", () => {
  const world = new World();
  world.put(shop());
  world.crash({ forkedAt: new Map([[peerName("tenancy"), { forked: true, itForked: true }]]) });
  world.settle();
  const answer = (): string => JSON.stringify(world.ask({ method: "DELETE", path: "" }).body);
  assert.match(answer(), /change\/destroys-data/, "it is looked at as ever");
  world.crash({ forkedAt: new Map([[manager, { forked: true, itForked: false }]]) });
  assert.match(answer(), /lost or is older than what storage-manager holds/);
});

test("an incarnation of which a receiver knows is not said to run where an earlier one does", () => {
  const world = new World();
  world.put(shop());
  const vm = world.uidOf("shop/web");
  const placer = peerName("placer");
  world.step({ kind: "forked", peer: placer, forked: true, itForked: false });
  const effects = world.step({ kind: "kept", peer: placer, key: `placement/${vm}`, value: { vm, incarnation: 7 } });
  assert.equal(world.state.vms.get(vm)?.incarnation, 7);
  assert.deepEqual(
    effects.filter((effect) => effect.kind === "log" && effect.event === "vm/stage"),
    [],
  );
});

test("an incarnation of which a receiver knows has no stage where none is known to run", () => {
  const world = new World();
  for (let number = 1; number < 20; number += 1) world.slowVolumes.add(uid(`c1-${number}`));
  world.put(shop());
  const vm = world.uidOf("shop/web");
  assert.equal(world.state.vms.get(vm)?.run, null);
  const placer = peerName("placer");
  world.step({ kind: "forked", peer: placer, forked: true, itForked: false });
  const effects = world.step({ kind: "kept", peer: placer, key: `placement/${vm}`, value: { vm, incarnation: 7 } });
  assert.equal(world.state.vms.get(vm)?.incarnation, 7);
  assert.deepEqual(
    effects.filter((effect) => effect.kind === "log" && effect.event === "vm/stage"),
    [],
  );
});

test("what a receiver says that it keeps is read as what is desired of it, for its key", () => {
  const { read } = createController(options);
  const host = peerName("host.h1");
  for (const key of ["policy/shop", "vm/c1-4", "places/shop"])
    assert.equal(read("kept", host, key, {}).ok, false, `${key} is no document of its kind`);
  assert.equal(read("kept", host, "volume/c1-7", { a: 1 }).ok, false, "no volume is desired of a host");
  const world = new World();
  world.put(shop());
  const web = world.vm("shop/web")?.document as DesiredVm;
  const value = toJson(web);
  assert.equal(read("kept", host, `vm/${web.uid}`, value).ok, true);
  assert.equal(read("kept", host, "vm/c1-99", value).ok, false, "it is of another VM");
});

/** A host says that it was told to run the VM `shop/web`, as incarnation 7, with the disk given beside its own. */
const claim = (world: World, from: string, more: readonly string[] = []): DesiredVm => {
  const web = world.vm("shop/web")?.document as DesiredVm;
  const [disk] = web.disks;
  const others = more.map((connection) => ({ ...disk, connection }));
  const document = { ...web, incarnation: 7, disks: [...web.disks, ...others] } as DesiredVm;
  const peer = peerName(from);
  world.step({ kind: "forked", peer, forked: true, itForked: false });
  world.step({ kind: "kept", peer, key: `vm/${web.uid}`, value: toJson(document) });
  return document;
};
const runOfWeb = (world: World) => world.state.vms.get(world.state.uids.get(elementPath("shop/web")) ?? uid(""));
const connected = (world: World, { uid: vm, disks: [disk] }: DesiredVm, host: string, incarnation = 7): void =>
  void world.step({
    kind: "kept",
    peer: manager,
    key: `connection/${disk?.connection}`,
    value: toJson({
      uid: disk?.connection,
      volume: disk?.attachment.volume,
      vm,
      incarnation,
      host,
      cell: "shop",
    }),
  });

test("a host's word moves no VM to it and gives it no disks", () => {
  const world = new World();
  world.put(shop());
  const before = structuredClone(runOfWeb(world));
  const other = before?.run?.host === "h1" ? "h2" : "h1";
  for (const more of [[], ["c1-99"]]) {
    claim(world, `host.${other}`, more);
    assert.deepEqual(runOfWeb(world)?.run, before?.run, "it runs where it ran");
    assert.equal(runOfWeb(world)?.incarnation, before?.incarnation);
  }
  const own = claim(world, `host.${before?.run?.host}`, ["c1-99"]);
  assert.equal(runOfWeb(world)?.run?.incarnation, 7);
  assert.deepEqual(runOfWeb(world)?.run?.disks, before?.run?.disks, "no disk is one that the host names");
  connected(world, own, other);
  claim(world, `host.${other}`, ["c1-99"]);
  assert.equal(runOfWeb(world)?.run?.host, before?.run?.host, "each of its disks must be connected there");
});

test("a VM that went to another host since is found there by its connections, in either order", () => {
  for (const hostFirst of [true, false]) {
    const world = new World();
    world.put(shop());
    forked(world, true);
    const before = runOfWeb(world)?.run;
    const other = before?.host === "h1" ? "h2" : "h1";
    if (!hostFirst) connected(world, { ...(world.vm("shop/web")?.document as DesiredVm) }, other);
    const document = claim(world, `host.${other}`);
    if (hostFirst) connected(world, document, other);
    assert.equal(runOfWeb(world)?.run?.host, other);
    assert.equal(runOfWeb(world)?.run?.incarnation, 7);
    assert.deepEqual(runOfWeb(world)?.run?.disks, before?.disks);
    claim(world, `host.${before?.host}`);
    assert.equal(runOfWeb(world)?.run?.host, other, "its former host does not take it back");
  }
});

test("what is known to run is no news, and one that is being stopped goes on being stopped", () => {
  const world = new World();
  world.put(shop());
  const web = world.vm("shop/web")?.document as DesiredVm;
  const host = runOfWeb(world)?.run?.host ?? "";
  world.slowStops.add(hostName(host));
  const off = { "x.type": "VM", "x.memory": 1024, "x.desiredState": "off", "x.restartOnFailure": true };
  world.put(shop({ web: off }));
  assert.equal(runOfWeb(world)?.run?.stage, "stopping");
  const peer = peerName(`host.${host}`);
  forked(world, true);
  connected(world, web, host, web.incarnation);
  world.step({ kind: "forked", peer, forked: true, itForked: false });
  world.step({ kind: "kept", peer, key: `vm/${web.uid}`, value: toJson(web) });
  assert.equal(runOfWeb(world)?.run?.stage, "stopping");
});

test("a host that says it has endless documents fills no store of the controller", () => {
  const world = new World();
  world.put(shop());
  const host = peerName("host.h1");
  world.records.set("counters", { ...world.state.counters, nextNumber: mostTakenBack ** 2 });
  world.crash();
  world.step({ kind: "forked", peer: host, forked: false, itForked: true });
  for (let count = 0; count <= mostTakenBack; count += 1)
    world.step({ kind: "kept", peer: host, key: `vm/c1-9${count}`, value: {} });
  assert.equal(world.state.outbox.releasing.get(host)?.size, mostTakenBack);
});

test("a host that is another one again and again leaves nothing of what it said before", () => {
  const world = new World();
  world.put(shop());
  const host = peerName("host.h1");
  const forgotten = (): readonly string[] => [...(world.state.forgotten.get(host)?.keys() ?? [])];
  for (let machine = 0; machine < 4; machine += 1) {
    world.step({ kind: "another", peer: host });
    for (const each of [1, 2]) world.step({ kind: "kept", peer: host, key: `vm/c1-9${machine}${each}`, value: {} });
    assert.deepEqual(forgotten(), [`vm/c1-9${machine}1`, `vm/c1-9${machine}2`]);
  }
});

test("no number that a receiver keeps uses up a range, however often it says one", () => {
  const world = new World();
  world.put(shop());
  const host = peerName("host.h1");
  const web = world.vm("shop/web")?.document as DesiredVm;
  forked(world, true);
  const { counters, policy } = world.state;
  const [rule] = policyOf(world).rules;
  const keep = (peer: PeerName, key: string, value: object): void =>
    void world.step({ kind: "kept", peer, key, value: toJson(value) });
  world.step({ kind: "forked", peer: host, forked: true, itForked: false });
  for (let step = 1; step < 64; step += 1) {
    const number = step === 63 ? Number.MAX_SAFE_INTEGER : 2 ** Math.min(step, 52);
    keep(manager, `volume/c1-${number}`, {});
    const most = Math.min(number, 2 ** 32 - 1);
    const rules = [{ ...rule, id: number, from: most, to: most }];
    keep(host, "policy/shop", { ...policyOf(world), version: number, rules });
    keep(host, `vm/${web.uid}`, { ...web, incarnation: number });
  }
  const { nextNumber, nextIdentity, nextRule } = world.state.counters;
  assert.ok(nextNumber <= counters.nextNumber + 2 ** 40 + 1 && nextNumber > 2 ** 30);
  assert.ok(nextIdentity <= counters.nextIdentity + 2 ** 22 + 1 && nextIdentity > 2 ** 20);
  assert.ok(nextRule <= counters.nextRule + 2 ** 22 + 1);
  assert.ok(world.state.policy.version <= policy.version + 2 ** 32);
  assert.ok((runOfWeb(world)?.incarnation ?? 0) <= 2 ** 17);
  assert.ok(world.effects.some((effect) => effect.kind === "log" && effect.event === "document/refused"));
});
const policyOf = (world: World): CellPolicy => {
  const compiled = [...world.desired.values()].flatMap((documents) => documents.get("policy/shop") ?? []);
  return compiled[0] as unknown as CellPolicy;
};

test("a controller without its store says so of elements that it does not know", () => {
  const world = new World();
  forked(world, true);
  const answer = world.ask({ method: "WHY-ELEMENT", path: "shop/web" });
  assert.equal(answer.status, 409);
  assert.match(
    JSON.stringify(answer.body),
    /shop\/web is not known here: .*lost or is older than what storage-manager/,
  );
  forked(world, false);
  assert.equal(world.ask({ method: "WHY-ELEMENT", path: "shop/web" }).status, 404);
});

test("once it is released, a controller whose store was older takes nothing back of a receiver whose store was older, too", () => {
  const world = new World();
  const say = (forked: boolean, itForked: boolean): void =>
    void world.step({ kind: "forked", peer: manager, forked, itForked });
  const key = `volume/${goneVolume(world)}`;
  say(true, true);
  say(false, true);
  assert.ok(world.effects.some(({ kind }) => kind === "recovered"));
  world.step({ kind: "kept", peer: manager, key, value: {} });
  const isTakenBack = (): boolean => world.state.outbox.releasing.get(manager)?.has(key) === true;
  assert.equal(isTakenBack(), false);
  say(false, true);
  world.step({ kind: "kept", peer: manager, key, value: {} });
  assert.equal(isTakenBack(), true, "one that is older while this one is whole holds what was taken back long ago");
});

test("other rules may be in force under a number that a receiver has seen: the next ones have the next number, each of them", () => {
  const world = new World();
  world.put(shop());
  const before = world.state.policy;
  const policy = before.compiled as unknown as CellPolicy;
  const host = peerName("host.h1");
  world.step({ kind: "forked", peer: host, forked: true, itForked: false });
  world.step({ kind: "kept", peer: host, key: "policy/shop", value: toJson({ ...policy, version: 12, rules: [] }) });
  world.step({ kind: "forked", peer: host, forked: false, itForked: false });
  const { version } = world.state.policy;
  assert.ok(version > 12);
  assert.deepEqual(world.state.policy.compiled, before.compiled, "the rules are those of this store");
  for (const [path, since] of Object.entries(world.state.policy.since ?? {})) assert.equal(since, version, path);
});

test("slices that a host keeps raise the numbers of rules and identities", () => {
  const world = new World();
  world.put(shop());
  const host = peerName("host.h1");
  const { nextRule, nextIdentity } = world.state.counters;
  const kept = {
    id: nextRule + 7,
    path: "shop/lost",
    from: nextIdentity + 3,
    to: 1,
    protocol: "tcp",
    sourcePorts: { from: 0, to: 65535 },
    ports: { from: 80, to: 80 },
  };
  world.step({ kind: "forked", peer: host, forked: true, itForked: false });
  const slice = toJson({ digest: [1, 2], rules: [kept] });
  world.step({ kind: "kept", peer: host, key: "slice/shop/0-9", value: slice });
  assert.ok(world.state.counters.nextRule > nextRule + 7, "that number is not given out again");
  assert.ok(world.state.counters.nextIdentity > nextIdentity + 3);
});

test("a store that is let count goes on above numbers of which nobody told it", () => {
  const world = new World();
  world.put(shop());
  const { counters, policy } = world.state;
  forked(world, true);
  assert.deepEqual(world.state.counters, counters);
  forked(world, false);
  assert.ok(world.state.counters.nextNumber > counters.nextNumber + 200_000, "more than a cell ever has of elements");
  assert.ok(world.state.counters.nextIdentity > counters.nextIdentity + 10_000);
  assert.ok(world.state.counters.nextRule > counters.nextRule + 10_000);
  assert.ok(world.state.policy.version > policy.version + 10_000);
});

test("a store that is let count a second time goes on elsewhere than it did after the first", () => {
  const numbers = [0.25, 0.5].map((drawn) => {
    const world = new World();
    world.put(shop());
    world.crash({ drawn });
    forked(world, true);
    forked(world, false);
    const { nextNumber, nextIdentity, nextRule } = world.state.counters;
    return [nextNumber, nextIdentity, nextRule, world.state.policy.version];
  });
  const [first = [], second = []] = numbers;
  for (const [index, number] of first.entries())
    assert.ok(Math.abs(number - (second[index] ?? 0)) > 50_000, `${number} and ${second[index]}`);
});

test("a subnet says which range it has, for an IP Address Manager that has lost its store", () => {
  const world = new World();
  world.put(shop());
  const subnets = world.documents<DesiredSubnet>("address-manager", "subnet");
  assert.deepEqual(
    subnets.map(({ uid: subnet, has }) => [subnet, has]),
    subnets.map(({ uid: subnet }) => [subnet, world.state.elements.get(subnet)?.range?.cidr]),
  );
  assert.ok(subnets.every(({ has }) => has !== undefined));
});

test("a blank controller follows who may hold what it has forgotten: the Cell Manager, and the directory", () => {
  const world = new World({ cellManager: true, directory: true });
  const followed = (): readonly string[] =>
    world.effects.flatMap((effect) => (effect.kind === "subscribe" ? [effect.to] : []));
  assert.ok(followed().includes("cell-manager"), "of a cell that has only children nobody else says that it is blank");
  assert.ok(!followed().includes("directory"), "most cells need none");
  forked(world, true);
  assert.ok(followed().includes("directory"));
  forked(world, false);
  world.crash();
  world.effects.length = 0;
  world.crash();
  assert.deepEqual(
    ["cell-manager", "directory"].filter((peer) => followed().includes(peer)),
    ["cell-manager", "directory"],
    "what it has forgotten is forgotten for good",
  );
});

test("the first model of a blank child is submitted again once an operator lets its store count", () => {
  const world = new World({ child: true });
  forked(world, true);
  const life = { uid: world.state.options.cellUid, model: shop(), grant: childGrant, ending: false };
  world.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: toJson(life) });
  world.settle();
  assert.equal(world.state.model.version, 0);
  assert.match(world.state.initial?.refusal ?? "", /was lost or is older/);
  forked(world, false);
  world.settle();
  assert.equal(world.state.model.version, 1);
});

test("a Storage Manager that lost its store while it was removing volumes is told once more which, and they are there until it says so", () => {
  const world = new World();
  world.put(shop({ scratch: { "x.type": "Volume", "x.size": 8 } }));
  world.settle();
  const volume = world.uidOf("shop/scratch");
  const key = `volume/${volume}`;
  world.silent.add(manager);
  world.put(shop());
  world.step({ kind: "released", peer: manager, key });
  const effects = world.step({ kind: "forked", peer: manager, forked: false, itForked: true });
  assert.deepEqual(
    effects.filter((effect) => effect.kind === "desire" && effect.key === key),
    [{ kind: "desire", to: manager, key, value: null, again: true }],
  );
  world.step({ kind: "actual", from: manager, key: `controller.shop/${key}`, value: null });
  world.step({ kind: "reachable", peer: manager, reachable: true });
  assert.equal(world.state.elements.get(volume)?.deleting, true);
  world.silent.delete(manager);
  world.settle();
  assert.equal(world.state.elements.has(volume), false);
});
