import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { tapName } from "./taps/devices.ts";
import { type GuestPlan, Installation, policy, rule, uidOf } from "./testing/installation.testing.ts";
import { canRun } from "./testing/namespaces.testing.ts";

/**
 * Packets while the dataplane is changed under them, counted: what is allowed all the while loses none, and what is denied
 * all the while gets none through. `client` asks `near` (its own host) and `far`, who answer; so does `newcomer`, from
 * another port each time, so that each of its packets has to find its rule. `near` and `stranger`, who is of another cell,
 * keep trying where they may not.
 */
const client: GuestPlan = {
  name: "client",
  host: "a",
  address: "10.64.0.81",
  number: 1,
  cell: 1,
  identities: [1, 101, 10],
};
const newcomer: GuestPlan = {
  name: "newcomer",
  host: "a",
  address: "10.64.0.85",
  number: 5,
  cell: 1,
  identities: [5, 105, 10],
};
const near: GuestPlan = {
  name: "near",
  host: "a",
  address: "10.64.0.82",
  number: 2,
  cell: 1,
  identities: [2, 102, 11],
};
const far: GuestPlan = { name: "far", host: "b", address: "10.64.0.83", number: 3, cell: 1, identities: [3, 103, 11] };
const stranger: GuestPlan = {
  name: "stranger",
  host: "b",
  address: "10.64.0.84",
  number: 4,
  cell: 2,
  identities: [1, 101, 10],
};
/** With room for all flows that are opened while an answer waits for its turn on a busy machine. */
const memoryMiB = 4096;
const plans = [client, newcomer, near, far, stranger].map((plan) => ({ ...plan, memoryMiB }));
const port = 5353;
const seed = Number(process.env.CELLS_SEED ?? randomInt(2 ** 31));

/** A small generator of numbers below a limit, the same for the same seed. */
function numbers(start: number): (limit: number) => number {
  let state = start >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

describe(`packets during changes (CELLS_SEED=${seed})`, { skip: !canRun() }, () => {
  const installation = new Installation();
  const below = numbers(seed);
  let version = 1;
  /** Rules that always let the client ask, in ever other words, among others that let nobody more. */
  const someRules = () => {
    const asked = [
      rule(1, 10, 11, "udp", port),
      rule(2, 10, 11, "any"),
      rule(3, 10, 11, "udp", undefined, { ports: { from: 5000, to: 6000 } }),
      rule(4, 10, 11, "udp", undefined, { sourcePorts: { from: 1024, to: 65535 } }),
    ][below(4)]!;
    const others = Array.from({ length: below(60) }, (_, at) => rule(100 + at, 10, 11, "tcp", 1 + below(60_000)));
    return policy(1, version++, [...others.slice(0, 30), asked, ...others.slice(30)]);
  };
  const strangers = () => policy(2, version++, [rule(1, 10, 10, "any"), rule(2, 10, 9, "tcp", 1 + below(9))]);
  const agent = (plan: GuestPlan) => installation.guests[plan.name]!.agent;
  const settle = () => new Promise((resolve) => setTimeout(resolve, 150));

  /** Runs the work while all send, then counts. At least `least` datagrams of each pair are sent. */
  const whileSending = async (least: number, work: () => Promise<void>): Promise<void> => {
    for (const plan of plans)
      await agent(plan).call(
        "bindUdp",
        port,
        [near, far].some(({ name }) => name === plan.name),
      );
    await agent(client).call("stream", [near.address, far.address], port, 2, false);
    await agent(newcomer).call("stream", [near.address, far.address], port, 3, true);
    await agent(near).call("stream", [far.address, stranger.address], port, 5);
    await agent(stranger).call("stream", [client.address, near.address, far.address], port, 5);
    await settle();
    await work();
    const sent = await agent(client).call<number>("endStream");
    const opened = await agent(newcomer).call<number>("endStream");
    const tried = [await agent(near).call<number>("endStream"), await agent(stranger).call<number>("endStream")];
    await settle();
    assert.ok(
      sent >= least && opened >= least / 2 && tried.every((count) => count >= least / 4),
      `${sent} and ${opened} sent, ${tried.join(" and ")} tried`,
    );
    const got = async (plan: GuestPlan) => {
      const counts: Record<string, number> = {};
      for (const entry of await agent(plan).call<string[]>("datagrams")) {
        const from = entry.split(":")[0]!;
        counts[from] = (counts[from] ?? 0) + 1;
      }
      return counts;
    };
    const asked = { [client.address]: sent, [newcomer.address]: opened };
    assert.deepEqual(await got(near), asked, "near gets every question and nothing else");
    assert.deepEqual(await got(far), asked, "far gets every question and nothing else");
    const answered = (count: number) => ({ [near.address]: count, [far.address]: count });
    assert.deepEqual(await got(client), answered(sent), "the client gets every answer and nothing else");
    assert.deepEqual(await got(newcomer), answered(opened), "and so does who opens a flow each time");
    assert.deepEqual(await got(stranger), {}, "nothing crosses to the other cell");
  };

  before(async () => {
    await installation.start();
    for (const plan of plans) await installation.addGuest(plan);
    await installation.apply(plans, [someRules(), strangers()]);
    /* The answers of ARP, so that no first datagram waits for them. */
    await whileSending(1, async () => void (await settle())).catch(() => undefined);
  });
  after(() => installation.stop());

  test("rules are replaced many times", async () => {
    await whileSending(300, async () => {
      for (let round = 0; round < 120; round++) await installation.apply(plans, [someRules(), strangers()]);
    });
  });

  test("endpoints, locations and identities come and go beside", async () => {
    const guests = Array.from(
      { length: 6 },
      (_, at): GuestPlan => ({
        name: `more${at}`,
        host: at % 2 === 0 ? "a" : "b",
        address: `10.64.0.${90 + at}`,
        number: 10 + at,
        cell: 1,
        identities: [10 + at, 110 + at, 12],
      }),
    );
    await whileSending(100, async () => {
      for (let round = 0; round < 12; round++)
        await installation.apply([...plans, ...guests.filter(() => below(2) === 0)], [someRules(), strangers()]);
      await installation.apply(plans, [someRules(), strangers()]);
    });
  });

  const killAndRestart = async (key: "a" | "b"): Promise<void> => {
    const old = installation.drivers[key];
    installation.agents.delete(old);
    await old.stop();
    await installation.startDriver(key);
  };

  test("drivers are killed, also in the middle of a change, and come back", async () => {
    await whileSending(300, async () => {
      for (let round = 0; round < 4; round++) {
        void installation.apply(plans, [someRules(), strangers()]).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, below(12)));
        await Promise.all([killAndRestart("a"), killAndRestart("b")]);
        await installation.apply(plans, [someRules(), strangers()]);
      }
    });
  });

  test("programs of another version take over from those that are there", async () => {
    const host = installation.hostMachines.a;
    const attached = (): string => host.run("tc", "filter", "show", "dev", tapName(uidOf(client)), "ingress");
    const root = `${installation.directory}/a/run/bpf/diverter`;
    await whileSending(100, async () => {
      const before = attached();
      host.run("sh", "-c", `mv ${root}/programs_* ${root}/programs_0`);
      await killAndRestart("a");
      await installation.apply(plans, [someRules(), strangers()]);
      const now = attached();
      assert.match(now, /from_vm/);
      assert.notEqual(now, before);
    });
  });
});
