import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseIpv4, parseNetwork } from "../../../model/addresses/addresses.ts";
import type { NetworkRuleElement, PortRange, RuleEnd } from "../../../model/cell/cell.ts";
import {
  type CellName,
  type Cidr,
  cidr,
  elementPath,
  hostName,
  ipv4,
  mac,
  uid,
} from "../../../model/cell/identifiers.ts";
import { effectiveOpenness } from "../../../model/check/openness.ts";
import type { CellPolicy } from "../../documents/vocabulary.ts";
import { audiences, compilePolicy, internetOutPath, type PolicyInput, type PolicyInterface } from "./policy.ts";

const controllerAddress = "10.0.3.1";
const subnets = [
  { path: "c/s1", identity: 10, cidr: cidr("10.64.0.0/29") },
  { path: "c/s2", identity: 11, cidr: cidr("10.64.0.8/29") },
];
const vms = new Map([
  ["c/v1", 20],
  ["c/v2", 21],
  ["c/v3", 22],
]);
const interfaces: readonly (PolicyInterface & { readonly vm: string; readonly subnet: string })[] = [
  card("c/i1", "10.64.0.2", 30, "c/v1", "c/s1"),
  card("c/i2", "10.64.0.3", 31, "c/v2", "c/s1"),
  card("c/i3", "10.64.0.10", 32, "c/v3", "c/s2"),
  card("c/i4", "10.64.0.11", 33, "c/v1", "c/s2"),
];
function card(path: string, address: string, identity: number, vm: string, subnet: string) {
  return {
    path: elementPath(path),
    address: ipv4(address),
    identity,
    vmIdentity: vms.get(vm) ?? 0,
    subnetIdentity: subnets.find((entry) => entry.path === subnet)?.identity ?? 0,
    vm,
    subnet,
  };
}

type Written = Omit<NetworkRuleElement, "type" | "path" | "public">;
function compile(written: readonly Written[], more: Partial<PolicyInput> = {}): CellPolicy {
  const networks = new Map<string, number>();
  const ids = new Map<string, number>();
  const identities = new Map<string, number>([
    ...vms,
    ...subnets.map((entry) => [entry.path, entry.identity] as const),
    ...interfaces.map((entry) => [entry.path, entry.identity] as const),
  ]);
  const mint = (map: Map<string, number>, key: string, from: number): number => {
    const known = map.get(key) ?? from + map.size;
    map.set(key, known);
    return known;
  };
  return compilePolicy({
    cell: "c" as CellName,
    cellNumber: 3,
    version: 1,
    openness: effectiveOpenness({}, {}),
    controller: { address: ipv4(controllerAddress), mac: mac("02:00:00:00:00:01"), identity: 1 },
    interfaces,
    subnets,
    rules: written.map((rule, index) => ({
      uid: uid(`u-${index}`),
      element: { type: "NetworkRule", path: elementPath(`c/r${index}`), public: false, ...rule },
    })),
    hosts: [],
    identityOf: (path) => identities.get(path),
    networkIdentity: (network: Cidr) => mint(networks, network, 100),
    ruleId: (key, of) => mint(ids, `${of} ${key}`, 1),
    ...more,
  });
}

interface Flow {
  readonly source: string;
  readonly destination: string;
  readonly protocol: "tcp" | "udp" | "icmp";
  readonly sourcePort: number;
  readonly port: number;
}

/** As a host looks it up: an interface has three identities, any other address that of the longest network. */
function identitiesOf(policy: CellPolicy, address: string): readonly number[] {
  const own = interfaces.find((entry) => entry.address === address);
  if (own !== undefined) return [own.identity, own.vmIdentity, own.subnetIdentity];
  const number = parseIpv4(address) ?? 0;
  const longest = policy.networks
    .map((entry) => ({ ...entry, range: parseNetwork(entry.cidr) }))
    .filter(({ range }) => range !== null && range.first <= number && number <= range.last)
    .sort((a, b) => (b.range?.prefixLength ?? 0) - (a.range?.prefixLength ?? 0))[0];
  return longest === undefined ? [] : [longest.identity];
}
const within = (port: number, range: PortRange | undefined): boolean =>
  range === undefined || (port >= range.from && port <= range.to);

