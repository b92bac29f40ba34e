import assert from "node:assert/strict";
import { test } from "node:test";
import { formatIpv4, parseIpv4 } from "../../../../model/addresses/addresses.ts";
import type { IngressRule, Instance, NetworkView } from "../../../../model/eucalyptus/view/network-view.ts";
import { allTables } from "./plan/own.ts";
import { type LocalConfiguration, type LocalPlan, localDefaults, type Self } from "./plan/plan.ts";
import { planFor } from "./planners.ts";

/* Beside the recorded cases: what the same rules say of views that nobody has recorded. */

const at = (text: string): number => parseIpv4(text) ?? assert.fail(text);
const rule = (part: Partial<IngressRule>): IngressRule => ({
  protocol: 6,
  fromPort: 0,
  toPort: 0,
  icmpType: 0,
  icmpCode: 0,
  ...part,
});
const instance = (id: string, inside: string, groups: readonly string[], outside?: string): Instance => ({
  id,
  owner: "1",
  mac: `D0:0D:00:00:00:${id.slice(-2).toUpperCase()}`,
  privateIp: at(inside),
  ...(outside === undefined ? {} : { publicIp: at(outside) }),
  securityGroups: groups,
});
const group = (id: string, ...ingress: readonly IngressRule[]) => ({ id, owner: "1", ingress, egress: [] });

const base = {
  publicIps: [{ first: at("10.111.101.60"), last: at("10.111.101.70") }],
  enabledClcIp: at("10.111.5.27"),
  instanceDnsDomain: "eucalyptus.internal",
  instanceDnsServers: [at("10.1.1.254")],
  subnets: [],
};
const cluster = (name: string, number: number, nodes: readonly (readonly [string, readonly string[]])[]) => ({
  name,
  enabledCcIp: at(`10.111.5.${number}`),
  macPrefix: "d0:0d",
  privateIps: [{ first: at(`1.0.${number}.10`), last: at(`1.0.${number}.90`) }],
  nodes: nodes.map(([node, instances]) => ({ name: node, instances })),
  subnet: {
    name: `1.0.${number}.0`,
    subnet: at(`1.0.${number}.0`),
    netmask: at("255.255.255.0"),
    gateway: at(`1.0.${number}.1`),
  },
});
const edge: NetworkView = {
  ...base,
  mode: "EDGE",
  clusters: [
    cluster("one", 1, [
      ["n1", ["i-00000001", "i-00000002"]],
      ["n2", ["i-00000003"]],
    ]),
    cluster("two", 2, [["n3", ["i-00000004"]]]),
  ],
  instances: [
    instance("i-00000001", "1.0.1.10", ["sg-a"], "10.111.101.60"),
    instance("i-00000002", "1.0.1.11", ["sg-a", "sg-b"]),
    instance("i-00000003", "1.0.1.12", ["sg-b"], "10.111.101.61"),
    instance("i-00000004", "1.0.2.10", ["sg-b"], "10.111.101.62"),
  ],
  securityGroups: [
    group(
      "sg-a",
      rule({ fromPort: 22, toPort: 22, group: "sg-b" }),
      rule({ fromPort: 80, toPort: 443, group: "sg-a" }),
    ),
    group("sg-b", rule({ protocol: 17, fromPort: 53, toPort: 53, cidr: "10.111.101.60/30" })),
  ],
};
const managed: NetworkView = {
  ...edge,
  mode: "MANAGED",
  managedSubnet: {
    subnet: at("1.0.0.0"),
    netmask: at("255.255.0.0"),
    segmentSize: 16,
    minVlan: 2,
    maxVlan: 639,
  },
  clusters: edge.clusters.map(({ subnet: _, ...each }) => ({ ...each, privateIps: [] })),
  instances: [
    instance("i-00000001", "1.0.1.9", ["sg-a"], "10.111.101.60"),
    instance("i-00000002", "1.0.1.10", ["sg-a"]),
    instance("i-00000003", "1.0.1.25", ["sg-b"], "10.111.101.61"),
    instance("i-00000004", "1.0.1.26", ["sg-b"], "10.111.101.62"),
  ],
};
const node = (address: string): Self => ({ address, peer: "node" });
const host = (address: string): Self => ({ address, peer: "network" });
const plan = (view: NetworkView, self: Self): LocalPlan => planFor(view, self, localDefaults);
const chain = ({ iptables }: LocalPlan, table: string, name: string): readonly string[] =>
  iptables
    .find((each) => each.name === table)
    ?.chains.find((each) => each.name === name)
    ?.rules.map((each) => each.join(" ")) ?? [];
