import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { networkLease } from "../../documents/network/eucalyptus.ts";
import type { Input } from "../../env.ts";
import { createNetworkViewManager } from "../manager.ts";
import { carriersAfter, noNetworkHost } from "./carriers.ts";
import { askAgain, beginHeld, mayCarry, noHeldLease, takeAnswer } from "./held.ts";

/* The Network View Manager with a node and two network hosts of a cluster, which ask for their lease when a test says so. */

const self = peerName("network-view-manager");
const [n, a, b] = [peerName("host.n"), peerName("host.a"), peerName("host.b")];
const addresses = new Map([
  [n, "10.0.0.1"],
  [a, "10.0.0.2"],
  [b, "10.0.0.3"],
]);
const configuration = {
  Mode: "MANAGED-NOVLAN",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.2"],
  ManagedSubnet: { Subnet: "10.9.0.0", Netmask: "255.255.255.0", MinVlan: 2, MaxVlan: 6, SegmentSize: 16 },
  Clusters: [{ Name: "one" }],
};

function world() {
  const service = createNetworkViewManager({ self, hosts: [n, a, b], address: "10.0.0.19", controllers: [] });
  const records = new Map<string, Json>();
  let state = service.restore({ records, desiredAt: new Map() });
  let ms = 0;
  const timers = new Map<string, number>();
  const answers = new Map<PeerName, number>();
  const told = new Map<PeerName, { readonly version: number; readonly leased?: readonly string[] }>();
  let beat = 0;
  const send = (input: Input): void => {
    const { state: next, effects } = service.step(state, input, { ms, wallMs: 0 });
    state = next;
    for (const effect of effects)
      if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "timer" && effect.afterMs === null) timers.delete(effect.name);
      else if (effect.kind === "timer") timers.set(effect.name, ms + (effect.afterMs ?? 0));
      else if (effect.kind === "desire" && effect.key === "network-view")
        told.set(effect.to, effect.value as unknown as { readonly version: number });
      else if (effect.kind === "publish" && effect.key.endsWith("/network-lease"))
        answers.set(effect.key.split("/")[0] as PeerName, (effect.value as { readonly beat: number }).beat);
  };
  const start = (wasRestored = false): void => {
    state = service.restore({ records: new Map(records), desiredAt: new Map(), wasRestored });
    timers.clear();
    answers.clear();
    send({ kind: "start" });
  };
  const pass = (passedMs: number): void => {
    const until = ms + passedMs;
    for (;;) {
      const [next] = [...timers].filter(([, at]) => at <= until).sort(([, one], [, other]) => one - other);
      if (next === undefined) break;
      timers.delete(next[0]);
      ms = Math.max(ms, next[1]);
      send({ kind: "timer", name: next[0] });
    }
    ms = until;
  };
  /** A host says that the last view is in place; it is heard from now on. */
  const speak = (host: PeerName, version = told.get(host)?.version ?? 0): void => {
    send({ kind: "reachable", peer: host, reachable: true });
    const is = { address: addresses.get(host) ?? "", cluster: "one", peer: host === n ? "node" : "network" };
    send({ kind: "actual", from: host, key: "network", value: { ...is, version, instances: [] } });
  };
  /** Asks for its lease, by the view that has come. @returns whether it has it */
  const ask = (host: PeerName): boolean => {
    beat += 1;
    const view = told.get(host);
    const leased = view?.leased?.includes("one") === true ? { leased: view.version } : {};
    send({ kind: "actual", from: host, key: "network-beat", value: { beat, ...leased } });
    return answers.get(host) === beat;
  };
  const active = (): string | null => state.book.networkHosts.get("one")?.active ?? null;
  send({ kind: "start" });
  send({ kind: "request", id: 1, request: { kind: "configure", document: configuration } });
  return {
    send,
    start,
    pass,
    speak,
    ask,
    active,
    told,
    records,
    isLeased: () => told.get(n)?.leased?.includes("one") === true,
  };
}
/** `a` carries the cluster under a lease, and `b` could take over. */
const pair = () => {
  const made = world();
  for (const host of [n, a, b]) made.speak(host);
  for (const host of [a, b, a, b]) made.ask(host);
  return made;
};

test("a network host that is alone carries without a lease, and two that know leases carry under one", () => {
  const { speak, ask, active, isLeased, send } = world();
  for (const host of [n, a]) speak(host);
  send({ kind: "reachable", peer: b, reachable: true });
  ask(a);
  assert.deepEqual([active(), isLeased()], ["a", false]);
  // One of a version that knows none would carry on for ever.
  speak(b);
  assert.equal(isLeased(), false);
  ask(b);
  assert.deepEqual([active(), isLeased()], ["a", true]);
  // Nothing is heard of it: it may be carrying.
  send({ kind: "reachable", peer: b, reachable: false });
  send({ kind: "actual", from: b, key: "network", value: null });
  assert.equal(isLeased(), true);
  send({ kind: "reachable", peer: b, reachable: true });
  send({ kind: "timer", name: "network-lease" });
  assert.equal(isLeased(), false, "it is there, and is no network host any more");
});

