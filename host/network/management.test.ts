import assert from "node:assert/strict";
import { test } from "node:test";
import type { ActualHost, CellPolicy, DesiredInterface, DesiredVm } from "../../core/documents/vocabulary.ts";
import {
  type CellName,
  cellName,
  elementPath,
  hostName,
  ipv4,
  mac,
  type PeerName,
  peerName,
  uid,
} from "../../model/cell/identifiers.ts";
import { localInterfaces, obstacle, planHost, startingRecord } from "../service/planner.ts";
import { publications } from "../service/publications.ts";
import type { Found, Wanted } from "../wanted.ts";

const [root, shop] = [peerName("controller.root"), peerName("controller.shop")];
const cellOf = (client: PeerName): CellName => cellName(client.slice("controller.".length));
const card: DesiredInterface = {
  uid: uid("if"),
  path: elementPath("root/vm/net"),
  mac: mac("02:ce:0a:00:00:1e"),
  address: ipv4("10.0.0.30"),
  prefixLength: 16,
  gateway: ipv4("0.0.0.0"),
  nameServer: ipv4("10.0.3.1"),
  hostName: "vm",
  domain: "root.cells.internal",
  identity: 1,
  vmIdentity: 2,
  subnetIdentity: 3,
  audience: [hostName("h2")],
  management: true,
};
const vmOf = (client: PeerName, interfaces: readonly DesiredInterface[] = [card]): DesiredVm => ({
  uid: uid("vm"),
  cell: cellOf(client),
  path: elementPath("root/vm"),
  name: "vm",
  incarnation: 1,
  power: "on",
  memoryMiB: 100,
  cpus: 1,
  disks: [],
  interfaces,
  data: null,
});
const wantedOf = (client: PeerName, desired = vmOf(client)): Wanted => {
  const controller = { address: ipv4("10.0.3.1"), mac: mac("02:00:00:00:03:01"), identity: 1 };
  const policy: CellPolicy = {
    cell: cellOf(client),
    cellNumber: 1,
    version: 1,
    rules: [],
    networks: [],
    controller,
    hosts: [],
  };
  return {
    vms: new Map([[desired.uid, { client, desired }]]),
    policies: [policy],
    locations: [],
    entrances: new Map(),
  };
};
const nothing: Found = {
  records: new Map(),
  revision: null,
  allocation: { interfaces: [], policies: [] },
  busy: new Set(),
  stalled: new Map(),
  boot: null,
  capacityMiB: 1000,
  capacityCpus: 16,
};
const host = { host: hostName("h1"), mac: mac("02:00:00:00:01:01") } as ActualHost;
const refusals = (wanted: Wanted, found: Found): readonly string[] =>
  planHost(wanted, found).flatMap((action) => (action.kind === "refuse-machine" ? [action.reason] : []));

test("only the root cell's controller gets an interface on the management network; another's VM fails with a sentence", () => {
  assert.deepEqual(refusals(wantedOf(shop), nothing), [
    "its interface root/vm/net is on the management network, which hosts give to VMs of the root cell alone",
  ]);
  assert.deepEqual(localInterfaces(wantedOf(shop), new Map()), [], "no tap before it is refused either");
  assert.deepEqual(refusals(wantedOf(root), nothing), []);
  assert.equal(localInterfaces(wantedOf(root), new Map()).length, 1);
  const { management: _management, ...ordinary } = card;
  assert.deepEqual(refusals(wantedOf(shop, vmOf(shop, [ordinary])), nothing), [], "an ordinary one is everybody's");
});