const set = ({ sets }: LocalPlan, name: string): readonly string[] =>
  sets.find((each) => each.name === name)?.members ?? [];

test("EDGE: chains and sets of all groups on each node, addresses of its own instances alone", () => {
  const [one, three] = [plan(edge, node("n1")), plan(edge, node("n3"))];
  for (const each of [one, three])
    assert.deepEqual(chain(each, "filter", "EUCA_FILTER_FWD").slice(3), [
      "-m set --match-set sg-a dst -j sg-a",
      "-m set --match-set sg-b dst -j sg-b",
      "-m set --match-set EUCA_ALLPRIVATE dst -j DROP",
    ]);
  assert.deepEqual(
    one.dhcp?.hosts.map(({ address }) => formatIpv4(address)),
    ["1.0.1.10", "1.0.1.11"],
  );
  assert.deepEqual(
    three.dhcp?.subnets.map(({ router }) => formatIpv4(router)),
    ["1.0.2.1"],
  );
  assert.deepEqual(
    three.addresses.map(({ device, address }) => `${device} ${formatIpv4(address)}`),
    ["br0 1.0.2.1", "em1 10.111.101.62"],
  );
  assert.deepEqual(chain(one, "nat", "EUCA_NAT_OUT"), ["-d 10.111.101.60/32 -j DNAT --to-destination 1.0.1.10"]);
  assert.deepEqual(set(three, "EUCA_ALLPRIVATE").length, 5);
});

test("EDGE: a group that is named before it comes is whole, and one that is named after keeps the place holder", () => {
  const found = plan(edge, node("n1"));
  assert.ok(!set(found, "sg-b").includes("127.0.0.1/32"));
  assert.ok(set(found, "sg-a").includes("127.0.0.1/32"));
  assert.deepEqual(chain(found, "filter", "sg-a"), [
    "-m set --match-set sg-a src -j ACCEPT",
    "-m set --match-set sg-b src -p tcp -m tcp --dport 22 -j ACCEPT",
    "-m set --match-set sg-a src -p tcp -m tcp --dport 80:443 -j ACCEPT",
  ]);
});

test("EDGE: a network that holds only a public address lets in the private one behind it, on the node that has it", () => {
  const wide = "-s 10.111.101.60/30 -p udp -m udp --dport 53 -j ACCEPT";
  assert.deepEqual(chain(plan(edge, node("n1")), "filter", "sg-b").slice(1), [
    wide,
    "-s 1.0.1.10 -p udp -m udp --dport 53 -m mark ! --mark 0x2a -j ACCEPT",
  ]);
  assert.deepEqual(chain(plan(edge, node("n2")), "filter", "sg-b").slice(1), [
    wide,
    "-s 1.0.1.12 -p udp -m udp --dport 53 -m mark ! --mark 0x2a -j ACCEPT",
  ]);
});

