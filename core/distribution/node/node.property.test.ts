import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import {
  allow,
  boot,
  createNetwork,
  cut,
  deliver,
  desire,
  dial,
  feed,
  fireTimers,
  halt,
  machineOf,
  type Network,
  publish,
  settle,
  stateOf,
  subscribe,
  unsubscribe,
} from "../network.testing.ts";

const names = ["a", "b", "c"] as const;
const keys = ["k0", "k1", "k10", "m"] as const;
const prefixes = ["", "k", "k1", "m"] as const;

/** One thing that happens. Numbers are taken modulo what there is to choose from. */
const operation = fc.record({
  what: fc.oneof(
    { weight: 9, arbitrary: fc.constant("deliver" as const) },
    { weight: 3, arbitrary: fc.constantFrom("desire" as const, "publish" as const) },
    { weight: 2, arbitrary: fc.constantFrom("dial" as const, "undesire" as const, "unpublish" as const) },
    { weight: 2, arbitrary: fc.constantFrom("subscribe" as const, "lose" as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "unsubscribe" as const,
        "cut" as const,
        "crash" as const,
        "crash after commit" as const,
        "desire and crash" as const,
        "boot" as const,
        "stop" as const,
        "hide" as const,
        "show" as const,
        "timers" as const,
        "life" as const,
        "declare" as const,
      ),
    },
  ),
  who: fc.nat(2),
  other: fc.nat(1),
  key: fc.nat(3),
  pick: fc.nat(1000),
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** What the harness knows must be so, kept apart from the nodes' own state. */
interface Expected {
  /** `<receiver> <client> <key>` → value. */
  readonly desired: Map<string, number>;
  readonly declared: Set<string>;
  counter: number;
}

const put = (map: Map<string, number>, key: string, value: number | null): void => {
  if (value === null) map.delete(key);
  else map.set(key, value);
};

const move = (network: Network, pick: number, crash: boolean): void => {
  const choices = [...network.wires.values()].flatMap((wire) =>
    (["client", "server"] as const).map((side) => ({ wire, side })),
  );
  const choice = choices[pick % Math.max(choices.length, 1)];
  if (choice === undefined) return;
  const { wire, side } = choice;
  deliver(network, wire, side, crash);
};

/** A key goes missing at a client by a mistake that nobody made yet. */
const lose = (network: Network, name: string, peer: string, pick: number): void => {
  const target = machineOf(network, name).node?.distribution.targets.get(peerName(peer));
  const held = [...(target?.link?.seen ?? [])];
  const [key, seq] = held[pick % Math.max(held.length, 1)] ?? [];
  if (target === undefined || key === undefined || seq === undefined) return;
  target.link?.seen.delete(key);
  target.link?.digest.toggle(key, seq);
  target.actual.delete(key);
  stateOf(network, name).actual.delete(`${peer} ${key}`);
};

const perform = (network: Network, expected: Expected, { what, who, other, key, pick }: Operation): void => {
  const name = names[who] ?? "a";
  const peer = names.filter((candidate) => candidate !== name)[other] ?? "b";
  const keyName = keys[key] ?? "m";
  const prefix = prefixes[key] ?? "";
  const machine = machineOf(network, name);
  const up = machine.node !== null;
  switch (what) {
    case "deliver":
      move(network, pick, false);
      return;
    case "crash after commit":
      move(network, pick, true);
      return;
    case "boot":
      boot(network, machine);
      return;
    case "crash":
      halt(network, machine);
      return;
    case "stop":
      feed(network, machine, { kind: "stop" });
      halt(network, machine);
      return;
    case "lose":
      lose(network, name, peer, pick);
      return;
    case "life":
      feed(network, machine, { kind: "life", life: expected.counter + 1 });
      return;
    case "declare": {
      const life = machineOf(network, peer).node?.distribution.life ?? 0;
      if (life === 0) return;
      expected.declared.add(peer);
      feed(network, machine, { kind: "declared-dead", peer: peerName(peer), life });
      return;
    }
    case "timers":
      fireTimers(network, machine);
      return;
    case "dial":
      for (const target of machine.dials) dial(network, machine, target);
      return;
    case "cut": {
      const wires = [...network.wires.values()];
      const wire = wires[pick % Math.max(wires.length, 1)];
      if (wire !== undefined) cut(network, wire, pick % 2 === 0 ? "client" : "server");
      return;
    }
    case "subscribe":
      subscribe(network, name, peer, prefix);
      return;
    case "unsubscribe":
      unsubscribe(network, name, peer, prefix);
      return;
    case "hide":
    case "show":
      allow(network, name, peer, keyName, what === "show");
      return;
    case "desire":
    case "desire and crash":
    case "undesire": {
      expected.counter += 1;
      const value = what === "undesire" ? null : expected.counter;
      desire(network, name, peer, keyName, value, what === "desire and crash");
      if (up) put(expected.desired, `${peer} ${name} ${keyName}`, value);
      return;
    }
    case "publish":
    case "unpublish":
      expected.counter += 1;
      publish(network, name, keyName, what === "publish" ? expected.counter : null);
      return;
  }
};

const publishedBy = (network: Network, name: string): Map<string, Json> =>
  new Map([...(machineOf(network, name).node?.distribution.published ?? [])].map(([key, { value }]) => [key, value]));

const checkDesired = (network: Network, expected: Expected): void => {
  for (const receiver of names) {
    const wanted = [...expected.desired].filter(([pair]) => pair.startsWith(`${receiver} `));
    const found = [...stateOf(network, receiver).desired].map(([pair, value]) => [`${receiver} ${pair}`, value]);
    assert.deepEqual(found.sort(), wanted.sort(), `desired at ${receiver}`);
    const stored = [...machineOf(network, receiver).store]
      .filter(([key]) => key.startsWith("in/"))
      .map(([key, value]) => [
        `${receiver} ${key.slice(3).replace("/", " ")}`,
        (value as { readonly value: Json }).value,
      ]);
    assert.deepEqual(stored.sort(), wanted.sort(), `durable at ${receiver}`);
    const tombstones = [...machineOf(network, receiver).store].filter(
      ([key, value]) => key.startsWith("out/") && (value as { readonly value: Json }).value === null,
    );
    assert.deepEqual(tombstones, [], `tombstones left at ${receiver}`);
  }
};

const checkActual = (network: Network): void => {
  for (const name of names) {
    const { subscriptions, actual, reachable } = stateOf(network, name);
    const wanted: [string, Json][] = [];
    for (const source of names) {
      const followed = [...subscriptions].map((pair) => pair.split(" ")).filter(([to]) => to === source);
      for (const [key, value] of publishedBy(network, source)) {
        if (!followed.some(([, prefix = ""]) => key.startsWith(prefix))) continue;
        if (!stateOf(network, source).hidden.has(`${name} ${key}`)) wanted.push([`${source} ${key}`, value]);
      }
      if (followed.length > 0) assert.equal(reachable.get(source), true, `${name} knows that ${source} is reachable`);
    }
    assert.deepEqual([...actual].sort(), wanted.sort(), `actual at ${name}`);
  }
};

test("after healing everyone has the newest, and nobody ever went backwards", (context) => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(fc.array(operation, { minLength: 20, maxLength: 250, size: "max" }), (operations) => {
      const network = createNetwork(names);
      const expected: Expected = { desired: new Map(), declared: new Set(), counter: 0 };
      for (const one of operations) perform(network, expected, one);
      for (const name of names) boot(network, machineOf(network, name));
      // Who was declared dead begins a new life; what got lost is found by the next digests.
      for (const name of expected.declared)
        feed(network, machineOf(network, name), { kind: "life", life: expected.counter + 2 });
      settle(network);
      for (const name of names) fireTimers(network, machineOf(network, name));
      settle(network);
      assert.deepEqual(network.faults, []);
      checkDesired(network, expected);
      checkActual(network);
      const sent = network.sent.length;
      settle(network);
      assert.equal(network.sent.length, sent, "at rest nothing is said");
    }),
    { seed, numRuns: Number(process.env.CELLS_RUNS ?? 400) },
  );
});
