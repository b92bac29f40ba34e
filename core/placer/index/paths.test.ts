import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { below, seedOf } from "../../random.ts";
import { noteTaken, noUse, type Reservation, release, reserve, UsageTable } from "../candidate.ts";

test("VMs are found by their paths from whichever moment somebody asks for one", () => {
  const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const chance = { random: seedOf(seed) };
  const pick = <T>(all: readonly T[]): T => all[below(chance, all.length)] as T;
  let found = 0;
  for (let round = 0; round < 40; round += 1) {
    const usage = new UsageTable();
    const all = new Map<Uid, Reservation>();
    const firstAsked = below(chance, 120);
    for (let step = 0; step < 160; step += 1) {
      const vm = `v${below(chance, 25)}` as Uid;
      const cell = pick(["k1", "k2"]);
      const before = all.get(vm);
      // It goes elsewhere, goes, or is called otherwise or turned off where it is.
      if (before !== undefined && below(chance, 2) === 0) {
        release(usage, before);
        all.delete(vm);
      }
      if (before === undefined || below(chance, 3) > 0) {
        const host = all.has(vm) && before !== undefined ? before.host : hostName(pick(["h1", "h2", "h3"]));
        const off = below(chance, 4) === 0 ? { off: true as const } : {};
        const path = `${cell}/${pick(["a", "b", "c"])}`;
        const about = { client: peerName(`controller.${cell}`), vm, path, cell, incarnation: 1, memoryMiB: 1, cpus: 1 };
        const reservation = { ...about, host, apartFrom: [], ...off } as unknown as Reservation;
        all.set(vm, reservation);
        reserve(usage, reservation);
      }
      if (step < firstAsked) continue;
      for (const asked of ["k1", "k2"])
        for (const name of ["a", "b", "c"]) {
          const there = [...usage.at(asked as never, `${asked}/${name}`)];
          const right = [...all.values()].filter((each) => each.path === `${asked}/${name}` && each.off !== true);
          assert.deepEqual(new Set(there), new Set(right), `seed ${seed}, round ${round}, step ${step}`);
          found += there.length;
        }
    }
    for (const cell of ["k1", "k2"]) {
      const right = [...all.values()].filter((each) => each.cell === cell && each.off !== true).length;
      assert.equal(usage.cells.get(cell as never)?.count ?? 0, right);
    }
  }
  assert.ok(found > 1000);
});

test("what a host has of VMs, members and spreads is no other host's, though hosts that have none share an empty one", () => {
  const usage = new UsageTable();
  const at = (vm: string, host: string, more: object = {}): Reservation => {
    const about = {
      client: peerName("controller.k1"),
      path: `k1/${vm}`,
      cell: "k1",
      incarnation: 1,
      memoryMiB: 1,
      cpus: 1,
    };
    return { ...about, vm, host: hostName(host), apartFrom: [], ...more } as unknown as Reservation;
  };
  const sizes = (host: string): readonly number[] => {
    const { taken, spreads, members } = usage.get(hostName(host)) ?? noUse();
    return [taken.size, spreads.size, members.size];
  };
  const all = (): string => JSON.stringify([sizes("h1"), sizes("h2"), sizes("h3")]);
  reserve(usage, at("v1", "h1", { spread: "s" }));
  assert.equal(all(), "[[0,1,0],[0,0,0],[0,0,0]]");
  noteTaken(usage, hostName("h2"), "v2" as Uid, { memoryMiB: 1, cpus: 1 });
  assert.equal(all(), "[[0,1,0],[1,0,0],[0,0,0]]");
  reserve(usage, at("v3", "h2", { groups: ["g"] }));
  assert.equal(all(), "[[0,1,0],[1,0,1],[0,0,0]]");
  noteTaken(usage, hostName("h2"), "v2" as Uid, null);
  assert.equal(all(), "[[0,1,0],[0,0,1],[0,0,0]]");
});