test("the child that the authority says is the way in has its gateway there, at that one address, and nothing else", () => {
  const roles = (...names: string[]) => ({ format: 2, roles: Object.fromEntries(names.map((name) => [name, {}])) });
  const gateway: DesiredVm = { ...vmOf(shop), data: roles("gateway") };
  const entrances = new Map([[shop, card.address]]);
  const wanted = { ...wantedOf(shop, gateway), entrances };
  assert.deepEqual(refusals(wanted, nothing), []);
  assert.equal(localInterfaces(wanted, new Map()).length, 1);
  const beside = { ...wantedOf(shop, { ...gateway, data: roles("gateway", "personality.caas") }), entrances };
  assert.deepEqual(refusals(beside, nothing), [], "personalities stand beside it");
  assert.equal(localInterfaces(beside, new Map()).length, 1);
  const elsewhere = new Map([[shop, ipv4("10.0.0.31")]]);
  const others: readonly [DesiredVm, Wanted["entrances"]][] = [
    [{ ...gateway, data: roles("gateway", "placer") }, entrances],
    [{ ...gateway, data: roles("personality.caas") }, entrances],
    [{ ...gateway, data: roles("gateway", "personality.other") }, entrances],
    [{ ...gateway, data: roles() }, entrances],
    [{ ...gateway, data: null }, entrances],
    [gateway, elsewhere],
    [gateway, new Map([[peerName("controller.bank"), card.address]])],
  ];
  for (const [vm, said] of others) {
    const refused = { ...wantedOf(shop, vm), entrances: said };
    assert.match(refusals(refused, nothing).join(), /^its interface root\/vm\/net is on the management network, w/);
    assert.deepEqual(localInterfaces(refused, new Map()), []);
  }
  assert.match(
    refusals({ ...wantedOf(shop, gateway), entrances: elsewhere }, nothing).join(),
    /where this cell may have its gateway at 10\.0\.0\.31 alone$/,
  );
  // Before the authority has spoken, nothing is refused for good, and nothing starts that it may not know of.
  const unheard: Wanted = { ...wantedOf(shop, gateway), entrancesUnheard: true };
  assert.deepEqual(
    planHost(unheard, nothing).map(({ kind }) => kind),
    ["implement-network"],
  );
  assert.match(obstacle(gateway, unheard, nothing, new Map()) ?? "", /^waits for the authority to say/);
  assert.deepEqual(localInterfaces(unheard, new Map()), []);
  assert.equal(obstacle(gateway, { ...unheard, entrances }, nothing, new Map())?.startsWith("the interface"), true);
  // What is taken back is closed at once, also to a machine that runs.
  const running = new Map([[uid("vm"), { ...startingRecord(shop, gateway), stage: "running" as const }]]);
  assert.equal(localInterfaces(wanted, running).length, 1);
  assert.deepEqual(localInterfaces({ ...wanted, entrances: new Map() }, running), []);
});

test("a VM that runs gets none by a later document of another cell, nor by what is remembered of it", () => {
  for (const [client, count] of [
    [shop, 0],
    [root, 1],
  ] as const) {
    const running = { ...startingRecord(client, vmOf(client, [])), stage: "running" as const };
    assert.equal(localInterfaces(wantedOf(client), new Map([[uid("vm"), running]])).length, count);
    const remembered = { ...startingRecord(client, vmOf(client)), stage: "running" as const };
    const unwanted = { ...wantedOf(client), vms: new Map() };
    assert.equal(localInterfaces(unwanted, new Map([[uid("vm"), remembered]])).length, count);
  }
});

test("a host that has no bridge for it says so for good, and nobody is told a location", () => {
  const wanted = wantedOf(root);
  const [network] = planHost(wanted, nothing);
  assert.ok(network?.kind === "implement-network");
  const inPlace = (more: {
    readonly ready: boolean;
    readonly reason: string | null;
    readonly refused?: true;
  }): Found => ({
    ...nothing,
    revision: network.revision,
    allocation: { interfaces: [{ interface: card.uid, tap: "t1", ...more }], policies: [] },
  });
  const refused = inPlace({ ready: false, reason: "this host has no bridge", refused: true });
  assert.deepEqual(refusals(wanted, refused), [
    "the interface root/vm/net cannot be had here: this host has no bridge",
  ]);
  const ready = inPlace({ ready: true, reason: null });
  assert.deepEqual(
    planHost(wanted, ready).map(({ kind }) => kind),
    ["start-machine"],
  );
  const located = (from: Wanted): boolean =>
    [...publications(from, ready, host, new Map()).keys()].some((key) => key.startsWith("location/"));
  assert.equal(located(wanted), false);
  const { management: _management, ...ordinary } = card;
  assert.equal(located(wantedOf(root, vmOf(root, [ordinary]))), true);
});
