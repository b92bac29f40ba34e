import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import { read as readAs } from "../../../../../model/contract/schema.ts";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { Fault } from "../../../../../model/json/reader.ts";
import { examinedChecks } from "../../../../../runtime/controller/connections/why.ts";
import type { PacketCheck } from "../../driver.ts";
import type { LocalNetwork } from "../driver.ts";
import { tapOf } from "../plan/guard.ts";
import { localDefaults, type Self } from "../plan/plan.ts";
import { planFor } from "../planners.ts";
import { examineInstance } from "./examine.ts";

const read = readView(
  readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8"),
);
const { view } = read.ok ? read.value : assert.fail(JSON.stringify(read.error));
const self: Self = { address: "10.111.5.43", peer: "node" };
const plan = planFor(view, self, localDefaults);
const instance = (id: string) => view.instances.find((each) => each.id === id) ?? assert.fail(id);
const [web, elsewhere] = [instance("i-a7f05959"), instance("i-b1b2b3b4")];
const link = {
  index: 1,
  mtu: 1500,
  lower: null,
  number: null,
  local: null,
  remotes: new Set(""),
  mac: "",
  master: localDefaults.bridge,
  isUp: true,
  isHairpin: false,
  kind: null,
  addresses: new Set(""),
};
const found: LocalNetwork = {
  sets: new Map(),
  iptables: new Map(),
  ebtables: new Map(),
  devices: {
    links: new Map(view.instances.map(tapOf).map((name) => [name, { ...link, name }])),
    forwards: true,
    filtersBridges: true,
  },
  dhcp: { files: null, pid: null },
  tags: [],
  heard: [],
};

type Knowledge = Parameters<typeof examineInstance>[0];
const asked = (
  destination: string,
  owner: string,
  more: Partial<Pick<Knowledge, "plan" | "found" | "deviations">> = {},
): readonly PacketCheck[] => {
  const instances = view.instances.map((each) => ({ ...each, owner: each.id === web.id ? "shop" : owner }));
  const source = ipv4(formatIpv4(web.privateIp ?? 0));
  return examineInstance(
    { view: { ...view, instances }, self, plan, found, deviations: [], ...more },
    { side: "sender", source, destination: ipv4(destination), protocol: "tcp", port: 22 },
  );
};

test("who has an address, and at which host, is told of the cell's own instances alone", () => {
  const address = formatIpv4(elsewhere.privateIp ?? 0);
  const location = asked(address, "shop").find(({ check }) => check === "location");
  assert.match(location?.detail ?? "", new RegExp(`is the instance ${elsewhere.id}, at another host$`));
  assert.match(location?.apart ?? "", /^10\./, "for who runs the machines");
  const [others, nobodys] = [asked(address, "bank"), asked("1.119.128.250", "bank")];
  assert.doesNotMatch(JSON.stringify(others), new RegExp(`${elsewhere.id}|node`));
  const told = (checks: readonly PacketCheck[]): string => JSON.stringify(checks).replaceAll(/\d+\.\d+\.\d+\.\d+/g, "");
  assert.equal(told(others), told(nobodys), "an address that another cell has reads as one that nobody has");
});

