import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { Machine } from "../../diverter/testing/namespaces.testing.ts";
import { NetworkService } from "../../service/network-service.ts";
import { createPlanDriver, type LocalNetwork } from "../driver.ts";
import { type LocalPlan, localDefaults } from "../plan/plan.ts";
import { planFor } from "../planners.ts";
import { Announcer } from "./devices.ts";
import { missingPrograms, type Run, runner } from "./run.ts";
import { applySets, readSets, setChanges, staleSets } from "./sets.ts";
import { readTables, TableHandler } from "./tables.ts";

/* With the real tools, in network namespaces that are made here. */

const cases = join(import.meta.dirname, "..", "cases");
const plan = (
  name: string,
  self: string,
  peer: "node" | "network" = "node",
  change = (text: string) => text,
): LocalPlan => {
  const read = readView(change(readFileSync(join(cases, name, "gni.xml"), "utf8")));
  assert.ok(read.ok, JSON.stringify(read));
  return planFor(read.value.view, { address: self, peer }, { ...localDefaults, bridgeMac: "02:00:00:00:00:FE" });
};
let node: Machine;
let run: Run;
before(async () => {
  node = await Machine.start();
  run = runner(["nsenter", "-t", String(node.pid), "-n", "-m", "--"]);
});
after(() => node.stop());

const applied = async (wanted: LocalPlan, iptables: TableHandler, ebtables: TableHandler): Promise<void> => {
  await applySets(run, setChanges(await readSets(run), wanted.sets));
  await iptables.apply(wanted.iptables, await readTables(run, "iptables"));
  await ebtables.apply(wanted.ebtables, await readTables(run, "ebtables"));
  for (const name of staleSets(await readSets(run), wanted.sets)) await run("ipset", ["destroy", name]);
};

test("the programs are on this machine, each from its package", async () => {
  assert.deepEqual(await missingPrograms(run), []);
  const none = await missingPrograms(async (program) => assert.fail(program));
  assert.match(none.join("\n"), /ipset is not on this machine: install ipset/);
});

test("a node's plan is loaded whole, and what is in place is not written again", async () => {
  const [iptables, ebtables] = [new TableHandler(run, "iptables"), new TableHandler(run, "ebtables")];
  const wanted = plan("edge-03-two-nodes-n1", "10.111.5.43");
  await applied(wanted, iptables, ebtables);
  const [found, bridged] = [await readTables(run, "iptables"), await readTables(run, "ebtables")];
  assert.deepEqual([iptables.due(wanted.iptables, found), ebtables.due(wanted.ebtables, bridged)], [[], []]);
  assert.deepEqual(setChanges(await readSets(run), wanted.sets), []);
  const count = (tables: LocalPlan["iptables"], chain: string): number | undefined =>
    tables.flatMap(({ chains }) => chains).find(({ name }) => name === chain)?.rules.length;
  assert.equal((found.get("filter sg-11aa22bb")?.length ?? 0) - 1, count(wanted.iptables, "sg-11aa22bb"));
  assert.equal((bridged.get("nat EUCA_EBT_NAT_PRE")?.length ?? 0) - 1, count(wanted.ebtables, "EUCA_EBT_NAT_PRE"));

  // A rule that somebody deletes comes back, and that chain alone is written.
  node.run("iptables", "-D", "sg-11aa22bb", "1");
  await iptables.apply(wanted.iptables, await readTables(run, "iptables"));
  assert.deepEqual(iptables.written, ["filter sg-11aa22bb"]);
  assert.deepEqual(await readTables(run, "iptables"), found);

  // A changed rule writes its group's chain; the site's own rules stay.
  node.run("iptables", "-A", "EUCA_FILTER_FWD_PREUSERHOOK", "-s", "203.0.113.1", "-j", "DROP");
  const changed = plan("edge-03-two-nodes-n1", "10.111.5.43", "node", (text) =>
    text.replace("<fromPort>3306", "<fromPort>3305"),
  );
  await applied(changed, iptables, ebtables);
  assert.deepEqual(iptables.written, ["filter sg-11aa22bb"]);
  assert.match(node.run("iptables-save"), /-A sg-11aa22bb .*--dport 3305:3306 -j ACCEPT/);
  assert.match(node.run("iptables-save"), /-A EUCA_FILTER_FWD_PREUSERHOOK -s 203\.0\.113\.1/);

  // A group that ends takes its chain and set along.
  const fewer = plan("edge-02-ssh-icmp", "10.111.5.43");
  await applied(fewer, iptables, ebtables);
  assert.ok(!node.run("iptables-save").includes("sg-11aa22bb"));
  assert.deepEqual([...(await readSets(run)).keys()].sort(), fewer.sets.map(({ name }) => name).sort());
});

