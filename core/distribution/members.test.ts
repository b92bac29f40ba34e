import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../model/cell/identifiers.ts";
import { createNetwork, feed, halt, machineOf, publish, settle, stateOf, subscribe } from "./network.testing.ts";

const dead = (network: ReturnType<typeof createNetwork>, by: string, host: string, generation: number): void =>
  publish(network, by, `dead/${host}`, { host, generation, incarnation: 0, declaredAt: 0, reporters: 3 });

test("who becomes a member of the Presence group is heard from then on, and who is none any more is not", () => {
  const network = createNetwork(["presence.1", "presence.2", "host.h1", "host.h2", "a"]);
  for (const name of ["host.h1", "host.h2"]) {
    feed(network, machineOf(network, name), { kind: "life", life: 1 });
    publish(network, name, "vm/1", 1);
    subscribe(network, "a", name, "");
  }
  settle(network);
  // Silence is no death, so that what they said stays.
  for (const name of ["host.h1", "host.h2"]) halt(network, machineOf(network, name));
  dead(network, "presence.1", "h1", 1);
  dead(network, "presence.2", "h2", 1);
  settle(network);
  const known = (): string[] => [...stateOf(network, "a").actual.keys()].sort();
  const group = (...members: string[]): void => {
    feed(network, machineOf(network, "a"), { kind: "presence", members: members.map(peerName) });
    settle(network);
  };
  assert.deepEqual(known(), ["host.h1 vm/1", "host.h2 vm/1"], "a group without members");
  group("presence.1");
  assert.deepEqual(known(), ["host.h2 vm/1"]);
  group("presence.1");
  assert.deepEqual(known(), ["host.h2 vm/1"], "the same one");
  subscribe(network, "a", "presence.1", "dead/");
  group();
  dead(network, "presence.1", "h2", 1);
  settle(network);
  assert.ok(known().includes("host.h2 vm/1"), "its word does not count any more");
  assert.ok(known().includes("presence.1 dead/h2"), "though the service itself still hears it");
  group("presence.2");
  assert.ok(!known().includes("host.h2 vm/1"));
  assert.deepEqual(network.faults, []);
});
