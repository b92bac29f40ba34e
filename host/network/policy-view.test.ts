import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { policyAt, type SlicedPolicy, sliceKey, slicePolicy } from "../../core/controller/rules/policy-slices.ts";
import type { PolicyNetwork } from "../../core/documents/network/policy.ts";
import type { CellPolicy, CompiledRule } from "../../core/documents/vocabulary.ts";
import { isObject, toJson } from "../../core/outbox.ts";
import { parseNetwork } from "../../model/addresses/addresses.ts";
import { cellName, cidr, elementPath, hostName, ipv4, mac } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { desiredVm, Room, shop } from "../service/manager.testing.ts";
import { policyOf, viewOf } from "./policy-view.ts";

const seed = Number(process.env.CELLS_SEED ?? Math.trunc(Math.random() * 2 ** 31));

/** Interfaces 10 to 17, their VMs 20 to 23, their subnets 30 and 31; networks from 40; the controller is 1. */
const interfaces = Array.from({ length: 8 }, (_, at) => ({
  path: elementPath(`shop/i${at}`),
  address: ipv4(`10.64.${at % 2}.${10 + at}`),
  identity: 10 + at,
  vmIdentity: 20 + (at >> 1),
  subnetIdentity: 30 + (at % 2),
}));
const networks: readonly PolicyNetwork[] = ["10.0.0.0/8", "10.65.0.0/16", "10.65.7.0/24", "0.0.0.0/0"].map(
  (text, at) => ({ cidr: cidr(text), identity: 40 + at, ...(at === 2 ? { subnet: true as const } : {}) }),
);
const own = [...interfaces.flatMap((each) => [each.identity, each.vmIdentity, each.subnetIdentity]), 1];
const drawnRule = fc.record({
  one: fc.constantFrom(...own),
  other: fc.oneof(
    fc.constantFrom(...own).map((identity): readonly number[] => [identity]),
    // What is granted to a network is granted to each narrower one, as a policy is compiled.
    fc.constantFrom<readonly number[]>([40, 41, 42], [41, 42], [42], [40, 41, 42, 43]),
  ),
  port: fc.integer({ min: 1, max: 4 }),
  turned: fc.boolean(),
});
const base: Omit<CellPolicy, "rules" | "version"> = {
  cell: cellName("shop"),
  cellNumber: 7,
  networks: [...networks, { cidr: cidr("10.0.3.1/32"), identity: 1 }],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 1 },
  hosts: ["h1", "h2", "h3"].map(hostName),
  subnets: [
    { identity: 30, cidr: cidr("10.64.0.0/24") },
    { identity: 31, cidr: cidr("10.64.1.0/24") },
  ],
  routers: [{ subnet: 31, identity: 10, address: ipv4("10.64.0.10"), forwards: ["internet"] }],
  traits: [
    { identity: 10, forwards: ["internet"], groups: [] },
    { identity: 13, forwards: [], groups: [ipv4("239.255.0.1")] },
  ],
};
const policyArbitrary = fc.array(drawnRule, { maxLength: 30, size: "max" }).map((rules): CellPolicy => {
  const compiled = rules.flatMap(({ one, other, port, turned }) =>
    other.map((each): Omit<CompiledRule, "id"> => {
      const [from, to] = turned ? [each, one] : [one, each];
      const ports = { from: port, to: port };
      return { path: "shop/rule", from, to, protocol: "tcp", sourcePorts: { from: 0, to: 65535 }, ports };
    }),
  );
  return { ...base, version: 1, rules: compiled.map((rule, at) => ({ ...rule, id: at + 1 })) };
});

const at = (sliced: SlicedPolicy, identities: ReadonlySet<number>): CellPolicy => {
  const { manifest, slices } = policyAt(sliced, identities);
  const view = viewOf();
  view.begin();
  view.takeManifest(manifest);
  let now = null;
  for (const [name, slice] of slices) now = view.takeSlice(name, slice).now;
  assert.ok(now !== null && now !== "gone", "all of it is there");
  return policyOf(now);
};
const identitiesOn = (host: number): ReadonlySet<number> =>
  new Set(
    interfaces
      .filter((_, index) => index % 3 === host)
      .flatMap((each) => [each.identity, each.vmIdentity, each.subnetIdentity]),
  );

