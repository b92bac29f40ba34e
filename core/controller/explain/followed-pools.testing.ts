import { peerName } from "../../../model/cell/identifiers.ts";
import { noUsage, type Usage } from "../../../model/check/check-limits.ts";
import type { JsonObject } from "../../../model/json/json.ts";
import { toJson } from "../../outbox.ts";
import { childOf, Root, rootWithTenancy } from "../model/root.testing.ts";
import { World } from "../world.testing.ts";
import type { Change, FollowedRefusal } from "./followed.testing.ts";

/** Hints about host flavours and pools, each followed (`followed-refusals.testing.ts`). */
const flavors: JsonObject = {
  large: { "x.type": "HostFlavor", "x.units": 4 },
  small: { "x.type": "HostFlavor", "x.units": 1 },
};
const inRoot = (inside: JsonObject): Change => ({ json: rootWithTenancy(inside) });
const host = (more: JsonObject): JsonObject => ({
  hosts: { h1: { "x.type": "Host", "x.state": "disabled", ...more } },
});
const large = { "x.flavor": "large" };
const root =
  (hosts: JsonObject, vms: readonly string[] | null = []) =>
  (): Root => {
    const it = new Root();
    it.put("", rootWithTenancy({ flavors }));
    it.hearHosts(["h1", "h3"]);
    it.put("", rootWithTenancy(hosts));
    if (vms !== null) it.hearStanding("h1", vms);
    return it;
  };
const member = (): Root => {
  const it = root(host({}))();
  it.put("root/hosts/h1", { "x.type": "Host", "x.state": "enabled", ...large });
  it.put("root/cells/shop", childOf("shop", "ROOT/acme/dev"));
  return it;
};
const pooled = (): Root => {
  const it = member();
  it.hearStanding("h1", []);
  it.hearPools("shop", [{ name: "a" }]);
  return it;
};

const cell = (inside: JsonObject): Change => ({ json: { shop: { "x.type": "Cell", ...inside } } });
const room = Object.fromEntries(Object.keys(noUsage).map((key) => [key, 1_000_000])) as unknown as Usage;
const pool: JsonObject = { racks: { "x.type": "Pool" } };
const rack = (more: JsonObject = {}): JsonObject => ({
  "x.type": "PoolHost",
  "x.pool": "<ref:/shop/racks>",
  "x.flavor": "large",
  ...more,
});
const racks = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`rack${at}`, rack()]));
const child =
  (inside: JsonObject = pool) =>
  (): World => {
    const world = new World({ child: true });
    const grant = { amount: room, serial: 1, answered: 0, refusal: null };
    const life = { uid: "root-1", model: cell(inside).json, grant, ending: false };
    world.step({ kind: "desired", from: peerName("cell-manager"), key: "life", value: toJson(life) });
    return world.settle();
  };

const offering = (more: JsonObject = {}): JsonObject => ({ "x.type": "Offering", "x.memory": 512, ...more });
const offered = (count: number): string[] => Array.from({ length: count }, (_, at) => `o${at}`);
export const followedPools: Readonly<Record<string, FollowedRefusal>> = {
  "Write it as `offerings extends { small extends Offering { x.memory 512; } }` in the cell `root`": {
    arise: () => new Root(),
    wrong: inRoot({ small: offering() }),
    ways: [inRoot({ offerings: { small: offering() } })],
  },
  "Leave it out: offerings are the operator's, in the cell `root`": {
    arise: child(),
    wrong: cell({ small: offering() }),
    ways: [cell({})],
  },
  'Write `x.planner "ImplicitDedicationPlanner";`, or leave `x.mode` out': {
    arise: () => new Root(),
    wrong: inRoot({ offerings: { small: offering({ "x.mode": "Strict" }) } }),
    ways: [
      inRoot({ offerings: { small: offering({ "x.mode": "Strict", "x.planner": "ImplicitDedicationPlanner" }) } }),
      inRoot({ offerings: { small: offering() } }),
    ],
  },
  "Write it as `flavors extends { large extends HostFlavor { x.units 4; } }` in the cell `root`": {
    arise: () => new Root(),
    wrong: inRoot({ large: flavors.large as JsonObject }),
    ways: [inRoot({ flavors })],
  },
  "Leave it out: `x.flavor` of a PoolHost names one": {
    arise: child(),
    wrong: cell({ large: flavors.large as JsonObject }),
    ways: [cell({ ...pool, rack: rack() })],
  },
  "Write it in a cell that an account has in the cell `root`": {
    arise: () => new Root(),
    wrong: inRoot(pool),
    ways: [inRoot({})],
  },
  "Let its owner take it out of the pool first": {
    arise: pooled,
    wrong: inRoot(host({})),
    ways: [
      {
        ...inRoot(host({})),
        before: (it) => {
          const there = it as Root;
          there.hearStanding("h1", []);
          there.hearPools("shop", []);
        },
      },
    ],
  },
  "Take it out of that first: leave `x.flavor` out": {
    arise: member,
    wrong: inRoot(host({ "x.flavor": "small" })),
    ways: [inRoot(host({}))],
  },
  'Drain it first, and write `x.state "disabled"`': {
    arise: root({}),
    wrong: inRoot(host(large)),
    ways: [
      {
        ...inRoot(host(large)),
        before: (it) => {
          (it as Root).put("root/hosts/h1", { "x.type": "Host", "x.state": "disabled" });
        },
      },
    ],
  },
  "Write the same again once the host answers": {
    arise: root(host({}), null),
    wrong: inRoot(host(large)),
    ways: [{ ...inRoot(host(large)), before: (it) => (it as Root).hearStanding("h1", []) }],
  },
  "Let them go elsewhere first, with `cells host drain`": {
    arise: root(host({}), ["c1-4"]),
    wrong: inRoot(host(large)),
    ways: [{ ...inRoot(host(large)), before: (it) => (it as Root).hearStanding("h1", []) }],
  },
  "Give one of the two another name": {
    arise: child(),
    wrong: cell({ ...pool, one: { rack: rack() }, two: { rack: rack() } }),
    ways: [cell({ ...pool, one: { rack: rack() }, two: { other: rack() } })],
  },
  "Leave some out: another cell of the account may have as many": {
    arise: child(),
    wrong: cell({ ...pool, ...racks(256) }),
    ways: [cell({ ...pool, ...racks(255) })],
  },
  "Leave some out, or `x.offerings` as a whole: then it takes all": {
    arise: child(),
    wrong: cell({ racks: { "x.type": "Pool", "x.offerings": offered(65) } }),
    ways: [cell({ racks: { "x.type": "Pool", "x.offerings": offered(64) } }), cell({ racks: { "x.type": "Pool" } })],
  },
  "Leave some out: a host has to have all of them": {
    arise: () => new Root(),
    wrong: inRoot({ offerings: { small: offering({ "x.tags": offered(65) }) } }),
    ways: [inRoot({ offerings: { small: offering({ "x.tags": offered(64) }) } })],
  },
  "Leave some out: those that no VM names are not missed": {
    arise: () => new Root(),
    wrong: inRoot({ offerings: Object.fromEntries(offered(257).map((name) => [name, offering()])) }),
    ways: [inRoot({ offerings: Object.fromEntries(offered(256).map((name) => [name, offering()])) })],
  },
  "Write `x.enabled false`, and have those VMs go or end first": {
    arise: child({ ...pool, rack: rack({ "x.enabled": true }) }),
    wrong: cell(pool),
    ways: [
      {
        ...cell(pool),
        before: (it) => {
          (it as World).put(cell({ ...pool, rack: rack() }).json);
        },
      },
    ],
  },
};
