import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, uid } from "../../../../model/cell/identifiers.ts";
import { connection, StorageWorld, volume } from "../manager.testing.ts";

/** A blank store that is the first of an installation, or was lost. */
const empty = { kind: "empty" } as const;
const lose = (of: StorageWorld): void => {
  of.records.clear();
  for (const documents of of.desiredAt.values()) documents.clear();
};

test("a store that is the first waits for nobody: what is taken back before a server has answered is fenced at once", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 } });
  const agent = one.agent("s1");
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.settle();
  one.want("connection/a-8", connection("a-8", "a-1", "a-9"));
  // The server has granted it, and its word is on its way.
  agent.leases.set("a-1", { epoch: 1, holder: { vm: uid("a-9"), incarnation: 1, host: hostName("h1") } });
  one.onTheWay.length = 0;
  one.want("connection/a-8", null);
  one.say(agent, "lease/a-1", one.leaseActual(agent, "a-1"));
  one.settle();
  assert.deepEqual([agent.leases.get("a-1")?.epoch, agent.leases.get("a-1")?.holder], [2, null]);
  // Where a server has something, a blank store was lost, and its agents may be there before the controllers.
  lose(one);
  one.wanted.clear();
  one.restart();
  one.want("volume/a-1", volume("a-1", empty, 10));
  one.want("connection/a-8", connection("a-8", "a-1", "a-9"));
  agent.leases.set("a-1", { epoch: 3, holder: { vm: uid("a-7"), incarnation: 1, host: hostName("h1") } });
  one.say(agent, "lease/a-1", one.leaseActual(agent, "a-1"));
  one.settle();
  assert.equal(agent.leases.get("a-1")?.epoch, 3, "a store that was lost waits");
  assert.equal(one.state.explained, false);
});

test("a blank store was lost where a server had something when it was heard, though nothing is left by the time that all were", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 9000 } });
  const [first, last] = [one.agent("s1"), one.agent("s2")];
  one.cut(last);
  first.leases.set("a-1", { epoch: 3, holder: { vm: uid("a-7"), incarnation: 1, host: hostName("h1") } });
  one.say(first, "lease/a-1", one.leaseActual(first, "a-1"));
  lose(one);
  one.wanted.clear();
  one.restart();
  first.leases.delete("a-1");
  one.say(first, "lease/a-1", null);
  one.connect(last);
  one.settle();
  assert.equal(one.state.explained, false, "whose lease that was, its controller may have yet to say");
});

test("that a server had something is known after a start as well, as long as others are waited for", () => {
  const one = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 9000 } });
  const [first, last] = [one.agent("s1"), one.agent("s2")];
  one.cut(last);
  lose(one);
  one.wanted.clear();
  one.restart();
  first.leases.set("a-1", { epoch: 3, holder: { vm: uid("a-7"), incarnation: 1, host: hostName("h1") } });
  one.say(first, "lease/a-1", one.leaseActual(first, "a-1"));
  one.settle();
  first.leases.delete("a-1");
  one.say(first, "lease/a-1", null);
  one.settle();
  one.restart();
  one.connect(last);
  one.settle();
  assert.equal(one.state.explained, false, "the store was lost, whoever still has something");
  assert.deepEqual(one.records.get("recovery"), { waitsFor: [] }, "what is over is not kept");
});
