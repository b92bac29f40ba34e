import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { ActualLocation, CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { cidr, hostName, type Ipv4, ipv4, mac, uid } from "../../../../../model/cell/identifiers.ts";
import type { GlobalNetwork, LocalInterface } from "../../driver.ts";
import { tapName } from "../taps/devices.ts";
import { policy } from "../testing/installation.testing.ts";
import { Lists, type ListsOfCell, wantedLists } from "./lists.ts";

const seed = Number(process.env.CELLS_SEED ?? randomInt(2 ** 31));
const group = fc.constantFrom(...["224.0.0.9", "239.255.0.1", "239.1.1.1", "239.1.1.2"].map((each) => ipv4(each)));
const groups = fc.uniqueArray(group, { maxLength: 3 });
const number = fc.constantFrom(1, 2, 3);
const identity = fc.constantFrom(11, 12, 13);
const subnet = fc.constantFrom(21, 22, 23);
/** Of the first three networks below. */
const address = fc.tuple(number, fc.constantFrom(2, 3, 4)).map(([network, last]) => ipv4(`10.64.${network}.${last}`));

const anyPolicy = fc
  .record({
    cell: number,
    broadcast: fc.constantFrom("on", "off" as const),
    declared: fc.uniqueArray(fc.tuple(identity, groups), { selector: ([each]) => each }),
    named: fc.uniqueArray(fc.tuple(number, subnet), { selector: ([network]) => network }),
  })
  .map(({ cell, broadcast, declared, named }): CellPolicy => {
    const networks = named.map(([at, each]) => ({
      identity: each,
      cidr: cidr(`10.64.${at}.0/24`),
      subnet: true as const,
    }));
    const traits = declared.map(([each, own]) => ({ identity: each, forwards: [], groups: own }));
    return { ...policy(cell, 1, []), networks, traits, ...(broadcast === "off" ? { broadcast } : {}) };
  });
const anyLocation = fc
  .record({ address, cell: number, identity, subnet, host: fc.constantFrom(2, 3, 4), groups: fc.option(groups) })
  .map(({ cell, subnet: subnetIdentity, host, groups: joined, ...more }): ActualLocation => {
    const where = { host: hostName(`h${host}`), hostMac: mac(`02:00:00:00:01:0${host}`) };
    const base = { ...more, ...where, cellNumber: cell, vmIdentity: 1, incarnation: 1, subnetIdentity };
    return joined === null ? base : { ...base, groups: joined };
  });
const anyInterface = fc
  .record({ address, cell: number, identity, subnet, name: fc.constantFrom("a", "b", "c") })
  .map(({ cell, subnet: subnetIdentity, name, ...more }) => {
    const desired = { ...more, uid: uid(name), subnetIdentity };
    return { vm: uid("vm"), memoryMiB: 64, cellNumber: cell, desired } as unknown as LocalInterface;
  });
type Change = (global: GlobalNetwork) => GlobalNetwork;
/** One of its own key comes, another one takes its place, or it goes. */
const put = <T>(all: readonly T[], each: T, keyOf: (one: T) => string | number, stays: boolean): readonly T[] =>
  stays
    ? [...all.filter((one) => keyOf(one) !== keyOf(each)), each].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
    : all.filter((one) => keyOf(one) !== keyOf(each));
const change = fc.oneof(
  fc.tuple(anyPolicy, fc.boolean()).map(
    ([each, stays]): Change =>
      (global) => ({ ...global, policies: put(global.policies, each, (one) => one.cellNumber, stays) }),
  ),
  fc.tuple(anyLocation, fc.boolean()).map(
    ([each, stays]): Change =>
      (global) => ({ ...global, locations: put(global.locations, each, (one) => one.address, stays) }),
  ),
  fc.tuple(anyInterface, fc.boolean()).map(
    ([each, stays]): Change =>
      (global) => ({ ...global, interfaces: put(global.interfaces, each, (one) => one.desired.uid, stays) }),
  ),
  fc.constant<Change>((global) => global),
);
/** What guests have joined, if that is news, and how many taps have no device, at a look. */
const anyLook = fc.record({
  change,
  news: fc.option(fc.array(groups, { minLength: 3, maxLength: 3 }), { freq: 1 }),
  missing: fc.constantFrom(0, 0, 0, 1),
});

test("lists that follow one change after another are those of the whole, and a cell keeps the map of what did not change", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  let kept = 0;
  fc.assert(
    fc.property(fc.array(anyLook, { minLength: 20, maxLength: 30 }), (looks) => {
      const lists = new Lists();
      let global: GlobalNetwork = { interfaces: [], policies: [], locations: [] };
      let joined: readonly (readonly Ipv4[])[] = [];
      let before: ReadonlyMap<number, ListsOfCell> = new Map();
      for (const { change: next, news, missing } of looks) {
        global = next(global);
        joined = news ?? joined;
        const taps = ["a", "b", "c"].map((name) => tapName(uid(name)));
        const deviceOf = (tap: string) => (taps.indexOf(tap) < missing ? null : { index: taps.indexOf(tap), slot: 0 });
        const now = lists.of(global, deviceOf, (index) => joined[index] ?? []);
        const flat = new Map([...now.values()].flatMap((own) => [...own]));
        assert.deepEqual(flat, new Map(wantedLists(global, deviceOf, (index) => joined[index] ?? [])));
        for (const [cell, own] of now) if (own.size > 0 && own === before.get(cell)) kept += 1;
        before = now;
      }
    }),
    { seed, numRuns: 300 },
  );
  assert.ok(kept > 100, `${kept} kept`);
});