test("no text for who asks has a machine's address or a rule of the site's own: these are apart, for who runs the machines", () => {
  const address = formatIpv4(elsewhere.privateIp ?? 0);
  const site = "-s 10.111.5.44/32 -j DROP";
  const doubtful = "-d 10.111.5.44/32 -m length --length 1:9000 -j ACCEPT";
  const inForce = (...rules: readonly string[]): LocalNetwork => ({
    ...found,
    iptables: new Map([
      ["filter FORWARD", [":FORWARD DROP", ...rules.map((rule) => `-A FORWARD ${rule}`)]],
      [`filter CELLS_${web.id}`, [`:CELLS_${web.id} -`, `-A CELLS_${web.id} -d ${address}/24 -j DROP`]],
      ["filter EUCA_FWD_USERHOOK", [":EUCA_FWD_USERHOOK -", `-A EUCA_FWD_USERHOOK -p tcp -j DROP`]],
      [
        "nat PREROUTING",
        [":PREROUTING ACCEPT", "-A PREROUTING -d 169.254.169.254/32 -j DNAT --to-destination 10.111.5.44:8773"],
      ],
    ]),
  });
  const shown = (to: string, ...rules: readonly string[]) => {
    const checks = asked(to, "shop", { found: inForce(...rules) });
    for (const { detail } of checks) assert.doesNotMatch(detail, /10\.111\.|8773|length|-p tcp|\/24/, detail);
    return checks.filter(({ apart }) => apart !== undefined).map(({ check, apart }) => `${check}: ${apart}`);
  };
  for (const [rule, apart] of [
    ["-d 1.119.128.36/32 -p tcp -j DROP", /site-rule: "-d 1\.119\.128\.36\/32 -p tcp -j DROP" of FORWARD/],
    ["-p tcp -j ACCEPT", /rule: "-p tcp -j ACCEPT" of FORWARD/],
    [`-d ${address}/32 -m length --length 1:9000 -j ACCEPT`, /doubt: .*-m length --length 1:9000/],
    ["-j EUCA_FWD_USERHOOK", /site-rule: "-p tcp -j DROP" of EUCA_FWD_USERHOOK/],
    [`-j CELLS_${web.id}`, /underlay: "-d 1\.119\.128\.36\/24 -j DROP" of CELLS_i-/],
  ] as const)
    assert.match(shown(address, rule).join("; "), apart, rule);
  shown(address, site, doubtful);
  assert.match(shown("169.254.169.254", "-j ACCEPT").join("; "), /address: 10\.111\.5\.44/);
});

test("a set that is other than it was given is told where it has another answer about the packet, and no other one is", () => {
  const address = formatIpv4(elsewhere.privateIp ?? 0);
  const names = Array.from({ length: 200 }, (_, number) => `sg-${String(number).padStart(8, "0")}`);
  const [own = ""] = names;
  const member = (name: string): string => (name === own ? `${address}/32` : "10.7.0.1/32");
  const sets = names.map((name) => ({ name, members: [member(name)] }));
  const rules = names.map((name) => `-A FORWARD -m set --match-set ${name} dst -j ${name}`);
  const iptables = new Map<string, readonly string[]>([
    ["filter FORWARD", [":FORWARD DROP", ...rules]],
    ...names.map((name) => [`filter ${name}`, [`:${name} -`, `-A ${name} -j ACCEPT`]] as const),
  ]);
  const deviations = names.map((name) => ({ tool: "ipset", name, what: `the set ${name} is another` }) as const);
  const entries = asked(address, "bank", {
    plan: { ...plan, sets },
    found: { ...found, iptables, sets: new Map(names.map((name) => [name, new Set<string>()])) },
    deviations,
  }).filter(({ check }) => check === "entry");
  assert.deepEqual(
    entries.map(({ passes, detail }) => [passes, detail.split(";")[0]]),
    [[false, `the set ${own} is another`]],
  );
});

test("however many rules of the site's own ask for what nobody can tell, the answer is one that is read", () => {
  const rules = Array.from({ length: 500 }, (_, number) => `-A FORWARD -m length --length ${number} -j DROP`);
  const iptables = new Map([["filter FORWARD", [":FORWARD ACCEPT", ...rules]]]);
  const checks = asked("198.51.100.1", "bank", { found: { ...found, iptables } });
  assert.ok(!(readAs(examinedChecks, JSON.parse(JSON.stringify(checks))) instanceof Fault), String(checks.length));
  assert.ok(checks.some(({ detail }) => detail === "480 more rules ask for what cannot be told from here"));
});