function passes(policy: CellPolicy, flow: Flow): boolean {
  const [from, to] = [identitiesOf(policy, flow.source), identitiesOf(policy, flow.destination)];
  return policy.rules.some(
    (rule) =>
      from.includes(rule.from) &&
      to.includes(rule.to) &&
      (rule.protocol === "any" || rule.protocol === flow.protocol) &&
      (flow.protocol === "icmp" || (within(flow.sourcePort, rule.sourcePorts) && within(flow.port, rule.ports))),
  );
}

/** What the specification says, without identities: does an end mean this address? */
function means(end: RuleEnd, address: string): boolean {
  const own = interfaces.find((entry) => entry.address === address);
  if (end.kind === "controller") return address === controllerAddress;
  if (end.kind === "foreign" || address === controllerAddress) return false;
  if (end.kind === "internet") return own === undefined;
  if (end.kind === "element") {
    return own !== undefined && [own.path as string, own.vm, own.subnet].includes(end.path);
  }
  const [range, number] = [parseNetwork(end.cidr), parseIpv4(address) ?? -1];
  return range !== null && range.first <= number && number <= range.last;
}
function says(rule: Written, flow: Flow): boolean {
  if (rule.protocol !== "any" && rule.protocol !== flow.protocol) return false;
  const ported = rule.protocol === "tcp" || rule.protocol === "udp";
  const [port1, port2] = ported ? [rule.port1, rule.port2] : [undefined, undefined];
  const forth = means(rule.address1, flow.source) && means(rule.address2, flow.destination);
  const back = means(rule.address2, flow.source) && means(rule.address1, flow.destination);
  if (rule.direction === "1to2") return forth && within(flow.sourcePort, port1) && within(flow.port, port2);
  const neither = port1 === undefined && port2 === undefined;
  return (
    (forth && (neither || port2 !== undefined) && within(flow.port, port2)) ||
    (back && (neither || port1 !== undefined) && within(flow.port, port1))
  );
}

const ends: fc.Arbitrary<RuleEnd> = fc.constantFrom<RuleEnd>(
  ...["c/s1", "c/s2", "c/v1", "c/v2", "c/v3", "c/i1", "c/i3", "c/i4"].map(
    (path) => ({ kind: "element", path: elementPath(path), type: "VM" }) as const,
  ),
  ...["0.0.0.0/0", "10.64.0.0/28", "10.64.0.0/30", "10.64.0.10/32", "10.0.0.0/8", "10.0.3.1/32", "192.0.2.0/24"].map(
    (range) => ({ kind: "cidr", cidr: cidr(range) }) as const,
  ),
  { kind: "cidr", cidr: cidr("192.0.2.128/25") },
  { kind: "internet" },
  { kind: "controller" },
  { kind: "foreign", domain: "other", path: "x" },
);
const ports = fc.constantFrom<PortRange | null>(null, { from: 80, to: 80 }, { from: 5000, to: 5432 });
const rules: fc.Arbitrary<Written> = fc
  .record({
    address1: ends,
    address2: ends,
    protocol: fc.constantFrom("any", "tcp", "udp", "icmp"),
    direction: fc.constantFrom("both", "1to2"),
    first: ports,
    second: ports,
  })
  .map(({ first, second, ...rule }) => ({
    ...rule,
    ...(first === null ? {} : { port1: first }),
    ...(second === null ? {} : { port2: second }),
  }));
const addresses = fc.constantFrom(
  ...interfaces.map((entry) => entry.address as string),
  controllerAddress,
  "10.64.0.5",
  "10.9.9.9",
  "192.0.2.1",
  "192.0.2.200",
  "8.8.8.8",
);
const flows: fc.Arbitrary<Flow> = fc.record({
  source: addresses,
  destination: addresses,
  protocol: fc.constantFrom("tcp", "udp", "icmp"),
  sourcePort: fc.constantFrom(80, 5000, 40_000),
  port: fc.constantFrom(22, 80, 5432),
});

test("compiled rules admit exactly what the written ones say", () => {
  fc.assert(
    fc.property(
      fc.array(rules, { maxLength: 5 }),
      fc.array(flows, { minLength: 20, maxLength: 40 }),
      (written, tries) => {
        const policy = compile(written);
        for (const flow of tries) {
          // To the controller there is the built-in rule for names.
          if (flow.destination === controllerAddress && flow.port === 53) continue;
          const expected = written.some((rule) => says(rule, flow));
          assert.equal(passes(policy, flow), expected, JSON.stringify({ flow, written, policy }));
        }
      },
    ),
    { numRuns: 400 },
  );
});

