import assert from "node:assert/strict";
import { test } from "node:test";
import { presenceKey } from "../../core/documents/presence.ts";
import type { DesiredVm } from "../../core/documents/vocabulary.ts";
import { toJson } from "../../core/outbox.ts";
import { elementPath, hostName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import type { Json } from "../../model/json/json.ts";
import { member, root, rootVm, standby, volumes } from "../root-vm/succession.testing.ts";
import { Room } from "./manager.testing.ts";

const controller = peerName("controller.root");
const interfaces: DesiredVm["interfaces"] = [
  {
    uid: uid("root-9"),
    path: elementPath("root/core1/interface"),
    mac: mac("02:00:00:00:00:09"),
    address: ipv4("10.0.0.31"),
    prefixLength: 16,
    gateway: ipv4("0.0.0.0"),
    nameServer: ipv4("10.0.0.31"),

    hostName: "core1",
    domain: "root.cells.internal",
    identity: 2,
    vmIdentity: 3,
    subnetIdentity: 4,
    audience: [],
    management: true,
  },
];
const document = (host: string, incarnation: number) => {
  const { vm, ...rest } = standby(host, incarnation);
  return { ...rest, vm: { ...vm, interfaces } };
};
const holder = (host: string, incarnation: number): Json => ({ vm: root, incarnation, host });
/** What agents say of both volumes. */
const leased = (room: Room, host: string, incarnation: number, epoch: number): void => {
  for (const { volume, agent } of volumes)
    room.input({
      kind: "actual",
      from: agent,
      key: `successor/${volume}`,
      value: { epoch, holder: holder(host, incarnation) },
    });
};
const layer = (volume: string, epoch: number): Json => ({
  volume,
  address: "10.0.2.1",
  port: 20000,
  exportName: `e${epoch}`,
  pskIdentity: "i",
  pskHex: "00",
  writable: true,
});

const deadHost: Json = { host: "h0", generation: 1, incarnation: 0, declaredAt: 0, reporters: 3 };
/** h1, of four hosts, hears that the one with the root controller's VM was declared dead. */
const candidate = (): Room => {
  const room = new Room();
  room.found();
  room.desire("root-vm", toJson(document("h0", 1)), controller);
  room.ask({ kind: "presence-follow", members: [member] });
  room.ask({ kind: "presence-hosts", hosts: ["h0", "h1", "h2", "h3"].map(hostName) });
  room.ask({
    kind: "presence-heard",
    hosts: [
      [hostName("h2"), 1],
      [hostName("h3"), 1],
    ],
  });
  room.input({ kind: "actual", from: member, key: presenceKey.death("h0"), value: deadHost });
  room.settle();
  assert.deepEqual(room.log, ["implement-network"], "not before its turn");
  room.ms = 3_000;
  room.input({ kind: "timer", name: "succession" });
  return room;
};
const takesOver = (room: Room): void => {
  leased(room, "h0", 1, 1);
  for (const { volume, agent } of volumes) {
    leased(room, "h1", 2, 2);
    const value = { phase: "ready", reason: null, epoch: 2, holder: holder("h1", 2), layer: layer(volume, 2) };
    room.input({ kind: "actual", from: agent, key: `host.h1/succession/${volume}`, value });
  }
};

test("a host that takes over puts the VM's interface in place and starts it, without a controller's word", () => {
  const room = candidate();
  for (const { agent } of volumes) assert.ok(room.subscribed.has(agent));
  leased(room, "h0", 1, 1);
  const { volume, agent } = volumes[0] ?? assert.fail();
  const value = { phase: "ready", reason: null, epoch: 2, holder: holder("h1", 2), layer: layer(volume, 2) };
  room.input({ kind: "actual", from: agent, key: `host.h1/succession/${volume}`, value });
  room.settle();
  assert.deepEqual(room.log, ["implement-network"], "not with one lease of two");
  takesOver(room);
  room.settle();
  assert.deepEqual(room.log, ["implement-network", "implement-network", `start-machine ${root}`]);
  const actual = room.published.get(`${controller}/vm/${root}`) as {
    readonly incarnation: number;
    readonly power: string;
  };
  assert.deepEqual([actual.incarnation, actual.power], [2, "on"], "by which its controller finds where it runs");

  // The controller says so itself: nothing changes, and what the host kept of it goes.
  const vm = room.state.records.get(root)?.vm ?? assert.fail();
  room.desire("policy/root", { ...document("h1", 2).policy, version: 7 }, controller);
  room.desire(`vm/${root}`, vm, controller);
  room.desire("root-vm", toJson(document("h1", 2)), controller);
  room.settle();
  assert.equal(room.durable.has("succession"), false);
  assert.equal(room.log.filter((line) => line !== "implement-network").length, 1);

  // Another host succeeds this one in turn: the machine goes at once.
  leased(room, "h2", 3, 3);
  room.settle();
  assert.deepEqual(room.log.slice(-3), [`stop-machine ${root}`, "implement-network", `release-disks ${root}`]);
  assert.equal(room.machines.size, 0);
});

test("a host that comes back does not start the VM from its own store before it has asked who has it", () => {
  const room = new Room();
  room.found();
  room.desire("root-vm", toJson(document("h1", 1)), controller);
  room.desire("policy/root", document("h1", 1).policy, controller);
  room.desire(`vm/${root}`, { ...rootVm(1), interfaces }, controller);
  room.settle();
  assert.deepEqual(room.log, ["implement-network"]);
  const said = (): Json | undefined => room.published.get(`${controller}/vm/${root}`);
  assert.match(JSON.stringify(said()), /waits to hear from storage server s1/);
  leased(room, "h1", 1, 1);
  room.settle();
  assert.equal(room.machines.get(root), 1, "it has it still");
  room.machines.delete(root);
  room.ask({ kind: "machine-ended", end: { vm: root, incarnation: 1, ended: "crashed", detail: "killed" } });
  leased(room, "h2", 2, 2);
  room.input({ kind: "timer", name: `retry/${root}` });
  room.settle();
  assert.equal(room.machines.size, 0);
  assert.equal(said(), undefined);
});

test("what keeps a host from taking over is in its status", () => {
  const room = candidate();
  for (const { agent } of volumes) room.input({ kind: "reachable", peer: agent, reachable: false });
  assert.match(JSON.stringify(room.ask({ kind: "status" })), /waits for storage server s1/);
  const fresh = new Room();
  assert.doesNotMatch(JSON.stringify(fresh.ask({ kind: "status" })), /remark/);
});
