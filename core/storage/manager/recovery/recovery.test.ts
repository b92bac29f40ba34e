import assert from "node:assert/strict";
import { test } from "node:test";
import { ipv4, peerName, uid } from "../../../../model/cell/identifiers.ts";
import type { AgentLease } from "../../../documents/vocabulary.ts";
import { toJson } from "../../../outbox.ts";
import { connection, copyOf, StorageWorld, type TestAgent, volume } from "../manager.testing.ts";
import { createStorageManager } from "../manager.ts";

/** A Storage Manager whose store is blank or older than what agents hold, while machines run. */
const empty = { kind: "empty" } as const;
const bank = peerName("controller.bank");
const s2 = peerName("agent.s2");

/** Three volumes on two servers: one is written, one is copied, and the copy is written as well. */
const world = (): StorageWorld => {
  const made = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8000 } });
  made.want("volume/a-1", volume("a-1", empty, 10));
  made.want("connection/a-8", connection("a-8", "a-1", "a-9", 3));
  made.want("volume/a-2", volume("a-2", empty, 20));
  made.settle();
  made.want("volume/a-3", volume("a-3", copyOf("a-2")));
  made.want("connection/a-7", connection("a-7", "a-3", "a-6", 5));
  made.settle();
  return made;
};
const snapshot = (of: StorageWorld) => structuredClone([...of.records]);
/** Its store is this, or nothing; what it said to agents is with them. */
const lose = (of: StorageWorld, records: ReturnType<typeof snapshot> = []): void => {
  of.records.clear();
  for (const [key, value] of records) of.records.set(key, value);
  for (const documents of of.desiredAt.values()) documents.clear();
};
const attachments = (of: StorageWorld) => ["a-8", "a-7"].map((id) => of.connection(id)?.attachment);
const placed = (of: StorageWorld, name: string): { readonly agent: string } =>
  (of.records.get(`volume/${name}`) as { readonly agent: string } | undefined) ?? assert.fail(`${name} is nowhere`);
const epochs = (of: StorageWorld) => [...of.agents.values()].flatMap(({ leases }) => [...leases]).sort();

test("a blank store: every volume is found where it is, and no lease of who is still desired ends", () => {
  const one = world();
  const [before, leases, places] = [
    attachments(one),
    epochs(one),
    ["a-1", "a-2", "a-3"].map((id) => placed(one, id).agent),
  ];
  assert.ok(before.every((attachment) => attachment?.layers.length));
  lose(one);
  one.restart();
  one.settle();
  assert.deepEqual(
    ["a-1", "a-2", "a-3"].map((id) => placed(one, id).agent),
    places,
  );
  assert.deepEqual(epochs(one), leases);
  assert.deepEqual(attachments(one), before);
  one.explain();
  one.settle();
  assert.deepEqual(epochs(one), leases, "nor later");
  assert.ok(one.events.includes("volume/adopted"));

  // Agents are often there before the controllers.
  const desires = [...one.wanted.values()];
  lose(one);
  one.wanted.clear();
  one.restart();
  for (const { from, key, value } of desires) {
    one.want(key, value as object, from);
    one.settle();
  }
  assert.deepEqual(epochs(one), leases);
  assert.deepEqual(attachments(one), before);
  // Whoever comes next is in a later epoch.
  one.want("connection/a-8", connection("a-8", "a-1", "a-9", 4));
  one.settle();
  assert.equal(one.connection("a-8")?.attachment?.epoch, (before[0]?.epoch ?? 0) + 2);
});

test("a blank store: nothing is placed before every server has said what it has, and the reason names who is silent", () => {
  const one = world();
  const before = placed(one, "a-1").agent === s2 ? "s2" : "s1";
  const [silent, other] = before === "s1" ? ["s1", "s2"] : ["s2", "s1"];
  lose(one);
  one.cut(one.agent(silent));
  one.restart();
  one.settle();
  one.want("volume/a-5", volume("a-5", empty, 10));
  for (const name of ["a-1", "a-5"])
    assert.match(one.volume(name)?.reason ?? "", new RegExp(`has lost what it knew .* what is on ${silent}$`));
  const asked = [...(one.desiredAt.get(peerName(`agent.${other}`))?.keys() ?? [])];
  assert.ok(!asked.includes("volume/a-1") && !asked.includes("volume/a-5"));
  // It is still waited for after another start.
  one.restart();
  assert.match(one.volume("a-1")?.reason ?? "", /has lost what it knew/);
  one.connect(one.agent(silent));
  one.settle();
  assert.deepEqual([one.volume("a-1")?.server, one.volume("a-1")?.phase], [silent, "ready"]);
  assert.equal(one.volume("a-5")?.phase, "ready");
  // From then on a silent server keeps nobody waiting.
  one.cut(one.agent(silent));
  one.restart();
  one.want("volume/a-4", volume("a-4", empty, 10));
  one.settle();
  assert.equal(one.volume("a-4")?.phase, "ready");
});

