import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  ActualHost,
  ActualLocation,
  CellPolicy,
  DesiredInterface,
  DesiredVm,
} from "../../core/documents/vocabulary.ts";
import { displayMiB } from "../../model/cell/attributes/display-memory.ts";
import { cellName, elementPath, hostName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Found, Wanted } from "../wanted.ts";
import { desiredVm, Room, policy as rules } from "./manager.testing.ts";
import { localInterfaces, overheadMiB, planHost, revisionOf, shortage, startingRecord } from "./planner.ts";
import { publications } from "./publications.ts";

const policy = (version: number): CellPolicy => ({
  cell: cellName("shop"),
  cellNumber: 7,
  version,
  rules: [],
  networks: [],
  controller: { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 99 },
  hosts: [],
});
const location: ActualLocation = {
  address: ipv4("10.64.0.1"),
  host: hostName("h2"),
  hostMac: mac("02:00:00:00:01:02"),
  cellNumber: 7,
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
};
const network = (policies: readonly CellPolicy[], locations: readonly ActualLocation[] = []) =>
  revisionOf({ policies, interfaces: [], locations });

test("a revision stands for the documents of policies and locations", () => {
  const [first, second] = [policy(1), policy(2)];
  assert.equal(network([first], [location]), network([first], [location]));
  assert.notEqual(network([first]), network([second]));
  assert.notEqual(network([first]), network([structuredClone(first)]), "an equal document is looked at once more");
  assert.notEqual(network([first]), network([first, second]));
  assert.notEqual(network([first]), network([]));
  assert.notEqual(network([first], [location]), network([first]));
  assert.notEqual(network([first], [location]), network([first], [{ ...location, hostMac: mac("02:00:00:00:01:03") }]));
});

test("a revision costs no look at the rules", () => {
  const large: CellPolicy = {
    ...policy(1),
    get rules(): never {
      throw new Error("the rules were read");
    },
  };
  assert.throws(() => JSON.stringify(large), /the rules were read/);
  assert.equal(network([large]), network([large]));
});

const shop = peerName("controller.shop");
const machine = (name: string, address: string): DesiredVm => {
  const card: DesiredInterface = {
    uid: uid(`${name}-if`),
    path: elementPath(`shop/${name}/net`),
    mac: mac("02:ce:0a:00:00:1e"),
    address: ipv4(address),
    prefixLength: 16,
    gateway: ipv4("10.64.0.1"),
    nameServer: ipv4("10.0.3.1"),
    hostName: name,
    domain: "shop.cells.internal",
    identity: 1,
    vmIdentity: 2,
    subnetIdentity: 3,
    audience: [],
  };
  return {
    uid: uid(name),
    cell: cellName("shop"),
    path: elementPath(`shop/${name}`),
    name,
    incarnation: 1,
    power: "on",
    memoryMiB: 1,
    cpus: 0,
    disks: [],
    interfaces: [card],
    data: null,
  };
};
const wantedOf = (vms: readonly DesiredVm[]): Wanted => ({
  vms: new Map(vms.map((desired) => [desired.uid, { client: shop, desired }])),
  policies: [policy(1)],
  locations: [],
  entrances: new Map(),
});
const foundOf = (running: readonly DesiredVm[], ready: readonly DesiredVm[]): Found => ({
  records: new Map(running.map((vm) => [vm.uid, { ...startingRecord(shop, vm), stage: "running" as const }])),
  allocation: {
    interfaces: ready.flatMap(({ interfaces }) =>
      interfaces.map((each) => ({ interface: each.uid, tap: `tap-${each.uid}`, ready: true, reason: null })),
    ),
    policies: [],
  },
  revision: null,
  busy: new Set(),
  stalled: new Map(),
  boot: null,
  capacityMiB: 100_000,
  capacityCpus: 16,
});
const started = (wanted: Wanted, found: Found): readonly string[] =>
  planHost(wanted, found).flatMap((action) => (action.kind === "start-machine" ? [action.vm] : []));

test("what runs is not looked through again for every VM that waits", () => {
  const reads = (count: number): number => {
    let read = 0;
    const plain = machine("running", "10.64.1.1");
    const running: DesiredVm = {
      ...plain,
      get interfaces() {
        read += 1;
        return plain.interfaces;
      },
    };
    const waiting = Array.from({ length: count }, (_, index) => machine(`vm-${index}`, `10.64.2.${index + 1}`));
    const wanted = wantedOf([running, ...waiting]);
    const found = foundOf([running], []);
    assert.deepEqual(started(wanted, found), []);
    publications(wanted, found, { host: hostName("h1") } as ActualHost, new Map());
    return read;
  };
  assert.ok(reads(1) > 0);
  assert.equal(reads(40), reads(1));
});

test("of two VMs with one address the first starts, and the other one waits for its end, also in the same plan", () => {
  const [one, two, other] = [
    machine("one", "10.64.2.1"),
    machine("two", "10.64.2.1"),
    machine("zero", "10.64.2.2"),
  ] as const;
  const all = [one, two, other];
  assert.deepEqual(started(wantedOf(all), foundOf([], all)), ["one", "zero"]);
  assert.deepEqual(started(wantedOf(all), foundOf([two], all)), ["zero"]);
});