/** Whose an address is, as packets are judged: an interface of the cell, or the longest network. */
const whose = (policy: CellPolicy, address: string): readonly number[] => {
  const found = interfaces.find((each) => each.address === address);
  if (found !== undefined) return [found.identity, found.vmIdentity, found.subnetIdentity];
  const number = parseNetwork(address)?.first ?? assert.fail();
  const around = policy.networks.flatMap((network) => {
    const range = parseNetwork(network.cidr);
    return range !== null && range.first <= number && number <= range.last ? [{ network, range }] : [];
  });
  const longest = around.sort((one, other) => other.range.prefixLength - one.range.prefixLength)[0];
  return longest === undefined ? [] : [longest.network.identity];
};
const admits = (policy: CellPolicy, from: string, to: string, port: number): boolean => {
  const [sources, targets] = [whose(policy, from), whose(policy, to)];
  return policy.rules.some(
    (rule) => rule.ports.from === port && sources.includes(rule.from) && targets.includes(rule.to),
  );
};
const elsewhere = ["10.0.3.1", "10.65.7.9", "10.65.7.255", "10.65.1.1", "10.99.0.1", "8.8.8.8"];

test("what a host is told judges packets of its machines as all of the policy does, and has nothing of others", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(policyArbitrary, fc.nat(2), (policy, host) => {
      const identities = identitiesOn(host);
      const told = at(
        slicePolicy(policy, () => interfaces, 5, null),
        identities,
      );
      for (const { from, to } of told.rules)
        assert.ok(identities.has(from) || identities.has(to), `${from} to ${to} is nothing to this host`);
      const here = interfaces.filter((_, index) => index % 3 === host).map(({ address }) => address as string);
      for (const one of here)
        for (const other of [...interfaces.map(({ address }) => address as string), ...elsewhere])
          for (const port of [1, 2, 3, 4]) {
            assert.equal(admits(told, one, other, port), admits(policy, one, other, port), `${one} > ${other}:${port}`);
            assert.equal(admits(told, other, one, port), admits(policy, other, one, port), `${other} > ${one}:${port}`);
          }
      // Of whatever a rule or a router connects with a machine here, all that is said of it.
      const spoken = new Set([...told.rules.flatMap(({ from, to }) => [from, to]), ...identities]);
      for (const subnet of policy.subnets ?? [])
        assert.equal(
          told.subnets?.some(({ identity }) => identity === subnet.identity),
          spoken.has(subnet.identity) || (identities.has(10) && subnet.identity === 31),
          `subnet ${subnet.identity}`,
        );
      for (const { identity, vmIdentity, subnetIdentity } of [interfaces[0]!, interfaces[3]!]) {
        const isSpokenOf = [identity, vmIdentity, subnetIdentity].some((each) => spoken.has(each));
        if (isSpokenOf && told.rules.some(({ from, to }) => [from, to].includes(identity)))
          assert.ok(told.traits?.some((each) => each.identity === identity) === true, `traits of ${identity}`);
      }
      assert.equal(told.routers?.length ?? 0, identities.has(31) || identities.has(10) ? 1 : 0);
      assert.deepEqual(told.hosts, policy.hosts);
    }),
    { seed, numRuns: 300 },
  );
});

test("a changed rule is news for the hosts of its ends, and for no other", (context) => {
  context.diagnostic(`CELLS_SEED=${seed}`);
  fc.assert(
    fc.property(policyArbitrary, fc.nat(29), (policy, which) => {
      const changed = policy.rules[which % Math.max(1, policy.rules.length)];
      if (changed === undefined) return;
      const rules = policy.rules.map((each) => (each === changed ? { ...each, ports: { from: 5, to: 5 } } : each));
      const before = slicePolicy(policy, () => interfaces, 5, null);
      const after = slicePolicy({ ...policy, version: 2, rules }, () => interfaces, 5, before);
      for (const host of [0, 1, 2]) {
        const identities = identitiesOn(host);
        const [was, is] = [policyAt(before, identities), policyAt(after, identities)];
        const isNews = JSON.stringify({ ...was.manifest, version: 2 }) !== JSON.stringify(is.manifest);
        assert.equal(isNews, identities.has(changed.from) || identities.has(changed.to));
        for (const [name, slice] of is.slices)
          if (!isNews) assert.equal(was.slices.get(name), slice, "the same object");
      }
    }),
    { seed, numRuns: 300 },
  );
});

// --- at a Host Manager ---------------------------------------------------------------------------------------------

const many = (port: number): CellPolicy => ({
  ...base,
  version: port,
  rules: Array.from({ length: 200 }, (_, index) => ({
    id: index + 1,
    path: "shop/rule",
    from: 10,
    to: 11 + (index % 7),
    protocol: "tcp" as const,
    sourcePorts: { from: 0, to: 65535 },
    ports: { from: port, to: port + index },
  })),
});
/** What a controller desires at the host, by key. */
const desires = (policy: CellPolicy, identities: Iterable<number>): ReadonlyMap<string, Json> => {
  const { manifest, slices } = policyAt(
    slicePolicy(policy, () => interfaces, 0, null),
    new Set(identities),
  );
  return new Map<string, Json>([
    ["policy/shop", toJson(manifest)],
    ...[...slices].map(([name, slice]): [string, Json] => [sliceKey("shop", name), toJson(slice)]),
  ]);
};
const inForce = (room: Room): { readonly version: Json; readonly ports: readonly number[] } => {
  const said = room.published.get(`${shop}/policy/shop`);
  const policy = room.state.policies.get("shop");
  const version = isObject(said) ? (said.version ?? null) : null;
  return { version, ports: [...new Set(policy?.rules.map(({ id, ports }) => ports.to - id + 1))] };
};

