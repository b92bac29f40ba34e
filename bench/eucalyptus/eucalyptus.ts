import { join } from "node:path";
import { createPlanDriver } from "../../host/drivers/network/eucalyptus/driver.ts";
import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, percentile, rangeOf } from "../measure.ts";
import { large, planned, thousandRules } from "./views.ts";

const timed = async (work: () => unknown): Promise<number> => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};
const figure = (what: string, values: readonly number[], atMost: number, note: string): Figure => {
  return { what, unit: "ms", value: median(values), range: rangeOf(values), atMost, note };
};

async function measured({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const rounds = quick ? 3 : 30;
  planned(large, 22);
  const views: number[] = [];
  for (let round = 0; round < rounds; round += 1) views.push(await timed(() => planned(large, 22)));
  const world = new World();
  try {
    const node = await world.machine();
    node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
    node.run("ip", "link", "add", "br0", "type", "bridge");
    const [service, run] = [world.service(node, "node"), world.run(node)];
    const offer = async (port: number): Promise<void> => {
      await service.offer({ mode: "EDGE", global: planned(thousandRules, port) });
      const [why] = Object.values(service.state.failed);
      if (why !== undefined) throw new Error(why);
    };
    await offer(22);
    say("a node has 100 groups with 1,000 rules");
    const [changes, looks]: number[][] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      changes?.push(await timed(() => offer(23 + round)));
      const { stdout = "" } = { stdout: await run("iptables-save", []) };
      if (!stdout.includes(`--dport ${23 + round} `))
        throw new Error(`the rule for port ${23 + round} is not in force`);
      looks?.push(await timed(() => service.look()));
    }
    const driver = createPlanDriver({ run, dhcpDirectory: join(world.directory, "node", "dhcp") });
    const reads: number[] = [];
    for (let round = 0; round < rounds; round += 1) reads.push(await timed(() => driver.read()));
    const most = changes ?? [];
    return [
      figure("view of 10,000 instances in 1,000 groups, built and planned", views, 200, "3 rules a group, 100 nodes"),
      {
        ...figure("change of a rule, in force on its host, p99", most, 150, "100 groups"),
        value: percentile(most, 0.99),
      },
      figure("a look at an unchanged host with 1,000 rules", looks ?? [], 60, "reads all that is in place"),
      figure("of this, to read what is in place", reads, 60, "five of the system's programs at once"),
    ];
  } finally {
    await world.end();
  }
}

export const eucalyptus: Bench = {
  title: "Networks by the rules of Eucalyptus (EDGE)",
  method:
    "One node is a network namespace with Debian's iptables, ipset, ebtables-nft and dnsmasq. A change is offered to the service's loop, and counts when its pass is over; that the rule is in force is read back each time.",
  run: measured,
};
