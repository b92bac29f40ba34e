import assert from "node:assert/strict";
import { test } from "node:test";
import { type PeerName, peerName } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { documentsOf } from "../documents/readers/table.ts";
import type { Effect, Input } from "../env.ts";
import { isObject } from "../outbox.ts";
import { createNetworkViewManager } from "./manager.ts";

const [self, h1] = [peerName("network-view-manager"), peerName("host.h1")];
const [shop, bank] = [peerName("controller.shop"), peerName("controller.bank")];
const configuration = {
  ...{ Mode: "EDGE", InstanceDnsServers: ["10.1.1.1"], PublicIps: ["192.0.2.1-192.0.2.4"] },
  Subnets: [{ Name: "s", Subnet: "10.9.0.0", Netmask: "255.255.255.0", Gateway: "10.9.0.1" }],
  Clusters: [{ Name: "one", Subnet: { Name: "s" }, PrivateIps: ["10.9.0.10-10.9.0.15"] }],
};
const instance = (uid: string, cell: string, groups: readonly string[] = ["net"]): Json => ({
  ...{ uid, cell, path: `${cell}/${uid}`, host: "h1", groups },
});
const rule = { protocol: 6, fromPort: 22, toPort: 22, icmpType: 0, icmpCode: 0, cidr: "0.0.0.0/0" };
const group = (uid: string, cell: string, from?: string): Json => {
  const { cidr: _, ...any } = rule;
  return { uid, cell, ingress: [from === undefined ? rule : { ...any, group: from }], egress: [] };
};

/** The manager with one node of a cluster, which has said that it has nothing in place. */
function world(records = new Map<string, Json>()) {
  const service = createNetworkViewManager({ self, hosts: [h1], address: "10.0.0.19", controllers: [shop, bank] });
  let state = service.restore({ records: new Map(records), desiredAt: new Map() });
  const published = new Map<string, Json>();
  const refused: string[] = [];
  const views = new Map<string, Json>();
  const send = (input: Input): readonly Effect[] => {
    const { state: next, effects } = service.step(state, input, { ms: 0, wallMs: 0 });
    state = next;
    for (const effect of effects)
      if (effect.kind === "publish") published.set(effect.key, effect.value);
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
  return { records, refused, views, want, said, start, isWanted: () => [...state.wanted.keys()].sort() };
}

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
    ...[true, true, false, false, false],
  ]);
});
