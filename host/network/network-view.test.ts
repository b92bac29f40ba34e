import assert from "node:assert/strict";
import { test } from "node:test";
import { noSlices } from "../../core/distribution/views/slices.ts";
import type { ActualHost } from "../../core/documents/vocabulary.ts";
import type { Effect, Input } from "../../core/env.ts";
import { createNetworkViewManager } from "../../core/eucalyptus/manager.ts";
import { isObject } from "../../core/outbox.ts";
import { ipv4, type PeerName, peerName, uid } from "../../model/cell/identifiers.ts";
import { type Mode, modes } from "../../model/cell/network/modes.ts";
import type { NetworkView } from "../../model/eucalyptus/view/network-view.ts";
import { readView } from "../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../model/eucalyptus/view/write-view.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostState } from "../known.ts";
import { whatIsHere } from "../service/inventory.ts";
import { host } from "../service/manager.testing.ts";
import { createHostManager } from "../service/manager.ts";
import {
  beginNetwork,
  endNetworkOfBoot,
  modeAt,
  type NetworkAtHost,
  networkSaid,
  placedOf,
  restoreNetwork,
  takeNetworkDesire,
  whyNoTap,
} from "./network-view.ts";

/* The Network View Manager and a Host Manager, and between them what each says: configuration down to a view's file, and back. */

const [manager, shop, h1] = [peerName("network-view-manager"), peerName("controller.shop"), peerName("host.h1")];
const configuration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.1.1.1"],
  PublicIps: ["192.0.2.1-192.0.2.4"],
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.15"] }],
};
const instance = (name: string): Json => ({
  uid: name,
  cell: "shop",
  path: `shop/${name}`,
  host: "h1",
  groups: ["net"],
});
const rule = { protocol: 6, fromPort: 22, toPort: 22, icmpType: 0, icmpCode: 0, cidr: "0.0.0.0/0" };
const group: Json = { uid: "net", cell: "shop", ingress: [rule], egress: [] };

interface Peer {
  take(input: Input): readonly Effect[];
  readonly records: Map<string, Json>;
}
const empty = { desiredAt: new Map<PeerName, ReadonlyMap<string, Json>>() };
/** Runs a service over records of its own. */
const peerOf = <State>(service: {
  restore(restored: {
    records: Map<string, Json>;
    desiredAt: Map<PeerName, ReadonlyMap<string, Json>>;
    wasRestored?: boolean;
  }): State;
  step(state: State, input: Input, now: { ms: number; wallMs: number }): { state: State; effects: readonly Effect[] };
}): Peer => {
  const records = new Map<string, Json>();
  let state = service.restore({ ...empty, records });
  return {
    records,
    take(input) {
      const { state: next, effects } = service.step(state, input, { ms: 0, wallMs: 0 });
      state = next;
      for (const effect of effects) if (effect.kind === "write") records.set(effect.key, effect.value);
      return effects;
    },
  };
};

const world = (controllers: readonly PeerName[] = []) => {
  const views: NetworkView[] = [];
  const options = { host, wake: () => undefined };
  const onView = (view: NetworkView): void => void views.push(view);
  const offers = peerOf(createHostManager({ ...options, network: { cluster: "one", peer: "node", onView } }));
  const book = peerOf(createNetworkViewManager({ self: manager, hosts: [h1], address: "10.0.0.19", controllers }));
  const published = new Map<string, Json>();
  /** Until nobody says anything new. */
  const send = (to: Peer, input: Input): readonly Effect[] => {
    const effects = to.take(input);
    for (const effect of effects) {
      if (effect.kind === "desire" && effect.to === h1)
        send(offers, { kind: "desired", from: manager, key: effect.key, value: effect.value });
      if (effect.kind !== "publish") continue;
      if (to === book) published.set(effect.key, effect.value);
      else if (effect.key === "network") send(book, { kind: "actual", from: h1, key: "network", value: effect.value });
    }
    return effects;
  };
  const ask = (to: Peer, request: Json): Json => {
    const replies = send(to, { kind: "request", id: 1, request });
    return replies.flatMap((effect) => (effect.kind === "reply" ? [effect.response] : []))[0] ?? null;
  };
  const place = (instances: readonly { readonly id: string; readonly at: number }[], version = "0"): void => {
    const placed = placedOf({
      appliedVersion: version,
      instances: instances.map(({ id, at }) => ({ id, privateIp: { address: at, state: "assigned" } })),
    });
    ask(offers, { kind: "network-placed", placed } as unknown as Json);
  };
  const want = (key: string, value: Json): void => void send(book, { kind: "desired", from: shop, key, value });
  const said = (name: string): { readonly [field: string]: Json } => {
    const value = published.get(`${shop}/instance/${name}`) ?? null;
    return isObject(value) ? value : {};
  };
  return { views, send, ask, place, want, said, offers, book };
};

