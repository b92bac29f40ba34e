import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import { presenceKey } from "../../documents/presence.ts";
import type { DesiredConnection } from "../../documents/vocabulary.ts";
import { toJson } from "../../outbox.ts";
import { bothOf } from "../changes/agreement.ts";
import { isInUse } from "../changes/in-use.ts";
import { rulesAtHosts } from "../rules/rules-in-force.ts";
import { stopRun } from "../vm/life-cycle.ts";
import { shop, World } from "../world.testing.ts";
import { offer } from "./offers.testing.ts";

/**
 * An older store is let count while a host says nothing: `h9`, to which the newer store gave a machine of which the older
 * one knows nothing.
 */
const [placer, manager, h9] = [peerName("placer"), peerName("storage-manager"), peerName("host.h9")];
const hosts = ["h1", "h2", "h9"];

/** Both VMs run at h1 or h2, as the store knows it; h9 is silent. */
const world = (): World => {
  const made = new World();
  made.put(shop());
  made.silent.add(h9);
  return made;
};
const forked = (of: World, isForked: boolean): void => {
  for (const peer of [manager, placer]) of.step({ kind: "forked", peer, forked: isForked, itForked: false });
};
const allHosts = (of: World): void => {
  offer(of, hosts);
  of.settle();
};
const restart = (of: World, path: string): void => {
  for (const state of bothOf(of.state)) stopRun(state, of.uidOf(path));
  of.step({ kind: "timer", name: "look" });
  of.settle();
};
const record = (of: World, path: string) => of.state.vms.get(of.uidOf(path)) ?? assert.fail(path);
const connections = (of: World): readonly DesiredConnection[] =>
  [...(of.desired.get(manager) ?? [])].flatMap(([key, value]) =>
    key.startsWith("connection/") ? [value as unknown as DesiredConnection] : [],
  );
const ofDb = (of: World): readonly DesiredConnection[] =>
  connections(of).filter((each) => each.vm === of.uidOf("shop/db"));
/** As the Presence group says of a host whose power is off. */
const isOff = (of: World, host: string): void => {
  const death = { host, generation: 3, incarnation: 0, declaredAt: 1, reporters: 3, ended: 60, endedIn: 3 };
  for (const member of [1, 2, 3])
    of.step({
      kind: "actual",
      from: peerName(`presence.${member}`),
      key: presenceKey.death(host),
      value: toJson(death),
    });
  of.settle();
};

test("no VM that the store knows starts before each host was heard, or is known to be off; and what runs goes on", () => {
  for (const end of ["heard", "off"] as const) {
    const one = world();
    forked(one, true);
    forked(one, false);
    one.settle();
    restart(one, "shop/db");
    assert.equal(record(one, "shop/db").run, null);
    assert.equal(one.standing("shop/db"), "waiting: restored-unheard", "which hosts there are is not known yet");
    allHosts(one);
    assert.equal(record(one, "shop/db").run, null);
    assert.equal(one.standing("shop/db"), "waiting: restored-unheard h9");
    one.crash();
    allHosts(one);
    assert.equal(record(one, "shop/db").run, null, "nor after a restart of the controller");
    assert.equal(one.standing("shop/web"), "ready");
    if (end === "off") isOff(one, "h9");
    else one.silent.clear();
    one.settle();
    assert.equal(one.standing("shop/db"), "ready");
  }
});

test("rules that change meanwhile are in force when such a host has confirmed them, or has nothing of the cell", () => {
  const one = world();
  const rule = [...one.state.elements.values()].find(({ type }) => type === "NetworkRule")?.path ?? assert.fail();
  assert.equal(one.standing(rule), "ready");
  forked(one, true);
  forked(one, false);
  allHosts(one);
  assert.equal(one.standing(rule), "waiting: rules-unconfirmed h9");
  assert.ok(rulesAtHosts(one.state).some(({ host, version }) => host === "h9" && version === 0));
  one.silent.clear();
  one.settle();
  assert.equal(one.standing(rule), "ready");
  assert.ok(!rulesAtHosts(one.state).some(({ host }) => host === "h9"), "it has nothing of the cell");
});

/** The Storage Manager has the disks of a later incarnation of `shop/db`, at that host. */
const keeps = (of: World, host: string): readonly DesiredConnection[] => {
  const later = ofDb(of).map((each) => ({ ...each, host: hostName(host), incarnation: each.incarnation + 1 }));
  assert.ok(later.length > 0);
  for (const each of later)
    of.step({ kind: "kept", peer: manager, key: `connection/${each.uid}`, value: toJson(each) });
  return later;
};

test("disks that the Storage Manager has for a machine at such a host stay as they are until that host has ended it", () => {
  for (const end of ["ended", "off"] as const) {
    const one = world();
    forked(one, true);
    const later = keeps(one, "h9");
    forked(one, false);
    allHosts(one);
    restart(one, "shop/db");
    const { incarnation } = later[0] ?? assert.fail();
    assert.deepEqual(ofDb(one), later, "as the Storage Manager was told last");
    assert.ok(later.every(({ volume }) => isInUse(one.state, volume)));
    assert.equal(record(one, "shop/db").run, null);
    assert.equal(one.standing("shop/db"), "waiting: forgotten-runs h9");
    const taken = one.effects.filter((effect) => effect.kind === "desire" && effect.to === h9 && effect.value === null);
    assert.ok(
      taken.length > 0 && taken.every((effect) => "again" in effect),
      "sent, though it never desired that there",
    );
    const rule = [...one.state.elements.values()].find(({ type }) => type === "NetworkRule")?.path ?? assert.fail();
    assert.equal(one.standing(rule), "waiting: rules-unconfirmed h9", "it may be met there by other rules");
    one.crash();
    allHosts(one);
    assert.deepEqual(ofDb(one), later, "nor after a restart of the controller");
    if (end === "off") isOff(one, "h9");
    else {
      // It comes back with the documents of the newer store, and keeps them until an operator has looked.
      one.silent.clear();
      one.step({ kind: "forked", peer: h9, forked: true, itForked: false });
      one.settle();
      assert.deepEqual(ofDb(one), later, "what that host has stays as it is");
      assert.ok(rulesAtHosts(one.state).some(({ host }) => host === "h9"));
      one.step({ kind: "forked", peer: h9, forked: false, itForked: false });
      one.settle();
    }
    assert.ok(record(one, "shop/db").incarnation > incarnation);
    assert.ok(ofDb(one).every(({ host }) => host !== "h9"));
    assert.equal(record(one, "shop/db").keptDisks, undefined);
    assert.equal(one.standing("shop/db"), "ready");
    assert.equal(one.standing(rule), "ready");
  }
});

test("the same where the older store has it at that host already, in an earlier incarnation", () => {
  const one = world();
  const host = String(record(one, "shop/db").run?.host);
  one.silent.add(peerName(`host.${host}`));
  one.settle();
  forked(one, true);
  const later = keeps(one, host);
  forked(one, false);
  allHosts(one);
  assert.deepEqual(ofDb(one), later);
  assert.equal(record(one, "shop/db").strays, undefined, "that host says how far it is");
});
