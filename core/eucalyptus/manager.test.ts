import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIpv4 } from "../../model/addresses/addresses.ts";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { documentsOf } from "../documents/readers/table.ts";
import type { Effect, Input } from "../env.ts";
import { isObject } from "../outbox.ts";
import { createNetworkViewManager } from "./manager.ts";

const [self, h1, h2] = [peerName("network-view-manager"), peerName("host.h1"), peerName("host.h2")];
const [shop, bank] = [peerName("controller.shop"), peerName("controller.bank")];
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.4"],
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.15"] }],
};
const instance = (uid: string, cell: string, groups: readonly string[] = ["net"]): Json => ({
  uid,
  cell,
  path: `${cell}/${uid}`,
  host: "h1",
  groups,
});
const rule = { protocol: 6, fromPort: 22, toPort: 22, icmpType: 0, icmpCode: 0, cidr: "0.0.0.0/0" };
const group = (uid: string, cell: string, from?: string): Json => {
  const { cidr: _, ...any } = rule;
  return { uid, cell, ingress: [from === undefined ? rule : { ...any, group: from }], egress: [] };
};

type Desired = ReadonlyMap<PeerName, ReadonlyMap<string, Json>>;
/** The manager with nodes of a cluster, of which the first has said that it has nothing in place. */
function world(records = new Map<string, Json>(), hosts: readonly PeerName[] = [h1], desiredAt: Desired = new Map()) {
  const service = createNetworkViewManager({ self, hosts, address: "10.0.0.19", controllers: [shop, bank] });
  let state = service.restore({ records: new Map(records), desiredAt });
  const published = new Map<string, Json>();
  const refused: string[] = [];
  const views = new Map<string, Json>();
  const send = (input: Input): readonly Effect[] => {
    const { state: next, effects } = service.step(state, input, { ms: 0, wallMs: 0 });
    state = next;
    for (const effect of effects)
      if (effect.kind === "publish") published.set(effect.key, effect.value);
      else if (effect.kind === "desire" && effect.value === null) views.delete(effect.key);
      else if (effect.kind === "desire") views.set(effect.key, effect.value);
      else if (effect.kind === "write" && effect.value === null) records.delete(effect.key);
      else if (effect.kind === "write") records.set(effect.key, effect.value);
      else if (effect.kind === "log" && effect.event === "document/refused")
        refused.push(`${effect.fields.from} ${effect.fields.key}: ${effect.fields.why}`);
    return effects;
  };
  const want = (from: PeerName, key: string, value: Json): void => void send({ kind: "desired", from, key, value });
  const said = (client: PeerName, uid: string): { readonly [field: string]: Json } => {
    const value = published.get(`${client}/instance/${uid}`) ?? null;
    return isObject(value) ? value : {};
  };
  const start = (): void => {
    send({ kind: "start" });
    send({ kind: "request", id: 1, request: { kind: "configure", document: configuration } });
    const network = { address: "10.0.0.1", cluster: "one", peer: "node", version: 0, instances: [] };
    send({ kind: "actual", from: h1, key: "network", value: network });
  };
  const groupSaid = (uid: string): { readonly [field: string]: Json } => {
    const value = published.get(`controller.shop/security-group/${uid}`) ?? null;
    return isObject(value) ? value : {};
  };
  return {
    records,
    refused,
    views,
    want,
    said,
    groupSaid,
    send,
    start,
    isWanted: () => [...state.wanted.keys()].sort(),
  };
}

test("a configuration that overlaps what the installation itself hands out is refused, with each place", () => {
  const range = (first: string, last: string) => ({ first: parseIpv4(first) ?? 0, last: parseIpv4(last) ?? 0 });
  const pools = [{ name: "hosts and services", range: range("10.9.0.0", "10.9.0.12") }];
  const service = createNetworkViewManager({ self, hosts: [h1], address: "10.0.0.19", controllers: [], pools });
  const state = service.restore({ records: new Map(), desiredAt: new Map() });
  const set = (document: Json): string => {
    const asked: Input = { kind: "request", id: 1, request: { kind: "configure", document } };
    const { effects } = service.step(state, asked, { ms: 0, wallMs: 0 });
    const reply = effects.find((effect) => effect.kind === "reply");
    return JSON.stringify(reply?.kind === "reply" ? reply.response : null);
  };
  assert.match(
    set(configuration),
    /\/Clusters\/0\/PrivateIps\/0: 10\.9\.0\.10-10\.9\.0\.15 overlaps .* for hosts and services/,
  );
  const [cluster] = configuration.Clusters;
  assert.match(
    set({ ...configuration, Clusters: [{ ...cluster, PrivateIps: ["10.9.0.13-10.9.0.15"] }] }),
    /"refused":null/,
  );
});

