import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../../model/cell/identifiers.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { host, world } from "../placer.testing.ts";

const root = peerName("controller.root");
const [a1, a2, a3] = ["a1", "a2", "a3"].map((cell) => peerName(`controller.${cell}`)) as [PeerName, PeerName, PeerName];
const explicit: JsonObject = { groups: ["DedicatedGrp-domain-d1"] };
const [strict, preferred]: readonly JsonObject[] = [{ dedication: "strict" }, { dedication: "preferred" }];
const none: JsonObject = {};

/** H1 is dedicated to D1, in which A1 and A2 are; H2 is empty; H3 is in use; A3 is elsewhere. Each account has a cell of its name. */
function cloud(memoryMiB: Readonly<Record<string, number>> = {}) {
  const placer = world(["h1", "h2", "h3"]);
  for (const name of ["h1", "h2", "h3"]) placer.say(name, host(name, memoryMiB[name] ?? 8000));
  const desire = (from: PeerName, key: string, value: JsonObject | null): unknown =>
    placer.input({ kind: "desired", from, key, value });
  desire(root, "dedicated/h1", { host: "h1", of: "h1", level: "host", to: { kind: "domain", path: "ROOT/d1" } });
  for (const [cell, account] of [
    ["a1", "ROOT/d1/a1"],
    ["a2", "ROOT/d1/a2"],
    ["a3", "ROOT/a3"],
    ["old", "ROOT/old"],
  ] as const)
    desire(root, `owner/${cell}`, { cell, account });
  const start = (from: PeerName, vm: string, placement: JsonObject | undefined = none, more: JsonObject = {}) => {
    const [cell, about] = [
      from.slice("controller.".length),
      { cpus: 1, cpuSpeedMHz: 0, incarnation: 1, memoryMiB: 100 },
    ];
    desire(from, `placement/${vm}`, { vm, path: `${cell}/${vm}`, cell, placement, ...about, ...more });
    return placer.get(vm, from)?.host ?? null;
  };
  const end = (from: PeerName, vm: string): unknown => desire(from, `placement/${vm}`, null);
  // It is at H3 since there was no room elsewhere.
  placer.administer("h2", "disabled");
  start(peerName("controller.old"), "was-there");
  placer.administer("h2", null);
  return { ...placer, start, end };
}

test("the paper's use cases, one after the other on one state", () => {
  const { start, end, get } = cloud();
  assert.equal(start(a2, "u1", strict), "h2", "1: A2 strict: H2, now A2's");
  assert.equal(start(a1, "u2", explicit), "h1", "2: A1 explicit: H1");
  assert.equal(start(a1, "u3"), "h3", "3: A1 none: H3, the only shared one");
  assert.equal(start(a1, "u4", strict), null, "4: A1 strict: refused");
  assert.equal(start(a2, "u5", explicit), "h1", "5: A2 explicit: H1, beside A1");
  assert.equal(start(a3, "u6", strict), null, "6: A3 strict: refused");
  assert.equal(start(a3, "u7", strict), null, "7: again: refused");
  assert.equal(start(a3, "u7", explicit, { incarnation: 2 }), null, "7, if explicit was meant: refused either way");
  assert.equal(start(a3, "u8"), "h3", "8: A3 none: H3");
  assert.equal(start(a2, "u9", preferred), "h2", "9: A2 preferred: H2, beside its strict VM");
  assert.equal(start(a2, "u10"), "h3", "10: A2 none: H3");
  assert.equal(start(a3, "u11", preferred), "h3", "11: A3 preferred: no own, none empty: H3");
  for (const [from, vm] of [
    [a1, "u4"],
    [a3, "u6"],
    [a3, "u7"],
  ] as const) {
    assert.equal(get(vm, from)?.phase, "waiting");
    end(from, vm);
  }
  end(a2, "u1");
  end(a2, "u9");
  assert.equal(start(a3, "u12", strict), "h2", "12: the last VM of H2 deleted: H2 is anybody's");
  end(a1, "u2");
  end(a2, "u5");
  assert.equal(start(a3, "u13", none, { memoryMiB: 6990 }), null, "13: H1 empty: stays D1's");
  assert.equal(start(a1, "u14", explicit), "h1", "13: until root says otherwise");
});

test("use case 10: a VM that asks for nothing stands at its account's strict host only when shared ones are full", () => {
  const { start } = cloud({ h3: 1400 });
  assert.equal(start(a2, "own", strict), "h2");
  assert.equal(start(a2, "first", none, { memoryMiB: 250 }), "h3");
  assert.equal(start(a2, "second", none, { memoryMiB: 250 }), "h2");
  assert.equal(start(a3, "other", none, { memoryMiB: 250 }), null, "nobody else's does");
});

test("the cloud's own VMs keep off a host that is held, where anything else is left", () => {
  const { start } = cloud({ h1: 1200, h3: 1400 });
  assert.equal(start(a2, "own", strict), "h2");
  assert.equal(start(root, "r1", none, { memoryMiB: 250 }), "h3");
  assert.equal(start(root, "r2", none, { memoryMiB: 150 }), "h1", "a dedicated one before one that is held");
  assert.equal(start(root, "r3", none, { memoryMiB: 150 }), "h2", "the management goes on");
  assert.equal(start(a3, "other", preferred), null);
});

test("a cell of nobody who is known has no hosts of its account", () => {
  const { start, get } = cloud();
  const stranger = peerName("controller.stranger");
  assert.equal(start(stranger, "x", strict), null);
  assert.match(get("x", stranger)?.reason ?? "", /nothing is known of an account/);
});
