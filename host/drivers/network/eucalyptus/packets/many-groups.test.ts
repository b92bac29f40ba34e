import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Machine } from "../../diverter/testing/namespaces.testing.ts";
import type { NetworkService } from "../../service/network-service.ts";
import type { LocalNetwork } from "../driver.ts";
import type { LocalPlan } from "../plan/plan.ts";
import { addressOf, edgePlan, idOf, macOf, ruleOf, tapOf } from "./site.testing.ts";
import { soon, World } from "./world.testing.ts";

/* EDGE with more groups than are asked one by one: the kernel's own verdicts and counters. */

/** The first two are at this node: a member of the first group, and one of the last. */
const planOf = (groups: number): LocalPlan => {
  const group = (number: number): number =>
    number === 1 ? groups - 1 : number > 1 && number < groups ? number - 1 : 0;
  const instances = Array.from({ length: groups + 1 }, (_, number) => ({
    groups: [group(number)],
    ...(number < 2 ? { here: true as const } : {}),
  }));
  const tcp = ruleOf({ fromPort: 7000, toPort: 7000, group: idOf("sg", 0) });
  return edgePlan(instances, new Map([[groups - 1, [tcp]]]));
};

const world = new World();
let node: Machine;
let guests: readonly [Machine, Machine];
let service: NetworkService<LocalPlan, LocalNetwork, unknown>;
const offered = async (groups: number): Promise<void> => {
  await service.offer({ mode: "EDGE", global: planOf(groups) });
  assert.deepEqual(service.state.failed, {});
};
const opens = (port: number): boolean =>
  guests[0].succeeds("socat", "-u", "/dev/null", `TCP:${addressOf(1)}:${port},connect-timeout=1`);
const jumps = (): readonly string[] =>
  node
    .run("iptables", "-S", "FORWARD")
    .split("\n")
    .filter((line) => line.startsWith("-A"));
/** Packets that a rule of a chain has met. */
const met = (chain: string, rule: RegExp): number => {
  const lines = node.run("iptables", "-nvxL", chain).split("\n");
  return Number(
    lines
      .find((line) => rule.test(line))
      ?.trim()
      .split(/\s+/)[0] ?? assert.fail(lines.join("\n")),
  );
};

before(async () => {
  node = await world.machine();
  guests = [await world.machine(), await world.machine()];
  node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
  node.run("ip", "link", "add", "br0", "type", "bridge");
  for (const [number, guest] of guests.entries()) {
    node.cable(tapOf(number), guest, "eth0", macOf(number));
    guest.run("ip", "address", "add", `${addressOf(number)}/24`, "dev", "eth0");
  }
  for (const port of [7000, 7001]) world.spawn(guests[1], "socat", `TCP-LISTEN:${port},fork,reuseaddr`, "PIPE");
  service = world.service(node, "node");
  await offered(33);
});
after(() => world.end());

test("what a rule opens passes, the rest dies, and each packet is counted once and meets no list of all groups", async () => {
  assert.ok(await soon(() => opens(7000)), "what the rule opens");
  const counts = (): readonly number[] => [
    met("EUCA_COUNTERS_OUT", / 10\.50\.0\.0\/24 /),
    met("FORWARD", / EUCA_FILTER_FWD /),
    met("CELLS_GROUPS", / DROP /),
  ];
  // The last packets of what was open may still be on their way.
  let before = counts();
  const isQuiet = async (): Promise<boolean> => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    const last = before;
    before = counts();
    return String(last) === String(before);
  };
  assert.ok(await soon(isQuiet));
  assert.ok(!guests[0].succeeds("ping", "-c", "3", "-i", "0.2", "-W", "1", addressOf(1)), "what none does");
  assert.deepEqual(
    counts().map((now, index) => now - (before[index] ?? 0)),
    [3, 0, 3],
  );
  assert.ok(!opens(7001), "another port");
});

test("a rule that the site adds later is asked first, and jumps stand in their order whatever is done to them by hand", async () => {
  const hook = ["EUCA_FILTER_FWD_PREUSERHOOK", "-p", "tcp", "--dport", "7000", "-j", "DROP"] as const;
  node.run("iptables", "-A", ...hook);
  assert.ok(!opens(7000), "the site's rule");
  node.run("iptables", "-D", ...hook);
  assert.ok(opens(7000));
  const whole = jumps();
  assert.deepEqual(
    whole.map((line) => line.split(" ").at(-1)),
    ["EUCA_FILTER_FWD_PREUSERHOOK", "CELLS_GROUPS", "EUCA_FILTER_FWD", "EUCA_FILTER_FWD_POSTUSERHOOK"],
  );
  const site = ["FORWARD", "-s", "203.0.113.1/32", "-j", "DROP"] as const;
  node.run("iptables", "-A", ...site);
  for (const gone of [
    ["EUCA_FILTER_FWD_PREUSERHOOK"],
    ["CELLS_GROUPS"],
    ["EUCA_FILTER_FWD", "EUCA_FILTER_FWD_POSTUSERHOOK"],
  ]) {
    for (const chain of gone) node.run("iptables", "-D", "FORWARD", "-j", chain);
    await service.look();
    assert.deepEqual(jumps(), [...whole, `-A ${site.join(" ")}`], gone.join(" "));
  }
  // Behind the list of all groups nothing would meet it, and behind that before the site's own nothing would meet those.
  for (const chain of ["CELLS_GROUPS", "EUCA_FILTER_FWD_PREUSERHOOK"]) {
    node.run("iptables", "-D", "FORWARD", "-j", chain);
    node.run("iptables", "-A", "FORWARD", "-j", chain);
  }
  await service.look();
  const ours = jumps().filter((line) => line !== `-A ${site.join(" ")}`);
  assert.deepEqual([service.state.failed, ours, jumps().length], [{}, whole, whole.length + 1]);
  node.run("iptables", "-D", ...site);
  // What the site has put between two of ours is asked before what comes between them.
  node.run("iptables", "-I", "FORWARD", "2", ...site.slice(1));
  node.run("iptables", "-D", "FORWARD", "-j", "CELLS_GROUPS");
  await service.look();
  assert.deepEqual(jumps(), [whole[0], `-A ${site.join(" ")}`, ...whole.slice(1)]);
  node.run("iptables", "-D", ...site);
});

test("groups that come and go bring it and take it away, and what passed passes", async () => {
  const ours = (): boolean => /CELLS_GROUPS|CELLS_\d/.test(node.run("iptables-save") + node.run("ipset", "save"));
  assert.ok(ours());
  for (const [groups, isThere] of [
    [16, false],
    [33, true],
    [70, true],
  ] as const) {
    await offered(groups);
    assert.equal(ours(), isThere, `${groups} groups`);
    assert.deepEqual([opens(7000), opens(7001)], [true, false], `${groups} groups`);
  }
  assert.ok(!node.run("ipset", "list", "-n").includes("CELLS_8_"), "no set of another number of buckets");
  await service.leave();
  assert.ok(!ours());
});