test("an older store: what came since is found, older desires fence nobody, and silent servers are waited for", () => {
  const one = world();
  const old = snapshot(one);
  const stale = [...one.wanted];
  one.want("connection/a-8", connection("a-8", "a-1", "a-9", 4, "h2"));
  one.want("volume/a-4", volume("a-4", empty, 10, "bank"), bank);
  one.settle();
  const desires = [...one.wanted];
  const place = placed(one, "a-4").agent;
  const now = epochs(one);
  lose(one, old);
  const silent = one.agent(place.slice("agent.".length));
  for (const agent of one.agents.values()) one.cut(agent);
  // Its own store has the desires of then.
  one.wanted.clear();
  for (const [key, desire] of stale) one.wanted.set(key, desire);
  one.restart();
  const hear = (agent: TestAgent): void => {
    one.input({ kind: "forked", peer: agent.name, forked: true, itForked: false });
    one.connect(agent);
  };
  for (const agent of one.agents.values()) if (agent !== silent) hear(agent);
  one.want("volume/a-4", volume("a-4", empty, 10, "bank"), bank);
  one.settle();
  assert.match(one.volume("a-4", bank)?.reason ?? "", /has lost what it knew/);
  hear(silent);
  one.settle();
  assert.equal(placed(one, "a-4").agent, place);
  one.explain();
  one.settle();
  assert.deepEqual(epochs(one), now, "a desire of an incarnation that is over takes nothing from the present one");
  for (const [, { from, key, value }] of desires) one.want(key, value as object, from);
  one.explain();
  one.settle();
  assert.deepEqual(epochs(one), now);
});

test("a holder whom nobody desires any more is cut off when controllers have had their time", () => {
  const one = world();
  lose(one);
  one.wanted.delete("controller.shop/connection/a-8");
  one.restart();
  one.want("connection/b-8", connection("b-8", "a-1", "b-9"));
  one.settle();
  assert.match(one.connection("b-8")?.reason ?? "", /is being written by VM a-9/);
  one.explain();
  one.settle();
  assert.equal(one.connection("b-8")?.phase, "ready");
});

test("whoever asks first takes no lease of an earlier incarnation, and hears where it ran", () => {
  for (const asksFirst of [true, false]) {
    const one = world();
    const now = epochs(one);
    lose(one);
    one.wanted.delete("controller.shop/connection/a-8");
    one.restart();
    // Of a controller from a backup, which places the next incarnation without having heard of the one that runs.
    const next = connection("a-8", "a-1", "a-9", 9, "h2");
    one.want("connection/a-8", asksFirst ? { ...next, asksFirst } : next);
    one.settle();
    one.explain();
    one.settle();
    if (!asksFirst) {
      assert.equal(one.connection("a-8")?.phase, "ready", "as before");
      continue;
    }
    assert.deepEqual(epochs(one), now);
    const said = one.connection("a-8");
    assert.match(said?.reason ?? "", /is being written by VM a-9 \(incarnation 3 on h1\)/);
    assert.deepEqual(said?.holder, { vm: "a-9", incarnation: 3, host: "h1" });
    one.want("connection/a-8", next);
    one.settle();
    assert.equal(one.connection("a-8")?.phase, "ready", "it has ended there");
  }
});

test("whoever asks first takes no lease of a later incarnation either: an earlier restore may have drawn higher", () => {
  for (const [incarnation, host] of [
    [2, "h2"],
    [3, "h2"],
    [9, "h1"],
  ] as const) {
    const one = world();
    const now = epochs(one);
    lose(one);
    one.wanted.delete("controller.shop/connection/a-8");
    one.restart();
    const next = connection("a-8", "a-1", "a-9", incarnation, host);
    one.want("connection/a-8", { ...next, asksFirst: true });
    one.settle();
    one.explain();
    one.settle();
    assert.deepEqual(epochs(one), now);
    assert.deepEqual(one.connection("a-8")?.holder, { vm: "a-9", incarnation: 3, host: "h1" });
    one.want("connection/a-8", next);
    one.settle();
    assert.equal(one.connection("a-8")?.phase, "ready", "it has ended there");
  }
});