test("a version is in force whole or not at all, though its slices are late and the Host Manager dies between them", () => {
  const room = new Room();
  room.found();
  const who = [1, 2, 3, 10];
  for (const [key, document] of [...desires(many(1), who)].reverse()) {
    room.settle();
    assert.deepEqual(inForce(room), { version: null, ports: [] });
    room.desire(key, document);
  }
  room.settle();
  assert.deepEqual(inForce(room), { version: 1, ports: [1] });
  const next = [...desires(many(2), who)].filter(
    ([key, text]) => JSON.stringify(room.documents.get(key)) !== JSON.stringify(text),
  );
  assert.ok(next.length > 5, `${next.length} documents`);
  for (const [index, [key, document]] of next.entries()) {
    assert.deepEqual(inForce(room), { version: 1, ports: [1] }, `before ${key}`);
    room.desire(key, document);
    // Repeated, as after a lost acknowledgement.
    room.desire(key, document);
    if (index % 3 !== 1) continue;
    room.boot();
    room.found();
    room.settle();
  }
  room.settle();
  assert.deepEqual(inForce(room), { version: 2, ports: [2] });
  assert.deepEqual(
    [...room.durable.keys()].filter((key) => key.startsWith("replaced/")),
    [],
  );
  for (const key of [...room.documents.keys()]) if (key.startsWith("slice/")) room.desire(key, null);
  assert.deepEqual(inForce(room), { version: 2, ports: [2] }, "what is taken away by halves stays");
  room.desire("policy/shop", null);
  room.settle();
  assert.equal(room.state.policies.size, 0);
  assert.equal(room.state.views.size, 0);
  assert.deepEqual(
    [...room.durable.keys()].filter((key) => key.startsWith("replaced/")),
    [],
  );
});

test("one document of a controller of the previous version, or of a small cell, counts at once, and slices after it", () => {
  const room = new Room();
  room.found();
  room.desire("policy/shop", toJson(many(1)));
  room.settle();
  assert.deepEqual(inForce(room), { version: 1, ports: [1] });
  for (const [key, document] of desires(many(2), [1, 2, 3, 10])) {
    assert.deepEqual(inForce(room), { version: 1, ports: [1] });
    room.desire(key, document);
  }
  room.settle();
  assert.deepEqual(inForce(room), { version: 2, ports: [2] });
  room.desire("policy/shop", toJson(many(3)));
  room.settle();
  assert.deepEqual(inForce(room), { version: 3, ports: [3] });
});

test("a machine starts when the rules of its own identities are in force, not those of others of its cell", () => {
  const room = new Room();
  room.found();
  for (const [key, document] of desires(many(1), [10])) room.desire(key, document);
  room.desire("vm/a", toJson(desiredVm("a", 1)));
  room.settle();
  assert.equal(room.vm("a")?.power, "off");
  assert.match(room.vm("a")?.reason ?? "", /rules of cell shop have not reached this host/);
  for (const [key, document] of desires(many(1), [1, 2, 3, 10])) room.desire(key, document);
  room.settle();
  assert.equal(room.vm("a")?.power, "on");
});

test("a machine whose interface was there before its rules waits for them, though the network cannot be changed", () => {
  const room = new Room();
  room.found();
  for (const [key, document] of desires(many(1), [10])) room.desire(key, document);
  room.desire("vm/a", toJson(desiredVm("a", 1)));
  room.settle();
  room.fails = (action) => (action.kind === "implement-network" ? "the map is full" : null);
  for (const [key, document] of desires(many(1), [1, 2, 3, 10])) room.desire(key, document);
  room.settle();
  assert.equal(room.vm("a")?.power, "off", "its rules are here, and not in force");
  room.fails = () => null;
  room.input({ kind: "timer", name: "retry/network" });
  room.settle();
  assert.equal(room.vm("a")?.power, "on");
});

test("a controller of another cell cannot put slices there", () => {
  const room = new Room();
  assert.equal(room.service.accepts(shop, "slice/shop/0-1"), true);
  assert.equal(room.service.accepts(shop, "slice/bank/0-1"), false);
  assert.equal(room.service.accepts(shop, "slice/shop/"), false);
});
