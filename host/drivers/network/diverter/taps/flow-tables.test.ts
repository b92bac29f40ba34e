import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { flow, flowKey, fromNumber, toNumber } from "../program/layout.ts";
import { tcp, tcpFlags } from "../testing/frames.testing.ts";
import type { SynRange } from "../testing/guest-process.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, type HostKey, hosts, Installation, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";
import { flowTableSizes } from "./flow-tables.ts";

test("who has more memory may have more flows, between two bounds", () => {
  const flows = [1, 64, 512, 1023, 1024, 4096, 32 * 1024, 1024 * 1024].map((size) => flowTableSizes(size).flows);
  assert.deepEqual(flows, [768, 768, 768, 768, 1536, 6144, 49152, 49152]);
  assert.equal(flowTableSizes(4096).openings, 4096, "and besides for what nobody has answered, or gone on with");
});

const plan = (name: string, host: HostKey, number: number, subnet: number, memoryMiB: number): GuestPlan => ({
  name,
  host,
  number,
  memoryMiB,
  address: `10.64.0.${20 + number}`,
  cell: 1,
  identities: [number, 100 + number, subnet],
});
const server = plan("server", "a", 1, 11, 512);
const large = plan("large", "a", 2, 11, 4096);
const client = plan("client", "b", 3, 10, 256);
const plans = [server, large, client];
const rules = policy(1, 1, [
  rule(1, 10, 11, "tcp", 80),
  rule(2, 12, 11, "tcp", 80),
  rule(3, 10, 11, "udp", markPort),
  rule(4, 11, 10, "udp", markPort),
]);

/** `CELLS_FLOOD=1000000` for as many from a tenth as many senders; it takes a minute. */
const syns = Number(process.env.CELLS_FLOOD ?? 60_000);
const senders = syns / 10;
const firstSender = "10.65.0.1";
const established = 100;

describe(`tables of flows by the guest's size (CELLS_FLOOD=${syns})`, { skip: !canRun() }, () => {
  const installation = new Installation();
  before(async () => {
    await installation.start();
    await installation.apply(plans, [rules]);
    // Frames in others' names come out of the controller's machine; the switch must not believe it.
    installation.machines[0]!.run("bridge", "link", "set", "dev", "wc", "learning", "off");
  });
  after(() => installation.stop());

  const { syn, ack } = tcpFlags;
  const machine = installation.hostMachines;
  const memoryOf = (hand: Hand): number => hand.flows().bytes + hand.flows("openings").bytes;

  test("the tables of a guest of 512 MiB take at most 160 KiB", async () => {
    const hand = await Hand.open(installation, server);
    assert.ok(memoryOf(hand) <= 160 * 1024, `${memoryOf(hand)} bytes`);
    assert.deepEqual([hand.flows().limit, hand.flows("openings").limit], [768, 512]);
    await hand.close();
  });

  test("tables follow the guest's size when it is started anew, and one of a former version stays", async () => {
    const hand = await Hand.open(installation, large);
    assert.deepEqual([hand.flows().limit, hand.flows("openings").limit], [6144, 4096]);
    const grown = plans.map((one) => (one === large ? { ...large, memoryMiB: 512 } : one));
    const { a } = await installation.apply(grown, [rules]);
    assert.deepEqual([a.changes.network, a.after.network], [true, false]);
    assert.deepEqual([hand.flows().limit, hand.flows("openings").limit], [768, 512]);
    for (const [table, entries] of [
      ["flows", 6144],
      ["openings", 2048],
    ] as const) {
      const pin = `${installation.directory}/a/run/bpf/${table}`;
      const size = ["key", String(flowKey.size), "value", String(flow.size), "entries", String(entries)];
      machine.a.run("bpftool", "map", "create", pin, "type", "lru_hash", ...size, "name", "flow_table");
      hand.replaceTable(table, pin);
    }
    const again = await installation.apply(grown, [rules]);
    assert.equal(again.a.changes.network, false, "its guest runs, and has its flows in it");
    assert.deepEqual([hand.flows().limit, hand.flows("openings").limit], [6144, 2048]);
    await hand.close();
  });

  test("admitted SYNs of many senders break no established connection", { timeout: 600_000 }, async () => {
    const [to, from] = [await Hand.open(installation, server), await Hand.open(installation, client)];
    const crowd = Array.from(
      { length: senders },
      (_, at): GuestPlan => ({
        ...plan(`s${at}`, "b", 1000 + at, 12, 256),
        address: fromNumber(toNumber(firstSender) + at),
      }),
    );
    const { a } = installation.drivers;
    await a.call("apply", installation.global("a", [...plans, ...crowd], [rules]));
    const ports = Array.from({ length: established }, (_, at) => 5000 + at);
    const asks = (flags: number) => ports.map((port) => from.packet(to, 6, tcp(port, 80, flags)));
    const answers = (flags: number) => ports.map((port) => to.packet(from, 6, tcp(80, port, flags)));
    const arrive = async (sender: Hand, receiver: Hand, frames: readonly string[], what: string): Promise<void> => {
      await sender.send(...frames);
      assert.equal((await sender.arrivedAt(receiver)).length, frames.length, what);
    };
    await arrive(from, to, asks(syn), "connections are opened");
    await arrive(to, from, answers(syn | ack), "are answered");
    await arrive(from, to, asks(ack), "and are used");
    const before = to.flows().entries;
    const { agent } = installation.controller;
    for (let at = 0; at < syns; at += 20_000) {
      const range: SynRange = { first: firstSender, addresses: senders, from: at, count: Math.min(20_000, syns - at) };
      await agent.call("flood", "eth0", [hosts.a[1], hosts.b[1]], server.address, range);
      await to.forget();
    }
    const { received } = await to.counters();
    assert.ok(received.packets > syns, `${received.packets} packets were admitted`);
    const openings = to.flows("openings");
    assert.ok(openings.entries > openings.limit / 2 && openings.entries <= openings.limit, `${openings.entries}`);
    assert.equal(to.flows().entries, before, "what is in use is in a table of its own");
    await from.arrivedAt(to);
    await arrive(to, from, answers(ack), "the server sends on every one");
    await arrive(from, to, asks(ack), "and so does the client");
  });
});
