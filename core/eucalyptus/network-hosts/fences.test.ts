import assert from "node:assert/strict";
import { test } from "node:test";
import type { PeerName } from "../../../model/cell/identifiers.ts";
import { peerName } from "../../../model/cell/identifiers.ts";
import { h1, h2, shop, world } from "../instances/hosts.testing.ts";

const members = ["presence.1", "presence.2", "presence.3"].map((name) => peerName(name));
const life = { host: "h1", generation: 4, incarnation: 0, declaredAt: 1, reporters: 2 };

function running(records = new Map(), boot: number | null = 7) {
  const all = world(records, {}, members);
  all.boots.set(h1, boot ?? undefined);
  all.boots.set(h2, 3);
  all.start();
  for (const host of [h1, h2]) all.reach(host, true);
  all.group(shop, "shop-net");
  for (const uid of ["web", "db"]) all.want(shop, uid, { elastic: undefined });
  for (const host of [h1, h2]) all.apply(host);
  /** So many members say that this boot of h1 is over. */
  const ends = (ended: number, count = 2): void => {
    for (const from of members.slice(0, count))
      all.send({ kind: "actual", from, key: "dead/h1", value: { ...life, ended, endedIn: 4 } });
  };
  const gone = (): void => {
    all.reach(h1, false);
    all.send({ kind: "actual", from: h1, key: "network", value: null });
  };
  return { ...all, ends, gone };
}
const addressOf = (all: ReturnType<typeof running>, uid: string) => all.said(shop, uid).address;
/** Which instances that are asked for next get. */
const next = (all: ReturnType<typeof running>, host: PeerName, uid: string) => {
  all.want(shop, uid, { host: host.slice("host.".length), elastic: undefined });
  return addressOf(all, uid);
};

test("an address of a host whose power was off is free again, and no sooner", () => {
  const all = running();
  assert.deepEqual([addressOf(all, "web"), addressOf(all, "db")], ["10.9.0.10", "10.9.0.11"]);
  all.gone();
  all.want(shop, "web", null);
  assert.equal(next(all, h2, "a"), "10.9.0.12", "silence ends nothing");
  all.ends(7, 1);
  assert.equal(next(all, h2, "b"), "10.9.0.13", "one member may make up anything");
  all.ends(6);
  assert.equal(next(all, h2, "c"), "10.9.0.14", "an earlier boot is none of this one");
  all.ends(7);
  assert.equal(next(all, h2, "d"), "10.9.0.10");
  // One that is still wanted keeps its own, wherever it goes.
  assert.match(all.said(shop, "db").reason ?? "", /the power of its host h1 was off/);
  all.want(shop, "db", { host: "h2", elastic: undefined });
  all.apply(h2);
  assert.deepEqual([all.said(shop, "db").phase, addressOf(all, "db")], ["ready", "10.9.0.11"]);
});

test("a word of a boot that is over counts no more, also after a start, and the host that is back is told a view of its own boot", () => {
  const records = new Map();
  const all = running(records);
  const old = all.said(shop, "web").id ?? "";
  const stale = [{ id: old, private: { address: "10.9.0.10", state: "assigned" } }];
  all.gone();
  all.ends(7);
  const before = all.versionAt(h1);
  all.hear(h1, before, stale);
  assert.equal(all.said(shop, "web").phase, "waiting", "it is of the boot that is over");
  const again = world(records, {}, members);
  again.boots.set(h1, 7);
  again.send({ kind: "start" });
  again.reach(h1, true);
  again.hear(h1, before, stale);
  assert.equal(again.bootAt(h1), undefined, "nothing is told to that boot");
  again.boots.set(h1, 8);
  again.hear(h1, 0, []);
  assert.equal(again.bootAt(h1), 8);
  // Known from before the start, that end is no end of this boot.
  for (const from of members)
    again.send({ kind: "actual", from, key: "dead/h1", value: { ...life, ended: 7, endedIn: 4 } });
  again.group(shop, "shop-net");
  again.want(shop, "web", { elastic: undefined });
  again.apply(h1);
  assert.equal(again.said(shop, "web").phase, "ready");
});

test("a host that does not say its boot is waited for, whatever is said of its power", () => {
  const all = running(new Map(), null);
  all.gone();
  all.want(shop, "web", null);
  all.ends(7, 3);
  assert.equal(next(all, h2, "a"), "10.9.0.12");
});
