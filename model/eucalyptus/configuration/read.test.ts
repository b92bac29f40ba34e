import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../json/json.ts";
import { readRange } from "../addresses/ranges.ts";
import type { Pool } from "./check.ts";
import { importVnet } from "./import-vnet.ts";
import { readConfigurationJson, readNetworkConfiguration } from "./read.ts";

const edge: JsonObject = {
  Mode: "EDGE",
  InstanceDnsDomain: "eucalyptus.internal",
  InstanceDnsServers: ["10.1.1.254"],
  MacPrefix: "d0:0d",
  PublicIps: ["10.111.101.84", "10.111.101.91-10.111.101.93"],
  PublicGateway: "10.111.0.1",
  PrivateIps: ["1.0.0.33-1.0.0.34"],
  Subnets: [{ Name: "one", Subnet: "1.0.0.0", Netmask: "255.255.0.0", Gateway: "1.0.0.1" }],
  Clusters: [{ Name: "PARTI00", Subnet: { Name: "one" } }],
};
const managed: JsonObject = {
  Mode: "MANAGED",
  PublicIps: ["10.111.101.84"],
  ManagedSubnet: { Subnet: "1.121.64.0", Netmask: "255.255.192.0", MinVlan: "512", MaxVlan: "639", SegmentSize: "16" },
  Clusters: [{ Name: "PARTI00" }, { Name: "PARTI01", MacPrefix: "d0:0d" }],
};
function changed(document: JsonObject, part: Json | undefined, ...path: readonly string[]): JsonObject {
  const copy = structuredClone(document) as Record<string, Json>;
  let at = copy as Record<string, unknown>;
  for (const step of path.slice(0, -1)) at = at[step] as Record<string, unknown>;
  const last = path.at(-1) ?? "";
  if (part === undefined) delete at[last];
  else at[last] = part;
  return copy;
}
const faultsOf = (document: JsonObject, pools: readonly Pool[] = []): readonly string[] => {
  const read = readConfigurationJson(document, null, pools);
  return read.ok ? [] : read.error.map(({ pointer, message }) => `${pointer}: ${message}`);
};

test("the paper's documents are read", () => {
  assert.deepEqual(faultsOf(edge), []);
  assert.deepEqual(faultsOf(managed), []);
  assert.deepEqual(faultsOf(changed(managed, "MANAGED-NOVLAN", "Mode")), []);
  assert.deepEqual(faultsOf({ Mode: "SYSTEM" }), []);
  assert.deepEqual(faultsOf({ ...edge, InstanceTimeout: "720" }), []);
});

