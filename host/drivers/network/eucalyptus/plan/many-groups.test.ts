import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import type { IngressRule, NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { judge, type Packet } from "../examine/judge.ts";
import type { Sets } from "../handlers/sets.ts";
import type { Printed } from "../handlers/tables.ts";
import { planFor } from "../planners.ts";
import { allSets, allTables } from "./own.ts";
import { type LocalPlan, localDefaults, type Table } from "./plan.ts";

const at = (text: string): number => parseIpv4(text) ?? assert.fail(text);
const base = at("10.0.0.0");
const pick = <T>(random: () => number, all: readonly T[]): T =>
  all[Math.floor(random() * all.length)] ?? assert.fail("nothing to choose from");
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
const idOf = (kind: string, number: number): string => `${kind}-${number.toString(16).padStart(8, "0")}`;
const groupsOf = (random: () => number, groups: number): readonly string[] => [
  ...new Set(Array.from({ length: 1 + Math.floor(random() * 3) }, () => idOf("sg", Math.floor(random() * groups)))),
];

/** Two nodes with instances of some groups each, and rules of every kind. */
function viewOf(random: () => number, groups: number): NetworkView {
  // Each group has one of its own, since none is without.
  const instances = Array.from({ length: groups + 40 }, (_, number) => ({
    id: idOf("i", number),
    owner: "1",
    mac: `D0:0D:00:00:${(number >> 8).toString(16).padStart(2, "0")}:${(number & 255).toString(16).padStart(2, "0")}`.toUpperCase(),
    privateIp: base + 10 + number,
    ...(random() < 0.2 ? { publicIp: at("192.0.2.0") + (number % 250) } : {}),
    securityGroups: number < groups ? [idOf("sg", number)] : groupsOf(random, groups),
  }));
  const rule = (): IngressRule => {
    const fromPort = Math.floor(random() * 4);
    return {
      protocol: pick(random, [6, 17]),
      fromPort,
      toPort: fromPort + Math.floor(random() * 2),
      icmpType: 0,
      icmpCode: 0,
      ...(random() < 0.5
        ? { group: idOf("sg", Math.floor(random() * groups)) }
        : { cidr: pick(random, ["10.0.0.0/26", "10.0.0.64/27", "0.0.0.0/0", "192.0.2.0/25"]) }),
    };
  };
  const half = (wanted: number): readonly string[] => instances.flatMap(({ id }, n) => (n % 2 === wanted ? [id] : []));
  return {
    mode: "EDGE",
    publicIps: [{ first: at("192.0.2.0"), last: at("192.0.2.255") }],
    enabledClcIp: at("10.111.5.27"),
    instanceDnsDomain: "eucalyptus.internal",
    instanceDnsServers: [at("10.1.1.254")],
    subnets: [],
    clusters: [
      {
        name: "one",
        enabledCcIp: at("10.111.5.1"),
        macPrefix: "d0:0d",
        privateIps: [{ first: base + 2, last: base + 60_000 }],
        nodes: [0, 1].map((node) => ({ name: `10.111.5.${4 + node}`, instances: half(node) })),
        subnet: { name: "s", subnet: base, netmask: at("255.255.0.0"), gateway: base + 1 },
      },
    ],
    instances,
    securityGroups: Array.from({ length: groups }, (_, number) => ({
      id: idOf("sg", number),
      owner: "1",
      ingress: Array.from({ length: Math.floor(random() * 3) }, rule),
      egress: [],
    })),
  };
}
const printed = (tables: readonly Table[]): Printed =>
  new Map(
    tables.flatMap(({ name, chains }) =>
      chains.map((chain) => [
        `${name} ${chain.name}`,
        [`:${chain.name} ${chain.policy ?? "-"}`, ...chain.rules.map((each) => `-A ${chain.name} ${each.join(" ")}`)],
      ]),
    ),
  );
const setsOf = (plan: LocalPlan): Sets => new Map(allSets(plan).map(({ name, members }) => [name, new Set(members)]));
/** To what is in force with and without the chain of ours. */
const verdicts = (plan: LocalPlan, packet: Packet) =>
  [allTables(plan).iptables, plan.iptables].map((tables) =>
    judge({ printed: printed(tables), sets: setsOf(plan) }, "filter", "FORWARD", packet),
  );
const local = { ...localDefaults, bridgeMac: "02:00:00:00:00:FE" };
const planned = (view: NetworkView, more: Partial<typeof local> = {}): LocalPlan =>
  planFor(view, { address: "10.111.5.4", peer: "node" }, { ...local, ...more });

test("what is asked by buckets ends as what the recorded chain asks group by group", () => {
  // The sets have 127.0.0.1, too, to which nothing is passed on.
  const seen = { passes: 0, dropped: 0, goesOn: 0 };
  for (const [seed, groups] of [17, 40, 63, 130].entries()) {
    const random = randomOf(seed + 1);
    const view = viewOf(random, groups);
    const plan = planned(view);
    const ends = [
      ...view.instances.flatMap(({ privateIp, publicIp }) => [
        privateIp ?? 0,
        ...(publicIp === undefined ? [] : [publicIp]),
      ]),
      ...["10.0.0.1", "10.0.200.1", "198.51.100.7"].map(at),
    ];
    for (let tries = 0; tries < 150; tries += 1) {
      const destination = pick(random, ends);
      const packet: Packet = {
        source: pick(random, ends),
        destination,
        asked: destination,
        protocol: pick(random, ["tcp", "udp"]),
        port: Math.floor(random() * 5),
        mark: pick(random, [0, 0x2a]),
        from: "br0",
        to: null,
        mac: null,
      };
      const [ours, recorded] = verdicts(plan, packet);
      assert.equal(
        ours?.verdict,
        recorded?.verdict,
        JSON.stringify({ seed, packet, ours: ours?.by, recorded: recorded?.by }),
      );
      const isOurs = ours?.chains.has("filter EUCA_FILTER_FWD") === false;
      // Whoever is an instance's is decided here, and counted as it is there.
      assert.equal(
        isOurs,
        view.instances.some(({ privateIp }) => privateIp === destination),
      );
      for (const judged of [ours, recorded]) assert.ok(judged?.chains.has("filter EUCA_COUNTERS_IN"));
      if (!isOurs) seen.goesOn += 1;
      else if (ours?.verdict === "ACCEPT") seen.passes += 1;
      else seen.dropped += 1;
    }
  }
  for (const times of Object.values(seen)) assert.ok(times > 40, JSON.stringify(seen));
});

test("a packet asks few sets, whatever the number of groups, and few groups are asked as recorded", () => {
  const asked = (groups: number): number => {
    const view = viewOf(randomOf(9), groups);
    const plan = planned(view);
    const destination = view.instances[Math.floor(groups / 2)]?.privateIp ?? 0;
    const packet = { source: at("198.51.100.7"), destination, asked: destination, protocol: "udp", port: 9 } as const;
    const [ours] = verdicts(plan, { ...packet, mark: 0, from: "br0", to: null, mac: null });
    return ours?.sets.size ?? 0;
  };
  const [hundred, thousand] = [asked(100), asked(1000)];
  assert.ok(hundred < 40 && thousand < 100, `${hundred} and ${thousand}`);
  const few = planned(viewOf(randomOf(9), 16));
  assert.deepEqual(few.own.sets, []);
  assert.ok(!JSON.stringify(few).includes("CELLS_GROUPS"));
});

test("groups keep their buckets while others come, and where the number of buckets changes no set has the name of one before", () => {
  const setsBy = (groups: number) =>
    new Map((planned(viewOf(randomOf(3), groups)).own.sets ?? []).map((set) => [set.name, set]));
  const [before, more, many] = [setsBy(60), setsBy(64), setsBy(65)];
  assert.deepEqual([...before.keys()].sort(), [...more.keys()].sort());
  assert.deepEqual(
    [...many.keys()].filter((name) => more.has(name)),
    [],
  );
});

test("what instances send is asked for before the groups are, and the site's own rules before both", () => {
  const tables = allTables(planned(viewOf(randomOf(5), 20), { outgoingClosed: true })).iptables;
  const rulesOf = (chain: string): readonly string[] =>
    tables.flatMap(({ name, chains }) =>
      name === "filter"
        ? chains.flatMap((each) => (each.name === chain ? each.rules.map((rule) => rule.join(" ")) : []))
        : [],
    );
  assert.deepEqual(rulesOf("FORWARD"), [
    "-j EUCA_FILTER_FWD_PREUSERHOOK",
    "-j CELLS_GROUPS",
    "-j EUCA_FILTER_FWD",
    "-j EUCA_FILTER_FWD_POSTUSERHOOK",
  ]);
  assert.deepEqual(rulesOf("EUCA_FILTER_FWD_PREUSERHOOK"), ["-j CELLS_OUTGOING"]);
});