test("an interface has the memory of the guest that runs, and of the next one once that has ended", () => {
  const before = { ...machine("one", "10.64.2.1"), memoryMiB: 512 };
  const next = { ...before, incarnation: 2, memoryMiB: 4096 };
  const memory = (wanted: DesiredVm, { records }: Found): readonly number[] =>
    localInterfaces(wantedOf([wanted]), records).map(({ memoryMiB }) => memoryMiB);
  assert.deepEqual(memory(before, foundOf([], [])), [512]);
  assert.deepEqual(memory(next, foundOf([before], [])), [512]);
  assert.deepEqual(memory({ ...before, memoryMiB: 4096 }, foundOf([before], [])), [512], "it would lose its flows");
  const ended = { ...startingRecord(shop, before), stage: "ended" as const };
  assert.deepEqual(memory(next, { ...foundOf([], []), records: new Map([[before.uid, ended]]) }), [4096]);
});

test("what its host ends since nobody hears it is not asked to power off", () => {
  const [one, two] = [machine("one", "10.64.2.1"), machine("two", "10.64.2.2")];
  const found = { ...foundOf([one, two], [one, two]), isolated: new Set([one.uid]) };
  const stops = planHost(wantedOf([one, two]), found).filter(({ kind }) => kind === "stop-machine");
  assert.deepEqual(stops, [{ kind: "stop-machine", vm: one.uid, incarnation: 1, graceMs: 0 }]);
});

test("an interface of a mode of Eucalyptus is used once its agent has its address in place, and is no endpoint of Diverter", () => {
  const plain = machine("one", "10.64.2.1");
  const vm = { ...plain, interfaces: plain.interfaces.map((card) => ({ ...card, instance: "i-00000001" })) };
  const beside = machine("two", "10.64.2.1");
  const asked: (readonly string[])[] = [];
  const told =
    (why: string | null) =>
    (...about: readonly string[]) => {
      asked.push(about);
      return why;
    };
  const wanted = { ...wantedOf([vm]), policies: [] };
  assert.deepEqual(started(wanted, foundOf([], [])), [], "a host that offers no mode");
  assert.deepEqual(started(wanted, { ...foundOf([], []), whyNoTap: told("not yet") }), []);
  const [start] = planHost(wanted, { ...foundOf([], []), whyNoTap: told(null) }).filter(
    ({ kind }) => kind === "start-machine",
  );
  assert.ok(start?.kind === "start-machine");
  assert.deepEqual(
    start.interfaces.map(({ tap }) => tap),
    ["vn_i-00000001"],
  );
  assert.deepEqual(asked.at(-1), ["i-00000001", "shop"]);
  assert.deepEqual(localInterfaces(wantedOf([vm]), new Map()), []);
  // The address is the mode's: one of Diverter's that is the same is another one.
  const both = wantedOf([vm, beside]);
  assert.deepEqual(started(both, { ...foundOf([vm], [beside]), whyNoTap: told(null) }), ["two"]);
});

test("a screen is counted beside its machine, of those that run and of the one that comes", () => {
  const plain = { ...machine("one", "10.64.2.1"), memoryMiB: 100 };
  const screen: DesiredVm = { ...machine("two", "10.64.2.2"), memoryMiB: 100, display: "vga", besideMiB: displayMiB };
  const room = (capacityMiB: number, vm: DesiredVm, running: readonly DesiredVm[] = []) =>
    shortage(vm, { ...foundOf(running, []), capacityMiB });
  assert.equal(room(100 + overheadMiB, plain), null);
  assert.match(room(100 + overheadMiB + displayMiB - 1, screen) ?? "", /needs 100 MiB, its machine 192 MiB more/);
  assert.equal(room(100 + overheadMiB + displayMiB, screen), null);
  const { besideMiB: _, ...before } = screen;
  assert.deepEqual(
    [room(100 + overheadMiB, before), room(99 + overheadMiB, before) === null],
    [null, false],
    "a controller of the version before asked for no place for it",
  );
  const both = 2 * (100 + overheadMiB) + displayMiB;
  assert.deepEqual([room(both, plain, [screen]), room(both - 1, plain, [screen]) === null], [null, false]);
});

test("a screen is a part of what Placers hear that its VM takes, waiting or running, whatever was asked for", () => {
  const room = new Room();
  room.found();
  const taken = () => room.published.get("taken/a");
  const value = { memoryMiB: 100 + displayMiB, cpus: 1, by: shop };
  room.desire("vm/a", desiredVm("a", 1, { display: "vga" }));
  room.settle();
  assert.deepEqual([[...room.machines.keys()], taken()], [[], value]);
  room.desire("policy/shop", rules());
  room.settle();
  assert.deepEqual([[...room.machines.keys()], taken()], [["a"], value]);
});
