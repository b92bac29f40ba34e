import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after, before, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { arp, ethernet, everyone, icmp, icmpTypes, ip, tcp, tcpFlags, udp } from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import {
  controllerAddress,
  controllerMac,
  type GuestPlan,
  hosts,
  Installation,
  policy,
  rule,
} from "../testing/installation.testing.ts";
import { type Agent, canRun, type Machine } from "../testing/namespaces.testing.ts";

/**
 * Attacks on what the dataplane remembers and on whom it believes: a server that wants to open connections, floods against
 * the tables of flows, and frames on the wire that come from the wrong machine. `client` may open some ports of the
 * servers, `near` on its own host and `far` on the other; `flooder` may send anything to `near` and nothing to the rest.
 */
const plan = (name: string, host: "a" | "b", number: number, subnet: number): GuestPlan => ({
  name,
  host,
  address: `10.64.0.${60 + number}`,
  number,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const plans = [
  plan("client", "a", 1, 10),
  plan("near", "a", 2, 11),
  plan("far", "b", 3, 11),
  plan("flooder", "b", 4, 12),
] as const;
const rules = [
  rule(1, 10, 11, "tcp", 80),
  rule(2, 10, 11, "udp", 53),
  rule(3, 10, 11, "icmp"),
  rule(4, 12, 2, "any"),
  ...[10, 11, 12].flatMap((from, at) =>
    [10, 11, 12].map((to, index) =>
      rule(20 + 3 * at + index, from, to, "udp", markPort, {
        sourcePorts: { from: markPort, to: markPort },
      }),
    ),
  ),
];

/** The answers to ARP for `address` that come in by the machine's cable, a line each. */
const watchAnswers = async (machine: Machine, address: string) => {
  const filter = `arp[6:2] = 2 and arp src host ${address}`;
  const [program, args] = machine.inside([
    "tcpdump",
    "-i",
    "eth0",
    "-Q",
    "in",
    "-nn",
    "-l",
    "--immediate-mode",
    filter,
  ]);
  const child = spawn(program, [...args], { stdio: ["ignore", "pipe", "pipe"] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  for await (const line of createInterface({ input: child.stderr })) if (line.includes("listening on")) break;
  const stop = async (): Promise<void> => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return { lines, stop };
};

describe("attacks on flows and locations", { skip: !canRun() }, () => {
  const installation = new Installation();
  let client: Hand;
  let near: Hand;
  let far: Hand;
  let flooder: Hand;
  let wire: Agent;
  before(async () => {
    await installation.start();
    const applied = await installation.apply(plans, [policy(1, 1, rules)]);
    for (const host of ["a", "b"] as const) assert.ok(applied[host].allocation.interfaces.every(({ ready }) => ready));
    const hands = await Promise.all(plans.map((one) => Hand.open(installation, one)));
    [client, near, far, flooder] = hands as [Hand, Hand, Hand, Hand];
    wire = installation.controller.agent;
    /* Its machine will send in others' names; the switch must not believe it. */
    installation.machines[0]!.run("bridge", "link", "set", "dev", "wc", "learning", "off");
  });
  after(() => installation.stop());
  beforeEach(async () => {
    for (const hand of [client, near, far, flooder]) while ((await hand.next(1)) !== null);
  });

  const data = Buffer.from("data");
  const { syn, ack, fin, rst } = tcpFlags;

  test("a server answers on the connection that was opened, and opens none from its service port", async () => {
    for (const server of [near, far]) {
      const segment = (flags: number, to = 4000, from = 80): string =>
        server.packet(client, 6, tcp(from, to, flags, data));
      await server.refused(client, "no-rule", segment(syn), "before anything was opened");
      await server.refused(client, "no-rule", segment(ack), "a segment of no connection");
      await server.refused(client, "no-rule", segment(syn | ack), "an answer to nothing");
      await client.passes(server, client.packet(server, 6, tcp(4000, 80, syn)), "the client opens");
      await server.passes(client, segment(syn | ack), "the server answers");
      await client.passes(server, client.packet(server, 6, tcp(4000, 80, ack, data)), "the client sends");
      await server.passes(client, segment(ack), "the server sends");
      for (const [what, flags] of [
        ["SYN", syn],
        ["SYN with ECE and CWR", syn | 0xc0],
        ["SYN with URG and PSH", syn | 0x28],
      ] as const)
        await server.refused(client, "no-rule", segment(flags), `${what} on the same ports`);
      await server.refused(client, "no-rule", segment(ack, 4001), "another port of the client");
      await server.refused(client, "no-rule", segment(ack, 4000, 81), "another port of the server");
      await server.refused(client, "no-rule", server.packet(client, 17, udp(80, 4000, data)), "another protocol");
      await client.passes(server, client.packet(server, 6, tcp(4000, 80, fin | ack)), "the client ends");
      await server.passes(client, segment(fin | ack), "the server ends");
      await server.refused(client, "no-rule", segment(syn), "after the end");
      await client.passes(server, client.packet(server, 6, tcp(4000, 80, syn)), "the same ports again");
      await server.passes(client, segment(rst | ack), "refused by the server");
      await server.refused(client, "no-rule", segment(syn), "after a reset");
    }
  });

  test("UDP and echoes: only who was asked answers, to the port that asked", async () => {
    for (const server of [near, far]) {
      const answer = (from: number, to: number): string => server.packet(client, 17, udp(from, to, data));
      await server.refused(client, "no-rule", answer(53, 5000), "unasked");
      await client.passes(server, client.packet(server, 17, udp(5000, 53, data)), "a question");
      await server.passes(client, answer(53, 5000), "its answer");
      await server.refused(client, "no-rule", answer(53, 5001), "another port of the client");
      await server.refused(client, "no-rule", answer(54, 5000), "from another port");
      const echo = (type: number, id: number): string => server.packet(client, 1, icmp(type, id, 1, data));
      await server.refused(client, "no-rule", echo(icmpTypes.reply, 9), "an unasked echo reply");
      await client.passes(server, client.packet(server, 1, icmp(icmpTypes.request, 9, 1, data)), "an echo");
      await server.passes(client, echo(icmpTypes.reply, 9), "its reply");
      await server.refused(client, "no-rule", echo(icmpTypes.reply, 10), "another one's reply");
      await server.refused(client, "no-rule", echo(icmpTypes.request, 9), "an echo the other way");
      for (const type of [5, 9, 13, 14, 17, 40])
        await server.refused(client, "no-rule", echo(type, 9), `ICMP type ${type} within the echo's flow`);
      for (const type of [4, 5, 9, 10])
        await client.refused(server, "no-rule", client.packet(server, 1, icmp(type, 9, 1, data)), `ICMP type ${type}`);
    }
    const third = near;
    await third.refused(client, "no-rule", third.packet(client, 17, udp(53, 5002, data)), "a third one's answer");
  });

  test("errors pass to the flow that they are about and open nothing", async () => {
    const about = (port: number) =>
      Buffer.from(ip(client.address, far.address, 17, udp(port, 53, Buffer.alloc(0))), "hex");
    const error = (port: number): string => far.packet(client, 1, icmp(icmpTypes.unreachable, 0, 0, about(port)));
    await client.passes(far, client.packet(far, 17, udp(6000, 53, data)), "a question");
    await far.passes(client, error(6000), "port unreachable");
    await far.refused(client, "no-rule", error(6001), "about a question that nobody asked");
    await far.refused(client, "no-rule", far.packet(client, 17, udp(53, 6001, data)), "and it opened nothing");
  });

  test("a flood fills its own interfaces' tables, within their bounds, and nobody else's", {
    timeout: 120_000,
  }, async () => {
    const opened = (to: Hand, port: number): string => client.packet(to, 17, udp(port, 53, data));
    await client.passes(far, opened(far, 7000), "a bystander's flow");
    await client.passes(near, opened(near, 7001), "a flow of the flood's victim");
    const before = [flooder, near].map((hand) => hand.flows().entries);
    const bystander = { client: client.flows("openings").entries, far: far.flows("openings").entries };
    const count = 24_000;
    for (let at = 0; at < count; at += 4000) {
      const burst = Array.from({ length: 4000 }, (_, index) => {
        const port = at + index;
        return port % 2 === 0
          ? flooder.packet(near, 17, udp(1024 + port, 1 + (port % 3), data))
          : flooder.packet(near, 6, tcp(1024 + port, 1 + (port % 5), syn));
      });
      await flooder.send(...burst);
      // What comes later would be taken for what is sent next.
      await flooder.isOverAt(near);
    }
    for (const hand of [flooder, near]) {
      const { entries, limit } = hand.flows("openings");
      assert.ok(entries > limit / 2 && entries <= limit, `${hand.plan.name}: ${entries} of ${limit} flows`);
    }
    assert.deepEqual(
      [flooder, near].map((hand) => hand.flows().entries),
      before,
      "what is in use is in a table of its own",
    );
    assert.deepEqual({ client: client.flows("openings").entries, far: far.flows("openings").entries }, bystander);
    await far.passes(client, far.packet(client, 17, udp(53, 7000, data)), "the bystander's answer");
    await client.passes(near, opened(near, 7001), "the victim's client asks again");
    await near.passes(client, near.packet(client, 17, udp(53, 7001, data)), "and is answered");
    await client.passes(near, client.packet(near, 6, tcp(7002, 80, syn)), "a new connection to the victim");
    await near.passes(client, near.packet(client, 6, tcp(80, 7002, syn | ack)), "and its answer");
  });

  test("whoever may open flows evicts none that was answered", { timeout: 120_000 }, async () => {
    const port = 7600;
    await client.passes(near, client.packet(near, 6, tcp(port, 80, syn)), "a connection is opened");
    await near.passes(client, near.packet(client, 6, tcp(80, port, syn | ack)), "is answered");
    await client.passes(near, client.packet(near, 6, tcp(port, 80, ack)), "and goes on");
    await client.passes(far, client.packet(far, 17, udp(port, 53, data)), "a question");
    await far.passes(client, far.packet(client, 17, udp(53, port, data)), "its answer");
    await client.passes(far, client.packet(far, 17, udp(port, 53, data)), "and another one");
    for (let at = 0; at < 24_000; at += 2000) {
      const burst = Array.from({ length: 2000 }, (_, index) =>
        flooder.packet(near, 6, tcp(1024 + at + index, 1 + (index % 7), syn)),
      );
      // What is seen more than once is kept longer than what is not.
      for (let time = 0; time < 3; time += 1) await flooder.send(...burst);
      await flooder.isOverAt(near);
    }
    await near.passes(client, near.packet(client, 6, tcp(80, port, ack, data)), "the server sends on its connection");
    await far.passes(client, far.packet(client, 17, udp(53, port, data)), "the other server answers");
  });

  test("an element of the table that became another flow's lends nothing to the one that is looked for", async () => {
    const port = 7700;
    for (const server of [near, far]) {
      await client.passes(server, client.packet(server, 17, udp(port, 53, data)), "a question");
      await server.passes(client, server.packet(client, 17, udp(53, port, data)), "its answer");
      server.mistakeFlow(client, { local: 53, remote: port }, { local: 54, remote: port });
      client.mistakeFlow(server, { local: port, remote: 53 }, { local: port, remote: 54 });
      await server.refused(client, "no-rule", server.packet(client, 17, udp(54, port, data)), "from another port");
      await client.refused(server, "no-rule", client.packet(server, 17, udp(port, 54, data)), "to another port");
      await server.passes(client, server.packet(client, 17, udp(53, port, data)), "and the flow itself goes on");
    }
  });

  test("what no rule admits leaves no trace in any table", async () => {
    const before = [flooder, far, client].map((hand) => hand.flows().entries + hand.flows("openings").entries);
    const drops = (await flooder.counters()).drops["no-rule"] ?? 0;
    const frames = [far, client].flatMap((victim) =>
      Array.from({ length: 2000 }, (_, port) => flooder.packet(victim, 17, udp(1024 + port, 53, data))),
    );
    await flooder.send(...frames);
    assert.equal(((await flooder.counters()).drops["no-rule"] ?? 0) - drops, frames.length);
    assert.deepEqual(
      [flooder, far, client].map((hand) => hand.flows().entries + hand.flows("openings").entries),
      before,
    );
  });

  /** A frame as the host of `from` would send it to the host of `to`, out of the controller's machine. */
  const onWire = (from: Hand, to: Hand, body: string, mac: string = hosts[from.plan.host][1], type = 0x0800): string =>
    ethernet(hosts[to.plan.host][1], mac, type, body);
  const datagram = (from: string, to: string, port = 53): string => ip(from, to, 17, udp(8000, port, data));
  /** The frames do not reach the victim; the counter of the reason grows by each. */
  const stopped = async (
    victim: Hand,
    reason: string | null,
    frames: readonly string[],
    what: string,
  ): Promise<void> => {
    const before = await victim.counters();
    await wire.call("inject", "eth0", frames);
    await wire.call("inject", "eth0", [onWire(client, victim, datagram(client.address, victim.address))]);
    const first = await victim.next(10_000);
    assert.equal(first?.slice(28), datagram(client.address, victim.address), `${what}: the honest frame comes alone`);
    const after = await victim.counters();
    const counted = reason === null ? 0 : frames.length;
    const sum = (drops: { readonly [reason: string]: number }): number =>
      Object.values(drops).reduce((total, value) => total + value, 0);
    assert.equal(sum(after.drops) - sum(before.drops), counted, what);
    if (reason !== null) assert.equal((after.drops[reason] ?? 0) - (before.drops[reason] ?? 0), counted, what);
  };

  test("on the wire, an address is believed only from the host that has it, and only by the receiver's own rules", async () => {
    const to = far.address;
    const wrong = (mac: string, source = client.address): string => onWire(client, far, datagram(source, to), mac);
    await stopped(far, "wrong-host", [wrong("02:00:00:00:09:09"), wrong(controllerMac)], "machine");
    const unknown = ["10.64.0.99", "10.64.0.1", hosts.a[0], to, flooder.address, "127.0.0.1", "0.0.0.0"];
    await stopped(
      far,
      "no-location",
      unknown.map((source) => wrong(hosts.a[1], source)),
      "a source that no host was said to have, or that is here",
    );
    await stopped(far, "no-rule", [onWire(client, far, datagram(client.address, to, 54))], "another port");
    await stopped(
      far,
      "wrong-host",
      [onWire(client, far, datagram(controllerAddress, to), hosts.a[1])],
      "a controller",
    );
    await stopped(far, "no-rule", [onWire(near, far, datagram(near.address, to))], "a sender without a rule");
    await stopped(
      far,
      "malformed",
      [onWire(client, far, ip(client.address, to, 17, udp(8000, 53, data, 900)))],
      "malformed",
    );
    const late = ip(client.address, to, 17, Buffer.alloc(32), 40, 0x7777);
    await stopped(far, "fragment", [onWire(client, far, late)], "a fragment without its first");
    const body = datagram(client.address, to);
    await stopped(
      far,
      null,
      [
        ethernet(everyone, hosts.a[1], 0x0800, body),
        ethernet("01:00:5e:00:00:01", hosts.a[1], 0x0800, body),
        ethernet(hosts.b[1], hosts.a[1], 0x8100, `00050800${body}`),
        ethernet(hosts.b[1], hosts.a[1], 0x86dd, "60".padEnd(120, "0")),
        ethernet(everyone, hosts.a[1], 0x0806, arp(2, hosts.a[1], to, client.address)),
      ],
      "what is not for an endpoint, or not for this host",
    );
  });

  test("on the wire, a frame without a source is from no host", async () => {
    // A bridge drops such a frame, so it comes out of the cable's own end.
    const cable = installation.agent(installation.machines[0]!, "guest-process.testing.ts");
    const nobody = "00:00:00:00:00:00";
    const before = await far.counters();
    const frames = [nobody, "01:00:5e:00:00:01"].flatMap((mac) =>
      ["10.64.0.99", client.address].map((source) => onWire(client, far, datagram(source, far.address), mac)),
    );
    await cable.call("inject", "wb", frames);
    await wire.call("inject", "eth0", [onWire(client, far, datagram(client.address, far.address))]);
    const first = await far.next(10_000);
    assert.equal(first?.slice(28), datagram(client.address, far.address));
    assert.equal(await far.next(200), null, "the honest frame comes alone");
    assert.equal(
      ((await far.counters()).drops["spoofed-mac"] ?? 0) - (before.drops["spoofed-mac"] ?? 0),
      frames.length,
    );
  });

  test("on the wire, ARP for an endpoint is answered to its controller alone", async () => {
    const { machine } = installation.controller;
    const answers = await watchAnswers(machine, far.address);
    const request = (mac: string, sender: string): string =>
      ethernet(hosts.b[1], mac, 0x0806, arp(1, mac, sender, far.address));
    try {
      await wire.call("inject", "eth0", [
        request("02:00:00:00:09:09", controllerAddress),
        request(controllerMac, "10.0.0.77"),
        request(controllerMac, client.address),
        request(controllerMac, controllerAddress),
      ]);
      while (answers.lines.length === 0) await sleep(20);
      await sleep(150);
      assert.deepEqual(answers.lines.length, 1, answers.lines.join("\n"));
    } finally {
      await answers.stop();
    }
    assert.equal(await far.next(1), null);
  });

  test("the machine's own frames pass the uplink untouched", async () => {
    const { machine, agent } = installation.controller;
    const host = installation.hostMachines.a;
    const own = installation.agent(host, "guest-process.testing.ts");
    await own.call("listen", 2222);
    assert.equal(await agent.call("open", hosts.a[0], 2222), "open");
    assert.equal(await agent.call("echo", 200_000, 5000), true);
    assert.ok(machine.succeeds("busybox", "ping", "-c", "1", "-W", "2", "-s", "4000", hosts.a[0]), "in fragments");
    for (const [name, at] of [
      [machine, "2"],
      [host, "1"],
    ] as const) {
      name.run("ip", "addr", "add", `fd00::${at}/64`, "dev", "eth0", "nodad");
    }
    assert.ok(machine.succeeds("busybox", "ping", "-6", "-c", "1", "-W", "2", "fd00::1"), "IPv6");
    await own.call("bindUdp", 4712, false);
    const odd = [
      ethernet(everyone, controllerMac, 0x0800, ip(controllerAddress, "10.0.255.255", 17, udp(1, 4712, data))),
      ethernet(hosts.a[1], controllerMac, 0x0800, ip("198.51.100.9", hosts.a[0], 17, udp(1, 4712, data))),
    ];
    host.run("sh", "-c", "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done");
    host.run("ip", "route", "add", "198.51.100.0/24", "dev", "eth0");
    await wire.call("inject", "eth0", odd);
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepEqual(await own.call("datagrams"), [`${controllerAddress}:1 4`, "198.51.100.9:1 4"]);
  });
});
