import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { formatIpv4, parseIpv4, parseNetwork } from "../../addresses/addresses.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { casesFrom } from "../../testing/case-folders.testing.ts";
import { firstFree, randomFree } from "../addresses/allocators.ts";
import {
  type AddressRange,
  contains,
  formatRange,
  hostsOfNetwork,
  hostsOfSubnet,
  readRange,
  sizeOf,
  without,
} from "../addresses/ranges.ts";
import {
  addressToIndex,
  indexToAddress,
  isValidSegment,
  type ManagedSubnet,
  restrictToMaximumSegment,
} from "../addresses/segments.ts";
import { checkConfiguration } from "../configuration/check.ts";
import { configurationJson } from "../configuration/configuration.ts";
import { explode, macPrefixOf, privateAddressesOf } from "../configuration/effective.ts";
import { Faults } from "../configuration/faults.ts";
import { readFields } from "../configuration/fields.ts";
import { readConfigurationJson, readNetworkConfiguration, refusedMode } from "../configuration/read.ts";
import { buildView, type World } from "../view/build-view.ts";
import type { NetworkView } from "../view/network-view.ts";

/**
 * Rows from the tests of the paper's cloud controller, beside ours (the JSON files here; with CELLS_CASES another folder's
 * `eucanetd/tables/`). A kind of row that is not known here fails.
 */
const base = casesFrom(new URL("./", import.meta.url), "eucanetd/tables");
const read = <T>(file: string): T => JSON.parse(readFileSync(new URL(file, base), "utf8")) as T;

interface Row {
  readonly [column: string]: string | number | boolean | null;
}
interface Table {
  readonly name: string;
  readonly expect: string;
  readonly rows: readonly Row[];
}
const text = (row: Row, column: string): string => String(row[column]);
const number = (row: Row, column: string): number => Number(row[column]);
/** As the tables write addresses: signed. */
const signed = (range: AddressRange | null): readonly number[] | null =>
  range === null ? null : [range.first | 0, range.last | 0];
const rangeOf = (written: string): AddressRange => {
  const range = readRange(written);
  assert.ok(range.ok, written);
  return range.value;
};
const addressOf = (written: string): number => {
  const address = parseIpv4(written.trim());
  assert.notEqual(address, null, written);
  return address ?? 0;
};

for (const { name, expect, rows } of read<{ readonly tables: readonly Table[] }>("ip-range.json").tables)
  test(`ranges: ${name}`, () => {
    for (const row of rows) {
      const at = JSON.stringify(row);
      const bounds = [row.lower, row.upper];
      if ("throws" in row) assert.ok(row.range === null || !readRange(text(row, "range")).ok, at);
      else if (expect.includes(".split(")) {
        const found = without(rangeOf(text(row, "range")), addressOf(text(row, "ip")));
        const wanted = [...text(row, "expected").matchAll(/range\(\s*(-?\d+),\s*(-?\d+)\s*\)/g)];
        assert.deepEqual(
          found.map(signed),
          wanted.map(([, lower, upper]) => [Number(lower), Number(upper)]),
          at,
        );
      } else if (expect.includes("fromSubnet("))
        assert.deepEqual(
          signed(hostsOfSubnet(addressOf(text(row, "subnet")), addressOf(text(row, "netmask")))),
          bounds,
          at,
        );
      else if (expect.includes("fromCidr(")) {
        const network = parseNetwork(text(row, "cidr"));
        assert.deepEqual(network === null ? null : signed(hostsOfNetwork(network)), bounds, at);
      } else if (expect.includes(".contains("))
        assert.equal(contains(rangeOf(text(row, "range")), rangeOf(text(row, "perhapsContains"))), row.result, at);
      else if (expect.includes(".size( )")) assert.equal(sizeOf(rangeOf(text(row, "range"))), row.size, at);
      else {
        assert.ok(expect.includes("== range( lower, upper )"), `an unknown kind of row: ${expect}`);
        assert.deepEqual(signed(rangeOf(text(row, "range"))), bounds, at);
      }
    }
  });

