import assert from "node:assert/strict";
import { test } from "node:test";
import { peerName } from "../../../../model/cell/identifiers.ts";
import { StorageWorld, shop, volume } from "../manager.testing.ts";

const empty = { kind: "empty" } as const;
const bank = peerName("controller.bank");
const world = (): StorageWorld => {
  const made = new StorageWorld({ s1: { freeMiB: 9000 }, s2: { freeMiB: 8000 } });
  made.want("volume/a-1", volume("a-1", empty, 10));
  made.settle();
  return made;
};
const placed = (of: StorageWorld, name: string): { readonly agent: string } =>
  (of.records.get(`volume/${name}`) as { readonly agent: string } | undefined) ?? assert.fail(`${name} is nowhere`);

test("an older store whose newest volume lies on a server that is away: it is found there, and made anew by an operator's word alone", () => {
  for (const comes of [true, false]) {
    const one = world();
    const old = structuredClone([...one.records]);
    const stale = [...one.wanted];
    one.want("volume/a-4", volume("a-4", empty, 10));
    one.want("volume/a-5", volume("a-5", empty, 10));
    one.settle();
    const place = placed(one, "a-4").agent;
    const away = one.agent(place.slice("agent.".length));
    // Its store is the older one; what it said to servers is with them.
    one.records.clear();
    for (const [key, value] of old) one.records.set(key, value);
    for (const documents of one.desiredAt.values()) documents.clear();
    one.wanted.clear();
    for (const [key, desire] of stale) one.wanted.set(key, desire);
    one.cut(away);
    one.restart();
    one.cut(away);
    // No other server knows of it, and so none says that this store is older.
    one.input({ kind: "behind", peer: shop });
    for (const key of ["a-4", "a-5"]) one.want(`volume/${key}`, volume(key, empty, 10));
    one.want("volume/b-1", volume("b-1", empty, 10, "bank"), bank);
    one.settle();
    const waits = (): string => one.volume("a-4")?.reason ?? "";
    assert.match(
      waits(),
      /older than what controller\.shop has seen.*yet to hear what is on.*cells orphans release controller\.shop/,
    );
    assert.equal(one.volume("b-1", bank)?.phase, "ready", "nobody else waits for one controller's word");
    one.restart();
    one.cut(away);
    one.settle();
    assert.match(waits(), /older than what controller\.shop has seen/, "that is durable");
    if (comes) {
      one.connect(away);
      one.settle();
      assert.equal(placed(one, "a-4").agent, place);
    } else {
      one.input({ kind: "excused", peer: shop });
      one.settle();
      assert.equal(one.volume("a-4")?.phase, "ready");
      assert.notEqual(placed(one, "a-4").agent, place);
    }
    assert.equal(one.volume("a-4")?.phase, "ready");
  }
});

test("a cell that was put back to before the end of a volume waits for the server whose bin may have its file", () => {
  const one = world();
  const away = one.agent("s2");
  one.cut(away);
  one.restart();
  one.cut(away);
  one.input({ kind: "set-back", peer: shop });
  one.want("volume/a-7", volume("a-7", empty, 10));
  one.settle();
  assert.match(one.volume("a-7")?.reason ?? "", /that one was put back.*yet to hear what is on s2.*its former file/);
  const about = { cell: "shop", path: "shop/a-7", origin: null };
  const binned = { file: "a-7.1", volume: "a-7", overlay: false, about, sizeMiB: 10, usedMiB: 1, offered: false };
  one.say(away, "bin/a-7.1", { ...binned, deleted: "2026-01-01T00:00:00.000Z" });
  one.connect(away);
  one.settle();
  assert.match(one.volume("a-7")?.reason ?? "", /its former file.*is in the bin of storage server s2/);
});
