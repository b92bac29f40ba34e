import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostName, peerName } from "../../../model/cell/identifiers.ts";
import { presenceKey } from "../../documents/presence.ts";
import { bothOf } from "../changes/agreement.ts";
import { stopRun } from "../vm/life-cycle.ts";
import { shop, World } from "../world.testing.ts";

/** A host that has lost its store, or whose name another machine has: what its silence about a VM says. */
const h1 = peerName("host.h1");
const world = (): World => {
  const made = new World();
  made.put(shop());
  const web = made.vm("shop/web");
  assert.equal(web?.host, h1);
  return made;
};
const web = (of: World) => of.state.vms.get(of.uidOf("shop/web"));
const lost = (of: World): void => {
  of.step({ kind: "reachable", peer: h1, reachable: false });
  of.step({ kind: "forked", peer: h1, forked: false, itForked: true });
};
const replaced = (of: World): void => {
  of.step({ kind: "reachable", peer: h1, reachable: false });
  of.step({ kind: "another", peer: h1 });
};
const released = (of: World): void => {
  of.step({ kind: "forked", peer: h1, forked: false, itForked: false });
  of.settle();
};
/** Somebody asks for its next incarnation. */
const restart = (of: World): void => {
  for (const state of bothOf(of.state)) stopRun(state, of.uidOf("shop/web"));
  of.step({ kind: "timer", name: "look" });
  of.settle();
};

describe("its silence", () => {
  test("of a VM that the host with a lost store never named again confirms nothing until an operator has looked", () => {
    const one = world();
    one.slowStops.add(hostName("h1"));
    restart(one);
    lost(one);
    one.slowStops.clear();
    one.settle();
    assert.equal(web(one)?.run?.stage, "stopping");
    assert.equal(one.standing("shop/web"), "waiting: host-lost-store h1");
    one.crash();
    one.settle();
    assert.equal(web(one)?.incarnation, 1, "nor after a restart of the controller");
    released(one);
    assert.equal(web(one)?.incarnation, 2);
  });

  test("of a VM that the host said it runs, after it lost its store, is that it stopped: nobody has to look", () => {
    const one = world();
    lost(one);
    one.settle();
    restart(one);
    assert.equal(web(one)?.run?.incarnation, 2);
  });

  test("of a VM that the host got after it lost its store is that it stopped", () => {
    const one = world();
    one.hosts.set(hostName("h2"), 0);
    restart(one);
    lost(one);
    one.settle();
    restart(one);
    assert.equal(web(one)?.run?.incarnation, 3);
    restart(one);
    assert.equal(web(one)?.run?.incarnation, 4, "the host's store was lost once");
  });

  test("is nothing where another machine has the host's name, whatever that one says, until the former one is known to be off", () => {
    for (const by of ["release", "end of its boot"] as const) {
      const one = world();
      one.boots.set(hostName("h1"), 7);
      restart(one);
      assert.equal(web(one)?.run?.boot, 7);
      const incarnation = web(one)?.incarnation ?? 0;
      replaced(one);
      one.ended.set(`${one.uidOf("shop/web")}@${incarnation}`, {
        phase: "failed",
        power: "off",
        reason: "earlier boot",
      });
      one.settle();
      assert.equal(web(one)?.run?.stage, "stopping");
      assert.equal(one.standing("shop/web"), "waiting: host-replaced h1, before (ended not started)");
      if (by === "release") released(one);
      else {
        const value = { host: "h1", generation: 3, incarnation: 0, declaredAt: 0, reporters: 3, ended: 7 };
        for (const from of ["presence.1", "presence.3"].map(peerName))
          one.step({ kind: "actual", from, key: presenceKey.death("h1"), value });
        one.settle();
      }
      assert.ok((web(one)?.incarnation ?? 0) > incarnation, by);
      const next = web(one)?.incarnation ?? 0;
      // The new machine is in another boot.
      one.boots.set(hostName("h1"), 9);
      one.settle();
      restart(one);
      assert.ok((web(one)?.incarnation ?? 0) > next, "what the new machine runs is as everywhere");
    }
  });
});

test("a service or a host that had lost its store is done with when nothing of it is in doubt, without anybody", () => {
  const one = world();
  const manager = peerName("storage-manager");
  const recovered = (peer: string): boolean =>
    one.effects.some((effect) => effect.kind === "recovered" && effect.at === peer);
  one.step({ kind: "forked", peer: manager, forked: false, itForked: true });
  one.slowStops.add(hostName("h1"));
  restart(one);
  lost(one);
  one.slowStops.clear();
  one.settle();
  assert.equal(recovered(manager), false, "it may have more to say");
  one.fire(`older/${manager}`);
  one.fire(`older/${h1}`);
  assert.ok(recovered(manager));
  assert.equal(recovered(h1), false, "a VM that it had is in doubt");
  released(one);
  one.step({ kind: "forked", peer: h1, forked: true, itForked: true });
  one.fire(`older/${h1}`);
  assert.equal(recovered(h1), false, "this store is older itself: that is an operator's");
});
