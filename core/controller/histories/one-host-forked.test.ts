import assert from "node:assert/strict";
import { test } from "node:test";
import type { ElementAnswer } from "../../../model/api.ts";
import { hostName, type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { DesiredPlacement, DesiredVm } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { bothOf } from "../changes/agreement.ts";
import { stopRun } from "../vm/life-cycle.ts";
import { shop, World } from "../world.testing.ts";
import { offer } from "./offers.testing.ts";

/** What follows where hosts say that the controller's store is older, and no service does; and what a release leaves behind. */
const [h1, h2] = [peerName("host.h1"), peerName("host.h2")];
const placer = peerName("placer");
const forked = (of: World, isForked: boolean, ...peers: readonly PeerName[]): void => {
  for (const peer of peers) of.step({ kind: "forked", peer, forked: isForked, itForked: false });
  of.settle();
};
/** `shop/web` at h1, and `shop/db` at h2. */
const world = (): World => {
  const made = new World();
  made.hosts.set(hostName("h1"), 0);
  made.put(shop());
  const web = made.vm("shop/web") ?? made.vm("shop/db");
  assert.equal(web?.host, h2);
  made.hosts.set(hostName("h1"), 4096);
  made.hosts.set(hostName("h2"), 0);
  restart(made, "shop/web");
  assert.deepEqual([made.vm("shop/web")?.host, made.vm("shop/db")?.host], [h1, h2]);
  return made;
};
const restart = (of: World, path: string): void => {
  for (const state of bothOf(of.state)) stopRun(state, of.uidOf(path));
  of.step({ kind: "timer", name: "look" });
  of.settle();
};
const record = (of: World, path: string) => of.state.vms.get(of.uidOf(path));

test("one host's word that the store is older holds up what it has, and nothing else", () => {
  const one = world();
  one.hosts.set(hostName("h1"), 0);
  one.hosts.set(hostName("h2"), 4096);
  const [web, db] = [record(one, "shop/web")?.incarnation ?? 0, record(one, "shop/db")?.incarnation ?? 0];
  forked(one, true, h1);
  restart(one, "shop/db");
  restart(one, "shop/web");
  assert.equal(record(one, "shop/db")?.incarnation, db + 1);
  assert.equal(record(one, "shop/web")?.incarnation, web, "what that host has stays as it is");
  assert.equal(one.standing("shop/web"), "waiting: host-doubts-store h1 controller.shop");
  assert.equal(one.ask({ method: "PUT", path: "", json: shop(), dryRun: true }).status, 200, "changes are taken");
  one.crash();
  forked(one, false, h1);
  assert.equal(record(one, "shop/web")?.incarnation, web + 1);
});

test("a machine goes to such a host only where no other has room, and says then what it waits for", () => {
  const one = world();
  one.hosts.set(hostName("h1"), 0);
  forked(one, true, h1);
  restart(one, "shop/db");
  const asked = (): unknown => one.state.outbox.desired.get(placer)?.get(`placement/${one.uidOf("shop/db")}`);
  assert.deepEqual((asked() as unknown as DesiredPlacement).avoid, [hostName("h1")]);
  one.hosts.set(hostName("h1"), 4096);
  one.settle();
  assert.equal(record(one, "shop/db")?.run?.host, hostName("h1"));
  assert.equal(one.standing("shop/db"), "waiting: host-doubts-store h1 controller.shop");
  forked(one, false, h1);
  assert.equal(one.vm("shop/db")?.host, h1);
});

test("a machine that ended at such a host says why it is not started anew, and what an operator can do", () => {
  const one = world();
  const { incarnation } = record(one, "shop/web") ?? assert.fail();
  forked(one, true, h1);
  const ended = { phase: "failed", power: "off", ended: "crashed", reason: "its machine has ended" } as const;
  one.ended.set(`${one.uidOf("shop/web")}@${incarnation}`, ended);
  one.step({ kind: "actual", from: h1, key: `vm/${one.uidOf("shop/web")}`, value: toJson({ incarnation, ...ended }) });
  one.settle();
  assert.equal(one.standing("shop/web"), "waiting: said host.h1, host-doubts-store h1 controller.shop");
  const why = one.ask({ method: "WHY-ELEMENT", path: "shop/web" }).body as unknown as ElementAnswer;
  const held = why.checks.find(({ causes = [] }) => causes.some(({ kind }) => kind === "host-doubts-store"));
  assert.match(held?.lifts ?? "", /cells orphans release controller\.shop/);
  assert.equal(record(one, "shop/web")?.incarnation, incarnation);
});

test("where a service says so too, or most hosts that have something of the cell, nothing changes", () => {
  for (const peers of [[h1, h2], [placer]]) {
    const one = world();
    const before = structuredClone(record(one, "shop/db"));
    forked(one, true, ...peers);
    assert.equal(one.ask({ method: "PUT", path: "", json: shop() }).status, 409, peers.join());
    one.ended.set(`${one.uidOf("shop/db")}@${before?.incarnation}`, {
      phase: "failed",
      power: "off",
      ended: "crashed",
    });
    one.settle();
    assert.deepEqual(record(one, "shop/db"), before);
  }
});

test("a VM that ran elsewhere, as an older store does not know, starts after a release when that host has ended it", () => {
  const one = world();
  const { document } = one.vm("shop/db") ?? assert.fail();
  const key = `vm/${document.uid}`;
  const other = peerName("host.h9");
  forked(one, true, placer, other);
  const claim: DesiredVm = { ...document, incarnation: document.incarnation + 3, disks: [] };
  one.step({ kind: "kept", peer: other, key, value: toJson(claim) });
  one.hosts.set(hostName("h2"), 4096);
  const said = { phase: "ready", reason: null, incarnation: claim.incarnation, power: "on", ended: null };
  one.silent.add(other);
  one.step({ kind: "actual", from: other, key: `controller.shop/${key}`, value: said });
  forked(one, false, placer, other);
  assert.ok(one.effects.some((effect) => effect.kind === "desire" && effect.to === other && effect.value === null));
  restart(one, "shop/db");
  assert.equal(record(one, "shop/db")?.run, null);
  assert.equal(one.standing("shop/db"), "waiting: forgotten-runs h9");
  one.crash();
  offer(one, ["h1", "h2"]);
  one.settle();
  assert.equal(record(one, "shop/db")?.run, null, "nor after a restart of the controller");
  one.step({ kind: "actual", from: other, key: `controller.shop/${key}`, value: null });
  one.silent.delete(other);
  one.settle();
  const now = record(one, "shop/db");
  assert.ok((now?.run?.incarnation ?? 0) > claim.incarnation, "above what ran there");
  assert.equal(now?.strays, undefined);
});

/** `host.h9` says that it was told to run `shop/db` by a newer store, and that it runs it. */
const claimDb = (one: World, document: DesiredVm, incarnation: number): PeerName => {
  const h9 = peerName("host.h9");
  const key = `vm/${document.uid}`;
  one.silent.add(h9);
  one.step({ kind: "reachable", peer: h9, reachable: true });
  forked(one, true, h9);
  one.step({ kind: "kept", peer: h9, key, value: toJson({ ...document, incarnation, disks: [] }) });
  const said = { phase: "ready", reason: null, incarnation, power: "on", ended: null };
  one.step({ kind: "actual", from: h9, key: `controller.shop/${key}`, value: said });
  return h9;
};
const isTakenBack = (one: World, at: PeerName): boolean =>
  one.effects.some((effect) => effect.kind === "desire" && effect.to === at && effect.value === null);

test("a VM that one host says it was told to run starts nowhere else, nor after a restart, until that host has ended it", () => {
  const document = world().vm("shop/db")?.document ?? assert.fail();
  const one = new World();
  one.hosts.set(hostName("h1"), 0);
  one.hosts.set(hostName("h2"), 0);
  one.put(shop());
  one.settle();
  const uid = one.uidOf("shop/db");
  assert.equal(record(one, "shop/db")?.run?.stage, "placing");
  const h9 = claimDb(one, { ...document, uid }, 1);
  one.hosts.set(hostName("h2"), 8192);
  one.settle();
  assert.equal(record(one, "shop/db")?.run?.host, null);
  assert.equal(one.standing("shop/db"), "waiting: may-run-at h9 (host-doubts-store h9 controller.shop)");
  assert.equal(one.standing("shop/web"), "ready", "every other VM starts");
  one.crash({ forkedAt: new Map([[h9, { forked: true, itForked: false }]]) });
  one.step({ kind: "reachable", peer: h9, reachable: true });
  one.settle();
  assert.equal(record(one, "shop/db")?.run?.host, null, "the host may say late after a restart what it has");
  forked(one, false, h9);
  assert.equal(isTakenBack(one, h9), true);
  assert.equal(record(one, "shop/db")?.run, null);
  one.step({ kind: "actual", from: h9, key: `controller.shop/vm/${uid}`, value: null });
  one.silent.delete(h9);
  one.settle();
  assert.deepEqual([record(one, "shop/db")?.run?.host, record(one, "shop/db")?.run?.incarnation], ["h2", 2]);
  assert.equal(record(one, "shop/db")?.straysUpTo, undefined);
});

test("one that has its place and waits for its disk goes no further either", () => {
  const document = world().vm("shop/db")?.document ?? assert.fail();
  const one = new World();
  one.hosts.set(hostName("h1"), 0);
  const manager = peerName("storage-manager");
  one.put(shop());
  one.settle();
  one.silent.add(manager);
  restart(one, "shop/db");
  const before = record(one, "shop/db")?.run;
  assert.equal(before?.stage, "connecting");
  claimDb(one, { ...document, uid: one.uidOf("shop/db") }, before.incarnation);
  one.silent.delete(manager);
  one.settle();
  assert.equal(record(one, "shop/db")?.run?.handedOver, false);
  assert.equal(one.standing("shop/db"), "waiting: may-run-at h9 (host-doubts-store h9 controller.shop)");
});

test("a VM that ends while another host says that it was told to run it waits, and a release of that host takes it back there", () => {
  const one = world();
  const { document } = one.vm("shop/db") ?? assert.fail();
  one.hosts.set(hostName("h2"), 4096);
  const h9 = claimDb(one, document, document.incarnation + 1);
  assert.equal(record(one, "shop/db")?.run?.host, "h2", "what runs here goes on");
  restart(one, "shop/db");
  assert.equal(record(one, "shop/db")?.run, null);
  forked(one, false, h9);
  assert.equal(isTakenBack(one, h9), true);
  assert.equal(record(one, "shop/db")?.run, null);
  one.step({ kind: "actual", from: h9, key: `controller.shop/vm/${document.uid}`, value: null });
  one.silent.delete(h9);
  one.settle();
  assert.equal(record(one, "shop/db")?.run?.incarnation, document.incarnation + 2);
});
