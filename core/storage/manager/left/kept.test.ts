import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type PeerName, peerName } from "../../../../model/cell/identifiers.ts";
import { connection, copyOf, StorageWorld, shop, volume } from "../manager.testing.ts";
import type { VolumeRecord } from "../state.ts";

const empty = { kind: "empty" } as const;
const oneServer = () => new StorageWorld({ s1: { freeMiB: 100_000 } });
const other = peerName("controller.other");
const kept = (world: StorageWorld, client: PeerName): unknown => world.published.get(`${client}/kept`);
const nameOf = (client: PeerName): string => client.slice("controller.".length);
const share = (world: StorageWorld, id: string, from: PeerName, to: PeerName): void => {
  const grant = { uid: `g-${id}`, volume: id, to: { domain: `${nameOf(to)}.cells.internal` }, grant: "copy" };
  world.want(`grant/g-${id}`, grant, from);
};

/** Each copies what the other one has, which then deletes it. Who is who, UIDs say: `a-` of the shop, `b-` of the other. */
const byTurns = (
  world: StorageWorld,
  turns: number,
  afterEach: (to: PeerName, from: PeerName, turn: number) => void,
) => {
  const cells = [shop, other] as const;
  const idOf = (turn: number): string => `${turn % 2 === 0 ? "a" : "b"}-${turn}`;
  world.want("volume/a-0", volume("a-0", empty, 100), shop);
  world.settle();
  for (let turn = 1; turn <= turns; turn += 1) {
    const [from, to] = [cells[(turn + 1) % 2] ?? shop, cells[turn % 2] ?? other];
    share(world, idOf(turn - 1), from, to);
    world.want(`volume/${idOf(turn)}`, volume(idOf(turn), copyOf(idOf(turn - 1)), null, nameOf(to)), to);
    world.settle();
    assert.equal(world.volume(idOf(turn), to)?.phase, "ready");
    world.want(`volume/${idOf(turn - 1)}`, null, from);
    world.settle();
    afterEach(to, from, turn);
  }
};

test("what two cells leave to one another by turns counts for the one whose copy lies over it, and for who left it", () => {
  const world = oneServer();
  byTurns(world, 6, (to, from, turn) => {
    assert.deepEqual(kept(world, to), { keptMiB: 100 * turn });
    // So neither asks for more than it may have: a second turn is within no quota that the first one filled.
    const own = 100 * Math.ceil(turn / 2);
    assert.deepEqual(kept(world, from), { keptMiB: 0, left: { [from === shop ? "a" : "b"]: own } });
  });
  world.restart();
  assert.deepEqual(kept(world, shop), { keptMiB: 600 }, "also after a restart");
  assert.deepEqual(kept(world, other), { keptMiB: 0, left: { b: 300 } });
  world.want("volume/a-6", null, shop);
  for (let round = 0; round < 10; round += 1) world.settle();
  assert.deepEqual([kept(world, shop), kept(world, other)], [undefined, undefined]);
  assert.deepEqual([...world.agent("s1").desired.keys()], []);
});

test("a deleted volume that another cell has connected counts for who left it, as long as that lasts", () => {
  const world = oneServer();
  world.want("volume/a-0", volume("a-0", empty, 100), shop);
  world.want(
    "grant/g-1",
    { uid: "g-1", volume: "a-0", to: { domain: "other.cells.internal" }, grant: "connect" },
    shop,
  );
  world.settle();
  world.want("connection/c-1", { ...connection("c-1", "a-0", "v-1"), cell: "other" }, other);
  world.settle();
  assert.equal(world.connection("c-1", other)?.phase, "ready");
  assert.equal(kept(world, shop), undefined);
  world.want("volume/a-0", null, shop);
  world.settle();
  assert.deepEqual(kept(world, shop), { keptMiB: 0, left: { a: 100 } });
  world.restart();
  assert.deepEqual(kept(world, shop), { keptMiB: 0, left: { a: 100 } });
  world.want("connection/c-1", null, other);
  for (let round = 0; round < 5; round += 1) world.settle();
  assert.equal(kept(world, shop), undefined);
});

/** What is kept as it is defined, from all that there is. */
const countedAnew = (world: StorageWorld, clients: readonly PeerName[]): unknown[] => {
  const records = new Map<string, VolumeRecord>();
  for (const [key, value] of world.records)
    if (key.startsWith("volume/")) records.set(key.slice("volume/".length), value as unknown as VolumeRecord);
  const wanter = (id: string): PeerName | undefined =>
    clients.find((client) => world.wanted.has(`${client}/volume/${id}`));
  const over = (id: string): Set<PeerName> => {
    const found = new Set<PeerName>();
    for (const copy of records.keys()) {
      const wants = wanter(copy);
      for (let at = records.get(copy)?.origin ?? null; at !== null; at = records.get(at)?.origin ?? null)
        if (at === id && wants !== undefined) found.add(wants);
    }
    return found;
  };
  return clients.map((client) => {
    let [keptMiB, left] = [0, 0];
    for (const [id, record] of records) {
      if (wanter(id) !== undefined) continue;
      const above = over(id);
      if (above.has(client)) keptMiB += record.sizeMiB;
      else if (above.size > 0 && `controller.${record.cell}` === client) left += record.sizeMiB;
    }
    const cell = client === shop ? "a" : client === other ? "b" : "c";
    if (keptMiB === 0 && left === 0) return undefined;
    return left === 0 ? { keptMiB } : { keptMiB, left: { [cell]: left } };
  });
};

test("property: what is counted along is what counting anew finds", () => {
  const clients = [shop, other, peerName("controller.third")];
  const prefix = ["a", "b", "c"];
  const change = fc.record({
    what: fc.constantFrom("make", "copy", "copy", "copy", "delete", "delete", "settle", "restart"),
    by: fc.nat(2),
    which: fc.nat(20),
    size: fc.integer({ min: 1, max: 50 }),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
      const world = oneServer();
      const made: { id: string; by: number }[] = [];
      const want = (by: number, document: (id: string) => object | null): void => {
        const id = `${prefix[by]}-${made.length}`;
        made.push({ id, by });
        world.want(`volume/${id}`, document(id), clients[by]);
        for (const to of clients) if (to !== clients[by]) share(world, id, clients[by] ?? shop, to);
      };
      for (const { what, by, which, size } of changes) {
        const one = made[which % Math.max(1, made.length)];
        const cell = nameOf(clients[by] ?? shop);
        if (what === "make") want(by, (id) => volume(id, empty, size, cell));
        else if (what === "copy" && one !== undefined) want(by, (id) => volume(id, copyOf(one.id), null, cell));
        else if (what === "delete" && one !== undefined) world.want(`volume/${one.id}`, null, clients[one.by]);
        else if (what === "settle") world.settle();
        else if (what === "restart") world.restart();
        assert.deepEqual(
          clients.map((client) => kept(world, client)),
          countedAnew(world, clients),
        );
      }
    }),
    { numRuns: 300 },
  );
});
