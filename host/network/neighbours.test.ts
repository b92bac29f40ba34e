import assert from "node:assert/strict";
import { test } from "node:test";
import { hostName, ipv4, mac, peerName, uid } from "../../model/cell/identifiers.ts";
import { canRun, Machine } from "../drivers/network/diverter/testing/namespaces.testing.ts";
import type { HostState } from "../known.ts";
import {
  askMachines,
  askNeighbour,
  createNeighbours,
  type Ip,
  probesSaid,
  takeProbeDesire,
  takeProbed,
} from "./neighbours.ts";

test("a machine answers its neighbour whatever runs on it, another MAC is not taken for it, and a cut one is silent", {
  skip: !canRun() && "needs root and namespaces",
}, async () => {
  const [here, there] = [await Machine.start(), await Machine.start()];
  try {
    const own = mac("02:00:00:00:01:02");
    here.cable("one", there, "two", own);
    here.run("ip", "address", "add", "10.9.0.1/24", "dev", "one");
    there.run("ip", "address", "add", "10.9.0.2/24", "dev", "two");
    await here.untilUp("one");
    const ip: Ip = async (args) => here.run("ip", ...args);
    const ask = (at = own) => askNeighbour({ address: ipv4("10.9.0.2"), mac: at }, "one", ip);
    assert.equal(await ask(), own);
    assert.notEqual(await ask(mac("02:00:00:00:09:09")), mac("02:00:00:00:09:09"), "nobody has that MAC");
    assert.equal(await ask(), own, "again, though it was asked for at another one");
    there.run("ip", "address", "del", "10.9.0.2/24", "dev", "two");
    assert.equal(await ask(), null, "nobody has the address any more");
  } finally {
    await here.stop();
    await there.stop();
  }
});

test("of several HA Managers each hears of the answers since it asked, and whoever comes later has its questions at once", () => {
  const state = { probes: new Map() } as unknown as HostState;
  const rounds: string[] = [];
  const wanted = { host: "h2", address: "10.9.0.2", mac: "02:00:00:00:01:02" };
  const ask = (from: string, value: typeof wanted | null) =>
    takeProbeDesire(state, { from: peerName(from), name: "h2", value }, (all) =>
      rounds.push(all.map(({ host }) => host).join(" ")),
    );
  ask("ha-manager", wanted);
  takeProbed(state, "h2", { mac: mac(wanted.mac), asked: [] });
  ask("ha-manager.2", wanted);
  assert.deepEqual(rounds, ["h2", "", "h2"], "it is asked anew");
  takeProbed(state, "h2", { mac: null, asked: [] });
  const said = { host: hostName("h2") };
  assert.deepEqual(probesSaid(state), [
    ["ha-manager/probe/h2", { ...said, asked: 2, answered: 1, mac: mac(wanted.mac) }],
    ["ha-manager.2/probe/h2", { ...said, asked: 1, answered: 0, mac: null }],
  ]);
  ask("ha-manager", null);
  assert.deepEqual([probesSaid(state).length, rounds.at(-1)], [1, "h2"]);
  ask("ha-manager.2", null);
  assert.deepEqual([probesSaid(state), rounds.at(-1)], [[], ""]);
});

test("machines of a host are asked in the same round, each asker hears of its own, and one that fails holds up no other", async () => {
  const state = { probes: new Map() } as unknown as HostState;
  const rounds: unknown[] = [];
  const at = { host: "h2", address: "10.9.0.2", mac: "02:00:00:00:01:02" };
  const [one, two] = [
    { vm: "a-1", address: "10.64.0.9" },
    { vm: "b-1", address: "10.64.1.9" },
  ];
  const ask = (from: string, machines: readonly (typeof one)[]) =>
    takeProbeDesire(state, { from: peerName(from), name: "h2", value: { ...at, machines: [...machines] } }, (all) =>
      rounds.push(all.map(({ machines }) => machines)),
    );
  ask("ha-manager", [one]);
  ask("ha-manager.2", [two]);
  assert.deepEqual(rounds.at(-1), [[one, two]], "of both who ask");
  const both = [uid("a-1"), uid("b-1")];
  takeProbed(state, "h2", { mac: null, machines: [uid("a-1"), uid("c-1")], asked: both });
  takeProbed(state, "h2", { mac: null, machines: both, asked: both });
  const said = { host: "h2", asked: 2, answered: 0, mac: null };
  assert.deepEqual(probesSaid(state), [
    ["ha-manager/probe/h2", { ...said, machines: [{ vm: "a-1", answered: 2 }] }],
    ["ha-manager.2/probe/h2", { ...said, machines: [{ vm: "b-1", answered: 1 }] }],
  ]);
  const wanted = {
    mac: mac(at.mac),
    machines: [one, two].map((each) => ({ vm: uid(each.vm), address: ipv4(each.address) })),
  };
  const asked: unknown[] = [];
  const answered = await askMachines(wanted, {
    ask: async (machine) => {
      asked.push(machine);
      if (machine.address === one.address) throw new Error("the map is gone");
      return true;
    },
  }).catch(() => null);
  assert.deepEqual([asked.length, answered], [2, ["b-1"]]);
  assert.deepEqual(asked[0], { address: "10.64.0.9", mac: at.mac }, "at the MAC of the host that is asked about");
  const told = await new Promise((resolve) => {
    const neighbours = createNeighbours(async () => ({ mac: null, machines: [uid("b-1")] }));
    neighbours.tell(async (request) => {
      neighbours.stop();
      resolve(request);
      return null;
    });
    neighbours.take([{ host: hostName("h2"), address: ipv4(at.address), ...wanted }]);
  });
  assert.deepEqual(told, { kind: "probed", host: "h2", mac: null, machines: ["b-1"], asked: ["a-1", "b-1"] });
});

test("of a machine that is asked only from the next round on nothing is said, and that round does not wait", async () => {
  const state = { probes: new Map() } as unknown as HostState;
  const at = { host: hostName("h2"), address: ipv4("10.9.0.2"), mac: mac("02:00:00:00:01:02") };
  const of = (vm: string) => ({ ...at, machines: [{ vm: uid(vm), address: ipv4("10.64.0.9") }] });
  const pauses: number[] = [];
  const rounds: string[] = [];
  const neighbours = createNeighbours(
    async ({ machines = [] }) => {
      rounds.push(machines.map(({ vm }) => vm).join(" "));
      if (rounds.length === 4) neighbours.stop();
      return { mac: null };
    },
    async (ms) => {
      pauses.push(ms);
      if (rounds.length === 2 && pauses.length === 4) desire("b-1");
    },
  );
  const desire = (vm: string): unknown =>
    takeProbeDesire(state, { from: peerName("ha-manager"), name: "h2", value: of(vm) as never }, neighbours.take);
  neighbours.tell(async (request) => {
    takeProbed(state, "h2", request as never);
    return null;
  });
  desire("a-1");
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(rounds, ["a-1", "a-1", "b-1", "b-1"]);
  assert.ok(
    pauses.length < 4 + 12 && pauses.every((ms) => ms === 200),
    "the pause ends where other machines are asked",
  );
  const other = { probes: new Map() } as unknown as HostState;
  takeProbeDesire(other, { from: peerName("ha-manager"), name: "h2", value: of("b-1") as never });
  takeProbed(other, "h2", { mac: null, machines: [], asked: [uid("a-1")] });
  assert.deepEqual(
    probesSaid(other).map(([, said]) => said),
    [{ host: "h2", asked: 1, answered: 0, mac: null }],
  );
});
