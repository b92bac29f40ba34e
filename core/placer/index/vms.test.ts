import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostName, type PeerName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import type { Json } from "../../../model/json/json.ts";
import { below, seedOf } from "../../random.ts";
import type { Reservation } from "../candidate.ts";
import type { Wanted } from "../state.ts";
import type { ByVm, Few } from "./few.ts";
import { knownVms } from "./vms.ts";

const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const clients = ["controller.k1", "controller.k10", "controller.k2"].map(peerName);

test("what is known of VMs in each regard is what a map of its own would have, whatever comes and goes", () => {
  const chance = { random: seedOf(seed) };
  const pick = <T>(all: readonly T[]): T => all[below(chance, all.length)] as T;
  const known = knownVms();
  const right = {
    wanted: new Map<Uid, Wanted>(),
    reservations: new Map<Uid, Reservation>(),
    places: new Map<Uid, Few<HostName>>(),
    said: new Map<string, Json>(),
  };
  const both = <Value>(regard: ByVm<Value>, of: Map<Uid, Value>, vm: Uid, value: Value): void => {
    if (below(chance, 2) === 0) assert.equal(regard.delete(vm), of.delete(vm));
    else {
      regard.set(vm, value);
      of.set(vm, value);
    }
  };
  const sorted = <Value>(entries: Iterable<[string, Value]>): unknown =>
    [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
  for (let step = 0; step < 20_000; step += 1) {
    const vm = `v${below(chance, 12)}` as Uid;
    const client = pick<PeerName>(clients);
    const what = below(chance, 4);
    if (what === 0) both(known.wanted, right.wanted, vm, { client, document: { vm, incarnation: step } as never });
    else if (what === 1) both(known.reservations, right.reservations, vm, { vm, client, cpus: step } as never);
    else if (what === 2) both(known.places, right.places, vm, `h${step}` as HostName);
    else {
      // To whoever asks for it, to others, and of something else.
      const key = pick([`${client}/placement/${vm}`, `${client}/placement/${vm}`, "hosts", `standing/${vm}`]);
      if (below(chance, 3) === 0) assert.equal(known.said.delete(key), right.said.delete(key), key);
      else {
        known.said.set(key, step);
        right.said.set(key, step);
      }
    }
    const about = `seed ${seed}, step ${step}`;
    for (const regard of ["wanted", "reservations", "places"] as const) {
      assert.deepEqual(known[regard].get(vm), right[regard].get(vm), about);
      assert.equal(known[regard].has(vm), right[regard].has(vm), about);
      assert.equal(known[regard].size, right[regard].size, about);
    }
    if (step % 100 !== 0) continue;
    for (const regard of ["wanted", "reservations", "places"] as const) {
      assert.deepEqual(sorted<unknown>(known[regard]), sorted<unknown>(right[regard]), about);
      assert.deepEqual([...known[regard].keys()].sort(), [...right[regard].keys()].sort(), about);
      assert.equal([...known[regard].values()].length, right[regard].size, about);
    }
    assert.deepEqual(sorted(known.said), sorted(right.said), about);
    assert.deepEqual([...known.said.keys()].sort(), [...right.said.keys()].sort(), about);
    for (const each of clients)
      assert.equal(known.said.get(`${each}/placement/${vm}`), right.said.get(`${each}/placement/${vm}`), about);
  }
});

test("what somebody holds of a VM that is asked for stays what it was when another thing is asked for", () => {
  const { wanted } = knownVms();
  const [vm, client] = ["v1" as Uid, clients[0] ?? assert.fail()];
  const document = { vm, incarnation: 1 } as never;
  wanted.set(vm, { client, document });
  const held = wanted.get(vm);
  wanted.set(vm, { client, document: { vm, incarnation: 2 } as never });
  assert.deepEqual(held, { client, document });
  wanted.delete(vm);
  assert.deepEqual(held, { client, document });
});

test("of a VM of which nothing is known there is no row", () => {
  const { wanted, reservations, places, said } = knownVms();
  const client = clients[0] ?? assert.fail();
  const vms = ["v1", "v2", "v3"] as Uid[];
  for (const vm of vms) {
    wanted.set(vm, { client, document: { vm } as never });
    reservations.set(vm, { vm } as never);
    places.set(vm, "h1" as HostName);
    said.set(`${client}/placement/${vm}`, "there");
  }
  for (const vm of vms) {
    wanted.delete(vm);
    said.delete(`${client}/placement/${vm}`);
    reservations.delete(vm);
    places.delete(vm);
  }
  // In the order in which they come, not in that in which they once were there.
  for (const vm of vms.toReversed()) reservations.set(vm, { vm } as never);
  assert.deepEqual([...reservations.keys()], vms.toReversed());
});