test("rule numbers are unique, and those of a rule stay when others come and go", () => {
  fc.assert(
    fc.property(fc.array(rules, { minLength: 1, maxLength: 6 }), (written) => {
      const policy = compile(written);
      const ids = policy.rules.map((rule) => rule.id);
      assert.equal(new Set(ids).size, ids.length);
      assert.ok(ids.every((id) => id > 0) && policy.rules.every((rule) => rule.from > 0 && rule.to > 0));
    }),
  );
});

const end = (path: string): RuleEnd => ({ kind: "element", path: elementPath(path), type: "VM" });
const flow = (source: string, destination: string, port: number, sourcePort = 40_000): Flow => ({
  source,
  destination,
  protocol: "tcp",
  port,
  sourcePort,
});
const [first, second, third] = ["10.64.0.2", "10.64.0.3", "10.64.0.10"];

test("a server whose port a rule names is answered to, and never opens connections itself", () => {
  const database: PortRange = { from: 5432, to: 5432 };
  const policy = compile([
    { address1: end("c/v2"), address2: end("c/v3"), protocol: "tcp", port2: database, direction: "both" },
  ]);
  assert.ok(passes(policy, flow(second, third, 5432)));
  assert.ok(!passes(policy, flow(second, third, 22)));
  assert.ok(!passes(policy, flow(third, second, 22, 5432)));
  assert.ok(!passes(policy, flow(third, second, 5432, 5432)));
  assert.ok(!passes(policy, flow(first, third, 5432)));
});

test("by default two VMs of a subnet cannot talk, and every VM reaches the name service and no other of the controller", () => {
  const closed = compile([]);
  assert.ok(!passes(closed, flow(first, second, 80)));
  assert.ok(passes(closed, flow(first, controllerAddress, 53)));
  assert.ok(!passes(closed, flow(first, controllerAddress, 7101)));
  assert.ok(!passes(closed, flow(controllerAddress, first, 53)));
  const open = compile([], { openness: effectiveOpenness({ subnetConnectivity: true }, {}) });
  assert.ok(passes(open, flow(first, second, 80)));
  assert.ok(!passes(open, flow(second, third, 80)));
});

test("rules scale by endpoints: two subnets of 200 VMs need a handful", () => {
  const many = [10, 11].flatMap((identity) =>
    Array.from({ length: 200 }, (_, index) => ({
      path: elementPath(`c/n${identity}-${index}`),
      address: ipv4(`10.65.${identity}.${index + 2}`),
      identity: 1_000 * identity + index,
      vmIdentity: 1_000 * identity + 500 + index,
      subnetIdentity: identity,
    })),
  );
  const between: Written = { address1: end("c/s1"), address2: end("c/s2"), protocol: "any", direction: "both" };
  assert.equal(compile([between], { interfaces: many }).rules.length, 6);
});

test("an address is known exactly to the hosts with an endpoint that may talk to it", () => {
  const policy = compile([{ address1: end("c/v1"), address2: end("c/i3"), protocol: "any", direction: "1to2" }]);
  const placed = interfaces.map((entry, index) => ({ ...entry, host: hostName(`h${index + 1}`) }));
  const audience = audiences(policy, placed);
  const of = (path: string): readonly string[] | undefined =>
    audience.get(placed.find((entry) => entry.path === path)?.identity ?? 0);
  assert.deepEqual(of("c/i3"), ["h1", "h4"]);
  assert.deepEqual(of("c/i1"), ["h3"]);
  assert.deepEqual(of("c/i2"), []);
  const together = placed.map((entry) => ({ ...entry, host: hostName("h1") }));
  assert.ok([...audiences(policy, together).values()].every((hosts) => hosts.length === 0));
});

test("x.policy.internet opens subnets that have a way out towards the outside, and nothing where it is not said", () => {
  const external = subnets.map((subnet, index) => ({ ...subnet, ...(index === 0 ? { external: true as const } : {}) }));
  const opened = (policy: Parameters<typeof effectiveOpenness>[0], given = external): readonly unknown[] =>
    compile([], { openness: effectiveOpenness(policy, {}), subnets: given })
      .rules.filter(({ path }) => path === internetOutPath)
      .map(({ from }) => from);
  assert.ok(opened({ internet: "out" }).length > 0);
  assert.deepEqual([...new Set(opened({ internet: "out" }))], [10], "the one that has a way");
  assert.deepEqual(opened({}), []);
  assert.deepEqual(opened({ internet: "out" }, subnets), []);
});
