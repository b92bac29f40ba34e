import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toJson } from "../../core/outbox.ts";
import { type HostName, hostName, peerName } from "../../model/cell/identifiers.ts";
import { member, SuccessionWorld, standby, type TestHost } from "./succession.testing.ts";
import { silentMs } from "./succession.ts";

const names = ["h1", "h2", "h3", "h4", "h5"] as const;
/** The bootstrap host dies, and the others are told. */
const lost = (...more: readonly string[]): SuccessionWorld => {
  const world = new SuccessionWorld(names);
  for (const name of ["h1", ...more]) world.stop(world.host(name));
  for (const name of ["h1", ...more]) world.declare(world.host(name));
  return world;
};
const running = (world: SuccessionWorld): readonly HostName[] =>
  world.hosts.filter((host) => !world.down.has(host) && world.holdsAll(host)).map(({ name }) => name);

test("when the host of the root controller's VM is declared dead, the first by name takes its leases and starts it", () => {
  const world = lost();
  world.pass(10_000);
  assert.deepEqual(running(world), ["h2"]);
  const vm = world.host("h2").runs();
  assert.equal(vm?.incarnation, 2);
  assert.deepEqual(
    vm?.disks.map(({ attachment }) => [attachment.epoch, attachment.layers[0]?.exportName]),
    [
      [2, "e2"],
      [2, "e2"],
    ],
    "with the exports of its own epochs, the old ones are gone",
  );
  assert.deepEqual(
    world.agents.map(({ exports }) => [...exports]),
    [[2], [2]],
  );
  assert.deepEqual(world.host("h3").events, [], "nobody else did anything");
});

test("a host without room leaves it to the next one, which waits for its turn", () => {
  const world = lost();
  world.host("h2").obstacle = "no memory";
  world.pass(10_000);
  assert.deepEqual(running(world), []);
  assert.match(world.host("h2").state.trouble ?? "", /no memory/);
  world.pass(20_000);
  assert.deepEqual(running(world), ["h3"]);
});

test("hosts that have another such VM take their turn last, and closed ones after them", () => {
  const world = lost();
  for (const host of world.hosts.slice(1)) host.stands({ last: [hostName("h3"), hostName("h2")] });
  world.pass(10_000);
  assert.deepEqual(running(world), ["h4"]);
  const few = lost();
  for (const name of ["h4", "h5"]) few.host(name).obstacle = "no memory";
  for (const host of few.hosts.slice(1)) host.stands({ last: [hostName("h3"), hostName("h2")] });
  few.pass(30_000);
  assert.deepEqual(running(few), [], "the turns of h4 and h5");
  few.pass(20_000);
  assert.deepEqual(running(few), ["h3"]);
});

test("a host that died and has come back is not dead, and one that is heard is left alone", () => {
  const world = new SuccessionWorld(names);
  const back = toJson({ host: "h1", generation: 1, incarnation: 0, declaredAt: 0, reporters: 3, returned: 2 });
  for (const host of world.hosts) host.heard(member, "dead/h1", back);
  world.pass(silentMs * 2);
  for (const host of world.hosts) assert.deepEqual(host.events, []);
  // A control: the same without the return.
  const died = toJson({ host: "h1", generation: 3, incarnation: 0, declaredAt: 0, reporters: 3 });
  world.stop(world.host("h1"));
  for (const host of world.hosts.slice(1)) host.hear({ kind: "presence-heard", hosts: [[hostName("h1"), null]] });
  for (const host of world.hosts.slice(1)) host.heard(member, "dead/h1", died);
  world.pass(10_000);
  assert.deepEqual(running(world), ["h2"]);
});

test("after a power cut from which it does not come back, it counts as lost when it was silent for long", () => {
  const world = new SuccessionWorld(names);
  world.stop(world.host("h1"));
  const others = world.hosts.slice(1);
  for (const host of others) world.meet(host, others);
  world.pass(silentMs - 10_000);
  assert.deepEqual(running(world), [], "not sooner than any machine starts again");
  world.pass(20_000);
  assert.deepEqual(running(world), ["h2"]);
});