test("clusters stand in a view by their names, whichever node spoke first", () => {
  const { send, views } = world(new Map(), [h1, h2]);
  send({ kind: "start" });
  const [cluster] = configuration.Clusters;
  const two = { ...cluster, Name: "two", PrivateIps: ["10.9.0.20-10.9.0.25"] };
  const document = { ...configuration, Clusters: [two, ...configuration.Clusters] };
  send({ kind: "request", id: 1, request: { kind: "configure", document } });
  for (const [from, name, address] of [
    [h1, "two", "10.0.0.1"],
    [h2, "one", "10.0.0.2"],
  ] as const) {
    const value = { address, cluster: name, peer: "node", version: 0, instances: [] };
    send({ kind: "actual", from, key: "network", value });
  }
  const text = JSON.stringify([...views]);
  const places = ["10.0.0.2", "10.0.0.1"].map((node) => text.indexOf(node));
  assert.ok(places[0] !== undefined && places[1] !== undefined && places[0] >= 0, text);
  assert.ok(places[0] < places[1], text);
});

test("a controller speaks for its own cell alone: another's name, VM and group are refused, and each refusal is told", () => {
  const { refused, views, want, said, start, isWanted } = world();
  start();
  // The control: whoever speaks for its own has an address.
  want(shop, "security-group/net", group("net", "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  assert.deepEqual([said(shop, "web").address, refused], ["10.9.0.10", []]);
  // In the name of another cell: its owner in views says whose tap it is at a host.
  want(bank, "instance/forged", instance("forged", "shop"));
  want(bank, "security-group/forged", group("forged", "shop"));
  // About what another cell has.
  want(bank, "instance/web", instance("web", "bank"));
  want(bank, "security-group/net", group("net", "bank"));
  want(bank, "instance/net", instance("net", "bank"));
  want(shop, "instance/net", instance("net", "shop"));
  assert.deepEqual(refused.splice(0), [
    "controller.bank instance/forged: it names the cell shop",
    "controller.bank security-group/forged: it names the cell shop",
    "controller.bank instance/web: web is another cell's",
    "controller.bank security-group/net: net is another cell's",
    "controller.bank instance/net: net is another cell's",
    "controller.shop instance/net: net is a security group",
  ]);
  // Nor does it end it.
  want(bank, "instance/web", null);
  want(bank, "security-group/net", null);
  assert.deepEqual([isWanted(), said(shop, "web").address, said(bank, "web")], [["web"], "10.9.0.10", {}]);
  // Members of a group reach one another: nobody becomes one of another cell's.
  want(bank, "instance/spy", instance("spy", "bank"));
  assert.deepEqual([said(bank, "spy").address, said(bank, "spy").reason], [null, "its cell has no security group net"]);
  want(bank, "security-group/own", group("own", "bank"));
  want(bank, "instance/spy", instance("spy", "bank", ["own"]));
  assert.equal(said(bank, "spy").address, "10.9.0.11");
  // To name what somebody will have is no claim to it, and a rule about a group that is not there lets nobody in.
  want(bank, "security-group/own", group("own", "bank", "later"));
  want(shop, "instance/later", instance("later", "shop"));
  assert.deepEqual([said(shop, "later").address, refused], ["10.9.0.12", []]);
  const told = JSON.stringify([...views]);
  assert.ok(told.includes(String(said(shop, "web").id)) && !told.includes("forged"));
});

test("after a start what is stored of another cell's comes first, and what it is about stays its owner's", () => {
  const before = world();
  before.start();
  before.want(shop, "security-group/net", group("net", "shop"));
  before.want(shop, "instance/web", instance("web", "shop"));
  const { id } = before.said(shop, "web");
  const { refused, want, said, start } = world(before.records);
  want(bank, "instance/web", instance("web", "bank"));
  want(bank, "security-group/net", group("net", "bank"));
  want(shop, "security-group/net", group("net", "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  start();
  assert.deepEqual([said(shop, "web").id, said(shop, "web").address, said(bank, "web")], [id, "10.9.0.10", {}]);
  assert.equal(refused.length, 2);
  // Of one that cannot be read nobody but who stored it says that it is over.
  const third = world(before.records);
  third.want(shop, "instance/web", { broken: true });
  third.want(bank, "instance/web", null);
  third.start();
  assert.ok(third.records.has(`book/instance/${id}`));
  // And one that comes later than the start holds nothing up: distribution lets none through, and this manager neither.
  third.want(shop, "instance/web", null);
  third.want(bank, "instance/api", { broken: true });
  assert.equal(third.records.has(`book/instance/${id}`), false);
});

test("a rule of a group that is about no network is refused where it comes in: one such would keep every host from its next view", () => {
  const read = (cidr: string) => {
    const value = { uid: "net", cell: "shop", ingress: [{ ...rule, cidr }], egress: [] };
    return documentsOf("network-view-manager")("desired", shop, "security-group/net", value).ok;
  };
  assert.deepEqual(["10.0.0.0/8", "0.0.0.0/0", "10.0.0.0/33", "-A INPUT", ""].map(read), [
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("a group is ready once every host has a view with its rules, and each other view has another version", () => {
  const { want, start, said, views, send, groupSaid } = world();
  start();
  want(shop, "security-group/net", group("net", "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  const version = (): number => Number((views.get("network-view") as { version: number }).version);
  const confirm = (at: number): void => {
    const placed = [{ id: String(said(shop, "web").id), private: { address: "10.9.0.10", state: "assigned" } }];
    const network = { address: "10.0.0.1", cluster: "one", peer: "node", version: at, instances: placed };
    send({ kind: "actual", from: h1, key: "network", value: network });
  };
  const first = version();
  confirm(first);
  assert.deepEqual(groupSaid("net").phase, "ready");
  const { rules } = groupSaid("net");
  // Other rules of the same members: a view of another version, of which the host has not spoken yet.
  want(shop, "security-group/net", group("net", "shop", "net"));
  assert.ok(version() > first);
  assert.notDeepEqual(groupSaid("net").rules, rules);
  assert.equal(groupSaid("net").reason, `h1 has yet to put view ${version()} in place`);
  confirm(version() - 1);
  assert.equal(groupSaid("net").phase, "waiting");
  confirm(version());
  assert.equal(groupSaid("net").phase, "ready");
  // What nobody is a member of is in no view, and what is said again makes no other one.
  const before = version();
  want(shop, "security-group/other", group("other", "shop"));
  want(shop, "security-group/net", group("net", "shop", "net"));
  assert.deepEqual([groupSaid("net").phase, groupSaid("other").phase, version()], ["ready", "ready", before]);
  want(shop, "security-group/other", null);
  assert.deepEqual(groupSaid("other"), {});
});

test("an instance goes to another group of its cell as it runs, in a mode without segments, and to no group of another cell", () => {
  const { want, start, said, views } = world();
  start();
  for (const name of ["net", "back"]) want(shop, `security-group/${name}`, group(name, "shop"));
  want(bank, "security-group/vault", group("vault", "bank"));
  want(shop, "instance/web", instance("web", "shop"));
  const groupsOf = (): readonly string[] => {
    const items = [...views].flatMap(([key, value]) =>
      key.startsWith("network-slice/") && isObject(value) ? (value.items as string[]) : [],
    );
    const found = items.map((item) => JSON.parse(item)).findLast((item) => item.instance?.id === said(shop, "web").id);
    return found?.instance.securityGroups ?? [];
  };
  const [before] = groupsOf();
  const { address } = said(shop, "web");
  want(shop, "instance/web", instance("web", "shop", ["back"]));
  const [after] = groupsOf();
  assert.ok(before !== undefined && after !== undefined && before !== after);
  assert.equal(said(shop, "web").address, address);
  want(shop, "instance/web", instance("web", "shop", ["vault"]));
  assert.deepEqual(groupsOf(), [after]);
});

test("a host that has not been heard since a start may have other rules yet: no group is ready without it", () => {
  const places = [
    [h1, "10.0.0.1"],
    [h2, "10.0.0.2"],
  ] as const;
  const network = (address: string, version: number): Json => ({
    address,
    cluster: "one",
    peer: "node",
    version,
    instances: [],
  });
  const before = world(new Map(), [h1, h2]);
  before.start();
  for (const [from, address] of places)
    before.send({ kind: "actual", from, key: "network", value: network(address, 0) });
  before.want(shop, "security-group/net", group("net", "shop"));
  before.want(shop, "instance/web", instance("web", "shop"));
  const told = new Map(before.views);
  const after = world(before.records, [h1, h2], new Map([h1, h2].map((host) => [host, new Map(told)])));
  const version = (): number =>
    Number(((after.views.get("network-view") ?? told.get("network-view")) as { version: number }).version);
  after.want(shop, "security-group/net", group("net", "shop", "net"));
  after.want(shop, "instance/web", instance("web", "shop"));
  after.send({ kind: "start" });
  const confirm = ([from, address]: (typeof places)[number]): void =>
    void after.send({ kind: "actual", from, key: "network", value: network(address, version()) });
  confirm(places[0]);
  confirm(places[0]);
  assert.equal(after.groupSaid("net").reason, `h2 has yet to put view ${version()} in place`);
  confirm(places[1]);
  for (const place of places) confirm(place);
  assert.equal(after.groupSaid("net").phase, "ready");
});

test("a machine goes to another host though its segment keeps it from the group that it is to be in", () => {
  const { send, want, said } = world(new Map(), [h1, h2]);
  send({ kind: "start" });
  const { Subnets: _, ...managed } = { ...configuration, Mode: "MANAGED-NOVLAN", Clusters: [{ Name: "one" }] };
  const document = { ...managed, ManagedSubnet: { Subnet: "10.9.0.0", Netmask: "255.255.0.0" } };
  send({ kind: "request", id: 1, request: { kind: "configure", document } });
  for (const [host, address] of [
    [h1, "10.0.0.1"],
    [h2, "10.0.0.2"],
  ] as const) {
    const value = { address, cluster: "one", peer: "node", version: 0, instances: [] };
    send({ kind: "actual", from: host, key: "network", value });
  }
  for (const name of ["net", "back"]) want(shop, `security-group/${name}`, group(name, "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  want(shop, "instance/web", instance("web", "shop", ["back"]));
  const { reason } = said(shop, "web");
  assert.notEqual(reason, null, "in such a mode a group is for good");
  const moved = send({
    kind: "desired",
    from: shop,
    key: "instance/web",
    value: { ...(instance("web", "shop", ["back"]) as object), host: "h2" },
  });
  const nodes = moved.flatMap((effect) =>
    effect.kind === "desire" && effect.to === h2 && effect.key.startsWith("network-slice/") && isObject(effect.value)
      ? (effect.value.items as string[]).map((item) => JSON.parse(item).node)
      : [],
  );
  assert.ok(nodes.includes("10.0.0.2"), JSON.stringify(moved));
  assert.equal(said(shop, "web").reason, reason, "what it is still refused");
});

test("a controller that says more rules than its cell may have stops no view: what is beyond lets nobody in, and is told", () => {
  const { want, start, groupSaid, views } = world();
  start();
  const long = (uid: string, cell: string): Json => ({
    ...(group(uid, cell) as object),
    ingress: Array(500).fill(rule),
  });
  for (let at = 0; at < 9; at += 1) {
    want(shop, `security-group/g${at}`, long(`g${at}`, "shop"));
    if (at % 8 === 0) want(shop, `instance/v${at}`, instance(`v${at}`, "shop", [`g${at}`]));
  }
  want(bank, "security-group/vault", long("vault", "bank"));
  want(bank, "instance/safe", instance("safe", "bank", ["vault"]));
  assert.match(String(groupSaid("g8").reason), /more than 4000 rules together/);
  assert.doesNotMatch(String(groupSaid("g7").reason), /more than/);
  const lines = [...views].flatMap(([key, value]) =>
    key.startsWith("network-slice/") && isObject(value)
      ? (value.items as string[]).map((item) => JSON.parse(item).group?.ingress.length ?? 0)
      : [],
  );
  // Of those with members: the first of the shop's, its last, the bank's.
  assert.deepEqual(
    lines.filter((count) => count > 0),
    [500, 500],
  );
});

test("an id is nobody's once no host can have anything of its name, and not before", () => {
  const { want, send, start, records } = world(new Map(), [h1, h2]);
  start();
  const placed = (host: PeerName, version: number): void => {
    const network = { address: host === h1 ? "10.0.0.1" : "10.0.0.2", cluster: "one", peer: "node" };
    send({ kind: "actual", from: host, key: "network", value: { ...network, version, instances: [] } });
  };
  placed(h2, 0);
  // The other cell has its networks from Diverter, and never speaks here.
  send({ kind: "complete", peer: shop });
  const ids = (): readonly string[] => [...records.keys()].filter((key) => key.startsWith("id/")).sort();
  const version = (): number => Number((records.get("told") as { readonly version: number }).version);
  want(shop, "security-group/net", group("net", "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  for (const host of [h1, h2]) placed(host, version());
  want(shop, "instance/web", null);
  want(shop, "security-group/net", null);
  assert.deepEqual(ids(), ["id/net", "id/web"]);
  placed(h1, version());
  assert.deepEqual(ids(), ["id/net", "id/web"], "the other host may have it");
  send({ kind: "actual", from: h2, key: "network", value: null });
  send({ kind: "reachable", peer: h2, reachable: false });
  placed(h1, version());
  assert.deepEqual(ids(), ["id/net", "id/web"], "and so may one of which nothing is heard");
  // Who has it again meanwhile keeps it.
  want(shop, "security-group/net", group("net", "shop"));
  placed(h2, version());
  placed(h1, version());
  assert.deepEqual(ids(), ["id/net"]);
  want(shop, "security-group/net", null);
  for (const host of [h1, h2]) placed(host, version());
  assert.deepEqual(ids(), []);
  // Of a cell that has not said all that it has nothing is given up.
  want(bank, "security-group/other", group("other", "bank"));
  want(bank, "security-group/other", null);
  for (const host of [h1, h2, h1, h2]) placed(host, version());
  assert.deepEqual(ids(), ["id/other"]);
  send({ kind: "complete", peer: bank });
  placed(h1, version());
  assert.deepEqual(ids(), []);
});

test("with a store its configuration is lost, too: what machines have stays theirs until there is one again", () => {
  const first = world();
  first.start();
  first.want(shop, "security-group/net", group("net", "shop"));
  first.want(shop, "instance/web", instance("web", "shop"));
  const id = first.said(shop, "web").id ?? null;
  const { want, send, said } = world();
  send({ kind: "start" });
  const has = [{ id, private: { address: "10.9.0.12", state: "assigned" } }];
  const network = { address: "10.0.0.1", cluster: "one", peer: "node", version: 5, instances: has };
  send({ kind: "actual", from: h1, key: "network", value: network });
  want(shop, "security-group/net", group("net", "shop"));
  want(shop, "instance/web", instance("web", "shop"));
  for (const controller of [shop, bank]) send({ kind: "complete", peer: controller });
  assert.equal(said(shop, "web").address, null);
  send({ kind: "request", id: 1, request: { kind: "configure", document: configuration } });
  assert.deepEqual([said(shop, "web").id, said(shop, "web").address], [id, "10.9.0.12"]);
});

test("what a group gives up in a view that is full is another's at once, who waited for it", () => {
  const { want, groupSaid, start } = world();
  const say = (cell: string, uid: string, count: number): void => {
    const value = { uid, cell, ingress: Array(count).fill(rule), egress: [] };
    want(peerName(`controller.${cell}`), `security-group/${uid}`, value);
  };
  for (let cell = 0; cell < 9; cell += 1) for (let at = 0; at < 8; at += 1) say(`c${cell}`, `c${cell}-${at}`, 500);
  for (const [at, count] of [500, 500, 448].entries()) say("bank", `rest-${at}`, count);
  // All but 1956 of 190,000 elements.
  say("bank", "z", 100);
  start();
  say("shop", "a", 480);
  assert.match(String(groupSaid("a").reason), /a view of the network has no room for its rules/);
  say("bank", "z", 500);
  assert.match(String(groupSaid("a").reason), /h1 has yet to put view/, "100 rules of the other's are none now");
});

test("an instance that is refused takes no room in a view from one that is not, however often both are asked about", () => {
  const { want, said, start } = world();
  const rules = (uid: string, cell: string, count: number): Json => ({
    uid,
    cell,
    ingress: Array(count).fill(rule),
    egress: [],
  });
  // All but 17 of 190,000 elements: room for one instance.
  const cells = Array.from({ length: 9 }, (_, index) => `c${index}`);
  const groups = [
    ...cells.flatMap((cell) => Array.from({ length: 8 }, (_, index) => [cell, `${cell}-${index}`, 500] as const)),
    ...[500, 500, 500, 435].map((count, index) => ["bank", `rest-${index}`, count] as const),
  ];
  for (const [cell, uid, count] of groups)
    want(peerName(`controller.${cell}`), `security-group/${uid}`, rules(uid, cell, count));
  start();
  want(shop, "security-group/net", { uid: "net", cell: "shop", ingress: [], egress: [] });
  want(shop, "instance/a", instance("a", "shop", []));
  want(shop, "instance/b", instance("b", "shop"));
  assert.match(String(said(shop, "a").reason), /is in no security group/);
  assert.equal(said(shop, "b").address, "10.9.0.10");
  want(shop, "instance/c", instance("c", "shop"));
  assert.match(String(said(shop, "c").reason), /a view of the network has no room for one more instance/);
});