test("EDGE: a global subnet is none of the instances', a node without instances guards all the same", () => {
  const subnet = { name: "x", subnet: at("192.168.0.0"), netmask: at("255.255.0.0"), gateway: at("192.168.0.1") };
  const [first, ...others] = edge.clusters;
  assert.ok(first !== undefined);
  const empty = { ...first, nodes: [...first.nodes, { name: "n9", instances: [] }] };
  const found = plan({ ...edge, subnets: [subnet], clusters: [empty, ...others] }, node("n9"));
  assert.deepEqual(set(found, "EUCA_ALLNONEUCA"), ["127.0.0.1/32", "192.168.0.0/16", "1.0.1.1/32"]);
  const rules = found.ebtables.flatMap(({ chains }) =>
    chains.flatMap((each) => each.rules.map((one) => one.join(" "))),
  );
  assert.ok(rules.includes("-i vn_i+ -j DROP") && rules.includes("-o vn_i+ -j DROP"));
  assert.ok(!rules.some((each) => each.includes("arpreply")));
});

test("EDGE: a machine that the view does not have, and a network host, do nothing of their own", () => {
  const stranger = plan(edge, node("n7"));
  assert.match(stranger.warnings.join(), /no cluster of the view has the machine n7/);
  // It may have been in one before.
  assert.deepEqual(
    stranger.managed.map(({ device, ranges }) => [device, ranges.length]),
    [
      [localDefaults.publicInterface, 1],
      [localDefaults.bridge, 2],
    ],
  );
  assert.deepEqual([stranger.dhcp, stranger.addresses, stranger.ebtables], [null, [], []]);
  assert.deepEqual(plan(edge, host("10.111.5.1")).iptables, []);
});

test("an instance without a MAC or an address gets nothing that needs one", () => {
  const [first, second, ...others] = edge.instances;
  assert.ok(first !== undefined && second !== undefined);
  const { mac: _, ...bare } = first;
  const { privateIp: __, ...nowhere } = second;
  const found = plan({ ...edge, instances: [bare, nowhere, ...others] }, node("n1"));
  assert.deepEqual(found.dhcp?.hosts, []);
  const guarded = JSON.stringify(found.ebtables);
  assert.ok(!guarded.includes("vn_i-00000001") && !guarded.includes("vn_i-00000002"));
  assert.ok(set(found, "sg-a").includes("1.0.1.10/32") && !set(found, "sg-a").includes("1.0.1.11/32"));
});

test("protocols, ports and ICMP types", () => {
  const text = (part: Partial<IngressRule>): string | undefined => {
    const view = { ...edge, securityGroups: [group("sg-a", rule({ cidr: "0.0.0.0/0", ...part })), group("sg-b")] };
    return chain(plan(view, node("n1")), "filter", "sg-a")[1]?.replace(/^-s 0\.0\.0\.0\/0 ?/, "");
  };
  assert.equal(text({ fromPort: 0, toPort: 65_535 }), "-p tcp -m tcp -j ACCEPT");
  assert.equal(text({ fromPort: 1, toPort: 65_535 }), "-p tcp -m tcp --dport 1:65535 -j ACCEPT");
  // Ports from 0 to 80 are not all ports.
  assert.equal(text({ fromPort: 0, toPort: 80 }), "-p tcp -m tcp --dport 0:80 -j ACCEPT");
  assert.equal(text({ protocol: 17, fromPort: 5, toPort: 5 }), "-p udp -m udp --dport 5 -j ACCEPT");
  assert.equal(text({ protocol: 1, icmpType: 8, icmpCode: -1 }), "-p icmp -m icmp --icmp-type 8 -j ACCEPT");
  assert.equal(text({ protocol: 1, icmpType: 3, icmpCode: 1 }), "-p icmp -m icmp --icmp-type 3/1 -j ACCEPT");
  assert.equal(text({ protocol: 1, icmpType: -1, icmpCode: -1 }), "-p icmp -m icmp --icmp-type any -j ACCEPT");
  assert.equal(text({ protocol: 132 }), "-p 132 -j ACCEPT");
  assert.equal(text({ protocol: -1 }), "-j ACCEPT");
});