test("who hears no more than half of all hosts takes nothing, and says why", () => {
  const world = new SuccessionWorld(["h1", "h2"]);
  world.stop(world.host("h1"));
  const h2 = world.host("h2");
  world.meet(h2, [h2]);
  world.pass(silentMs * 3);
  assert.deepEqual(running(world), []);
  assert.match(h2.state.trouble ?? "", /more than half of the 2 hosts, and it hears 1/);
  const five = new SuccessionWorld(names);
  const [h4, h5] = [five.host("h4"), five.host("h5")];
  for (const host of [h4, h5]) five.meet(host, [h4, h5]);
  five.declare(five.host("h1"), [h4, h5]);
  five.pass(silentMs * 3);
  assert.deepEqual(
    h4.events.filter((event) => event === "succession/asked"),
    [],
  );
});

test("a host that alone thinks the holder lost, or says so, gets nothing, and takes its vote back when it hears it", () => {
  const world = new SuccessionWorld(names);
  const h2 = world.host("h2");
  // As if it were cut off from h1 alone, and had been told of a death by broadcast; the others hear h1.
  h2.hear({ kind: "presence-heard", hosts: [[hostName("h1"), null]] });
  h2.hear({ kind: "presence-died", host: hostName("h1"), generation: 1 });
  world.pass(silentMs * 2);
  assert.ok(h2.events.includes("succession/asked"));
  assert.deepEqual(running(world), ["h1"]);
  assert.deepEqual(
    world.agents.map(({ exports }) => [...exports]),
    [[1], [1]],
  );
  assert.match(h2.state.trouble ?? "", /or 3 of the 5 hosts miss it: 0 and 1 do/);
  // A host whose turn it is not votes; with h1 heard again nothing is left of it.
  const h3 = world.host("h3");
  h3.hear({ kind: "presence-heard", hosts: [[hostName("h1"), null]] });
  h3.hear({ kind: "presence-died", host: hostName("h1"), generation: 1 });
  h3.obstacle = "no memory";
  world.pass(10_000);
  assert.match(h2.state.trouble ?? "", /0 and 2 do/);
  h3.hear({ kind: "presence-heard", hosts: [[hostName("h1"), 2]] });
  world.pass(10_000);
  assert.match(h2.state.trouble ?? "", /0 and 1 do/);
  assert.deepEqual([...(h3.desiredAt.get(peerName("agent.s1"))?.keys() ?? [])], []);
});

test("of two hosts the one that is left takes over by the group's declaration", () => {
  const world = new SuccessionWorld(["h1", "h2"]);
  world.stop(world.host("h1"));
  world.declare(world.host("h1"));
  world.pass(10_000);
  assert.deepEqual(running(world), ["h2"]);
});

test("without its storage agent nothing can be done, which is said; it goes on when the agent is back", () => {
  const world = lost();
  for (const link of world.links) world.cut(link);
  world.pass(60_000);
  assert.deepEqual(running(world), []);
  assert.match(world.host("h2").state.trouble ?? "", /storage server s1/);
  for (const link of world.links) world.heal(link);
  world.pass(5_000);
  assert.equal(running(world).length, 1);
});

test("a host that comes back asks before it starts the VM, and leaves it to whoever succeeded it", () => {
  const world = lost();
  world.pass(10_000);
  const h1 = world.host("h1");
  const links = world.links.filter(({ host }) => host === h1);
  world.start(h1);
  assert.equal(h1.runs(), null, "it waits for the agent's word");
  world.settle();
  assert.equal(h1.runs(), null);
  assert.deepEqual(running(world), ["h2"]);
  // The same from its own store alone, with no agent to be heard: it may try, and its old leases open nothing.
  world.stop(h1);
  world.down.delete(h1);
  h1.boot();
  h1.advance();
  for (const link of links) link.cut = true;
  assert.equal(h1.runs(), null);
  world.pass(30_000);
  assert.equal(h1.runs()?.incarnation, 1);
  assert.deepEqual(
    world.agents.map(({ exports }) => [...exports]),
    [[2], [2]],
  );
});

