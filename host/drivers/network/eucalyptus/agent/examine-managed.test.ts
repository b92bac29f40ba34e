import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { formatIpv4, parseIpv4 } from "../../../../../model/addresses/addresses.ts";
import { ipv4 } from "../../../../../model/cell/identifiers.ts";
import type { NetworkView } from "../../../../../model/eucalyptus/view/network-view.ts";
import { readView } from "../../../../../model/eucalyptus/view/read-view.ts";
import { writeView } from "../../../../../model/eucalyptus/view/write-view.ts";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { PacketCheck, PacketQuestion } from "../../driver.ts";
import { soon, World } from "../packets/world.testing.ts";
import { machineFile, type NetworkAgent, startAgent, viewFile } from "./agent.ts";

/*
 * MANAGED: each answer of a node and of its cluster's network host beside a real packet. Two instances of two groups at one node, and somebody outside.
 */
const [first, other] = [
  { id: "i-a7f05959", address: "1.111.32.9", mac: "d0:0d:a7:f0:59:59", elastic: "10.111.101.60", group: "sg-e33c6cf3" },
  {
    id: "i-b1b2b3b4",
    address: "1.111.32.25",
    mac: "d0:0d:b1:b2:b3:b4",
    elastic: "10.111.101.61",
    group: "sg-11aa22bb",
  },
] as const;
const third = "i-c1c2c3c4";
const selves = {
  host: { address: "10.111.1.54", peer: "network" },
  node: { address: "10.111.1.173", peer: "node" },
} as const;
type Name = keyof typeof selves;
const outside = "10.111.1.50";

const world = new World();
const machines = new Map<string, Machine>();
const of = (name: string): Machine => machines.get(name) ?? assert.fail(name);
const agents = new Map<Name, NetworkAgent>();
const agentOf = (name: Name): NetworkAgent => agents.get(name) ?? assert.fail(name);
const lease: { untilMs: number | null } = { untilMs: null };
/** No pass of the network host's mends anything while this is not null. */
let held: Promise<void> | null = null;

const tcp = (port: number) => ({ protocol: 6, fromPort: port, toPort: port, icmpType: 0, icmpCode: 0 });
const recorded = (): NetworkView => {
  const read = readView(
    readFileSync(join(import.meta.dirname, "..", "cases", "managed-02-two-groups", "gni.xml"), "utf8"),
  );
  return read.ok ? read.value.view : assert.fail(JSON.stringify(read.error));
};
/** Of the two, one is another cell's if `owner` is. */
const view = (owner = "shop"): NetworkView => {
  const base = recorded();
  const group = (id: string, own: string, rules: object) => ({ id, owner: own, ingress: [], egress: [], ...rules });
  return {
    ...base,
    clusters: base.clusters.map((cluster) => ({
      ...cluster,
      nodes: [
        { name: selves.node.address, instances: [first.id, other.id] },
        { name: "10.111.1.174", instances: [third] },
      ],
    })),
    instances: base.instances.map((each) => {
      const { publicIp, ...bare } = { ...each, owner: each.id === other.id ? owner : "shop" };
      return each.id === first.id && publicIp !== undefined ? { ...bare, publicIp } : bare;
    }),
    securityGroups: [
      group(first.group, "shop", {
        ingress: [
          { ...tcp(22), group: other.group },
          { ...tcp(22), cidr: "10.111.0.0/16" },
        ],
      }),
      group(other.group, owner, { egress: [{ ...tcp(22), group: first.group }] }),
    ],
  };
};
const writeAll = (now: NetworkView): void => {
  for (const name of Object.keys(selves)) writeFileSync(join(world.directory, name, viewFile), writeView(now));
};

/** All that anybody was told. */
const texts: string[] = [];
type Question = { readonly from: string; readonly to: string; readonly port: number };
const asked = async (name: Name, side: PacketQuestion["side"], { from, to, port }: Question) => {
  const question = { side, source: ipv4(from), destination: ipv4(to), protocol: "tcp", port } as const;
  const checks = (await agentOf(name).examine(question)) ?? assert.fail("it is about an instance here");
  texts.push(...checks.map(({ detail }) => detail));
  return checks;
};
/** As a controller asks: whom a node names is asked in its turn. */
const whole = async (question: Question): Promise<readonly PacketCheck[]> => {
  const isOwn = (address: string): boolean => [first.address, other.address].some((each) => each === address);
  const sides = [
    ...(isOwn(question.from) ? (["sender"] as const) : []),
    ...(isOwn(question.to) ? (["receiver"] as const) : []),
  ];
  const checks: PacketCheck[] = [];
  const met = new Set<string>();
  for (const side of sides) {
    const there = await asked("node", side, question);
    checks.push(...there);
    for (const { ask } of there) {
      if (ask === undefined || met.has(ask)) continue;
      met.add(ask);
      assert.equal(ask, selves.host.address);
      checks.push(...(await asked("host", side === "sender" ? "behind-sender" : "before-receiver", question)));
    }
  }
  return checks;
};
const verdict = (checks: readonly PacketCheck[]): string => {
  const found = checks.find(({ passes }) => !passes);
  return found === undefined ? "passes" : `${found.check}: ${found.detail}`;
};
const opens = (from: Machine, to: string, port: number): boolean =>
  from.succeeds("socat", "-u", "/dev/null", `TCP:${to}:${port},connect-timeout=1`);
