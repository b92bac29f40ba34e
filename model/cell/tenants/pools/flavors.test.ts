import assert from "node:assert/strict";
import { test } from "node:test";
import { isObject, type Json, type JsonObject } from "../../../json/json.ts";
import { type PoolCase, runCases } from "./cases/cases.testing.ts";
import {
  administrator,
  type By,
  defineFlavor,
  enterFlavor,
  type Flavor,
  leaveFlavor,
  listFlavors,
  type Outcome,
  removeFlavor,
  type WholeHost,
} from "./flavors.ts";
import { type Pool, pooledHosts, removeHost } from "./pools.ts";

/** What the Pclouds paper asks of host flavours, on one host that is called `real-1`. */
const real = "real-1";
const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);
const byOf = (by: Json | undefined): By =>
  typeof by !== "string" || by === "administrator" || by === "root"
    ? administrator
    : { kind: "account", path: by.replace(/^tenant /, "") };
const flavorOf = (value: Json | undefined): Flavor => {
  const { id = "", description = "", units = 0 } = isObject(value) ? value : {};
  return { id: String(id), description: String(description), units: Number(units) };
};

interface Scene {
  flavors: ReadonlyMap<string, Flavor>;
  host: WholeHost;
  pools: ReadonlyMap<string, Pool>;
  listed: unknown;
}
function sceneOf({ flavors = [], host }: JsonObject): Scene {
  const given = isObject(host) ? host : {};
  const vms = Array.from({ length: Number(given.vms ?? 0) }, (_, at) => `vm-${at}`);
  const [flavor, pool] = [text(given.flavor), text(given.pool)];
  const own = { host: real, flavor: flavor ?? "", enabled: given.poolState === "enabled" };
  const inPool = { owner: "owner", authorised: ["owner"], ratios: {}, policy: {}, hosts: new Map([["own-name", own]]) };
  return {
    flavors: new Map((flavors as Json[]).map((each) => [flavorOf(each).id, flavorOf(each)])),
    host: {
      flavor,
      vms,
      zone: text(given.zone),
      state: given.state === "disabled" ? "disabled" : given.state === "maintenance" ? "maintenance" : "enabled",
    },
    pools: pool === null ? new Map() : new Map([[pool, { uid: pool, name: pool, ...inPool }]]),
    listed: null,
  };
}
const poolOf = ({ pools }: Scene): string | null =>
  [...pools.values()].find(({ hosts }) => hosts.size > 0)?.uid ?? null;

function step(scene: Scene, action: string, value: Json, by: By): Outcome<unknown> {
  const [name, hosts] = [String(value), new Map([[real, scene.host]])];
  switch (action) {
    case "defineFlavor": {
      const outcome = defineFlavor(scene.flavors, flavorOf(value), by);
      if (outcome.ok) scene.flavors = outcome.value;
      return outcome;
    }
    case "removeFlavor":
    case "deleteFlavor": {
      const outcome = removeFlavor(scene.flavors, hosts.values(), name, by);
      if (outcome.ok) scene.flavors = outcome.value;
      return outcome;
    }
    case "enterFlavor":
    case "leaveFlavor": {
      const outcome =
        action === "enterFlavor"
          ? enterFlavor(scene.flavors, scene.host, name, by)
          : leaveFlavor(scene.host, poolOf(scene), by);
      if (outcome.ok) scene.host = outcome.value;
      return outcome;
    }
    case "removeHost": {
      const pooling = { flavors: scene.flavors, hosts, pools: scene.pools, rules: new Map(), limits: new Map() };
      const outcome = removeHost(pooling, poolOf(scene) ?? "none", name, by);
      if (outcome.ok) scene.pools = outcome.value.pools;
      return outcome;
    }
    case "listFlavor":
    case "listFlavors": {
      const all = listFlavors(scene.flavors, hosts, pooledHosts(scene), by);
      scene.listed = action === "listFlavor" ? all.filter(({ id }) => id === name) : all;
      return { ok: true, value: scene.listed };
    }
    default:
      throw new Error(`the runner of flavors.json has no ${action}`);
  }
}

runCases("flavors.json", ["by", "flavors", "host"], ({ given, do: doing }: PoolCase) => {
  const scene = sceneOf(given);
  let refused: readonly string[] | null = null;
  for (const [action, value] of Object.entries(doing)) {
    const outcome = step(scene, action, value, byOf(given.by));
    if (!outcome.ok) refused = outcome.refused.names;
  }
  const { flavors, host, listed } = scene;
  const pooled = pooledHosts(scene);
  return {
    ok: refused === null,
    refused: refused !== null,
    names: refused ?? [],
    hostState: host.state,
    flavor: host.flavor,
    pool: poolOf(scene),
    vms: host.vms.length,
    flavors: [...flavors.values()],
    free: listFlavors(flavors, new Map([[real, host]]), pooled, administrator).reduce(
      (sum, each) => sum + each.free,
      0,
    ),
    hostNames:
      JSON.stringify(listed)?.includes(real) === true ||
      (Array.isArray(listed) && listed.some((each) => "hosts" in each)),
  };
});

test("a host of a flavour costs whole units, from one up", () => {
  const defined = (units: number): string =>
    JSON.stringify(defineFlavor(new Map(), { id: "large", description: "", units }, administrator));
  for (const units of [0, -1, 1.5, Number.NaN]) assert.match(defined(units), /cannot cost/, `${units}`);
  assert.doesNotMatch(defined(1), /cannot cost/);
});