test("another cell's desire for a later incarnation neither keeps a lease nor ends it", () => {
  const later = { ...connection("t-1", "a-1", "a-9", 1000), cell: "bank" };
  for (const desire of [later, { ...later, asksFirst: true }]) {
    const one = world();
    const now = epochs(one);
    one.want("connection/t-1", desire, bank);
    one.settle();
    lose(one);
    one.wanted.delete("controller.shop/connection/a-8");
    one.restart();
    one.settle();
    assert.deepEqual(epochs(one), now, "its own cell has yet to say what it desires");
    one.want("connection/a-8", connection("a-8", "a-1", "a-9", 3));
    one.settle();
    one.explain();
    one.settle();
    assert.deepEqual(epochs(one), now);
    // The machine moves.
    one.want("connection/a-8", connection("a-8", "a-1", "a-9", 4, "h2"));
    one.settle();
    assert.equal(one.connection("a-8")?.phase, "ready");
    assert.equal(one.connection("t-1", bank)?.attachment, null);
  }
});

test("a UID that two servers have, or that is another cell's, or nobody's, is given to nobody", () => {
  const one = world();
  const about = { cell: "shop", path: "shop/a-1", origin: null };
  const file = { phase: "ready", reason: null, sizeMiB: 10, usedMiB: 1, boot: null };
  lose(one);
  one.restart();
  for (const [name, server] of [
    ["c-1", "s1"],
    ["c-1", "s2"],
    ["c-2", "s1"],
    ["c-3", "s1"],
  ] as const)
    one.say(one.agent(server), `volume/${name}`, {
      ...file,
      ...(name === "c-3" ? {} : { about: name === "c-2" ? { ...about, cell: "bank" } : about }),
    });
  for (const name of ["c-1", "c-2", "c-3"]) one.want(`volume/${name}`, volume(name, empty, 10));
  one.settle();
  assert.match(one.volume("c-1")?.reason ?? "", /s1 and s2 both have a file of it/);
  assert.match(one.volume("c-2")?.reason ?? "", /belongs to an element of another cell/);
  assert.match(one.volume("c-3")?.reason ?? "", /does not know whose it is/);
  assert.ok(["c-1", "c-2", "c-3"].every((name) => !one.records.has(`volume/${name}`)));
});

test("nobody else's desire gets the secrets of a lease that only the agent remembers", () => {
  const one = world();
  const { holder } = one.agent(placed(one, "a-1").agent.slice(6)).leases.get("a-1") ?? { holder: null };
  assert.ok(holder !== null);
  lose(one);
  one.wanted.delete("controller.shop/connection/a-8");
  one.restart();
  const desire = { ...connection("t-1", "a-1", holder.vm, holder.incarnation), cell: "bank" };
  one.want("connection/t-1", desire, bank);
  one.settle();
  assert.equal(one.connection("t-1", bank)?.attachment, null);
});

test("an origin that nobody desires any more is found with its copy, and goes with it", () => {
  const one = world();
  lose(one);
  one.wanted.delete("controller.shop/volume/a-2");
  one.restart();
  one.settle();
  assert.equal((one.records.get("volume/a-2") as { readonly client: string }).client, "provider");
  assert.equal(one.connection("a-7")?.attachment?.layers.length, 2);
  one.input({ kind: "complete", peer: peerName("controller.shop") });
  one.want("connection/a-7", null);
  one.want("volume/a-3", null);
  one.settle();
  assert.ok(!one.records.has("volume/a-2") && !one.records.has("volume/a-3"));
  assert.ok([...one.agents.values()].every(({ actual }) => !actual.has("volume/a-2")));
});

test("an agent is told that its documents count again when it has said what it has, unless it is itself an older one", () => {
  const agent = peerName("agent.s1");
  const service = createStorageManager({ self: peerName("storage-manager"), agents: [agent] });
  for (const itForked of [false, true]) {
    let state = service.restore({ records: new Map(), desiredAt: new Map() });
    const input = (what: Parameters<typeof service.step>[1]) => {
      const step = service.step(state, what, { ms: 0, wallMs: 0 });
      state = step.state;
      return step.effects.some(({ kind }) => kind === "recovered");
    };
    input({ kind: "start" });
    assert.equal(input({ kind: "forked", peer: agent, forked: true, itForked }), false);
    input({
      kind: "actual",
      from: agent,
      key: "server",
      value: { server: "s1", address: ipv4("10.0.2.1"), totalMiB: 9, freeMiB: 9 },
    });
    assert.equal(input({ kind: "reachable", peer: agent, reachable: true }), !itForked);
  }
});