test("one that comes back before anybody acted has its VM still", () => {
  const world = lost();
  const h1 = world.host("h1");
  world.start(h1);
  for (const host of world.hosts) host.hear({ kind: "presence-heard", hosts: [[hostName("h1"), 2]] });
  world.pass(60_000);
  assert.deepEqual(running(world), ["h1"]);
  assert.equal(h1.runs()?.incarnation, 1);
});

test("the successor dies as well: the next one succeeds it, by what the agents say", () => {
  const world = lost();
  world.pass(10_000);
  const h2 = world.host("h2");
  world.stop(h2);
  world.declare(h2);
  world.pass(60_000);
  assert.deepEqual(running(world), ["h3"]);
  assert.equal(world.host("h3").runs()?.incarnation, 3);
  world.start(h2);
  world.pass(5_000);
  assert.equal(h2.runs(), null, "its own durable record of the takeover is past");
  assert.deepEqual(running(world), ["h3"]);
});

test("once the controller says itself that it runs there, the host's own record goes, and nothing is fenced for it", () => {
  const world = lost();
  world.pass(10_000);
  const h2 = world.host("h2");
  h2.desired = { ...(h2.runs() ?? assert.fail()) };
  h2.document = standby("h2", 2, [2, 2]);
  h2.advance();
  world.settle();
  assert.equal(h2.records.has("succession"), false);
  assert.deepEqual(running(world), ["h2"]);
  assert.deepEqual(
    world.agents.map(({ desired }) => [...desired.keys()].filter((key) => /succession/.test(key))),
    [[], []],
  );
});

/** The bootstrap host loses its power, and with it the Presence group; the others miss it. */
const missed = (): SuccessionWorld => {
  const world = new SuccessionWorld(names);
  world.stop(world.host("h1"));
  const others = world.hosts.slice(1);
  for (const host of others) world.meet(host, others);
  return world;
};
const back = (world: SuccessionWorld): void => {
  world.start(world.host("h1"));
  for (const host of world.hosts) world.meet(host);
};

test("a holder that comes back after it was fenced and before its successor had the epoch: the successor gets it", () => {
  const world = missed();
  for (const agent of world.agents) agent.pause(true);
  world.pass(silentMs + 20_000);
  assert.deepEqual(
    world.agents.map(({ exports }) => [...exports]),
    [[1], [1]],
    "the fence is begun, and not done",
  );
  back(world);
  world.pass(60_000);
  for (const agent of world.agents) agent.pause(false);
  world.pass(60_000);
  assert.deepEqual(running(world), ["h2"]);
  assert.equal(world.host("h1").runs(), null);
});

test("a holder that comes back when its successor has one of two volumes gives up the other", () => {
  const world = missed();
  for (const link of world.links) if (link.agent === "agent.s2") world.cut(link);
  world.pass(silentMs + 20_000);
  assert.deepEqual(
    world.agents.map((agent) => agent.successor().holder?.host),
    ["h2", "h1"],
  );
  for (const link of world.links) if (link.host.name !== "h1") world.heal(link);
  back(world);
  world.pass(60_000);
  assert.deepEqual(running(world), ["h2"]);
  assert.equal(world.host("h1").runs(), null);
  assert.deepEqual([...(world.host("h1").desiredAt.get(peerName("agent.s2"))?.keys() ?? [])], []);
});