const guest = ({ id }: { readonly id: string }): Machine => of(id);

before(async () => {
  for (const name of ["outside", "switch", ...Object.keys(selves), first.id, other.id])
    machines.set(name, await world.machine());
  const hub = (name: string, ...ports: readonly (readonly [machine: string, device: string])[]): void => {
    of(name).run("ip", "link", "add", "sw", "type", "bridge");
    of(name).run("ip", "link", "set", "sw", "addrgenmode", "none", "up");
    for (const [machine, device] of ports) {
      of(name).cable(machine, of(machine), device);
      of(name).run("ip", "link", "set", machine, "master", "sw");
    }
  };
  hub("outside", ["host", "em1"]);
  hub("switch", ["host", "em2"], ["node", "em2"]);
  of("outside").run("ip", "address", "add", `${outside}/16`, "dev", "sw");
  of("host").run("ip", "address", "add", `${selves.host.address}/16`, "dev", "em1");
  of("host").run("ip", "route", "add", "default", "via", outside);
  for (const instance of [first, other]) of("node").cable(`vn_${instance.id}`, guest(instance), "eth0", instance.mac);
  for (const port of [22, 80]) world.spawn(guest(first), "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  const writers = new Set(["iptables-restore", "ipset", "ip"]);
  for (const name of Object.keys(selves) as Name[]) {
    const directory = join(world.directory, name);
    mkdirSync(directory);
    const closed = name === "host" ? "CELLS_OUTGOING_CLOSED=Y\n" : "";
    writeFileSync(join(directory, machineFile), `VNET_PUBINTERFACE=em1\nVNET_PRIVINTERFACE=em2\n${closed}`);
    writeFileSync(join(directory, viewFile), writeView(view()));
    const run = world.run(of(name));
    const agent = await startAgent({
      directory,
      self: selves[name],
      signals: new EventEmitter(),
      run: async (program, args, input) => {
        const isReader = ["save", "-j", "-d", "-V", "--version"].includes(args[0] ?? "");
        if (name === "host" && writers.has(program) && !isReader) await held;
        return run(program, args, input);
      },
      log: () => undefined,
      programs: world.programs(of(name), name),
      ...(name === "host" ? { lease } : {}),
    });
    assert.deepEqual(agent.state.failed, {}, name);
    agents.set(name, agent);
  }
  for (const instance of [first, other]) assert.ok(world.lease(guest(instance)), instance.address);
});
after(async () => {
  for (const agent of agents.values()) await agent.leave().catch(() => {});
  await world.end();
});

const open = { from: other.address, to: first.address, port: 22 };
const closed = { ...open, port: 80 };

test("a node names its cluster's network host, which says by which rule a packet passes, or that none of a group lets it", async () => {
  assert.ok(await soon(() => opens(guest(other), first.address, 22)));
  const checks = await whole(open);
  assert.equal(verdict(checks), "passes");
  assert.match(
    JSON.stringify(checks),
    /"-s 1\.111\.32\.16\/28 -d 1\.111\.32\.0\/28 .*--dport 22 -j ACCEPT\\" of sg-e33c6cf3 lets it pass/,
  );
  assert.match(JSON.stringify(checks), /the gateway 1\.111\.32\.17 is at sg-11aa22bb/);
  assert.ok(!opens(guest(other), first.address, 80));
  assert.match(verdict(await whole(closed)), /^rule: "-j DROP" of CELLS_i-b1b2b3b4 drops it$/);
  // Nobody lets the other way in.
  assert.match(verdict(await whole({ from: first.address, to: other.address, port: 22 })), /^rule: /);
});

test("members of one group need no network host, and a site without one is told so", async () => {
  const inside = await asked("node", "sender", { from: first.address, to: "1.111.32.10", port: 80 });
  assert.equal(verdict(inside), "passes");
  assert.ok(inside.every(({ ask }) => ask === undefined));
  const without = {
    ...view(),
    clusters: view().clusters.map((cluster) => ({ ...cluster, enabledCcIp: parseIpv4(selves.node.address) ?? 0 })),
  };
  writeAll(without);
  await agentOf("node").look();
  assert.match(verdict(await asked("node", "sender", open)), /^network-host: no host carries the cluster PARTI00 now/);
  writeAll(view());
  await agentOf("node").look();
  await agentOf("host").look();
});

test("from outside an instance is reached by its elastic address, and one without is told what it lacks", async () => {
  const to = (address: string, port: number) => ({ from: outside, to: address, port });
  assert.ok(await soon(() => opens(of("outside"), first.elastic, 22)));
  const checks = await whole(to(first.address, 22));
  assert.equal(verdict(checks), "passes");
  assert.match(JSON.stringify(checks), /10\.111\.101\.60 goes to 1\.111\.32\.9/);
  assert.ok(!opens(of("outside"), first.elastic, 80));
  assert.match(
    verdict(await whole(to(first.address, 80))),
    /^rule: no rule of a group lets it pass: policy DROP of FORWARD$/,
  );
  assert.match(
    verdict(await whole(to(other.address, 22))),
    /^address: .*i-b1b2b3b4 has no elastic address.*x\.addressRange "external"/,
  );
});

test("what is not in force at the network host is told where it stops the packet: a chain, the gateway, the elastic address", async () => {
  const outsider = { from: outside, to: first.address, port: 22 };
  for (const [hand, question, told] of [
    [["iptables", "-F", first.group], open, /^entry: the chain sg-e33c6cf3 of iptables, table filter, reads otherwise/],
    [
      ["ip", "address", "flush", "dev", other.group],
      open,
      /^address: the gateway 1\.111\.32\.17 is not in place: the device sg-11aa22bb does not have it/,
    ],
    [
      ["ip", "address", "delete", `${first.elastic}/32`, "dev", "em1"],
      outsider,
      /^address: the elastic address 10\.111\.101\.60 is not in place/,
    ],
    [["iptables", "-t", "nat", "-F", "PREROUTING"], outsider, /^entry: the chain PREROUTING of iptables, table nat/],
  ] as const) {
    let release = (): void => undefined;
    held = new Promise((resolve) => {
      release = resolve;
    });
    try {
      of("host").run(...hand);
      of("outside").run("ip", "neighbour", "flush", "dev", "sw");
      const passes =
        question === open ? opens(guest(other), first.address, 22) : opens(of("outside"), first.elastic, 22);
      assert.ok(!passes, hand.join(" "));
      assert.match(verdict(await whole(question)), told);
    } finally {
      held = null;
      release();
    }
    assert.ok(await soon(async () => verdict(await whole(question)) === "passes"), "it is mended");
  }
});

test("another cell's group is not shown, nor whether its elastic address is in place", async () => {
  writeAll(view("bank"));
  for (const agent of agents.values()) await agent.look();
  const question = { from: other.address, to: first.elastic, port: 22 };
  const checks = await asked("host", "behind-sender", question);
  const told = JSON.stringify(checks);
  assert.doesNotMatch(told, /sg-e33c6cf3|--dport 22|the elastic address/);
  assert.ok(checks.some(({ check }) => check === "rule" || check === "foreign-group"));
  writeAll(view());
  for (const agent of agents.values()) await agent.look();
});

test("a host whose lease is over says that it carries nothing", async () => {
  lease.untilMs = performance.now() - 1;
  await agentOf("host").look();
  assert.match(
    verdict(await asked("host", "behind-sender", open)),
    /^network-host: no view that has come to this host names it/,
  );
  assert.ok(!opens(guest(other), first.address, 22));
});

test("nothing that was said has the address of a node, a network host or the cloud controller in it", async () => {
  // This test asks for itself, so that it says something also where it runs alone.
  lease.untilMs = null;
  writeAll(view());
  for (const agent of agents.values()) await agent.look();
  const before = texts.length;
  for (const question of [open, closed, { from: outside, to: first.address, port: 22 }]) await whole(question);
  const machines = [
    ...Object.values(selves).map(({ address }) => address),
    "10.111.1.174",
    formatIpv4(recorded().enabledClcIp),
  ];
  assert.ok(texts.length > before + 10, String(texts.length - before));
  for (const text of texts) for (const machine of machines) assert.ok(!text.includes(machine), text);
});