test("another one is named once the lease is over, and no sooner; who is heard keeps it", () => {
  const { pass, ask, active } = pair();
  for (let second = 0; second < 20; second += 1) {
    pass(1000);
    assert.deepEqual([ask(a), ask(b)], [true, false]);
  }
  assert.equal(active(), "a");
  for (let second = 1; second < networkLease.endsMs / 1000; second += 1) {
    pass(1000);
    ask(b);
    assert.equal(active(), "a", `after ${second} s`);
  }
  pass(1000);
  assert.deepEqual([active(), ask(b)], ["b", true]);
  assert.equal(ask(a), false, "it is back");
  assert.equal(active(), "b");
});

test("a host that never said that it carries under a lease is waited for, however long it is silent", () => {
  const { pass, speak, ask, active, isLeased } = world();
  for (const host of [n, a, b]) speak(host);
  for (const host of [a, b]) ask(host);
  assert.equal(isLeased(), true);
  // Its view has not come: it carries by the one before.
  for (let second = 0; second < 30; second += 1) {
    pass(1000);
    ask(b);
  }
  assert.equal(active(), "a");
  const held = { ...noNetworkHost, active: "a", leasedSince: 5 };
  const lapsed = { kind: "lapsed", cluster: "one", host: "a" } as const;
  assert.match(String(carriersAfter(held, lapsed, 9, () => null)), /a has never said that it carries/);
  // A word of a view before that one is none.
  assert.equal(
    carriersAfter(held, { kind: "bound", cluster: "one", host: "a", version: 4 }, 9, () => null),
    held,
  );
});

test("nobody who could not take over is named, and a lease goes on where nobody could", () => {
  const { pass, ask, active, send, told } = pair();
  const before = told.get(n)?.version;
  send({ kind: "reachable", peer: b, reachable: false });
  pass(60_000);
  assert.deepEqual([active(), told.get(n)?.version], ["a", before]);
  assert.equal(ask(a), true, "it is heard again");
});

test("after a start of the manager a lease of before is over no sooner than one of now", () => {
  const { pass, start, speak, ask, active } = pair();
  pass(5900);
  start();
  for (const host of [n, b]) speak(host);
  ask(b);
  pass(5900);
  ask(b);
  assert.equal(active(), "a");
  pass(200);
  assert.equal(active(), "b");
});

test("after a loss nobody has a lease before all hosts were heard", () => {
  const { start, speak, ask, active } = pair();
  start(true);
  for (const host of [n, a]) speak(host);
  assert.deepEqual([ask(a), ask(b)], [false, false]);
  speak(b);
  assert.notEqual(active(), null);
  assert.deepEqual([ask(a), ask(b)], [active() === "a", active() === "b"]);
});

test("by an older store nobody is bound: who has carried without a lease since is waited for", () => {
  const { start, speak, ask, active, send, pass, isLeased, records } = pair();
  const before = new Map(records);
  send({ kind: "reachable", peer: b, reachable: false });
  send({ kind: "actual", from: b, key: "network", value: null });
  send({ kind: "reachable", peer: b, reachable: true });
  send({ kind: "timer", name: "network-lease" });
  assert.equal(isLeased(), false);
  speak(a);
  records.clear();
  for (const [key, value] of before) records.set(key, value);
  start(true);
  const is = { address: addresses.get(b) ?? "", cluster: "one", peer: "network", version: 0, instances: [] };
  send({ kind: "actual", from: b, key: "network", value: is });
  for (const host of [n, a, b]) speak(host);
  assert.equal(isLeased(), true);
  // What is told from now on does not come to a.
  for (let second = 0; second < 30; second += 1) {
    pass(1000);
    ask(b);
  }
  assert.equal(active(), "a");
});

test("a host counts from when it asked, and what another life of it had asked counts for nothing", () => {
  const held = noHeldLease();
  beginHeld(held, 1_000_000);
  held.leased = 3;
  const { beat } = askAgain(held, 100);
  assert.equal(mayCarry(held, 100), false);
  assert.equal(takeAnswer(held, beat), true);
  assert.equal(mayCarry(held, 100 + networkLease.holdsMs - 1), true);
  assert.equal(mayCarry(held, 100 + networkLease.holdsMs), false);
  const late = askAgain(held, 5000).beat;
  askAgain(held, 5000 + networkLease.holdsMs);
  assert.equal(takeAnswer(held, late), false, "it was answered when its time was over");
  const next = noHeldLease();
  beginHeld(next, 1_000_001);
  next.leased = 3;
  for (let asked = 0; asked < 10; asked += 1) askAgain(next, 6000);
  for (const before of [beat, late]) assert.equal(takeAnswer(next, before), false);
  assert.ok(networkLease.holdsMs < networkLease.endsMs);
});
