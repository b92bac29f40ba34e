import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { formatIpv4 } from "../../../../../model/addresses/addresses.ts";
import { readAllocation } from "../../../../../model/eucalyptus/allocation/allocation.ts";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import { soon, World } from "../packets/world.testing.ts";
import { allocationFile, machineFile, type NetworkAgent, startAgent, viewFile } from "./agent.ts";
import { readMachineFile } from "./machine-file.ts";

/* Files in, files out, and the real tools in a namespace that is made here. */

const world = new World();
const signals = new EventEmitter();
const said: string[] = [];
const directory = join(world.directory, "agent");
let node: Machine;
let agent: NetworkAgent;
const view = readFileSync(join(import.meta.dirname, "..", "cases", "edge-03-two-nodes-n1", "gni.xml"), "utf8");
const put = (name: string, text: string): void => writeFileSync(join(directory, name), text);
/** Public addresses that the file names when the first rules of a pass are put in place. */
let atFirst: readonly string[] | null = [];
const publicNames = (): readonly string[] =>
  told().flatMap(({ id, publicIp }) => (publicIp === undefined ? [] : [`${id} ${formatIpv4(publicIp.address)}`]));
/** No program runs any more. */
let broken = false;
const start = (): Promise<NetworkAgent> =>
  startAgent({
    directory,
    self: { address: "10.111.5.43", peer: "node" },
    signals,
    run: (program, ...rest) => {
      if (program === "iptables-restore") atFirst ??= publicNames();
      return broken ? Promise.reject(new Error(`${program} is broken`)) : world.run(node)(program, ...rest);
    },
    log: (event, { why, what }) => said.push(`${event}: ${why ?? what}`),
  });
const told = () => {
  const read = readAllocation(readFileSync(join(directory, allocationFile), "utf8"));
  return read.ok ? read.value.instances : assert.fail(read.error);
};
const applied = (): string | undefined => {
  const read = readAllocation(readFileSync(join(directory, allocationFile), "utf8"));
  return read.ok ? read.value.appliedVersion : assert.fail(read.error);
};
const rules = (): string => node.run("iptables-save");

before(async () => {
  node = await world.machine();
  mkdirSync(directory);
  node.run("ip", "link", "add", "eno1", "type", "veth", "peer", "name", "other");
  node.run("ip", "link", "set", "eno1", "up");
});
after(async () => {
  await agent.leave().catch(() => {});
  await world.end();
});

test("what is missing is told with the addresses that wait for it, and nothing is touched", async () => {
  put(machineFile, 'VNET_MODE="EDGE"\nVNET_PUBINTERFACE="eno1"\nVNET_BRIDGE=br9\n');
  put(viewFile, view);
  agent = await start();
  assert.deepEqual(agent.state.missing, ["there is no device br9 on this machine, which VNET_BRIDGE names"]);
  assert.ok(!rules().includes("EUCA_"));
  assert.deepEqual(told()[0]?.privateIp?.state, "failed");
  assert.match(told()[0]?.privateIp?.reason ?? "", /no device br9/);
  assert.equal(applied(), undefined);
  node.run("ip", "link", "add", "br9", "type", "bridge");
  await agent.look();
  assert.deepEqual([agent.state.missing, agent.state.failed], [[], {}]);
  assert.equal(applied(), "1");
  const left = /^a rule of sg-11aa22bb names the security group sg-deadbeef, which is not in the view/;
  assert.match(agent.state.warnings?.join("; ") ?? "", left);
  assert.equal(said.filter((each) => each.startsWith("network-plan-warns: a rule of sg-11aa22bb ")).length, 1);
  assert.deepEqual(
    told().map(({ id, privateIp, publicIp }) => [id, privateIp?.state, publicIp?.state]),
    [
      ["i-a7f05959", "assigned", "assigned"],
      ["i-c1c2c3c4", "assigned", undefined],
    ],
  );
  const mac = /link\/ether (\S+)/.exec(node.run("ip", "link", "show", "dev", "br9"))?.[1];
  assert.match(node.run("ebtables-nft", "-t", "nat", "-L"), new RegExp(`arpreply-mac ${mac}`, "i"));
});