test("a configuration becomes a view in the file's form at a host, and an instance is ready once the host says so", () => {
  const { views, send, ask, place, want, said, offers, book } = world();
  send(book, { kind: "start" });
  send(offers, { kind: "start" });
  const set = (document: Json) => ask(book, { kind: "configure", document });
  assert.match(JSON.stringify(ask(book, { kind: "configuration" })), /there is no network configuration yet/);
  assert.match(JSON.stringify(set({ ...configuration, PublicIps: ["x"] })), /"refused":\["\/PublicIps\/0: /);
  assert.match(JSON.stringify(set(configuration)), /"refused":null/);
  want("instance/web", instance("web"));
  want("security-group/net", group);
  assert.match(String(said("web").reason), /h1 has yet to say what is in place there/);
  assert.equal(views.length, 0, "no view before the host has been heard");
  place([]);
  send(book, { kind: "reachable", peer: h1, reachable: true });
  assert.deepEqual([said("web").phase, said("web").address], ["waiting", "10.9.0.10"]);
  const view = views.at(-1) ?? assert.fail("no view");
  const read = readView(writeView(view));
  assert.ok(read.ok, JSON.stringify(read));
  assert.deepEqual(
    [read.value.view.instances.map(({ id }) => id), read.value.view.clusters[0]?.nodes.map(({ name }) => name)],
    [[said("web").id], [host.address]],
  );
  assert.equal(view.securityGroups[0]?.ingress[0]?.toPort, 22);
  place([{ id: String(said("web").id), at: view.instances[0]?.privateIp ?? 0 }], view.version);
  assert.equal(said("web").phase, "ready");
  // It ends: free once its host says that it is gone.
  want("instance/web", null);
  want("instance/api", instance("api"));
  assert.equal(said("api").address, "10.9.0.11");
  place([], views.at(-1)?.version);
  want("instance/db", instance("db"));
  assert.equal(said("db").address, "10.9.0.10");
  assert.match(JSON.stringify(set({ ...configuration, Mode: "STATIC" })), /mode would be STATIC instead of EDGE/);
});

test("a manager that lost its store gives nothing out before the host was heard, and an instance keeps what it has in place", () => {
  const { views, send, ask, place, want, said, offers, book } = world([shop]);
  // What is in place there nobody here knows.
  send(offers, { kind: "start" });
  const [, id] = /"id":"(i-[0-9a-f]{8})"/.exec(idsOf()) ?? [];
  place([{ id: id ?? "", at: 0x0a09000a }], "7");
  send(book, { kind: "start" });
  ask(book, { kind: "configure", document: configuration });
  want("security-group/net", group);
  want("instance/api", instance("api"));
  send(book, { kind: "actual", from: h1, key: "network", value: networkOf(offers) });
  assert.match(String(said("api").reason), /its owners have yet to say what they have/);
  assert.equal(views.length, 0);
  // Whoever has what was found says so, and nobody is waited for any longer.
  want("instance/web", instance("web"));
  assert.equal(said("web").address, "10.9.0.10");
  assert.deepEqual([said("api").address, views.at(-1)?.instances.length], ["10.9.0.11", 2]);
  assert.ok(Number(views.at(-1)?.version) > 7, "later than any view that the host has had");
});

/** As a manager that knew the instance had named it. */
function idsOf(): string {
  const { send, want, said, book } = world();
  send(book, { kind: "start" });
  want("instance/web", instance("web"));
  return JSON.stringify(said("web"));
}
/** What the host says, once more. */
function networkOf(offers: Peer): Json {
  offers.take({ kind: "desired", from: shop, key: `vm/${uid("none")}`, value: null });
  const instances = [{ id: JSON.parse(idsOf()).id, private: { address: "10.9.0.10", state: "assigned" } }];
  return { address: host.address, cluster: "one", peer: "node", version: 7, instances };
}

test("a node offers the mode of the view that it has in place, and each tap to the cell alone whose instance it is", () => {
  const onView = (): void => undefined;
  const at = (peer: "node" | "network", version: number): NetworkAtHost => ({
    ...restoreNetwork(new Map(), { cluster: "one", peer, onView }, host),
    mode: "EDGE",
    owners: new Map([["i-00000001", "shop"]]),
    placed: {
      version,
      instances: [
        { id: "i-00000001", private: { address: ipv4("10.9.0.10"), state: version > 1 ? "assigned" : "pending" } },
      ],
    },
  });
  assert.deepEqual(modeAt(at("node", 1)), { networkMode: "EDGE" });
  assert.deepEqual(modeAt(at("node", 0)), {}, "nothing is in place");
  assert.deepEqual(modeAt(at("network", 1)), {}, "a network host runs no instances");
  assert.deepEqual(modeAt(restoreNetwork(new Map(), undefined, host)), {});
  assert.equal(whyNoTap(at("node", 2), "i-00000001", "shop"), null);
  assert.match(whyNoTap(at("node", 1), "i-00000001", "shop") ?? "", /yet to be put in place/);
  assert.match(whyNoTap(at("node", 2), "i-00000001", "bank") ?? "", /is another cell's/);
  assert.match(whyNoTap(at("node", 2), "i-00000002", "shop") ?? "", /no view of the network/);
  const unheard = { ...at("node", 2), owners: new Map() };
  for (const cell of ["shop", "bank"])
    assert.match(whyNoTap(unheard, "i-00000001", cell) ?? "", /no view of the network that has come here/);
});

test("in SYSTEM a tap is its cell's once its instance is named here, whether or not an address was heard of it", () => {
  const offered = { cluster: "one", peer: "node", onView: (): void => undefined } as const;
  const at = (heard: object): NetworkAtHost => ({
    ...restoreNetwork(new Map(), offered, host),
    mode: "SYSTEM",
    owners: new Map([["i-00000001", "shop"]]),
    placed: { version: 2, instances: [{ id: "i-00000001", ...heard }] },
  });
  assert.equal(whyNoTap(at({}), "i-00000001", "shop"), null);
  assert.match(whyNoTap({ ...at({}), mode: "STATIC" }, "i-00000001", "shop") ?? "", /no view of the network/);
  assert.match(whyNoTap(at({}), "i-00000001", "bank") ?? "", /is another cell's/);
  assert.match(whyNoTap({ ...at({}), owners: new Map() }, "i-00000001", "shop") ?? "", /that has come here/);
  const unnamed = { ...at({}), placed: { version: 2, instances: [] } };
  assert.match(whyNoTap(unnamed, "i-00000001", "shop") ?? "", /that is in place here/);
  const failed = { private: { address: ipv4("10.88.0.7"), state: "failed", reason: "no bridge" } };
  assert.equal(whyNoTap(at(failed), "i-00000001", "shop"), "no bridge");
});

test("a view that was told to an earlier boot of the machine is not handed on, and one of a boot that is said to be over goes", () => {
  const handed: NetworkView[] = [];
  const network = restoreNetwork(
    new Map(),
    { cluster: "one", peer: "node", onView: (view) => handed.push(view) },
    host,
  );
  const head = { mode: "EDGE", clusters: [{ name: "one", nodes: [{ name: host.address, instances: [] }] }] };
  const tell = (boot: number | undefined, version: number): void => {
    const slices = { count: 0, digest: noSlices };
    const value = { version, head: JSON.stringify(head), slices, ...(boot === undefined ? {} : { boot }) };
    takeNetworkDesire(network, { kind: "network-view", name: "", value: value as unknown as Json }, 0, []);
  };
  network.boot = 8;
  beginNetwork(network, { ms: 0, wallMs: 0 }, []);
  tell(7, 1);
  assert.deepEqual([handed.length, network.mode], [0, null]);
  tell(8, 1);
  assert.deepEqual([handed.length, network.mode], [1, "EDGE"]);
  // Of a manager that knows of no boots.
  tell(undefined, 2);
  assert.equal(handed.length, 2);
  assert.equal(networkSaid(network, host.address)?.boot, 8);
  endNetworkOfBoot(network, 9);
  assert.deepEqual([handed.at(-1)?.clusters[0]?.nodes, network.mode], [[], null]);
  tell(8, 3);
  assert.equal(handed.length, 3, "nothing more of that boot is put in place");
});

const asking = { address: "172.20.0.10", instance: "i-00000001", mac: "d0:0d:00:00:00:01", hostName: "db" };
const userData = { userData: "#!/bin/sh\njoin --token secret\n" };
const theirs = { interfaces: [asking], data: userData };
const toldTo = (mode: Mode | null, from: string, stage = "running") =>
  whatIsHere(
    { records: new Map([["db", { stage, vm: theirs }]]), network: { mode } } as unknown as HostState,
    {} as ActualHost,
    { kind: "instance", address: from },
  );

test("an instance is known by its address where a mode holds it to that, and nowhere else", () => {
  for (const mode of modes) {
    const isHeld = mode !== "STATIC" && mode !== "SYSTEM";
    const known = { ...asking, data: userData };
    assert.deepEqual(toldTo(mode, asking.address), isHeld ? known : null, mode);
    assert.equal(toldTo(mode, "172.20.0.11"), null);
    assert.equal(toldTo(mode, asking.address, "ended"), null);
  }
  assert.equal(toldTo(null, asking.address), null);
});
