import assert from "node:assert/strict";
import { test } from "node:test";
import { formatIpv4, parseIpv4 } from "../../model/addresses/addresses.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { readNetworkConfiguration } from "../../model/eucalyptus/configuration/read.ts";
import { addressKey, emptyBook, stateOf } from "./book.ts";
import type { Answer, Request } from "./request.ts";
import { step } from "./step.ts";
import { viewOf } from "./view.ts";
import { BookWorld, noPremises } from "./world.testing.ts";

const configurationOf = (document: object): NetworkConfiguration => {
  const read = readNetworkConfiguration(JSON.stringify(document));
  return read.ok ? read.value.configuration : assert.fail(JSON.stringify(read.error));
};
const subnet = { Name: "s", Subnet: "10.0.0.0", Netmask: "255.255.255.0", Gateway: "10.0.0.1" };
const edge = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.4"],
  Subnets: [subnet],
  Clusters: ["one", "two"].map((Name, index) => ({
    Name,
    Subnet: { Name: "s" },
    PrivateIps: [`10.0.0.${index * 10 + 10}-10.0.0.${index * 10 + 15}`],
  })),
};
const managed = {
  Mode: "MANAGED",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.4"],
  ManagedSubnet: { Subnet: "10.2.0.0", Netmask: "255.255.255.0", MinVlan: 2, MaxVlan: 6, SegmentSize: 16 },
  Clusters: [{ Name: "one" }, { Name: "two" }],
};
const at = (text: string): number => parseIpv4(text) ?? 0;

const manager = (document: object) => {
  const book = emptyBook();
  const ask = (request: Request): Answer => step(book, request).answer;
  assert.equal(ask({ kind: "configure", configuration: configurationOf(document) }).refused, null);
  const run = (id: string, node = "a", groups: readonly string[] = ["sg-1"], cluster = "one"): Answer =>
    ask({ kind: "run", instance: { id, owner: "alice", cluster, node, groups } });
  const heard = (host: string, version: number, ...ips: readonly (readonly [id: string, ip: number])[]): Answer =>
    ask({
      kind: "heard",
      host,
      version,
      instances: ips.map(([id, address]) => ({ id, privateIp: { address, state: "assigned" } })),
    });
  return { book, ask, run, heard };
};