test("a view that is refused leaves the last good one in force", async () => {
  const whole = rules().replace(/^#.*$|\[\d+:\d+\]/gm, "");
  put(viewFile, view.slice(0, 2000));
  await agent.look();
  assert.match(agent.state.refused ?? "", /^line \d+: /);
  node.run("iptables", "-F", "sg-e33c6cf3");
  await agent.look();
  assert.equal(rules().replace(/^#.*$|\[\d+:\d+\]/gm, ""), whole);
  // What is not in place whole is no version that is, and what it has no more may still be there.
  put(viewFile, view.replace('version="1"', 'version="2"').replace("<value>i-c1c2c3c4</value>", ""));
  node.run("ip", "link", "set", "dev", "eno1", "name", "eno2");
  await agent.look();
  assert.deepEqual([applied(), told()[0]?.publicIp?.state], ["1", "failed"]);
  assert.deepEqual(
    told().map(({ id }) => id),
    ["i-a7f05959", "i-c1c2c3c4"],
  );
  node.run("ip", "link", "set", "dev", "eno2", "name", "eno1");
  put(viewFile, view.replace('version="1"', 'version="3"').replace("<toPort>22</toPort>", "<toPort>23</toPort>"));
  await agent.look();
  assert.equal(applied(), "3");
  assert.deepEqual(agent.state.refused, null);
  assert.match(rules(), /--dport 22:23/);
});

test("an address is named before it can be in place, and until another one has taken its place whole", async () => {
  const next = (version: number, address: string): string =>
    view.replace('version="1"', `version="${version}"`).replaceAll("10.111.101.60", address);
  const [x, y, z] = [60, 70, 71].map((number) => `10.111.101.${number}`) as [string, string, string];
  put(viewFile, next(4, x));
  await agent.look();
  assert.deepEqual(publicNames(), [`i-a7f05959 ${x}`]);
  atFirst = null;
  put(viewFile, next(5, y));
  await agent.look();
  assert.deepEqual([atFirst, publicNames()], [[`i-a7f05959 ${x}`, `i-a7f05959 ${y}`], [`i-a7f05959 ${y}`]]);
  node.run("ip", "link", "set", "dev", "eno1", "name", "eno2");
  put(viewFile, next(6, z));
  await agent.look();
  assert.deepEqual(publicNames(), [`i-a7f05959 ${z}`, `i-a7f05959 ${y}`]);
  node.run("ip", "link", "set", "dev", "eno2", "name", "eno1");
  await agent.look();
  assert.deepEqual(publicNames(), [`i-a7f05959 ${z}`]);
  put(viewFile, view);
  await agent.look();
});

test("a look that comes to no end is told once and ends nobody, and the view that it had read is not lost", async () => {
  broken = true;
  const next = view.replace("<toPort>22</toPort>", "<toPort>24</toPort>");
  put(viewFile, next);
  for (const _ of [1, 2]) await agent.look();
  assert.equal(said.filter((each) => /is broken/.test(each)).length, 1, said.join("\n"));
  broken = false;
  await agent.look();
  assert.match(rules(), /--dport 22:24/);
});

test("SIGHUP says that the configuration is another one, and a faulty one leaves the last good one in force", async () => {
  put(machineFile, "VNET_PUBINTERFACE=eno1\nVNET_BRIDGE=br9\nCELLS_OUTGOING_CLOSED=Y\n");
  signals.emit("SIGHUP");
  assert.ok(await soon(() => rules().includes("-g CELLS_i-a7f05959")));
  put(machineFile, "VNET_PUBINTERFACE=$(reboot)\nVNET_BRIDGE=a-name-that-is-too-long\n");
  await agent.look();
  assert.match(said.join("\n"), /configuration-refused: line 1: VNET_PUBINTERFACE is .*; line 2: VNET_BRIDGE is /);
  assert.match(rules(), /-g CELLS_i-a7f05959/);
  put(machineFile, "VNET_PUBINTERFACE=eno1\nVNET_BRIDGE=br9\n");
  await agent.look();
  assert.deepEqual(agent.state.failed, {});
  assert.ok(!rules().includes("CELLS_OUTGOING") && rules().includes("CELLS_INPUT"));
});

test("SIGUSR1 is a flush; who starts anew adopts what is there", async () => {
  node.run("iptables", "-A", "EUCA_FILTER_FWD", "-s", "203.0.113.7", "-j", "DROP");
  signals.emit("SIGUSR1");
  assert.ok(await soon(() => !rules().includes("203.0.113.7") && rules().includes("-A sg-e33c6cf3")));
  await agent.stop();
  assert.ok(rules().includes("-A sg-e33c6cf3"), "the end takes nothing away");
  agent = await start();
  assert.deepEqual(agent.state.failed, {});
  await agent.leave();
  assert.ok(!/EUCA_ALL|sg-|CELLS/.test(rules()));
  assert.ok(existsSync(join(directory, allocationFile)));
});

test("a machine's file: keys of the original, quotes, remarks, and all faults", () => {
  const read = readMachineFile(
    "VNET_BRIDGE='br1' # ours\nVNET_DHCPUSER=dhcpd\nMETADATA_USE_VM_PRIVATE=\"Y\"\nOTHER=;rm\n",
  );
  assert.ok(read.ok);
  assert.deepEqual([read.value.bridge, read.value.dhcpUser, read.value.metadataPrivate], ["br1", "dhcpd", true]);
  assert.equal(read.value.publicInterface, "em1");
  const faulty = readMachineFile("VNET_BRIDGE=-x\nCELLS_SITE_GATEWAY=perhaps\nVNET_DHCPUSER=a b\n");
  assert.ok(!faulty.ok && faulty.error.length === 2, JSON.stringify(faulty));
});