const managed = (row: Row, maxVlan = 4095): ManagedSubnet => ({
  subnet: addressOf(text(row, "subnet")),
  netmask: "netmask" in row ? addressOf(text(row, "netmask")) : 0,
  segmentSize: number(row, "size"),
  minVlan: "minVlan" in row ? number(row, "minVlan") : 2,
  maxVlan,
});
for (const { name, expect, rows } of read<{ readonly tables: readonly Table[] }>("managed-subnets.json").tables)
  test(`segments: ${name}`, () => {
    for (const row of rows) {
      const at = JSON.stringify(row);
      if (expect.includes("indexToAddress(")) {
        const [subnet, tag, index] = [managed(row), number(row, "tag"), number(row, "index")];
        assert.equal(formatIpv4(indexToAddress(subnet, tag, index)), row.address, at);
        assert.deepEqual(addressToIndex(subnet, addressOf(text(row, "address"))), [tag, index], at);
      } else if (expect.includes("restrictToMaximumSegment("))
        assert.equal(restrictToMaximumSegment(managed(row), number(row, "maxVlan")), row.restrictedMaxVlan, at);
      else {
        assert.ok(expect.includes("validSegmentForSubnet("), `an unknown kind of row: ${expect}`);
        assert.equal(isValidSegment(managed(row, 4096), number(row, "minVlan")), row.valid, at);
      }
    }
  });

/** Takes the next address of the ranges; null: there is none. */
type Next = (...ranges: readonly string[]) => number | null;
const few = "10.0.0.0-10.0.0.10";
const everything = "0.0.0.0-255.255.255.255";
function one(next: Next, taken: Set<number>): void {
  const found = next(few);
  assert.ok(found !== null && contains(rangeOf(few), { first: found, last: found }));
  assert.ok(taken.delete(found));
  assert.equal(taken.size, 0);
}
/** What becomes of private addresses, by a word that a scenario's name has; its steps are sentences. */
const scenarios: Readonly<Record<string, (next: Next, taken: Set<number>) => void>> = {
  basic: one,
  release: one,
  exhausted: (next, taken) => {
    assert.equal(formatIpv4(next("10.0.0.0") ?? 0), "10.0.0.0");
    assert.equal(next("10.0.0.0"), null);
    assert.equal(taken.size, 1);
  },
  "full range": (next, taken) => {
    for (let count = 0; count < 100; count += 1) assert.notEqual(next(everything), null);
    assert.equal(taken.size, 100);
  },
  // Nobody goes through all addresses to find one.
  lazy: (next, taken) => {
    assert.notEqual(next(few, everything), null);
    assert.equal(taken.size, 1);
  },
};
const allocator = read<{ readonly applies_to: readonly string[]; readonly scenarios: readonly { name: string }[] }>(
  "private-address-allocator.json",
);
const ways: Readonly<Record<string, typeof firstFree>> = {
  "first-free": firstFree,
  random: (ranges, isTaken) => randomFree(ranges, isTaken, 0.618),
};
for (const way of allocator.applies_to)
  for (const { name } of allocator.scenarios)
    test(`private addresses, ${way}: ${name}`, () => {
      const allocate = ways[way];
      assert.ok(allocate !== undefined, `an unknown way to allocate: ${way}`);
      const known = Object.keys(scenarios).find((word) => name.toLowerCase().replaceAll("-", " ").includes(word));
      assert.ok(known !== undefined, `an unknown scenario: ${name}`);
      const taken = new Set<number>();
      scenarios[known]?.((...ranges) => {
        const found = allocate(ranges.map(rangeOf), (address) => taken.has(address));
        if (found !== null) taken.add(found);
        return found;
      }, taken);
    });

interface DocumentCase {
  readonly name: string;
  readonly config: JsonObject;
  readonly expected: { readonly accepted?: boolean; readonly throws?: string; readonly message?: string };
}
for (const { name, config, expected } of read<{ readonly cases: readonly DocumentCase[] }>(
  "network-configuration-json.json",
).cases)
  test(`documents: ${name}`, () => {
    const found = readNetworkConfiguration(JSON.stringify(config, null, 2));
    assert.equal(found.ok, expected.accepted === true, found.ok ? name : JSON.stringify(found.error));
    if (found.ok) assert.equal(refusedMode(found.value.configuration) !== null, config.Mode === "VPCMIDO");
    else for (const { message, line } of found.error) assert.ok(message.length > 10 && line >= 1);
    if (found.ok && config.Mode !== "VPCMIDO")
      assert.deepEqual(readConfigurationJson(configurationJson(found.value.configuration), null).ok, true);
  });