for (const [mode, document] of [
  ["EDGE", edge],
  ["MANAGED", managed],
] as const)
  test(`${mode}: no address has two owners, is reused before its host let it go, or is lost for good`, () => {
    const premises = noPremises();
    for (let seed = 1; seed <= 40; seed += 1) {
      const world = new BookWorld(seed, configurationOf(document), premises);
      try {
        for (let turn = 0; turn < 300; turn += 1) world.turn();
        world.settle();
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    for (const [premise, count] of Object.entries(premises))
      if (mode === "MANAGED" || !["segments", "takeovers", "stillActive", "carried"].includes(premise))
        assert.ok(count > 5, `${premise}: ${count}`);
  });

test("an address goes from free over pending and assigned to releasing, and back by its host's word alone", () => {
  const { book, ask, run, heard } = manager(edge);
  const address = run("i-00000001").address ?? 0;
  const entry = () => book.addresses.get(addressKey("private", address));
  const state = (): string => {
    const found = entry();
    return found === undefined ? "free" : stateOf(book, found);
  };
  assert.deepEqual([formatIpv4(address), state()], ["10.0.0.10", "pending"]);
  const [instance] = viewOf(book, world)?.instances ?? [];
  assert.deepEqual([instance?.mac, instance?.privateIp], ["D0:0D:00:00:00:01", address]);
  heard("a", book.version, ["i-00000001", address]);
  assert.equal(state(), "assigned");
  // It went, and came back: what its host said of its first time there is no word about the second.
  const before = book.version;
  for (const node of ["b", "a"]) ask({ kind: "move", id: "i-00000001", cluster: "one", node });
  heard("a", before, ["i-00000001", address]);
  assert.equal(state(), "pending");
  heard("a", book.version, ["i-00000001", address]);
  assert.equal(state(), "assigned");
  ask({ kind: "terminate", id: "i-00000001" });
  assert.equal(state(), "releasing");
  assert.deepEqual(viewOf(book, world)?.instances, []);
  // What it said of the view before is no word about this one, and another host's is none.
  heard("a", book.version - 1);
  heard("b", book.version);
  assert.equal(state(), "releasing");
  heard("b", book.version);
  heard("a", book.version);
  assert.equal(state(), "free");
});
const world = {
  clusters: [{ name: "one", ccIp: 1, nodes: ["a", "b"] }],
  clcIp: 9,
  dnsDefault: [9],
  securityGroups: [],
};

test("a full cluster and a full segment say so, and a tag comes back with the last address of its group", () => {
  const { book, ask, run, heard } = manager(managed);
  for (let id = 0; id < 6; id += 1) assert.equal(run(`i-0000000${id}`).refused, null);
  assert.match(run("i-00000009").refused ?? "", /no private address is free in the segment of the security group sg-1/);
  for (let group = 2; group <= 5; group += 1)
    assert.equal(run(`i-0000001${group}`, "a", [`sg-${group}`]).refused, null);
  assert.match(run("i-00000020", "a", ["sg-6"]).refused ?? "", /no segment is free for the security group sg-6: all 5/);
  assert.match(run("i-00000021", "a", ["sg-1", "sg-2"]).refused ?? "", /in mode MANAGED an instance is in one/);
  ask({ kind: "terminate", id: "i-00000015" });
  assert.equal(book.segments.get("sg-5"), 6);
  assert.notEqual(run("i-00000020", "a", ["sg-6"]).refused, null, "its tag is still on its host");
  heard("a", book.version);
  assert.equal(run("i-00000020", "a", ["sg-6"]).refused, null);
  assert.deepEqual([book.segments.get("sg-5"), book.segments.get("sg-6")], [undefined, 6]);
});

test("an elastic address is of one account, of one instance, and at one host", () => {
  const { book, ask, run, heard } = manager(edge);
  run("i-00000001", "a");
  run("i-00000002", "b");
  const { address = 0 } = ask({ kind: "allocate", account: "alice" });
  const associate = (id: string, account = "alice") => ask({ kind: "associate", address, account, id }).refused;
  assert.match(associate("i-00000001", "bob") ?? "", /the account bob does not have the address 192\.0\.2\.1/);
  assert.equal(associate("i-00000001"), null);
  assert.match(ask({ kind: "return", address, account: "alice" }).refused ?? "", /i-00000001 has the address/);
  assert.match(associate("i-00000002") ?? "", /still in place at a/);
  ask({ kind: "disassociate", address, account: "alice" });
  assert.match(associate("i-00000002") ?? "", /still in place at a/);
  // An account may give it back, and nobody gets it before its host let it go.
  assert.equal(ask({ kind: "return", address, account: "alice" }).refused, null);
  assert.equal(ask({ kind: "allocate", account: "bob" }).address, at("192.0.2.2"));
  heard("a", book.version, ["i-00000001", at("10.0.0.10")]);
  assert.equal(ask({ kind: "allocate", account: "alice" }).address, address);
  assert.equal(associate("i-00000002"), null);
});

test("a configuration that would move what is in use is refused, naming the instances", () => {
  const { book, ask, run } = manager(edge);
  const refusal = (document: object): string =>
    ask({ kind: "configure", configuration: configurationOf(document) }).refused ?? "";
  const narrow = (text: string): object => JSON.parse(JSON.stringify(edge).replace("10.0.0.10-10.0.0.15", text));
  assert.equal(refusal(narrow("10.0.0.100-10.0.0.115")), "");
  assert.equal(refusal(edge), "");
  run("i-00000001");
  ask({ kind: "allocate", account: "alice" });
  const { version } = book;
  assert.match(refusal(narrow("10.0.0.11-10.0.0.15")), /in use would be others: i-00000001$/);
  assert.match(refusal(JSON.parse(JSON.stringify(edge).replace('"10.0.0.1"', '"10.0.0.2"'))), /i-00000001$/);
  assert.match(refusal(managed), /mode would be MANAGED instead of EDGE: i-00000001$/);
  assert.match(
    refusal({ ...edge, PublicIps: ["192.0.2.2"] }),
    /elastic addresses that accounts have: 192\.0\.2\.1 of alice/,
  );
  assert.equal(book.version, version);
  assert.equal(refusal(narrow("10.0.0.10")), "");
  const other = manager(managed);
  other.run("i-00000001");
  const segments = (part: object): string =>
    other.ask({
      kind: "configure",
      configuration: configurationOf({ ...managed, ManagedSubnet: { ...managed.ManagedSubnet, ...part } }),
    }).refused ?? "";
  assert.match(segments({ SegmentSize: 32 }), /i-00000001$/);
  assert.match(segments({ MinVlan: 3 }), /i-00000001$/);
  assert.equal(segments({ MaxVlan: 5 }), "");
});

test("what a fenced host had is nobody's there, and its instances keep their addresses wherever they go on", () => {
  const { book, ask, run } = manager(edge);
  const address = run("i-00000001", "a").address ?? 0;
  run("i-00000002", "a");
  ask({ kind: "terminate", id: "i-00000002" });
  ask({ kind: "fenced", host: "a" });
  assert.deepEqual([...book.addresses.keys()], [addressKey("private", address)]);
  assert.deepEqual(viewOf(book, world)?.instances, []);
  assert.equal(ask({ kind: "move", id: "i-00000001", cluster: "one", node: "b" }).refused, null);
  assert.deepEqual([...(book.addresses.get(addressKey("private", address))?.hosts.keys() ?? [])], ["b"]);
  assert.match(ask({ kind: "move", id: "i-00000001", cluster: "two", node: "d" }).refused ?? "", /cannot go to two/);
});

/** A book that was lost: `a` has i-00000001 in place with 192.0.2.1, and has said so. */
const lost = (document: object = edge) => {
  const made = manager(document);
  made.ask({ kind: "recover", hosts: ["a"] });
  const privateIp = { address: at("10.0.0.10"), state: "assigned" } as const;
  const publicIp = { address: at("192.0.2.1"), state: "assigned" } as const;
  made.ask({ kind: "heard", host: "a", version: 7, instances: [{ id: "i-00000001", privateIp, publicIp }] });
  return made;
};

test("after a loss an elastic address that stands with an instance is its owner's alone, and no other is given for it", () => {
  const { ask, run } = lost();
  const claim = (account: string, text: string) => ask({ kind: "allocate", account, has: at(text) });
  assert.match(
    claim("bob", "192.0.2.1").refused ?? "",
    /i-00000001 has the address 192\.0\.2\.1, and its owner has yet/,
  );
  assert.equal(run("i-00000001").refused, null);
  assert.match(claim("bob", "192.0.2.1").refused ?? "", /i-00000001 of alice has the address 192\.0\.2\.1/);
  assert.equal(claim("alice", "192.0.2.1").address, at("192.0.2.1"));
  assert.equal(claim("bob", "192.0.2.2").address, at("192.0.2.2"));
  // Another one may be somebody's who has not said so yet.
  assert.match(claim("carol", "192.0.2.2").refused ?? "", /its owners have yet to say what they have/);
  assert.equal(ask({ kind: "settled" }).refused, null);
  assert.equal(claim("carol", "192.0.2.2").address, at("192.0.2.3"));
});

test("a version that no view can have had is no word after a loss: who says it is unheard until it is fenced", () => {
  const { book, ask, run, heard } = manager(edge);
  ask({ kind: "recover", hosts: ["a", "b"] });
  const { version } = book;
  for (const said of [2 ** 53, 2 ** 53 - 1, Number.NaN, 0.5, -1])
    assert.match(heard("a", said).refused ?? "", /^a says that it has view .*, which there can never have been$/);
  heard("b", 1_000_000, ["i-00000001", at("10.0.0.10")]);
  assert.equal(version < 1_000_000 && book.version, 1_000_001);
  assert.match(run("i-00000001", "b").refused ?? "", /a has yet to say/);
  ask({ kind: "fenced", host: "a" });
  assert.equal(run("i-00000001", "b").address, at("10.0.0.10"));
});

test("after a loss who carries a cluster carries it on, and nobody else is named before all is known", () => {
  const { book, ask } = manager(managed);
  const name = (host: string) => ask({ kind: "network-host", cluster: "one", host }).refused;
  const publicIp = { address: at("192.0.2.1"), state: "assigned" } as const;
  const carries = (host: string) =>
    ask({ kind: "heard", host, version: 7, carries: "one", instances: [{ id: "i-00000001", publicIp }] });
  const hosts = () => [book.networkHosts.get("one")?.active, [...(book.networkHosts.get("one")?.leaving.keys() ?? [])]];
  ask({ kind: "recover", hosts: ["n", "m"] });
  assert.match(name("m") ?? "", /n, m has yet to say/);
  ask({ kind: "heard", host: "m", version: 7, instances: [] });
  assert.match(name("m") ?? "", /n has yet to say/);
  carries("n");
  assert.deepEqual(hosts(), ["n", []]);
  assert.match(name("m") ?? "", /its owners have yet to say/);
  assert.equal(ask({ kind: "settled" }).refused, null);
  assert.match(name("m") ?? "", /n may still carry the cluster one/);
  // By an older book it is another one's, and of two that do nobody is told before both have said that they do not.
  ask({ kind: "recover", hosts: ["n", "m"] });
  ask({ kind: "heard", host: "n", version: 7, instances: [] });
  carries("m");
  assert.deepEqual(hosts(), ["m", []]);
  ask({ kind: "recover", hosts: ["n", "m"] });
  for (const host of ["n", "m"]) carries(host);
  assert.deepEqual(hosts(), [null, ["n", "m"]]);
  ask({ kind: "settled" });
  ask({ kind: "heard", host: "n", version: book.version, instances: [] });
  assert.match(name("n") ?? "", /m may still carry the cluster one/);
  ask({ kind: "heard", host: "m", version: book.version, instances: [] });
  assert.equal(name("n"), null);
});

test("after a loss an address that may still stand beside another one of its instance is nobody's, and not free", () => {
  const { book, ask, run } = manager(edge);
  const [x, y] = [at("192.0.2.1"), at("192.0.2.2")];
  const id = "i-00000001";
  const privateIp = { address: at("10.0.0.10"), state: "assigned" } as const;
  const elastic = (address: number) => ({ publicIp: { address, state: "failed" } as const });
  const recover = () => {
    ask({ kind: "recover", hosts: ["a"] });
    ask({
      kind: "heard",
      host: "a",
      version: 7,
      instances: [
        { id, privateIp, ...elastic(y) },
        { id, ...elastic(x) },
      ],
    });
    run(id);
    assert.equal(ask({ kind: "allocate", account: "alice", has: y }).address, y);
    ask({ kind: "settled" });
    const [one] = viewOf(book, world)?.instances ?? [];
    assert.deepEqual([one?.publicIp, book.addresses.get(addressKey("elastic", x))?.instance], [y, null]);
    assert.equal(ask({ kind: "allocate", account: "bob" }).address, at("192.0.2.3"));
  };
  recover();
  // An older book has the other one as its own.
  const entry = book.addresses.get(addressKey("elastic", x)) ?? assert.fail();
  book.addresses.set(addressKey("elastic", x), { ...entry, instance: id });
  recover();
  ask({ kind: "heard", host: "a", version: book.version, instances: [{ id, privateIp, ...elastic(y) }] });
  assert.equal(book.addresses.has(addressKey("elastic", x)), false);
});
