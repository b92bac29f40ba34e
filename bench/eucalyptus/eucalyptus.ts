import { join } from "node:path";
import { createPlanDriver } from "../../host/drivers/network/eucalyptus/driver.ts";
import { World } from "../../host/drivers/network/eucalyptus/packets/world.testing.ts";
import { type LocalPlan, localDefaults } from "../../host/drivers/network/eucalyptus/plan/plan.ts";
import { planFor } from "../../host/drivers/network/eucalyptus/planners.ts";
import type { NetworkConfiguration } from "../../model/eucalyptus/configuration/configuration.ts";
import { buildView } from "../../model/eucalyptus/view/build-view.ts";
import type { IngressRule } from "../../model/eucalyptus/view/network-view.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { median, percentile, rangeOf } from "../measure.ts";

const base = 0x0a000000;
const subnet = { name: "s", subnet: base, netmask: 0xffff0000, gateway: base + 1 };
const configuration: NetworkConfiguration = {
  mode: "EDGE",
  publicIps: [{ first: 0xc6120000, last: 0xc613ffff }],
  subnets: [subnet],
  clusters: [{ name: "one", subnet: { name: "s" }, privateIps: [{ first: base + 2, last: base + 60_000 }] }],
};
const rule = (fromPort: number, cidr: string): IngressRule => {
  return { protocol: 6, fromPort, toPort: fromPort, icmpType: 0, icmpCode: 0, cidr };
};
const id = (kind: string, number: number): string => `${kind}-${number.toString(16).padStart(8, "0")}`;

interface Size {
  readonly instances: number;
  readonly groups: number;
  readonly rules: number;
  readonly nodes: number;
}
/** @param port of the first rule of the first group */
function planned({ instances, groups, rules, nodes }: Size, port: number): LocalPlan {
  const view = buildView(configuration, {
    clusters: [{ name: "one", ccIp: 1, nodes: Array.from({ length: nodes }, (_, node) => `n${node}`) }],
    clcIp: base + 9,
    dnsDefault: [base + 9],
    instances: Array.from({ length: instances }, (_, number) => ({
      id: id("i", number),
      cluster: "one",
      node: `n${number % nodes}`,
      mac: "D0:0D:00:00:00:01",
      privateIp: base + 2 + number,
      securityGroups: [id("sg", number % groups)],
    })),
    securityGroups: Array.from({ length: groups }, (_, group) => ({
      id: id("sg", group),
      owner: "o",
      egress: [],
      ingress: Array.from({ length: rules }, (_, number) =>
        rule(group === 0 && number === 0 ? port : 1000 + number, `192.0.${group % 256}.0/24`),
      ),
    })),
  });
  if (view === null) throw new Error("the mode EDGE has no view");
  return planFor(view, { address: "n0", peer: "node" }, { ...localDefaults, bridgeMac: "02:00:00:00:00:FE" });
}

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
  const large = { instances: 10_000, groups: 1000, rules: 3, nodes: 100 };
  planned(large, 22);
  const views: number[] = [];
  for (let round = 0; round < rounds; round += 1) views.push(await timed(() => planned(large, 22)));
  const size = { instances: 200, groups: 100, rules: 10, nodes: 20 };
  const world = new World();
  try {
    const node = await world.machine();
    node.run("ip", "link", "add", "em1", "type", "veth", "peer", "name", "other");
    node.run("ip", "link", "add", "br0", "type", "bridge");
    const [service, run] = [world.service(node, "node"), world.run(node)];
    const offer = async (port: number): Promise<void> => {
      await service.offer({ mode: "EDGE", global: planned(size, port) });
      const [why] = Object.values(service.state.failed);
      if (why !== undefined) throw new Error(why);
    };
    await offer(22);
    say("a node has 100 groups with 1,000 rules");
    const [changes, looks, flushes]: number[][] = [[], [], []];
    for (let round = 0; round < rounds; round += 1) {
      changes?.push(await timed(() => offer(23 + round)));
      const { stdout = "" } = { stdout: await run("iptables-save", []) };
      if (!stdout.includes(`--dport ${23 + round} `))
        throw new Error(`the rule for port ${23 + round} is not in force`);
      looks?.push(await timed(() => service.look()));
    }
    for (let round = 0; round < Math.min(rounds, 10); round += 1) flushes?.push(await timed(() => service.flush()));
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
      figure("flush and rebuild of 1,000 rules", flushes ?? [], 300, "sets, guard and addresses too"),
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
