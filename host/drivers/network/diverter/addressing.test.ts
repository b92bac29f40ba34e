import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { CellPolicy } from "../../../../core/documents/vocabulary.ts";
import { cidr } from "../../../../model/cell/identifiers.ts";
import { tapName } from "./taps/devices.ts";
import { type GuestPlan, hosts, Installation, policy, uidOf } from "./testing/installation.testing.ts";
import { canRun } from "./testing/namespaces.testing.ts";

const seed = Number(process.env.CELLS_SEED ?? randomInt(2 ** 31));
/** A small generator of numbers below a limit, the same for the same seed. */
function numbers(start: number): (limit: number) => number {
  let state = start >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/**
 * What is in force after many changes must be what the last network says, seen as a whole. A driver that starts anew reads
 * back what it finds, so it is asked.
 */
describe(`addresses in the kernel (CELLS_SEED=${seed})`, { skip: !canRun() }, () => {
  const installation = new Installation();
  const below = numbers(seed);
  let policies: readonly CellPolicy[] = [policy(1, 1, []), policy(2, 1, [])];
  before(() => installation.start());
  after(() => installation.stop());

  const apply = async (plans: readonly GuestPlan[]): Promise<boolean> => {
    const { changes, after } = (await installation.apply(plans, policies)).a;
    assert.equal(after.addressing, false, "what was put in force is in force");
    return changes.addressing;
  };
  const startAnew = () => installation.drivers.a.call("init", { device: "eth0", address: hosts.a[0], mac: hosts.a[1] });

  /**
   * Few addresses, so that they come, go, move between hosts and cells, become another interface's, and are claimed by two
   * hosts at once.
   */
  const somePlans = (): readonly GuestPlan[] =>
    Array.from({ length: 20 }, (_, at): GuestPlan => {
      const number = 1 + at + 20 * below(2);
      const host = at % 2 === 0 ? "a" : "b";
      const address = `10.64.0.${100 + Math.floor(at / 2)}`;
      const identities = [number, 100 + number, 10 + below(2)] as const;
      return { name: `n${number}`, host, address, number, cell: 1 + below(2), identities };
    }).filter(() => below(3) === 0);

  /** Subnets that come, go and are closed to what is sent to many. */
  const somePolicies = (): readonly CellPolicy[] =>
    [1, 2].map((cell) => ({
      ...policy(cell, 1, []),
      subnets: [0, 1, 2]
        .filter(() => below(2) === 0)
        .map((at) => ({ identity: 10 + at, cidr: cidr(`10.64.${at}.0/24`) })),
      ...(below(4) === 0 ? { broadcast: "off" as const } : {}),
    }));

  test("changes one after another are as right as the whole at once", async () => {
    let changed = 0;
    for (let round = 0; round < 8; round++) {
      let last = somePlans();
      for (let more = below(8); more >= 0; more--) {
        const some = somePlans();
        // Mostly one comes or goes, sometimes everything.
        if (below(3) === 0) policies = somePolicies();
        if (below(4) === 0) last = some;
        else if (below(2) === 0) last = last.toSpliced(below(last.length), 1);
        else last = [...last, ...some.slice(0, 1)];
        last = [...new Map(last.map((plan) => [`${plan.address} ${plan.host}`, plan])).values()];
        if (await apply(last)) changed += 1;
      }
      assert.equal(await apply(last), false, "the same network once more is no change");
      await startAnew();
      assert.equal(await apply(last), false, `a new driver finds round ${round} in force, every entry of it`);
    }
    assert.ok(changed >= 8, `${changed} changes`);
  });

  const guest = (host: "a" | "b", name: string): GuestPlan => {
    const [address, identities] = ["10.64.0.99", [9, 9, 9] as const];
    return { name, host, address, number: 99, cell: 1, identities };
  };
  test("what somebody else took out of a map is noticed by a driver that starts", async () => {
    await apply([guest("b", "n")]);
    const pin = `${installation.directory}/a/run/bpf/diverter/maps/locations`;
    const address = guest("b", "n").address.split(".");
    installation.hostMachines.a.run("bpftool", "map", "delete", "pinned", pin, "key", ...address);
    await startAnew();
    assert.equal(await apply([guest("b", "n")]), true);
  });
  test("what is here stays here while another host claims it, and when its device is another one", async () => {
    const here = guest("a", "here");
    await apply([here]);
    await apply([here, guest("b", "there")]);
    await apply([here]);
    await startAnew();
    assert.equal(await apply([here]), false, "every entry of it was there");
    installation.hostMachines.a.run("ip", "link", "del", tapName(uidOf(here)));
    assert.equal(await apply([here]), true);
    await startAnew();
    assert.equal(await apply([here]), false, "the entries are the new device's");
  });
});