test("MANAGED: a network host carries its own cluster, with the gateway of its place among the clusters", () => {
  const [one, two] = [plan(managed, host("10.111.5.1")), plan(managed, host("10.111.5.2"))];
  assert.deepEqual(one.bridges, [
    { name: "sg-a", tag: 18, gateway: at("1.0.1.1"), prefixLength: 28 },
    { name: "sg-b", tag: 19, gateway: at("1.0.1.17"), prefixLength: 28 },
  ]);
  assert.deepEqual(two.bridges, [{ name: "sg-b", tag: 19, gateway: at("1.0.1.18"), prefixLength: 28 }]);
  assert.deepEqual(
    two.dhcp?.hosts.map(({ address }) => formatIpv4(address)),
    ["1.0.1.26"],
  );
  assert.deepEqual(chain(two, "nat", "PREROUTING").length, 3);
  assert.deepEqual(chain(one, "filter", "sg-a").concat(chain(one, "filter", "sg-b")), [
    "-s 1.0.1.16/28 -d 1.0.1.0/28 -p tcp -m tcp --dport 22 -j ACCEPT",
    "-s 1.0.1.0/28 -d 1.0.1.0/28 -p tcp -m tcp --dport 80:443 -j ACCEPT",
    // Of the public addresses in this network two are the group's own.
    "-d 1.0.1.16/28 -s 1.0.1.9 -p udp -m udp --dport 53 -m mark --mark 0x15 -j ACCEPT",
    "-d 1.0.1.16/28 -s 10.111.101.60/30 -p udp -m udp --dport 53 -m mark ! --mark 0x15 -j ACCEPT",
  ]);
});

test("MANAGED: a node has a bridge for each group that is active on it, and holds instances to their MACs", () => {
  const found = plan(managed, node("n2"));
  assert.deepEqual(found.bridges, [{ name: "sg-b", tag: 19, gateway: null, prefixLength: 28 }]);
  assert.deepEqual([found.iptables, found.dhcp], [[], null]);
  assert.ok(JSON.stringify(found.ebtables).includes("vn_i-00000003"));
  for (const mode of ["MANAGED", "MANAGED-NOVLAN"] as const) {
    const there = plan({ ...managed, mode }, node("n2"));
    const bridged = { ...there, iptables: allTables(there).ebtables };
    assert.deepEqual(chain(bridged, "filter", "INPUT"), ["-j CELLS_ALOOF"]);
    // Without VLANs those of other nodes come by the site's own device.
    const others = mode === "MANAGED" ? [] : ["-s d0:0d:00:00:00:00/FF:FF:00:00:00:00 -j DROP"];
    assert.deepEqual(chain(bridged, "filter", "CELLS_ALOOF"), ["-i vn_i+ -j DROP", "-i vl_+ -j DROP", ...others]);
    assert.deepEqual([there.holds, there.learns], [true, false]);
  }
  const flat = plan({ ...managed, mode: "MANAGED-NOVLAN" }, host("10.111.5.1"));
  assert.deepEqual(flat.bridges, []);
  assert.deepEqual(
    flat.addresses.filter(({ prefixLength }) => prefixLength === 28).map(({ address }) => formatIpv4(address)),
    ["1.0.1.1", "1.0.1.17"],
  );
});

test("at a node's bridge what goes to a port of DHCP is of the instance's own address, or of none and for everybody", () => {
  for (const found of [plan(edge, node("n2")), plan(managed, node("n2"))]) {
    const bridged = { ...found, iptables: allTables(found).ebtables };
    // Before the original's chain, which lets it pass.
    assert.deepEqual(chain(bridged, "nat", "PREROUTING"), ["-j CELLS_LEASES", "-j EUCA_EBT_NAT_PRE"]);
    assert.deepEqual(chain(bridged, "nat", "CELLS_LEASES"), [
      "-p IPv4 -i vn_i+ --ip-proto udp --ip-dport 67:68 -j CELLS_ASKING",
      "-j RETURN",
    ]);
    const own = formatIpv4(found.mode === "EDGE" ? at("1.0.1.12") : at("1.0.1.25"));
    assert.deepEqual(chain(bridged, "nat", "CELLS_ASKING"), [
      "-p IPv4 --ip-src 0.0.0.0 --ip-dst 255.255.255.255 --ip-proto udp --ip-dport 67 -j RETURN",
      `-p IPv4 -i vn_i-00000003 --ip-src ${own} -j RETURN`,
      "-j DROP",
    ]);
  }
});