test("a manager asks for nothing below what an agent has", () => {
  const one = world();
  const agent = one.agent(placed(one, "a-1").agent.slice(6));
  const held = agent.leases.get("a-1");
  assert.ok(held?.holder);
  agent.leases.set("a-1", { ...held, epoch: 41 });
  one.say(agent, "lease/a-1", one.leaseActual(agent, "a-1"));
  lose(one);
  one.restart();
  one.want("connection/a-8", connection("a-8", "a-1", "a-9", 9));
  const asked = one.desiredAt.get(agent.name)?.get(`lease/${uid("a-1")}`) as unknown as AgentLease;
  assert.equal(asked.epoch, 42);
});

test("what was seen of a server counts for another machine of its name only where volumes of the former one are known", () => {
  const mark = (of: StorageWorld, agent: TestAgent, start: string): unknown => {
    of.say(agent, "server", { ...(agent.actual.get("server") as object), mark: { start, tick: 3 } });
    return of.desiredAt.get(agent.name)?.get("seen");
  };
  for (const [server, last] of [
    ["s1", { start: "one", tick: 3 }],
    ["s3", null],
  ] as const) {
    const one = new StorageWorld({ s1: { freeMiB: 9000 }, s3: { freeMiB: 8000 } });
    one.want("volume/a-1", volume("a-1", empty, 10));
    one.settle();
    assert.equal(placed(one, "a-1").agent, "agent.s1");
    const agent = one.agent(server);
    mark(one, agent, "one");
    one.input({ kind: "another", peer: agent.name });
    assert.deepEqual(mark(one, agent, "two"), { start: "two", last }, server);
  }
});

test("what has copies is an origin still, in whatever order a server says what it has, and for an older store", () => {
  const origin = ["volume/a-2", "readers/a-2"];
  const asked = (of: StorageWorld) => [...(of.desiredAt.get(peerName(placed(of, "a-2").agent))?.keys() ?? [])];
  const isOrigin = (of: StorageWorld): void => {
    assert.equal((of.records.get("volume/a-2") as { readonly frozen?: unknown }).frozen, true);
    for (const key of origin) assert.ok(asked(of).includes(key), key);
  };
  for (const inPieces of [false, true]) {
    const one = world();
    isOrigin(one);
    lose(one);
    for (const agent of one.agents.values()) one.cut(agent);
    one.restart();
    for (const { name, actual } of inPieces ? one.agents.values() : [])
      for (const key of ["server", "volume/a-2"]) {
        const value = actual.get(key);
        if (value !== undefined) one.input({ kind: "actual", from: name, key, value });
      }
    if (inPieces) assert.match(one.volume("a-2")?.reason ?? "", /has it and has yet to say all that it has$/);
    for (const agent of one.agents.values()) one.connect(agent);
    one.settle();
    isOrigin(one);
  }
  const one = world();
  const older = snapshot(one).map(([key, record]) =>
    key === "volume/a-2" ? ([key, { ...(record as object), frozen: false }] as const) : ([key, record] as const),
  );
  lose(one, older as ReturnType<typeof snapshot>);
  one.restart();
  one.settle();
  isOrigin(one);
});

test("what a server counts before it has heard what was seen of it is no later state: its disk may only be mounted again", () => {
  const one = world();
  const agent = [...one.agents.values()][0] ?? assert.fail();
  const says = (start: string, tick: number): unknown => {
    one.say(agent, "server", { ...(agent.actual.get("server") as object), mark: { start, tick } });
    return one.desiredAt.get(agent.name)?.get("seen");
  };
  says("own", 1);
  says("own", 2);
  const own = { start: "own", tick: 2 };
  for (const tick of [0, 1]) assert.deepEqual(says("blank", tick), { start: "blank", last: own });
  assert.deepEqual(says("back", 1), { start: "back", last: own });
  for (const tick of [1, 2]) says("back", tick);
  assert.deepEqual(says("late", 5), { start: "late", last: { start: "back", tick: 2 } });
  assert.deepEqual(
    says("next", 0),
    { start: "next", last: { start: "back", tick: 2 } },
    "one that counted while nobody heard",
  );
});

