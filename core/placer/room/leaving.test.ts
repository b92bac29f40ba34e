import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../model/cell/identifiers.ts";
import { host, world } from "../placer.testing.ts";

/* VMs that leave their hosts: where room is kept for them, and what is said of those for whom there is none. */

/** `web` and `db` at h1, and a host with room beside it. */
const two = () => {
  const it = world(["h1", "h2"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 1000);
  it.want("db", 500);
  it.say("h2", host("h2", 3500));
  return it;
};
const leaveOf = (it: ReturnType<typeof world>, vm: string) => it.get(vm)?.leave;
const toOf = (it: ReturnType<typeof world>, vm: string) => leaveOf(it, vm)?.to;

test("of a host in maintenance every VM is told where room is kept for it; of a disabled one none", () => {
  const it = two();
  assert.deepEqual([it.get("web")?.host, toOf(it, "web")], ["h1", undefined]);
  it.administer("h1", "disabled");
  assert.equal(toOf(it, "web"), undefined);
  it.administer("h1", "maintenance");
  assert.deepEqual([it.get("web")?.host, toOf(it, "web")], ["h1", "h2"], "it is where it was, until it is moved");
  assert.equal(toOf(it, "db"), "h2");
  // The room is taken: what comes new finds less.
  it.want("new", 1500);
  assert.match(
    it.get("new")?.reason ?? "",
    /h1: it is in maintenance; h2: 1500 MiB do not fit: 1000 of 2500 MiB are free/,
  );
  it.administer("h1", null);
  assert.equal(toOf(it, "web"), undefined, "it stays");
  assert.equal(it.get("new")?.host, "h1");
  assert.deepEqual(
    it.rooms().map(({ vms }) => vms),
    [3, 0],
    "and the room is free again",
  );
});

test("whoever looks at the hosts is told which take nothing new, and of each VM that is to go where to, or why it is still there", () => {
  const it = two();
  it.want("large", 3000);
  it.administer("h2", "disabled");
  it.administer("h1", "maintenance");
  const seen = () =>
    it
      .rooms()
      .map(({ host: name, closed, leaving }) => [
        name,
        closed,
        ...leaving.map(({ path, to, reason }) => [path, to, reason]),
      ]);
  const closed = "h2: it is disabled";
  const stays = ["db", "large", "web"].map((vm) => [`shop/${vm}`, null, closed]);
  assert.deepEqual(seen(), [
    ["h1", "maintenance", ...stays],
    ["h2", "disabled"],
  ]);
  it.administer("h2", null);
  assert.deepEqual(seen(), [
    [
      "h1",
      "maintenance",
      ...["shop/db", "shop/web"]
        .map((path) => [path, "h2", null])
        .toSpliced(1, 0, ["shop/large", null, "h2: 3000 MiB do not fit: 2000 of 2500 MiB are free"]),
    ],
    ["h2", undefined],
  ]);
});

test("the next incarnation is placed where room was kept for it, and only that keeps it", () => {
  const it = two();
  it.administer("h1", "maintenance");
  it.want("web", 1000, 2);
  assert.deepEqual([it.get("web")?.host, leaveOf(it, "web")], ["h2", undefined]);
  assert.deepEqual(
    [...it.records.keys()].sort(),
    ["next/db", "reservation/db", "reservation/web"],
    "no room is kept twice",
  );
  it.want("db", 500, 2);
  assert.deepEqual(
    it.rooms().map(({ vms, usedMiB }) => [vms, usedMiB]),
    [
      [0, 0],
      [2, 1500],
    ],
  );
});

test("one for which there is no room says why, and goes as soon as there is", () => {
  const it = two();
  it.want("large", 3000);
  it.administer("h1", "maintenance");
  assert.equal(toOf(it, "large"), null);
  const said = leaveOf(it, "large")?.refusals.map(({ host: name, kind, why }) => `${name} ${kind} ${why}`);
  assert.deepEqual(said, ["h2 memory 3000 MiB do not fit: 2000 of 2500 MiB are free"]);
  assert.equal(it.get("large")?.host, "h1");
  it.say("h2", host("h2", 9000));
  assert.equal(toOf(it, "large"), "h2");
});

test("where there is room for some alone, those of higher priority go first", () => {
  const it = world(["h1", "h2"]);
  it.say("h1", host("h1", 6000));
  it.want("a", 1000, 1, { priority: -1 });
  it.want("b", 1000, 1, { priority: 7 });
  it.want("c", 1000);
  it.say("h2", host("h2", 2500));
  it.administer("h1", "maintenance");
  assert.deepEqual(
    ["a", "b", "c"].map((vm) => toOf(it, vm)),
    [null, "h2", null],
  );
});

test("room that is kept outlasts a start of the Placer, and is looked for anew where it is good no more", () => {
  const it = world(["h1", "h2", "h3"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 1000);
  it.say("h2", host("h2", 1100));
  it.say("h3", host("h3", 3500));
  it.administer("h1", "maintenance");
  assert.equal(toOf(it, "web"), "h3");
  it.say("h2", host("h2", 9000));
  it.restart();
  assert.equal(toOf(it, "web"), "h3", "and not the one that is heard first and has more room");
  it.say("h3", null);
  assert.equal(toOf(it, "web"), "h2");
  it.administer("h2", "disabled");
  assert.equal(toOf(it, "web"), null);
  it.want("web", null);
  assert.deepEqual([...it.records.keys()], [], "nothing is kept for what nobody wants");
});

test("a VM that is asked to go to a host goes there and nowhere else, if it can be there", () => {
  const it = world(["h1", "h2", "h3"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 1000);
  it.say("h2", host("h2", 9000));
  it.say("h3", host("h3", 1500));
  it.want("web", 1000, 1, { moveTo: "h3" });
  assert.deepEqual(
    leaveOf(it, "web")?.refusals.map(({ host: name, kind }) => `${name} ${kind}`),
    ["h3 memory"],
  );
  it.say("h3", host("h3", 3000));
  assert.equal(toOf(it, "web"), "h3");
  // Where it was placed, as its controller says with it.
  it.want("web", 1000, 2);
  assert.equal(it.get("web")?.host, "h3");
  it.want("web", 1000, 2, { moveTo: "h9" });
  assert.deepEqual(
    leaveOf(it, "web")?.refusals.map(({ why }) => why),
    ["there is no such host"],
  );
  it.want("web", 1000, 2);
  assert.equal(leaveOf(it, "web"), undefined, "it is not asked any more");
});

test("VMs that keep apart from one another keep apart where they go, too", () => {
  const it = world(["h1", "h2", "h3"]);
  it.say("h1", host("h1", 6000));
  it.want("web", 100);
  it.want("db", 100, 1, { cell: "bank" });
  it.say("h2", host("h2", 9000));
  it.say("h3", host("h3", 8000));
  it.want("beside", 100, 1, { placement: { apartFrom: ["shop/web"] } });
  assert.equal(it.get("beside")?.host, "h2");
  it.administer("h1", "maintenance");
  assert.deepEqual([toOf(it, "web"), toOf(it, "db")], ["h3", "h2"]);
});

test("what a host is said to be by somebody else, or in no known words, changes nothing", () => {
  const it = two();
  const says = (from: string, value: object) =>
    it.input({ kind: "desired", from: peerName(from), key: "host/h1", value: value as never });
  for (const value of [{ host: "h2", state: "maintenance" }, { host: "h1", state: "off" }, { host: "h1" }])
    says("controller.root", value);
  assert.equal(toOf(it, "web"), undefined);
  says("controller.root", { host: "h1", state: "maintenance" });
  assert.equal(toOf(it, "web"), "h2", "a positive control");
});
