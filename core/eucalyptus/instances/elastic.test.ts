import assert from "node:assert/strict";
import { test } from "node:test";
import { bank, h1, h2, shop, started, world } from "./hosts.testing.ts";

/* Machines of external subnets: who has which elastic address, and what is said of it. */

test("a machine of an external subnet has an elastic address, and is told of it once its host has that in place", () => {
  const { want, said, apply, instancesAt } = started();
  want(shop, "web");
  want(shop, "db", { elastic: undefined });
  assert.deepEqual(said(shop, "web").elastic, {
    address: "192.0.2.1",
    reason: "h1 has yet to say that 192.0.2.1 is in place",
  });
  assert.equal(said(shop, "db").elastic, undefined);
  const publics = instancesAt(h1).map(({ instance }) => instance.publicIp);
  assert.deepEqual(publics.filter((each) => each !== undefined).length, 1, "in the view of its host");
  apply(h1, "failed");
  assert.deepEqual([said(shop, "web").phase, said(shop, "web").elastic?.reason === null], ["ready", false]);
  apply(h1);
  assert.deepEqual(said(shop, "web").elastic, { address: "192.0.2.1", reason: null });
});

test("what is given back is nobody's before its last host has let it go, and who waits for one is told", () => {
  const { want, said, apply } = started();
  for (const uid of ["a", "b", "c"]) want(shop, uid);
  assert.deepEqual(
    ["a", "b", "c"].map((uid) => said(shop, uid).elastic?.address),
    ["192.0.2.1", "192.0.2.2", null],
  );
  assert.equal(said(shop, "c").elastic?.reason, "no elastic address is free");
  assert.notEqual(said(shop, "c").address, null, "it has its own address nevertheless");
  apply(h1);
  // Of an internal subnet from now on; the other one ends.
  want(shop, "a", { elastic: undefined });
  assert.deepEqual([said(shop, "a").elastic, said(shop, "c").elastic?.address], [undefined, null]);
  want(bank, "d", { host: "h2" });
  apply(h2);
  assert.deepEqual([said(shop, "c").elastic?.address, said(bank, "d").elastic?.address], [null, null], "h1 has it yet");
  apply(h1);
  assert.deepEqual([said(shop, "c").elastic?.address, said(bank, "d").elastic?.address], ["192.0.2.1", null]);
  want(shop, "b", null);
  apply(h2);
  assert.equal(said(bank, "d").elastic?.address, null);
  apply(h1);
  assert.equal(said(bank, "d").elastic?.address, "192.0.2.2");
});

test("a machine keeps its elastic address while it is off and when it moves", () => {
  const { want, said, apply, instancesAt } = started();
  want(shop, "web");
  want(shop, "api");
  apply(h1);
  want(shop, "web", { off: true });
  apply(h1);
  assert.deepEqual(
    [said(shop, "web").address, said(shop, "web").elastic, instancesAt(h1).length],
    [null, { address: "192.0.2.1", reason: null }, 1],
  );
  want(bank, "spy");
  assert.equal(said(bank, "spy").elastic?.address, null, "nobody else has it");
  want(shop, "web", { host: "h2" });
  apply(h2);
  assert.deepEqual(said(shop, "web").elastic, { address: "192.0.2.1", reason: null });
  want(shop, "api", { host: "h2" });
  for (const host of [h1, h2]) apply(host);
  assert.deepEqual(said(shop, "api").elastic, { address: "192.0.2.2", reason: null });
  assert.deepEqual(instancesAt(h1).length, 1, "the spy's alone");
});

test("a manager that starts anew, and one that has lost its store, leave elastic addresses with whom they are", () => {
  const before = started();
  before.want(shop, "web");
  before.want(shop, "api");
  before.apply(h1);
  const of = (uid: string, all: Pick<typeof before, "said">) => all.said(shop, uid).elastic?.address;
  const outside = [of("web", before), of("api", before)];
  const { id: web = "" } = before.said(shop, "web");
  const anew = world(new Map(before.records));
  // Named the other way round.
  for (const uid of ["shop-net"]) anew.group(shop, uid);
  anew.want(shop, "api");
  anew.want(shop, "web");
  anew.start();
  assert.deepEqual([of("web", anew), of("api", anew)], outside);
  const lost = world();
  lost.send({ kind: "start" });
  const placed = (id: string, own: string, elastic: string) => ({
    id,
    private: { address: own, state: "assigned" },
    public: { address: elastic, state: "assigned" },
  });
  lost.hear(h1, 40, [placed(web, "10.9.0.10", "192.0.2.2")]);
  lost.hear(h2, 0, []);
  lost.group(shop, "shop-net");
  lost.group(bank, "bank-net");
  lost.want(bank, "spy");
  lost.want(shop, "web");
  lost.configure();
  for (const peer of [shop, bank]) lost.send({ kind: "complete", peer });
  assert.deepEqual([of("web", lost), lost.said(bank, "spy").elastic?.address], ["192.0.2.2", "192.0.2.1"]);
  assert.deepEqual(lost.said(shop, "web").address, "10.9.0.10");
});

test("at another host a machine has its elastic address once the host before has let it go, and hears which one that is", () => {
  const { want, said, apply, reach, instancesAt } = started();
  want(shop, "web");
  apply(h1);
  // Lost, or cut off: it may answer for the address still.
  reach(h1, false);
  want(shop, "web", { host: "h2" });
  const given = (host: typeof h1) => instancesAt(host).map(({ instance }) => instance.publicIp !== undefined);
  assert.deepEqual(given(h2), [false]);
  apply(h2);
  assert.deepEqual(
    [said(shop, "web").phase, said(shop, "web").elastic],
    [
      "ready",
      {
        address: "192.0.2.1",
        reason: "the address 192.0.2.1 is still in place at h1, which has to say that it is gone",
      },
    ],
  );
  // Back again before that: no other host has it.
  reach(h1, true);
  want(shop, "web");
  assert.deepEqual(given(h1), [true]);
  want(shop, "web", { host: "h2" });
  apply(h1);
  assert.deepEqual(given(h2), [true]);
  apply(h2);
  assert.deepEqual(said(shop, "web").elastic, { address: "192.0.2.1", reason: null });
});