/** What is done to a document, and each fault that must be told: where, and words of it. */
const wrong: readonly (readonly [JsonObject, string, RegExp])[] = [
  // Something is missing.
  [changed(edge, undefined, "PublicIps"), "", /PublicIps are missing/],
  [changed(edge, [], "PublicIps"), "", /PublicIps are missing/],
  [changed(edge, undefined, "Clusters", "0", "Name"), "/Clusters/0", /needs a Name/],
  [changed(edge, undefined, "Subnets", "0", "Netmask"), "/Subnets/0", /Netmask is missing/],
  [changed(edge, undefined, "Subnets", "0", "Gateway"), "/Subnets/0", /Gateway is missing/],
  [changed(edge, undefined, "Subnets", "0", "Subnet"), "/Subnets/0", /Subnet is missing/],
  [changed(changed(edge, undefined, "Clusters"), undefined, "Subnets"), "", /needs a subnet/],
  [changed(changed(edge, undefined, "Clusters", "0", "Subnet"), undefined, "Subnets"), "/Clusters/0", /has no Subnet/],
  [changed(edge, {}, "Clusters", "0", "Subnet"), "/Clusters/0/Subnet", /is empty/],
  [changed(managed, undefined, "ManagedSubnet"), "", /needs a ManagedSubnet/],
  [changed(managed, undefined, "ManagedSubnet", "Subnet"), "/ManagedSubnet", /Subnet is missing/],
  [changed(managed, undefined, "ManagedSubnet", "Netmask"), "/ManagedSubnet", /Netmask is missing/],
  // A bad mode, prefix, domain, address, range, netmask.
  [
    changed(edge, "EDGY", "Mode"),
    "/Mode",
    /"EDGY" is not a network mode: EDGE, MANAGED, MANAGED-NOVLAN, STATIC, SYSTEM/,
  ],
  [changed(edge, 7, "Mode"), "/Mode", /7 is not a network mode/],
  [changed(edge, 0, "InstanceTimeout"), "/InstanceTimeout", /0 is no number of minutes from 1 to 525600/],
  [changed(edge, "525601", "InstanceTimeout"), "/InstanceTimeout", /no number of minutes/],
  [changed(edge, "soon", "InstanceTimeout"), "/InstanceTimeout", /not a whole number/],
  [changed(edge, "d0:0d:", "MacPrefix"), "/MacPrefix", /MAC prefix/],
  [changed(edge, "g0:0d", "Clusters", "0", "MacPrefix"), "/Clusters/0/MacPrefix", /MAC prefix/],
  [changed(edge, ".eucalyptus.internal", "InstanceDnsDomain"), "/InstanceDnsDomain", /domain name/],
  [changed(edge, `${"a".repeat(64)}.internal`, "InstanceDnsDomain"), "/InstanceDnsDomain", /domain name/],
  [changed(edge, ["10.1.1"], "InstanceDnsServers"), "/InstanceDnsServers/0", /IPv4 address/],
  [changed(edge, "10.1.1.1", "InstanceDnsServers"), "/InstanceDnsServers", /not a list/],
  [changed(edge, "10.111.0.256", "PublicGateway"), "/PublicGateway", /IPv4 address/],
  [changed(edge, ["10.0.0.1", "x"], "PublicIps"), "/PublicIps/1", /neither an address nor a range/],
  [changed(edge, ["10.0.0.2-10.0.0.1"], "PublicIps"), "/PublicIps/0", /ends before it begins/],
  [changed(edge, ["0.0.0.0"], "PublicIps"), "/PublicIps/0", /nobody's address/],
  [changed(edge, "255.0.255.0", "Subnets", "0", "Netmask"), "/Subnets/0/Netmask", /netmask/],
  [changed(edge, [{ Name: "a;reboot" }], "Clusters"), "/Clusters/0/Name", /a name: letters/],
  // Host bits in a subnet; a gateway outside or equal to it.
  [changed(edge, "1.0.0.1", "Subnets", "0", "Subnet"), "/Subnets/0/Subnet", /leaves to hosts/],
  [changed(managed, "1.121.65.0", "ManagedSubnet", "Subnet"), "/ManagedSubnet/Subnet", /leaves to hosts/],
  [changed(edge, "1.1.0.1", "Subnets", "0", "Gateway"), "/Subnets/0/Gateway", /not in the subnet/],
  [changed(edge, "1.0.0.0", "Subnets", "0", "Gateway"), "/Subnets/0/Gateway", /address of the subnet itself/],
  [changed(edge, "1.0.255.255", "Subnets", "0", "Gateway"), "/Subnets/0/Gateway", /broadcast/],
  // Segments and tags.
  [changed(managed, 24, "ManagedSubnet", "SegmentSize"), "/ManagedSubnet/SegmentSize", /power of two, not 24/],
  [changed(managed, 8, "ManagedSubnet", "SegmentSize"), "/ManagedSubnet/SegmentSize", /power of two, not 8/],
  [changed(managed, 4096, "ManagedSubnet", "SegmentSize"), "/ManagedSubnet/SegmentSize", /not 4096/],
  [changed(managed, "many", "ManagedSubnet", "SegmentSize"), "/ManagedSubnet/SegmentSize", /whole number/],
  [changed(managed, 1, "ManagedSubnet", "MinVlan"), "/ManagedSubnet/MinVlan", /from 2 to 4095/],
  [changed(managed, 4096, "ManagedSubnet", "MaxVlan"), "/ManagedSubnet/MaxVlan", /from 2 to 4095/],
  [changed(managed, 640, "ManagedSubnet", "MinVlan"), "/ManagedSubnet/MinVlan", /above MaxVlan/],
  [
    changed(changed(managed, 1024, "ManagedSubnet", "MinVlan"), 2000, "ManagedSubnet", "MaxVlan"),
    "/ManagedSubnet/MinVlan",
    /past the subnet, whose last segment has the tag 1023/,
  ],
  [changed(managed, "255.255.255.240", "ManagedSubnet", "Netmask"), "/ManagedSubnet/MinVlan", /too small|past/],
  // Private addresses outside of the cluster's subnet.
  [changed(edge, ["1.1.0.1"], "PrivateIps"), "/PrivateIps/0", /not within the subnet/],
  [
    changed(edge, ["1.0.0.1", "1.0.255.250-1.1.0.3"], "Clusters", "0", "PrivateIps"),
    "/Clusters/0/PrivateIps/1",
    /not within the subnet/,
  ],
  // What belongs to the other kind of mode; a cluster that names none of several.
  [changed(managed, edge.Subnets as Json, "Subnets"), "/Subnets", /there are no Subnets/],
  [changed(managed, { Name: "one" }, "Clusters", "0", "Subnet"), "/Clusters/0/Subnet", /a cluster has no Subnet/],
  [changed(edge, managed.ManagedSubnet as Json, "ManagedSubnet"), "/ManagedSubnet", /there is no ManagedSubnet/],
  [changed(edge, "two", "Clusters", "0", "Subnet", "Name"), "/Clusters/0/Subnet/Name", /there is no "two" in Subnets/],
  [
    changed(
      changed(edge, undefined, "Clusters", "0", "Subnet"),
      [
        ...(edge.Subnets as readonly Json[]),
        { Name: "two", Subnet: "2.0.0.0", Netmask: "255.0.0.0", Gateway: "2.0.0.1" },
      ],
      "Subnets",
    ),
    "/Clusters/0",
    /several Subnets, and the cluster PARTI00 does not say/,
  ],
  [
    changed(
      changed(edge, undefined, "Clusters"),
      [
        ...(edge.Subnets as readonly Json[]),
        { Name: "two", Subnet: "2.0.0.0", Netmask: "255.0.0.0", Gateway: "2.0.0.1" },
      ],
      "Subnets",
    ),
    "/Subnets",
    /several Subnets and no cluster/,
  ],
  // VPCMIDO, names that are not there, names twice.
  [changed(edge, "VPCMIDO", "Mode"), "", /needs Mido/],
  [{ ...edge, Mode: "VPCMIDO", Mido: { EucanetdHost: "a" } }, "/Mido", /at least one/],
  [{ ...edge, Mode: "VPCMIDO", Mido: { Gateways: [], GatewayHost: "b" } }, "/Mido", /at least one/],
  [changed(edge, {}, "Mido"), "/Mido", /VPCMIDO alone/],
  [changed(edge, ["10.0.0.1"], "PublicIpss"), "/PublicIpss", /Did you mean `PublicIps`/],
  [changed(edge, [{ Name: "a" }, { Name: "a" }], "Clusters"), "/Clusters/1", /is there already/],
];
for (const [index, [document, pointer, words]] of wrong.entries())
  test(`refused ${index + 1}: ${words.source} at ${pointer === "" ? "the document" : pointer}`, () => {
    const faults = faultsOf(document);
    assert.ok(
      faults.some((fault) => fault.startsWith(`${pointer}: `) && words.test(fault)),
      faults.join("\n"),
    );
  });

test("several faults are all told, in the order of the text, each with its place", () => {
  const document = changed(
    changed(changed(edge, "EDGY", "Mode"), "x", "PublicGateway"),
    "1.1.0.1",
    "Subnets",
    "0",
    "Gateway",
  );
  const read = readNetworkConfiguration(JSON.stringify(document, null, 2));
  assert.ok(!read.ok);
  assert.deepEqual(
    read.error.map(({ pointer, line, column }) => [pointer, line, column]),
    [
      ["/Mode", 2, 11],
      ["/PublicGateway", 12, 20],
      ["/Subnets/0/Gateway", 21, 18],
    ],
  );
});

test("what is no JSON is told with its place, and nothing is guessed", () => {
  for (const [text, line] of [
    ["", 1],
    ["[]", 1],
    ['{"Mode": "EDGE",\n "PublicIps": [}', 2],
    ['{"Mode": "EDGE"\n', 1],
    [`{"PublicIps": ["10.0.0.1"], "PublicIps": []}`, 1],
  ] as const) {
    const read = readNetworkConfiguration(text);
    assert.ok(!read.ok, text);
    assert.equal(read.error[0]?.line, line, `${text}: ${read.error[0]?.message}`);
  }
  assert.ok(!readNetworkConfiguration(`{"a": ${"[".repeat(100_000)}`).ok);
  assert.ok(!readNetworkConfiguration(" ".repeat(2_000_000)).ok);
});

test("ranges that the installation hands out for something else are refused", () => {
  const range = readRange("1.0.0.0-1.0.0.40");
  assert.ok(range.ok);
  const pools = [{ name: "management", range: range.value }];
  assert.match(faultsOf(edge, pools).join("\n"), /\/PrivateIps\/0: 1\.0\.0\.33-1\.0\.0\.34 overlaps .* for management/);
  assert.deepEqual(faultsOf(managed, pools), []);
});

test("numbers may be texts, and Name and NetSize of a ManagedSubnet are said to do nothing", () => {
  const named = changed(changed(managed, "chuck", "ManagedSubnet", "Name"), "16", "ManagedSubnet", "NetSize");
  const read = readConfigurationJson(named, null);
  assert.ok(read.ok);
  assert.deepEqual(read.value.configuration.managedSubnet, {
    subnet: 0x01794000,
    netmask: 0xffffc000,
    minVlan: 512,
    maxVlan: 639,
    segmentSize: 16,
  });
  assert.deepEqual(
    read.value.notes.map(({ pointer }) => pointer),
    ["/ManagedSubnet/Name", "/ManagedSubnet/NetSize"],
  );
});

const old = `
VNET_MODE=MANAGED            # since 3.1
VNET_PUBLICIPS="10.111.101.31 10.111.101.40-10.111.101.42"
VNET_SUBNET="1.121.64.0"
VNET_NETMASK="255.255.192.0"
VNET_ADDRSPERNET="16"
VNET_DNS="10.1.1.254"
VNET_DOMAINNAME="eucalyptus.internal"
VNET_PUBINTERFACE=em1
NC_PORT=8775
PROPERTY PARTI00.cluster.maxnetworktag 639
PROPERTY PARTI00.cluster.minnetworktag 512
`;
test("the paper's old values become its document", () => {
  const imported = importVnet(old, ["PARTI01"]);
  assert.ok(imported.ok);
  assert.deepEqual(imported.value.document, {
    Mode: "MANAGED",
    InstanceDnsDomain: "eucalyptus.internal",
    InstanceDnsServers: ["10.1.1.254"],
    PublicIps: ["10.111.101.31", "10.111.101.40-10.111.101.42"],
    ManagedSubnet: {
      Subnet: "1.121.64.0",
      Netmask: "255.255.192.0",
      MinVlan: "512",
      MaxVlan: "639",
      SegmentSize: "16",
    },
    Clusters: [{ Name: "PARTI00" }, { Name: "PARTI01" }],
  });
  assert.deepEqual(faultsOf(imported.value.document), []);
  assert.match(imported.value.notes.join("\n"), /VNET_PUBINTERFACE: each machine keeps its own/);
});
test("old values that say too little, or two things, are refused", () => {
  const refused = (text: string): string => {
    const imported = importVnet(text);
    return imported.ok ? "" : imported.error.join("\n");
  };
  assert.match(refused("PATH=/bin"), /no VNET_/);
  assert.match(refused("VNET_MODE=EDGE"), /no cluster is named/);
  assert.match(refused(`${old}VNET_MODE=MANAGED-VLAN`), /MANAGED-VLAN of VNET_MODE does not exist/);
  assert.match(refused(`${old}PROPERTY PARTI01.cluster.maxnetworktag 700`), /different maxnetworktag \(639, 700\)/);
});
