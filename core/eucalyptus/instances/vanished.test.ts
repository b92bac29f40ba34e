import assert from "node:assert/strict";
import { test } from "node:test";
import { h1, h2, shop, started } from "./hosts.testing.ts";

/* Instances of hosts of which nothing is heard, and what becomes of their addresses. */

const minuteMs = 60_000;
const running = (more: object) => {
  const all = started({ PublicIps: ["192.0.2.1-192.0.2.3"], ...more });
  for (const host of [h1, h2]) all.reach(host, true);
  all.want(shop, "web");
  all.want(shop, "db", { host: "h2", elastic: undefined });
  for (const host of [h1, h2]) all.apply(host);
  const inViews = (): readonly string[] => all.instancesAt(h1).map(({ instance }) => String(instance.id));
  const { id = "" } = all.said(shop, "web");
  return { ...all, inViews, id };
};

test("an instance of a silent host keeps all that it has, for ever, and returns with it", () => {
  const { pass, reach, said, inViews, id, apply, events } = running({});
  reach(h1, false);
  pass(100_000 * minuteMs);
  assert.deepEqual([inViews(), said(shop, "web").address], [[id], "10.9.0.10"]);
  reach(h1, true);
  apply(h1);
  assert.deepEqual([said(shop, "web").phase, said(shop, "web").address, events], ["ready", "10.9.0.10", []]);
});

test("with a timeout it leaves the view after so much silence, its addresses are nobody else's, and it returns with them", () => {
  const { pass, reach, said, want, inViews, id, apply, events } = running({ InstanceTimeout: 720 });
  reach(h1, false);
  pass(719 * minuteMs);
  assert.deepEqual(inViews(), [id]);
  // Heard in between: the time counts anew.
  reach(h1, true);
  reach(h1, false);
  pass(719 * minuteMs);
  assert.deepEqual(inViews(), [id]);
  pass(minuteMs);
  assert.deepEqual(inViews(), []);
  const { phase, reason, address, elastic } = said(shop, "web");
  assert.deepEqual([phase, address, elastic?.address], ["waiting", null, "192.0.2.1"]);
  assert.match(reason ?? "", /^nothing is heard of its host h1 for 720 minutes: its addresses have left the view/);
  for (const uid of ["a", "b", "c", "d"]) want(shop, uid, { host: "h2" });
  apply(h2);
  const others = ["a", "b", "c", "d"].flatMap((uid) => [said(shop, uid).address, said(shop, uid).elastic?.address]);
  assert.ok(!others.includes("10.9.0.10") && !others.includes("192.0.2.1"), others.join());
  reach(h1, true);
  apply(h1);
  assert.deepEqual(
    [said(shop, "web").phase, said(shop, "web").address, said(shop, "web").elastic],
    ["ready", "10.9.0.10", { address: "192.0.2.1", reason: null }],
  );
  assert.deepEqual(
    events.map((event) => JSON.parse(event)),
    [
      { event: "instance/vanished", instance: id, host: "h1", minutes: 720 },
      { event: "instance/returned", instance: id, address: "10.9.0.10" },
    ],
  );
});

test("one that is placed elsewhere meanwhile, or whose address another one has, gets another one, and an event says which", () => {
  const { pass, reach, said, want, id, apply, events } = running({ InstanceTimeout: 1 });
  reach(h1, false);
  pass(2 * minuteMs);
  want(shop, "web", { host: "h2" });
  apply(h2);
  assert.deepEqual([said(shop, "web").phase, said(shop, "web").address], ["ready", "10.9.0.12"]);
  assert.deepEqual(JSON.parse(events[1] ?? ""), {
    event: "instance/returned",
    instance: id,
    address: "10.9.0.12",
    was: "10.9.0.10",
  });
  assert.match(said(shop, "web").elastic?.reason ?? "", /192\.0\.2\.1 is still in place at h1/);
});

test("a timeout that is set later counts from when a host fell silent, and one that is taken back ends nothing more", () => {
  const all = running({});
  all.reach(h1, false);
  all.pass(30 * minuteMs);
  all.configure({ PublicIps: ["192.0.2.1-192.0.2.3"], InstanceTimeout: 60 });
  all.pass(29 * minuteMs);
  assert.deepEqual(all.inViews(), [all.id]);
  all.configure({ PublicIps: ["192.0.2.1-192.0.2.3"] });
  all.pass(100 * minuteMs);
  assert.deepEqual(all.inViews(), [all.id]);
  all.configure({ PublicIps: ["192.0.2.1-192.0.2.3"], InstanceTimeout: 60 });
  assert.deepEqual(all.inViews(), []);
  // Why it is in no view is what was so when it left it.
  all.configure({ PublicIps: ["192.0.2.1-192.0.2.3"] });
  assert.match(all.said(shop, "web").reason ?? "", /^nothing is heard of its host h1 for 60 minutes/);
});