const event = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant("deliver" as const),
      at: fc.nat(9),
      count: fc.integer({ min: 1, max: 6 }),
    }),
    weight: 8,
  },
  { arbitrary: fc.record({ kind: fc.constant("work" as const), at: fc.nat(1) }), weight: 6 },
  { arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 60_000 }) }), weight: 4 },
  { arbitrary: fc.record({ kind: fc.constantFrom("cut" as const, "heal" as const), at: fc.nat(9) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constantFrom("stop" as const, "start" as const), at: fc.nat(4) }), weight: 2 },
  {
    arbitrary: fc.record({ kind: fc.constant("declare" as const), at: fc.nat(4), to: fc.subarray([0, 1, 2, 3, 4]) }),
    weight: 2,
  },
  {
    arbitrary: fc.record({ kind: fc.constant("hear" as const), at: fc.nat(4), of: fc.subarray([0, 1, 2, 3, 4]) }),
    weight: 2,
  },
  { arbitrary: fc.record({ kind: fc.constant("agent" as const), at: fc.nat(1) }), weight: 1 },
);

test("any order of deaths, cuts and restarts: nobody starts without all leases, never two with them, and one in the end", (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  let successions = 0;
  fc.assert(
    fc.property(fc.array(event, { maxLength: 120 }), (events) => {
      const world = new SuccessionWorld(names);
      const given = new Map<string, HostName>();
      const look = (): void => {
        assert.ok(running(world).length <= 1, `two have all leases: ${running(world)}`);
        for (const host of world.hosts) {
          const { taken } = host.state;
          if (taken === null) continue;
          const key = `${taken.incarnation}`;
          if (!given.has(key)) {
            successions += 1;
            assert.ok(holdsOrHeld(world, host), `${host.name} starts without every lease`);
          }
          assert.equal(given.get(key) ?? host.name, host.name, `incarnation ${key} is started by two hosts`);
          given.set(key, host.name);
        }
      };
      for (const each of events) {
        play(world, each);
        look();
      }
      // Then everything heals, and those that are down stay so: one of the rest has it.
      const [up, down] = [world.hosts.filter((host) => !world.down.has(host)), [...world.down]];
      for (const link of world.links) world.heal(link);
      for (const host of up) world.meet(host, up);
      for (const host of down) world.declare(host, up);
      world.pass(silentMs + 120_000);
      look();
      if (up.length * 2 > names.length) assert.equal(running(world).length, 1, `${running(world)} of ${up.length}`);
    }),
    { seed, numRuns: Number(process.env.CELLS_RUNS ?? 150) },
  );
  assert.ok(successions > 0 || process.env.CELLS_RUNS !== undefined, "some run must have come to a succession");
});

type Step = typeof event extends fc.Arbitrary<infer T> ? T : never;

/** At the moment at which it starts: what it asked for was granted, whatever became of it since. */
const holdsOrHeld = (world: SuccessionWorld, host: TestHost): boolean =>
  world.agents.every((agent) => {
    const epoch =
      host.state.taken?.disks.find(({ attachment }) => attachment.volume === agent.volume)?.attachment.epoch ?? 0;
    const { epoch: now, holder } = agent.successor();
    return now > epoch || (now === epoch && holder?.host === host.name);
  });

const play = (world: SuccessionWorld, each: Step): void => {
  const host = "at" in each ? world.hosts[each.at % names.length] : undefined;
  const link = "at" in each ? world.links[each.at % world.links.length] : undefined;
  if (host === undefined || link === undefined) {
    if (each.kind !== "wait") return;
    world.now += each.ms;
    for (const other of world.hosts) if (!world.down.has(other)) other.advance();
    return;
  }
  switch (each.kind) {
    case "deliver":
      for (let count = 0; count < each.count; count += 1) world.deliver(link);
      return;
    case "work":
      world.agents[each.at]?.work();
      return;
    case "agent":
      world.agents[each.at]?.restart();
      return;
    case "cut":
      world.cut(link);
      return;
    case "heal":
      world.heal(link);
      return;
    case "stop":
      world.stop(host);
      return;
    case "start":
      world.start(host);
      return;
    case "declare":
      world.declare(
        host,
        each.to.flatMap((at) => world.hosts[at] ?? []),
      );
      return;
    case "hear":
      if (!world.down.has(host))
        world.meet(
          host,
          each.of.flatMap((at) => world.hosts[at] ?? []),
        );
  }
};