test("what another cell's group says is not told, of one on this host neither; who asks is told that it is another cell's", () => {
  const other = view.instances.find(
    ({ id }) =>
      id !== web.id &&
      view.clusters.some(({ nodes }) =>
        nodes.some(({ name, instances }) => name === self.address && instances.includes(id)),
      ),
  );
  const address = formatIpv4(other?.privateIp ?? 0);
  const [own, theirs] = ["sg-00000001", "sg-00000002"];
  const groups = [
    { id: own, owner: "shop", ingress: [], egress: [] },
    { id: theirs, owner: "bank", ingress: [], egress: [] },
  ];
  const secret = "-p tcp -m tcp --dport 22 -s 1.119.0.0/16";
  const instances = view.instances.map((each) => ({ ...each, owner: each.id === web.id ? "shop" : "bank" }));
  const read = (owner: string, verdict: string, deviations: Knowledge["deviations"] = []): readonly PacketCheck[] => {
    const securityGroups = groups.map((group) => (group.id === theirs ? { ...group, owner } : group));
    const iptables = new Map([
      ["filter FORWARD", [":FORWARD ACCEPT", `-A FORWARD -m set --match-set ${theirs} dst -j ${theirs}`]],
      [`filter ${theirs}`, [`:${theirs} -`, `-A ${theirs} ${secret} -j ${verdict}`]],
    ]);
    const source = ipv4(formatIpv4(web.privateIp ?? 0));
    return examineInstance(
      {
        view: { ...view, instances, securityGroups },
        self,
        plan,
        found: { ...found, iptables, sets: new Map([[theirs, new Set([`${address}/32`])]]) },
        deviations,
      },
      { side: "sender", source, destination: ipv4(address), protocol: "tcp", port: 22 },
    );
  };
  const chain = { tool: "iptables", name: `filter ${theirs}`, what: `the chain ${theirs} is another` } as const;
  for (const verdict of ["ACCEPT", "DROP"]) {
    // The control: of its own cell's it is told.
    assert.ok(JSON.stringify(read("shop", verdict)).includes(secret));
    assert.match(JSON.stringify(read("shop", verdict, [chain])), /the chain sg-00000002 is another/);
    const told = JSON.stringify(read("bank", verdict, [chain]));
    assert.doesNotMatch(told, /sg-00000002|dport|1\.119\.0\.0/);
    assert.match(told, /another cell's group reads otherwise/);
    assert.match(
      told,
      verdict === "DROP" ? /"foreign-group","passes":false/ : /a rule of another cell's group lets it pass/,
    );
  }
});

test("neither the chain of another cell's instance, nor its gateway, nor which elastic address is whose is told", () => {
  const [mine, theirs] = [formatIpv4(web.privateIp ?? 0), formatIpv4(elsewhere.privateIp ?? 0)];
  const elastic = "203.0.113.5";
  const chain = `CELLS_${elsewhere.id}`;
  const told = (owner: string, side: "sender" | "before-receiver", verdict: string): string => {
    const instances = view.instances.map((each) => ({ ...each, owner: each.id === web.id ? "shop" : owner }));
    const iptables = new Map([
      ["nat PREROUTING", [":PREROUTING ACCEPT", `-A PREROUTING -d ${elastic}/32 -j DNAT --to-destination ${theirs}`]],
      ["nat POSTROUTING", [":POSTROUTING ACCEPT", `-A POSTROUTING -s ${theirs}/32 -j SNAT --to-source ${elastic}`]],
      ["filter FORWARD", [":FORWARD ACCEPT", `-A FORWARD -j ${chain}`]],
      [`filter ${chain}`, [`:${chain} -`, `-A ${chain} -j ${verdict}`]],
    ]);
    const clusters = view.clusters.map((each) => ({ ...each, enabledCcIp: parseIpv4(self.address) ?? 0 }));
    const [mode, between] = [side === "sender" ? view.mode : "MANAGED", side === "before-receiver"] as const;
    return JSON.stringify(
      examineInstance(
        {
          view: { ...view, mode, instances, clusters },
          self: between ? { ...self, peer: "network" } : self,
          plan,
          found: { ...found, iptables },
          deviations: [],
        },
        {
          side,
          source: ipv4(between ? theirs : mine),
          destination: ipv4(between ? mine : elastic),
          protocol: "tcp",
          port: 22,
        },
      ),
    );
  };
  // The control: of its own cell's it is told.
  assert.match(told("shop", "sender", "DROP"), new RegExp(chain));
  assert.match(told("shop", "sender", "ACCEPT"), /203\.0\.113\.5 goes to/);
  assert.match(told("shop", "before-receiver", "ACCEPT"), /the gateway.*leaves as 203\.0\.113\.5/);
  for (const verdict of ["ACCEPT", "DROP"]) {
    assert.doesNotMatch(told("bank", "sender", verdict), new RegExp(`${chain}|goes to|${theirs}`));
    assert.doesNotMatch(told("bank", "before-receiver", verdict), new RegExp(`${chain}|gateway|leaves as|203`));
  }
});