test("MANAGED: each instance is a port of its segment's bridge, by its address", () => {
  const [first, second, third, ...others] = managed.instances;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const view = { ...managed, instances: [first, { ...second, securityGroups: ["sg-a", "sg-b"] }, third, ...others] };
  assert.deepEqual(plan(view, node("n1")).taps, [
    { name: "vn_i-00000001", bridge: "sg-a", mac: first.mac },
    { name: "vn_i-00000002", bridge: "sg-a", mac: second.mac },
  ]);
  // Outside of all segments it is nowhere.
  const moved = { ...managed, instances: [first, { ...second, privateIp: at("2.0.0.1") }, third, ...others] };
  assert.deepEqual(plan(moved, node("n1")).taps, [{ name: "vn_i-00000001", bridge: "sg-a", mac: first.mac }]);
});

test("MANAGED: a group with members in several clusters has a tunnel between their network hosts, and no other has one", () => {
  const tunnels = (self: Self, local: Partial<LocalConfiguration> = {}) =>
    planFor(managed, self, { ...localDefaults, ...local }).tunnels;
  const [one, two] = [host("10.111.5.1"), host("10.111.5.2")];
  assert.deepEqual(tunnels(one), [{ tag: 19, bridge: "sg-b", local: "10.111.5.1", remotes: ["10.111.5.2"] }]);
  assert.deepEqual(tunnels(two), [{ tag: 19, bridge: "sg-b", local: "10.111.5.2", remotes: ["10.111.5.1"] }]);
  assert.deepEqual(tunnels(one, { tunnelsDisabled: true }), []);
  // Whether the two clusters have the VLAN in common no view says.
  assert.match(plan(managed, one).warnings.join(), /sg-b has a tunnel to other clusters: .* DISABLE_TUNNELING=Y/);
  assert.deepEqual(planFor(managed, one, { ...localDefaults, tunnelsDisabled: true }).warnings, []);
  assert.deepEqual(tunnels(node("n1")), []);
  const rules = JSON.stringify(plan(managed, one).own);
  assert.ok(rules.includes("CELLS_TUNNELS") && rules.includes("vx_+"));
  // What an instance sends leaves with the network host's address, by which the other end would take it for a tunnel's.
  const forward = chain({ ...plan(managed, one), ...allTables(plan(managed, one)) }, "filter", "FORWARD");
  assert.equal(forward[0], "-j CELLS_BETWEEN");
  const between = chain({ ...plan(managed, one), ...allTables(plan(managed, one)) }, "filter", "CELLS_BETWEEN");
  assert.deepEqual(between, ["-d 10.111.5.2/32 -p udp -m udp --dport 4789 -j DROP"]);
  assert.ok(!JSON.stringify(planFor(managed, one, { ...localDefaults, tunnelsDisabled: true }).own).includes("4789"));
  const flat = plan({ ...managed, mode: "MANAGED-NOVLAN" }, one);
  assert.deepEqual(flat.tunnels, []);
  assert.match(flat.warnings.join(), /sg-b has members in several clusters/);
});