test("a network host's plan is loaded, and forwards nothing else", async () => {
  const host = await Machine.start();
  try {
    const there = runner(["nsenter", "-t", String(host.pid), "-n", "-m", "--"]);
    const handler = new TableHandler(there, "iptables");
    const wanted = plan("managed-02-two-groups", "10.111.1.54", "network");
    await handler.apply(wanted.iptables, await readTables(there, "iptables"));
    const saved = host.run("iptables-save");
    assert.match(saved, /:FORWARD DROP/);
    assert.match(saved, /-A FORWARD -j sg-11aa22bb/);
    assert.deepEqual(handler.due(wanted.iptables, await readTables(there, "iptables")), []);
  } finally {
    await host.stop();
  }
});

test("a guest reaches its neighbour under its own address and MAC, and under no other", async () => {
  const [edge, guests] = [await Machine.start(), [await Machine.start(), await Machine.start()] as const];
  try {
    edge.run("ip", "link", "add", "br0", "type", "bridge");
    edge.run("ip", "link", "set", "br0", "up");
    const taps = [
      ["vn_i-a7f05959", "d0:0d:a7:f0:59:59", "1.119.128.35"],
      ["vn_i-c1c2c3c4", "d0:0d:c1:c2:c3:c4", "1.119.128.37"],
    ] as const;
    for (const [index, [tap, mac, address]] of taps.entries()) {
      const guest = guests[index] ?? assert.fail();
      edge.cable(tap, guest, "eth0", mac);
      edge.run("ip", "link", "set", tap, "master", "br0");
      guest.run("ip", "address", "add", `${address}/24`, "dev", "eth0");
    }
    const pings = (): boolean => guests[0].succeeds("ping", "-c", "1", "-W", "1", "1.119.128.37");
    assert.ok(pings(), "before there are rules");
    const there = runner(["nsenter", "-t", String(edge.pid), "-n", "-m", "--"]);
    const handler = new TableHandler(there, "ebtables");
    const wanted = plan("edge-03-two-nodes-n1", "10.111.5.43");
    await handler.apply(wanted.ebtables, await readTables(there, "ebtables"));
    assert.ok(pings(), "under its own address");
    guests[0].run("ip", "address", "del", "1.119.128.35/24", "dev", "eth0");
    guests[0].run("ip", "address", "add", "1.119.128.99/24", "dev", "eth0");
    assert.ok(!pings(), "under another address");
    guests[0].run("ip", "address", "del", "1.119.128.99/24", "dev", "eth0");
    guests[0].run("ip", "address", "add", "1.119.128.35/24", "dev", "eth0");
    assert.ok(pings(), "under its own address again");
    guests[0].run("ip", "link", "set", "eth0", "address", "d0:0d:00:00:00:01");
    assert.ok(!pings(), "under another MAC");
    guests[0].run("ip", "link", "set", "eth0", "address", "d0:0d:a7:f0:59:59");
    assert.ok(pings(), "under its own MAC again");
  } finally {
    for (const machine of [edge, ...guests]) await machine.stop();
  }
});