/** Without what a document would be refused for: these rows are about parts of documents. */
const fieldsOf = (config: JsonObject) => {
  const faults = new Faults(config, null);
  return { configuration: readFields(config, faults), faults };
};
/** Ranges that hold one address each, as the tables list them. */
const listed = (ranges: readonly AddressRange[]): readonly string[] =>
  ranges.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, index) => formatIpv4(first + index)),
  );

interface Configurations {
  readonly macPrefix: readonly { readonly config: JsonObject; readonly expected: string }[];
  readonly privateAddresses: readonly {
    readonly config: JsonObject;
    readonly cluster: string;
    readonly expected: readonly string[];
  }[];
  readonly explode: readonly {
    readonly config: JsonObject;
    readonly clusters: readonly string[];
    readonly expected: JsonObject;
  }[];
  readonly validate: readonly { readonly config: JsonObject; readonly throws?: string; readonly why?: string }[];
}
const configurations = read<Configurations>("network-configurations.json");
test("MAC prefixes: a single cluster's, the configuration's, the paper's", () => {
  for (const { config, expected } of configurations.macPrefix)
    assert.equal(macPrefixOf(fieldsOf(config).configuration), expected);
});
test("private addresses of a cluster that says nothing itself", () => {
  for (const { config, cluster, expected } of configurations.privateAddresses)
    assert.deepEqual(listed(privateAddressesOf(fieldsOf(config).configuration, cluster)), expected);
});
test("everything at its clusters", () => {
  for (const { config, clusters, expected } of configurations.explode) {
    const { Mode: _, ...found } = configurationJson(explode(fieldsOf(config).configuration, clusters));
    const { Mode: __, ...wanted } = expected;
    assert.deepEqual(normal(found), normal(wanted));
  }
});
/** Ranges of one address are one address, however they are written. */
const normal = (json: Json): Json =>
  JSON.parse(JSON.stringify(json), (_, value) =>
    typeof value === "string" && value.includes("-") && readRange(value).ok ? formatRange(rangeOf(value)) : value,
  ) as Json;
test("what is wrong between the parts of a document", () => {
  for (const { config, throws, why } of configurations.validate) {
    const { configuration, faults } = fieldsOf(config);
    checkConfiguration(configuration, faults);
    assert.equal(faults.list.length > 0, throws !== undefined, `${why}: ${JSON.stringify(faults.list)}`);
  }
});

interface BuilderCase {
  readonly name: string;
  readonly config: JsonObject;
  readonly world?: {
    readonly clusters: readonly { readonly name: string; readonly ccIp: string; readonly nodes: readonly string[] }[];
    readonly clcIp: string;
    readonly dnsDefault: readonly string[];
    readonly instances: readonly {
      readonly id: string;
      readonly partition: string;
      readonly node: string;
      readonly owner: string;
      readonly mac: string;
      readonly publicIp: string;
      readonly privateIp: string;
      readonly securityGroups: readonly string[];
    }[];
    readonly securityGroups: readonly { readonly id: string; readonly owner: string }[];
  };
  readonly expected: JsonObject;
}
interface BuilderTable {
  readonly cases: readonly BuilderCase[];
}
const builder = read<BuilderTable>("gni-builder.json").cases;
const ours = JSON.parse(readFileSync(new URL("gni-builder.json", import.meta.url), "utf8")) as BuilderTable;
/** A case without a world has the world of the one before; the first ones of another folder, that of our first one. */
const worldOf = (index: number): World => {
  const said = [...ours.cases.slice(0, 1), ...builder.slice(0, index + 1)];
  const world = said.findLast((each) => each.world !== undefined)?.world;
  assert.ok(world !== undefined);
  return {
    clusters: world.clusters.map(({ name, ccIp, nodes }) => ({ name, ccIp: addressOf(ccIp), nodes })),
    clcIp: addressOf(world.clcIp),
    dnsDefault: world.dnsDefault.map(addressOf),
    instances: world.instances.map(({ id, partition, node, owner, mac, publicIp, privateIp, securityGroups }) => ({
      id,
      cluster: partition,
      node,
      owner,
      mac,
      securityGroups,
      publicIp: addressOf(publicIp),
      privateIp: addressOf(privateIp),
    })),
    securityGroups: world.securityGroups.map(({ id, owner }) => ({ id, owner, ingress: [], egress: [] })),
  };
};
type Property = readonly [string, readonly string[]];
const property = (name: string, values: readonly string[]): readonly Property[] =>
  values.length === 0 ? [] : [[name, values]];
