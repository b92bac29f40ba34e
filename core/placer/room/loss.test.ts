import assert from "node:assert/strict";
import { test } from "node:test";
import { host, world } from "../placer.testing.ts";

const lossAt = (it: ReturnType<typeof world>) => {
  const loss = it.loss();
  return loss === null ? null : [loss.host, loss.vms, ...loss.stranded.map(({ path }) => path)];
};

test("the VMs of the fullest host are placed in thought on what the others have left, and those without a place are named", () => {
  const it = world(["h1", "h2"]);
  assert.equal(lossAt(it), null, "there is nothing anywhere");
  it.say("h1", host("h1", 6000));
  it.want("low", 1000, 1, { priority: -1 });
  it.want("high", 1500, 1, { priority: 7 });
  it.want("web", 1000);
  // 2500 MiB, without the management's.
  it.say("h2", host("h2", 3500));
  assert.deepEqual(lossAt(it), ["h1", 3, "shop/low"], "of which there is room for some the higher go first");
  assert.deepEqual(
    it.rooms().map(({ vms }) => vms),
    [3, 0],
    "nothing was placed",
  );
  it.say("h2", host("h2", 9000));
  assert.deepEqual(lossAt(it), ["h1", 3]);
  it.administer("h2", "disabled");
  assert.deepEqual(lossAt(it)?.slice(2).sort(), ["shop/high", "shop/low", "shop/web"], "a closed host takes nothing");
});

test("what runs elsewhere, of whomever, is in the way; room that is kept for who leaves is not looked for twice", () => {
  const it = world(["h1", "h2"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 1500);
  it.say("h2", host("h2", 3500));
  assert.deepEqual(lossAt(it), ["h1", 1]);
  it.administer("h1", "maintenance");
  assert.deepEqual(lossAt(it), ["h1", 1], "its room at h2 is its own");
  it.administer("h1", null);
  it.input({
    kind: "actual",
    from: "host.h2" as never,
    key: "taken/x-1",
    value: { memoryMiB: 1200, cpus: 1 },
  });
  assert.deepEqual(lossAt(it), ["h1", 1, "shop/web"]);
});

test("room that is kept is not looked for once more, where another VM needs that", () => {
  const it = world(["h1", "h2", "h3"]);
  it.say("h1", host("h1", 9000));
  it.want("web", 1500, 1, { priority: 5 });
  it.want("large", 2400);
  it.say("h2", host("h2", 3500));
  it.say("h3", host("h3", 2600));
  it.want("web", 1500, 1, { priority: 5, moveTo: "h3" });
  assert.equal(it.get("web")?.leave?.to, "h3");
  assert.deepEqual(lossAt(it), ["h1", 2]);
});

test("a VM that its placement keeps at its host has no other place", () => {
  const it = world(["h1", "h2"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 500, 1, { placement: { host: "h1" } });
  it.say("h2", host("h2", 6000));
  assert.deepEqual(lossAt(it), ["h1", 1, "shop/web"]);
});

test("a reserved host takes VMs alone whose host was lost, and stays as it is with what it has", () => {
  const it = world(["h1", "h2"]);
  it.say("h1", host("h1", 3500));
  it.say("h2", host("h2", 9000));
  it.administer("h2", "reserved");
  it.want("web", 1500);
  assert.equal(it.get("web")?.host, "h1", "though the other one has more room");
  assert.deepEqual(lossAt(it), ["h1", 1], "which may be lost: the other one is kept for that");
  it.want("large", 2400);
  assert.equal(it.get("large")?.host, null);
  const why = it.get("large")?.refusals.find((refusal) => refusal.host === "h2");
  assert.deepEqual([why?.kind, why?.why], ["closed", "it is kept for VMs whose host was lost"]);
  it.want("large", 2400, 2, { restart: true });
  assert.equal(it.get("large")?.host, "h2");
  assert.deepEqual(lossAt(it), ["h2", 1, "shop/large"], "one that was lost may go there, and nothing else");
  it.administer("h2", null);
  assert.equal(it.get("large")?.host, "h2");
});