test("the loop keeps a plan in place, begins anew at a flush, and leaves nothing but the site's rules", async () => {
  const machine = await Machine.start();
  const directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
  try {
    machine.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
    machine.run("ip", "link", "add", "br0", "type", "bridge");
    const inside = runner(["nsenter", "-t", String(machine.pid), "-n", "-m", "--"]);
    const commands: string[] = [];
    const there: Run = (program, args, input) => {
      const said = [program, ...args].join(" ");
      // Of many devices one call is told what to do with each.
      if (args.includes("-batch")) commands.push(...(input ?? "").split("\n").map((line) => `${program} ${line}`));
      else commands.push(said);
      return inside(program, args, input);
    };
    const service = new NetworkService<LocalPlan, LocalNetwork, unknown>({
      drivers: new Map([
        ["EDGE", createPlanDriver({ run: there, dhcpDirectory: join(directory, "edge") })],
        ["MANAGED-NOVLAN", createPlanDriver({ run: there, dhcpDirectory: join(directory, "managed") })],
      ]),
      configuration: async () => ({}),
    });
    const rules = (): string => machine.run("iptables-save").replace(/^#.*$|\[\d+:\d+\]/gm, "");
    await service.offer({ mode: "EDGE", global: plan("edge-03-two-nodes-n1", "10.111.5.43") });
    assert.deepEqual(service.state.failed, {});
    const whole = rules();
    machine.run("iptables", "-F", "sg-e33c6cf3");
    machine.run("ipset", "del", "sg-e33c6cf3", "1.119.128.35/32");
    machine.run("ebtables-nft", "-t", "nat", "-D", "EUCA_EBT_NAT_POST", "1");
    await service.look();
    assert.deepEqual([service.state.failed, rules()], [{}, whole]);
    assert.match(machine.run("ipset", "save", "sg-e33c6cf3"), /add sg-e33c6cf3 1\.119\.128\.35/);
    machine.run("iptables", "-A", "EUCA_FILTER_FWD_PREUSERHOOK", "-s", "203.0.113.1", "-j", "DROP");
    await service.flush();
    assert.deepEqual(service.state.failed, {});
    assert.equal(rules().replace("-A EUCA_FILTER_FWD_PREUSERHOOK -s 203.0.113.1/32 -j DROP\n", ""), whole);
    const flat = (text: string): string => text.replace("<value>MANAGED</value>", "<value>MANAGED-NOVLAN</value>");
    const global = plan("managed-02-two-groups", "10.111.1.54", "network", flat);
    commands.length = 0;
    await service.offer({ mode: "MANAGED-NOVLAN", global });
    assert.deepEqual(service.state.failed, {});
    // Of the mode before, nobody speaks and no address is here by the time its rules go.
    const closed = commands.slice(
      0,
      commands.findIndex((command) => /^(?:ip|eb)tables\S*-restore/.test(command)),
    );
    for (const gone of ["ip link delete dev vn_i-a7f05959", "ip address del 10.111.101.60/32 dev em1"])
      assert.ok(closed.includes(gone), closed.join("\n"));
    assert.match(rules(), /:FORWARD DROP/);
    assert.ok(!rules().includes("EUCA_NAT_PRE -"));
    await service.leave();
    assert.ok(!/sg-|FORWARD DROP|MASQUERADE|COUNTERS/.test(rules()), rules());
    assert.match(rules(), /-A EUCA_FILTER_FWD_PREUSERHOOK -s 203\.0\.113\.1/);
    assert.equal(machine.run("ipset", "save"), "");
  } finally {
    await machine.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});

test("an announcement that failed is due while the plan has the address, and no longer", async () => {
  const announcer = new Announcer(() => Promise.reject(new Error("arping ended with 1")));
  const [gone, kept] = [1, 2].map((address) => ({ device: "em1", address, prefixLength: 32, announced: true }));
  assert.ok(gone !== undefined && kept !== undefined);
  announcer.announce([gone, kept]);
  await announcer.settled();
  assert.deepEqual(announcer.failedOf([kept]), [kept]);
  assert.deepEqual(announcer.failedOf([gone, kept]), [kept]);
});

test("a set that a rule of the site's own names stays and is told, and keeps nothing else from going", async () => {
  const machine = await Machine.start();
  try {
    const there = runner(["nsenter", "-t", String(machine.pid), "-n", "-m", "--"]);
    const directory = mkdtempSync(join(tmpdir(), "cells-euca-"));
    machine.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
    machine.run("ip", "link", "add", "br0", "type", "bridge");
    const driver = createPlanDriver({ run: there, dhcpDirectory: directory });
    const service = new NetworkService<LocalPlan, LocalNetwork, unknown>({
      drivers: new Map([["EDGE", driver]]),
      configuration: async () => ({}),
    });
    await service.offer({ mode: "EDGE", global: plan("edge-03-two-nodes-n1", "10.111.5.43") });
    const hook = ["EUCA_FILTER_FWD_PREUSERHOOK", "-m", "set", "--match-set", "sg-11aa22bb", "src", "-j", "DROP"];
    machine.run("iptables", "-A", ...hook);
    await service.flush();
    assert.deepEqual([service.state.failed, service.state.left], [{}, []]);
    // Its group ends.
    await service.offer({ mode: "EDGE", global: plan("edge-02-ssh-icmp", "10.111.5.43") });
    assert.deepEqual(service.state.failed, {});
    assert.match(service.state.left.join(), /the set sg-11aa22bb stays, since a rule of the site's own names it/);
    await service.leave();
    assert.deepEqual([...(await readSets(there)).keys()], ["sg-11aa22bb"]);
    assert.ok(!machine.run("iptables-save").includes("EUCA_ALL"));
    rmSync(directory, { recursive: true, force: true });
  } finally {
    await machine.stop();
  }
});