const subnetJson = (subnet: {
  readonly name: string;
  readonly subnet: number;
  readonly netmask: number;
  readonly gateway: number;
}) => ({
  name: subnet.name,
  subnet: formatIpv4(subnet.subnet),
  netmask: formatIpv4(subnet.netmask),
  gateway: formatIpv4(subnet.gateway),
});
/** A view in the tables' form. */
const asTable = (view: NetworkView): JsonObject => {
  const { managedSubnet: subnet } = view;
  return {
    properties: [
      ...property("mode", [view.mode]),
      ...property("publicIps", view.publicIps.map(formatRange)),
      ...property("enabledCLCIp", [formatIpv4(view.enabledClcIp)]),
      ...property("instanceDNSDomain", [view.instanceDnsDomain]),
      ...property("instanceDNSServers", view.instanceDnsServers.map(formatIpv4)),
      ...property("publicGateway", view.publicGateway === undefined ? [] : [formatIpv4(view.publicGateway)]),
    ],
    ...(view.subnets.length > 0 ? { subnets: view.subnets.map(subnetJson) } : {}),
    ...(subnet === undefined
      ? {}
      : {
          managedSubnet: {
            name: formatIpv4(subnet.subnet),
            properties: [
              ...property("subnet", [formatIpv4(subnet.subnet)]),
              ...property("netmask", [formatIpv4(subnet.netmask)]),
              ...property("minVlan", [String(subnet.minVlan)]),
              ...property("maxVlan", [String(subnet.maxVlan)]),
              ...property("segmentSize", [String(subnet.segmentSize)]),
            ],
          },
        }),
    clusters: view.clusters.map((cluster) => ({
      name: cluster.name,
      ...(cluster.subnet === undefined ? {} : { subnet: subnetJson(cluster.subnet) }),
      properties: [
        ...property("enabledCCIp", [formatIpv4(cluster.enabledCcIp)]),
        ...property("macPrefix", [cluster.macPrefix]),
        ...property("privateIps", cluster.privateIps.map(formatRange)),
      ],
      nodes: cluster.nodes.map(({ name, instances }) => ({ name, instanceIds: instances })),
    })),
    securityGroups: view.securityGroups.map(({ id }) => id),
  };
};
const withoutNotes = (json: Json): Json =>
  JSON.parse(JSON.stringify(json), (key, value) => (key === "note" ? undefined : value)) as Json;
for (const [index, { name, config, expected }] of builder.entries())
  test(`views: ${name}`, () => {
    const { configuration, faults } = fieldsOf(config);
    assert.deepEqual(faults.list, []);
    const view = buildView(configuration, worldOf(index));
    // That mode is read, and has no view here.
    if (config.Mode === "VPCMIDO") {
      assert.equal(view, null);
      assert.match(refusedMode(configuration) ?? "", /VPCMIDO does not exist here/);
      return;
    }
    assert.ok(view !== null);
    const found = asTable(view);
    for (const [field, wanted] of Object.entries(withoutNotes(expected) as JsonObject)) {
      assert.ok(field in found || field === "subnets", `the runner knows nothing of ${field}`);
      assert.deepEqual(found[field], wanted, field);
    }
    if (!("subnets" in expected)) assert.equal(found.subnets, undefined);
  });
