import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { CellPolicy } from "../../../../../core/documents/vocabulary.ts";
import { policyKey } from "../program/layout.ts";
import { udp } from "../testing/frames.testing.ts";
import { Hand, markPort } from "../testing/hands.testing.ts";
import { type GuestPlan, type HostKey, Installation, policy, rule } from "../testing/installation.testing.ts";
import { canRun } from "../testing/namespaces.testing.ts";

const plan = (name: string, host: HostKey, number: number, cell: number, subnet: number): GuestPlan => ({
  name,
  host,
  number,
  cell,
  address: `10.64.0.${40 + number}`,
  identities: [number, 100 + number, subnet],
});
/** Cells 1 and 2 have let each other's flows through; `newcomer` is of cell 2. */
const client = plan("client", "a", 1, 1, 10);
const server = plan("server", "b", 2, 1, 11);
const other = plan("other", "b", 3, 2, 20);
const newcomer = plan("newcomer", "b", 4, 2, 20);
const plans = [client, server, other];

const marks = (id: number, from: number, to: number) =>
  rule(id, from, to, "udp", markPort, { sourcePorts: { from: markPort, to: markPort } });
/** That cell's end of an agreement with the other one, whose addresses are identity 50 there. */
const first = (version: number) =>
  policy(
    1,
    version,
    [rule(1, 10, 11, "udp", 53), rule(2, 10, 50, "udp", 53), marks(3, 10, 11), marks(4, 10, 50)],
    [["10.64.0.43/32", 50]],
  );
const second = (version: number, port = 1) =>
  policy(
    2,
    version,
    [rule(1, 50, 20, "udp", 53), rule(2, 20, 20, "tcp", port), marks(3, 50, 20)],
    [["10.64.0.41/32", 50]],
  );

describe("whose flows ask their rules again", { skip: !canRun() }, () => {
  const installation = new Installation();
  const data = Buffer.from("data");
  let version = 1;
  let from: Hand;
  before(async () => {
    await installation.start();
    await installation.apply(plans, [first(version), second(version)]);
    from = await hand(client);
  });
  after(() => installation.stop());

  const apply = (policies: readonly CellPolicy[], guests = plans) => installation.apply(guests, policies);
  const hand = (guest: GuestPlan) => Hand.open(installation, guest);
  const frame = (to: Hand, port: number): string => from.packet(to, 17, udp(port, 53, data));
  /** Takes a rule out of a host's kernel, so that whatever asks its rule is refused. */
  const takeOut = (key: HostKey, cell: number, from: number, to: number): void => {
    const host = installation.hostMachines[key];
    const pin = `${installation.directory}/${key}/run/bpf/diverter/maps/rules`;
    const outer = host.run("bpftool", "-j", "map", "lookup", "pinned", pin, "key", String(cell), "0", "0", "0");
    const id = Buffer.from((JSON.parse(outer) as { value: readonly string[] }).value.map(Number)).readUInt32LE();
    const entry = policyKey.encode({ prefix_length: 112, kind: 2, protocol: 17, from, to, port: 53 });
    host.run("bpftool", "map", "delete", "id", String(id), "key", ...[...entry].map(String));
  };

  test("a cell whose rules change, or whose interfaces come and go, makes no other cell's flows ask theirs", async () => {
    const to = await hand(server);
    await from.passes(to, frame(to, 6000), "a flow is opened");
    takeOut("a", 1, 10, 11);
    await from.refused(to, "no-rule", frame(to, 6001), "nothing is opened any more");
    const unchanged = first(version);
    for (const port of [2, 3, 4]) {
      version += 1;
      await apply([unchanged, second(version, port)]);
      await from.passes(to, frame(to, 6000), "the other cell's rules have changed");
    }
    for (const guests of [[...plans, newcomer], plans]) {
      await apply([unchanged, second(version, 4)], guests);
      await from.passes(to, frame(to, 6000), "an interface of the other cell has come or gone");
    }
    await apply([unchanged], plans);
    await from.passes(to, frame(to, 6000), "the other cell has gone");
    const away = first(++version);
    await apply([{ ...away, rules: away.rules.slice(1) }, second(version)]);
    await from.refused(to, "no-rule", frame(to, 6000), "the cell's own rule has gone");
    await apply([first(++version), second(version)]);
    await from.passes(to, frame(to, 6000), "and has come back");
  });

  test("a flow towards another cell follows where its other end moves to", async () => {
    const to = await hand(other);
    // Where it goes is learnt by the second one.
    for (const what of ["opened", "learnt", "known"]) await from.passes(to, frame(to, 6100), `across hosts: ${what}`);
    const here: GuestPlan = { ...other, host: "a" };
    await apply([first(version), second(version)], [client, server, here]);
    const moved = await hand(here);
    await from.passes(moved, frame(moved, 6100), "on one host");
    await apply([first(version), second(version)], plans);
    const back = await hand(other);
    await from.passes(back, frame(back, 6100), "and across hosts again");
    await from.passes(back, frame(back, 6100), "with what was learnt");
  });

  test("a driver that starts makes up for what an earlier one left undone, and counts where no other program does", async () => {
    const generations = () => {
      const pin = `${installation.directory}/a/run/bpf/diverter/maps/generations`;
      const dump = installation.hostMachines.a.run("bpftool", "-j", "map", "dump", "pinned", pin);
      return (JSON.parse(dump) as { value: readonly string[] }[]).map(({ value }) =>
        Buffer.from(value.map(Number)).readUInt32LE(),
      );
    };
    const before = generations();
    const old = installation.drivers.a;
    installation.agents.delete(old);
    await old.stop();
    await installation.startDriver("a");
    const now = generations();
    assert.ok(now.every((value, slot) => value > Math.max(2 ** 31, before[slot]!)));
    await apply([first(version), second(version)]);
  });
});