test("MANAGED: where what goes out needs a rule, nobody of another cluster goes out by this one's gateway", () => {
  for (const [mode, strangers] of [
    ["MANAGED", "-i sg-+ -j DROP"],
    ["MANAGED-NOVLAN", "-s 1.0.0.0/16 -j DROP"],
  ] as const) {
    const found = planFor({ ...managed, mode }, host("10.111.5.1"), { ...localDefaults, outgoingClosed: true });
    const rules = chain({ ...found, ...allTables(found) }, "filter", "CELLS_OUTGOING");
    const own = rules.indexOf("-s 1.0.1.25/32 -g CELLS_i-00000003");
    assert.ok(own >= 0 && !rules.some((each) => each.includes("CELLS_i-00000004")));
    assert.equal(rules.at(-1), strangers);
  }
});

test("MANAGED: a group whose instances have no address of a segment has no chain", () => {
  const [first, ...others] = managed.instances;
  assert.ok(first !== undefined);
  const moved = others.map((each) => (each.id === "i-00000002" ? { ...each, privateIp: at("2.0.0.1") } : each));
  const found = plan({ ...managed, instances: [{ ...first, privateIp: at("9.9.9.9") }, ...moved] }, host("10.111.5.1"));
  assert.ok(!found.iptables.some(({ chains }) => chains.some(({ name }) => name === "sg-a")));
  assert.match(found.warnings.join("\n"), /sg-a/);
});

test("STATIC gives each MAC its address, SYSTEM learns which it has, and in both taps are at the machine's bridge", () => {
  for (const mode of ["STATIC", "SYSTEM"] as const) {
    const there = plan({ ...edge, mode }, node("n1"));
    assert.deepEqual(
      there.taps,
      [1, 2].map((number) => ({ name: `vn_i-0000000${number}`, bridge: "br0", mac: `D0:0D:00:00:00:0${number}` })),
    );
    assert.deepEqual([there.bridge?.name, there.learns, there.holds], ["br0", mode === "SYSTEM", false]);
    assert.deepEqual(plan({ ...edge, mode }, node("n9")).taps, []);
  }

  const found = plan({ ...edge, mode: "STATIC" }, host("10.111.5.1"));
  assert.deepEqual(found.dhcp?.hosts.length, 3);
  assert.deepEqual([found.iptables, found.ebtables, found.sets], [[], [], []]);
  assert.equal(plan({ ...edge, mode: "STATIC" }, node("n1")).dhcp, null);
  for (const self of [node("n1"), host("10.111.5.1")]) {
    const none = plan({ ...edge, mode: "SYSTEM" }, self);
    assert.deepEqual([none.dhcp, none.iptables, none.sets, none.ebtables, none.bridges], [null, [], [], [], []]);
  }
});

test("a plan is frozen, and 10,000 instances in 1,000 groups cost little", () => {
  const count = 10_000;
  const ids = Array.from({ length: count }, (_, number) => `i-${number.toString(16).padStart(8, "0")}`);
  const [first] = edge.clusters;
  assert.ok(first !== undefined);
  const nodes = Array.from({ length: 100 }, (_, number) => ({
    name: `n${number}`,
    instances: ids.filter((_id, index) => index % 100 === number),
  }));
  const instances = ids.map(
    (id, number): Instance => ({
      id,
      mac: "D0:0D:00:00:00:01",
      privateIp: at("1.0.0.9") + number,
      securityGroups: [`sg-${number % 1000}`],
      publicIp: at("10.111.0.1") + number,
    }),
  );
  const securityGroups = Array.from({ length: 1000 }, (_, number) =>
    group(
      `sg-${number}`,
      rule({ fromPort: 22, toPort: 22, cidr: "10.111.0.0/24" }),
      rule({ group: `sg-${(number + 1) % 1000}` }),
    ),
  );
  const view = { ...edge, clusters: [{ ...first, nodes }], instances, securityGroups };
  const began = process.cpuUsage();
  const found = plan(view, node("n1"));
  const { user } = process.cpuUsage(began);
  assert.ok(user < 1_000_000, `${user / 1000} ms`);
  assert.equal(found.sets.length, 1002);
  assert.ok(Object.isFrozen(found) && Object.isFrozen(found.iptables));
});