test("an origin that is on no server is not made anew under its copies, which would read something else", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8999 } });
  one.want("volume/a-2", volume("a-2", empty, 20));
  one.settle();
  one.want("volume/a-3", volume("a-3", copyOf("a-2")));
  one.want("connection/a-7", connection("a-7", "a-3", "a-6", 5));
  one.settle();
  const [origin, copy] = ["a-2", "a-3"].map((id) => one.agents.get(peerName(placed(one, id).agent)) ?? assert.fail());
  assert.ok(origin !== undefined && copy !== undefined && origin !== copy);
  lose(one);
  for (const key of ["volume/a-2", "readers/a-2"]) {
    origin.actual.delete(key);
    origin.desired.delete(key);
  }
  one.restart();
  one.settle();
  assert.ok(one.records.has("volume/a-3") && !one.records.has("volume/a-2"));
  assert.match(
    one.volume("a-2")?.reason ?? "",
    /^its file is on no storage server, and "shop\/a-3" on s2 is a copy of it, .*: bring the server back that had it, or /,
  );
  assert.match(one.connection("a-7")?.reason ?? "", /^"shop\/a-2", of which it is a copy, is on no storage server$/);
  assert.equal(one.connection("a-7")?.attachment, null);
  // Without its copies nothing depends on what was in it.
  one.want("connection/a-7", null);
  one.want("volume/a-3", null);
  one.settle();
  assert.equal(one.volume("a-2")?.phase, "ready");
});

test("whose origin is on no server is not told what another cell called its copy", () => {
  for (const [cell, reason] of [
    ["shop", /^its file is on no storage server, and "shop\/secret" on s2 is a copy of it, /],
    ["bank", /^its file is on no storage server, and a volume of another cell on s2 is a copy of it, /],
  ] as const) {
    const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8999 } });
    one.settle();
    const about = { cell, path: `${cell}/secret`, origin: "a-1" };
    const file = { phase: "ready", reason: null, sizeMiB: 10, usedMiB: 1, boot: null, about };
    one.say(one.agent("s2"), "volume/a-4", file);
    one.want("volume/a-1", volume("a-1", empty, 10));
    one.settle();
    assert.match(one.volume("a-1")?.reason ?? "", reason);
    assert.equal(one.volume("a-1")?.reason?.includes("secret"), cell === "shop");
  }
});

test("a server that was put back to before a volume's end is told of that end once more", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  one.want("volume/a-2", volume("a-2", empty, 20));
  one.want("volume/a-3", volume("a-3", empty, 20));
  one.want("connection/a-7", connection("a-7", "a-2", "a-6", 5));
  one.settle();
  const agent = one.agent("s1");
  const [desired, actual, leases] = structuredClone([agent.desired, agent.actual, agent.leases]) as [
    typeof agent.desired,
    typeof agent.actual,
    typeof agent.leases,
  ];
  one.want("connection/a-7", null);
  one.settle();
  // The tombstones have arrived, and nobody hears what came of them.
  one.cut(agent);
  one.want("volume/a-2", null);
  one.onTheWay.splice(0);
  agent.leases.clear();
  for (const [id, lease] of leases) agent.leases.set(id, lease);
  for (const [key, value] of desired) agent.desired.set(key, value);
  for (const [key, value] of actual) agent.actual.set(key, value);
  one.connect(agent);
  one.settle();
  assert.equal(one.volume("a-2")?.reason, "storage server s1 is removing it");
  for (const [key, value] of agent.desired)
    if (!one.desiredAt.get(agent.name)?.has(key)) one.input({ kind: "kept", peer: agent.name, key, value });
  one.settle();
  assert.equal(one.volume("a-2"), undefined, "it has ended");
  assert.equal(one.volume("a-3")?.phase, "ready");
  assert.ok(agent.actual.has("volume/a-3") && !agent.actual.has("volume/a-2"));
  one.input({ kind: "kept", peer: agent.name, key: "volume/a-9", value: toJson(volume("a-9", empty, 20)) });
  assert.deepEqual(one.onTheWay, [], "of what is no volume of its own it says nothing");
});

test("what waits for an origin is looked at again when the origin is found, later than its copy", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8999 } });
  one.want("volume/a-2", volume("a-2", empty, 20));
  one.settle();
  one.want("volume/a-3", volume("a-3", copyOf("a-2")));
  one.want("connection/a-7", connection("a-7", "a-3", "a-6", 5));
  one.settle();
  const layers = one.connection("a-7")?.attachment?.layers;
  const origin = one.agents.get(peerName(placed(one, "a-2").agent)) ?? assert.fail();
  assert.equal(layers?.length, 2);
  assert.notEqual(placed(one, "a-3").agent, origin.name);
  lose(one);
  one.cut(origin);
  one.restart();
  one.settle();
  assert.match(one.connection("a-7")?.reason ?? "", /^"shop\/a-2", of which it is a copy, is on no storage server/);
  one.connect(origin);
  one.settle();
  assert.deepEqual(one.connection("a-7")?.attachment?.layers, layers);
});
