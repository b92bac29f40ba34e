import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, peerName, type Uid } from "../../../model/cell/identifiers.ts";
import { type KnownOffering, offeringOf, withOffering } from "../../../model/cell/tenants/pools/offerings.ts";
import type { Json, JsonObject } from "../../../model/json/json.ts";
import type { DesiredPlacement } from "../../documents/vocabulary.ts";
import { below, seedOf } from "../../random.ts";
import { reservationOf, reserve } from "../candidate.ts";
import { choose } from "../index/choose.ts";
import { askerOf } from "../owners.ts";
import { defaultRatios, place } from "../place.ts";
import { createPlacer } from "../placer.ts";
import type { PlacerState } from "../state.ts";
import { type Change, changed, changeText, smallestChange } from "./change.ts";

/*
 * Of requests that no host takes the change that is named gives them a place, and none of it can be spared. By CELLS_SEED and CELLS_RUNS; what works is
 * asked of the scan of all hosts, the change is looked for by the index.
 */
const runs = Number(process.env.CELLS_RUNS ?? 500);
const seed = Number(process.env.CELLS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const chance = { random: seedOf(seed) };
const pick = <T>(from: readonly T[]): T => from[below(chance, from.length)] as T;
const is = (of: number): boolean => below(chance, of) === 0;
const names = Array.from({ length: 9 }, (_, at) => `h${at + 1}`);
const root = peerName("controller.root");
const shop = peerName("controller.shop");

function cloud(): PlacerState {
  const service = createPlacer({ self: peerName("placer"), hosts: names.map((name) => peerName(`host.${name}`)) });
  let state = service.restore({ records: new Map(), desiredAt: new Map() });
  const desire = (key: string, value: JsonObject): void => {
    state = service.step(state, { kind: "desired", from: root, key, value }, { ms: 0, wallMs: 0 }).state;
  };
  for (const name of names) {
    const peer = peerName(`host.${name}`);
    const view = state.hosts.get(peer) ?? assert.fail();
    const actual = {
      host: hostName(name),
      state: "up" as const,
      address: "10.0.1.1" as never,
      mac: "" as never,
      memoryMiB: pick([1500, 2000, 3000, 5000]),
      reservedMiB: 1000,
      cpus: pick([1, 2, 4]),
      cpuSpeedMHz: pick([1000, 2000]),
      accelerator: "tcg" as const,
      machineMiB: pick([0, 40]),
    };
    state.hosts.set(peer, { ...view, reachable: !is(6), actual });
    if (is(6)) desire(`host/${name}`, { host: name, state: pick(["disabled", "maintenance"]) });
    const to = { kind: pick(["domain", "account"]), path: pick(["ROOT/d1", "ROOT/d1/a1", "ROOT/a2"]) };
    if (is(4)) desire(`dedicated/${name}`, { host: name, of: name, level: "host", to });
    if (!is(3)) {
      const marks = { cluster: pick(["z1/p1/c1", "z2/p1/c1"]), tags: pick([["ssd"], ["ssd", "gpu"], ["gpu"]]) };
      desire(`marks/${name}`, { host: name, ...marks, properties: { sriov: pick([1, 4, 8]) } });
    }
  }
  desire("owner/shop", { cell: "shop", account: "ROOT/d1/a1" });
  desire("owner/bank", { cell: "bank", account: "ROOT/a2" });
  for (let at = 0; at < 12; at += 1) {
    const [cell, placement] = [pick(["shop", "bank"]), is(4) ? { dedication: pick(["strict", "preferred"]) } : {}];
    const asks = requestOf(`v${at}`, cell, { memoryMiB: pick([100, 300, 700]), cpus: 1, placement });
    const client = peerName(`controller.${cell}`);
    const found = choose(state, asks, askerOf(state, client));
    if (found !== null) reserve(state.usage, reservationOf(client, asks, { host: found.host }));
  }
  return state;
}
const requestOf = (vm: string, cell: string, more: Partial<DesiredPlacement>): DesiredPlacement => ({
  vm: vm as Uid,
  path: `${cell}/${vm}` as never,
  cell: cell as never,
  incarnation: 1,
  memoryMiB: 100,
  cpus: 1,
  cpuSpeedMHz: 0,
  placement: {},
  ...more,
});
function asked(): DesiredPlacement {
  const placement: { [wish: string]: Json } = {};
  if (is(5)) placement.host = pick([...names, "h77"]);
  if (is(3)) placement.zone = pick(["z1", "z2", "z3"]);
  if (is(3)) placement.tags = pick([["ssd"], ["gpu", "ssd"], ["none"], ["gpu", "none"]]);
  if (is(3)) placement.properties = pick([{ sriov: 8 }, { sriov: 16 }, { gpu: "a100", sriov: 4 }]);
  if (is(4)) placement.dedication = pick(["strict", "preferred"]);
  if (is(5)) placement.groups = pick([["DedicatedGrp-a1"], ["DedicatedGrp-domain-d1"], ["none"]]);
  if (is(6)) placement.apartFrom = ["v1", "v2", "v3"];
  if (is(8)) placement.pool = "racks";
  const [memoryMiB, cpus] = [pick([100, 600, 1500, 3500, 9000]), pick([1, 8, 40, 100])];
  const own = { cpuSpeedMHz: pick([0, 0, 1500, 3000]), placement };
  const offering = is(3) ? pick(offerings) : undefined;
  const wishes =
    offering === undefined
      ? own
      : withOffering({ ...own, placement: { ...placement, offering: offering.name } }, offering);
  return requestOf("new", "shop", { memoryMiB, cpus, ...wishes });
}
const offerings: readonly KnownOffering[] = [
  { name: "alone", memoryMiB: 9000, cpus: 100, dedication: "strict", tags: ["gpu"] },
  { name: "fast", memoryMiB: 9000, cpus: 100, cpuSpeedMHz: 3000, dedication: "preferred" },
];

test("of requests that cannot be placed the change that is named places them, and none of it can be spared", (context) => {
  let [impossible, named, worked, hopeless] = [0, 0, 0, 0];
  for (let tries = 0; impossible < runs && tries < runs * 50; tries += 1) {
    const state = cloud();
    const asker = askerOf(state, shop);
    const isPlaced = (request: DesiredPlacement): boolean =>
      !("refusals" in place([...state.hosts.values()], state.usage, request, defaultRatios, asker));
    for (let at = 0; at < 4 && impossible < runs; at += 1) {
      const request = asked();
      if (isPlaced(request)) continue;
      impossible += 1;
      const offering = offerings.find(({ name }) => name === offeringOf(request.placement));
      const changes = smallestChange(request, (each) => choose(state, each, asker) !== null, offering);
      const said = (): string => `seed ${seed}: ${JSON.stringify({ request, changes })}`;
      if (changes === null) {
        // Then nothing that it asks for is the reason.
        assert.equal(isPlaced({ ...request, memoryMiB: 16, cpus: 1, cpuSpeedMHz: 0, placement: {} }), false, said());
        hopeless += 1;
        continue;
      }
      named += 1;
      if (isPlaced(changed(request, changes, offering))) worked += 1;
      for (const spared of changes.length > 1 ? changes : [])
        assert.equal(
          isPlaced(
            changed(
              request,
              changes.filter((each) => each !== spared),
              offering,
            ),
          ),
          false,
          said(),
        );
      for (const change of changes) assert.ok(isLeast({ request, changes, offering }, change, isPlaced), said());
      assert.match(changeText(changes), /^(write|leave out|take) /);
    }
  }
  context.diagnostic(
    `seed ${seed}: ${impossible} impossible, ${named} changes named, ${worked} worked, ${hopeless} hopeless`,
  );
  assert.ok(impossible >= runs && named >= runs / 2, `${impossible} impossible, ${named} named`);
  assert.ok(worked >= 0.99 * named, `${worked} of ${named} worked, seed ${seed}`);
});

/** A little more of an amount would be too much. */
function isLeast(
  {
    request,
    changes,
    offering,
  }: {
    readonly request: DesiredPlacement;
    readonly changes: readonly Change[];
    readonly offering: KnownOffering | undefined;
  },
  change: Change,
  isPlaced: (request: DesiredPlacement) => boolean,
): boolean {
  if (change.kind === "without" || change.kind === "preferred" || change.kind === "offering") return true;
  const more = changes.map((each) => (each === change ? { ...change, to: change.to + 1 } : each));
  return !isPlaced(changed(request, more, offering));
}

test("what its offering asks for nobody is told to leave out: he leaves the offering out, or what he asks for himself", () => {
  const small: KnownOffering = {
    name: "small",
    memoryMiB: 512,
    cpus: 1,
    cpuSpeedMHz: 2000,
    tags: ["ssd"],
    dedication: "strict",
  };
  const own = { cpuSpeedMHz: 2400, placement: { offering: "small", tags: ["gpu"] } };
  const request = requestOf("new", "shop", withOffering(own, small));
  const told = (places: (each: DesiredPlacement) => boolean): string | null => {
    const changes = smallestChange(request, places, small);
    return changes === null ? null : changeText(changes);
  };
  const has = (each: DesiredPlacement, tag: string): boolean => JSON.stringify(each.placement).includes(tag);
  assert.equal(
    told((each) => !has(each, "strict")),
    "leave out `x.placement.offering`",
  );
  assert.equal(
    told((each) => !has(each, "ssd")),
    "leave out `x.placement.offering`",
  );
  assert.equal(
    told((each) => !has(each, "gpu")),
    'take "gpu" out of `x.placement.tags`',
  );
  assert.equal(
    told((each) => each.cpuSpeedMHz <= 2200),
    "write `x.cpuSpeed 2200`",
  );
  assert.equal(
    told((each) => each.cpuSpeedMHz <= 1000),
    "leave out `x.placement.offering` and write `x.cpuSpeed 1000`",
  );
});
