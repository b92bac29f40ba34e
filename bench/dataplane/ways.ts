import { gatewayMac } from "../../host/drivers/network/diverter/diverter.ts";
import { tapName } from "../../host/drivers/network/diverter/taps/devices.ts";
import {
  type GuestPlan,
  hosts,
  Installation,
  macOf,
  outsideNetwork,
  policy,
  rule,
  uidOf,
} from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import { cidr, type Ipv4, ipv4 } from "../../model/cell/identifiers.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median } from "../measure.ts";
import { absolute, pathOf, quiet, relative } from "./dataplane.ts";
import { type PacketPath, PacketProgram } from "./packet-program.ts";

/** What a packet costs that leaves the cloud, and one that is sent to many, each against one from VM to VM in the same run. */
const plan = (name: string, host: GuestPlan["host"], number: number, subnet: number, address: string): GuestPlan => ({
  name,
  host,
  number,
  cell: 1,
  address,
  identities: [number, 100 + number, subnet],
});
const receivers = 10;
const inside = plan("inside", "a", 1, 10, "10.64.0.11");
const there = plan("there", "b", 2, 10, "10.64.0.12");
const web = plan("web", "a", 3, 11, "198.18.0.13");
const sender = plan("sender", "a", 4, 12, "10.64.1.14");
const members = Array.from({ length: receivers }, (_, at) =>
  plan(`member${at}`, "a", 20 + at, 12, `10.64.1.${20 + at}`),
);
const plans = [inside, there, web, sender, ...members];
const [internet, port] = [80, 7000];
const group: Ipv4 = ipv4("239.255.7.7");
const groupMac = "01:00:5e:7f:07:07";
const { somebody, routerMac } = outsideNetwork;
/** As many as 400 copies at once allow; the next ones are earned, 200 in a second. */
const [copied, earnedMs] = [32, 1_800];

const rules = {
  ...policy(
    1,
    1,
    [rule(1, 10, 10, "udp", port), rule(2, 11, internet, "udp", port), rule(3, 12, 12, "udp", port)],
    [["0.0.0.0/0", internet]],
  ),
  subnets: [{ identity: 12, cidr: cidr("10.64.1.0/24") }],
  traits: members.map(({ number }) => ({ identity: number, forwards: [], groups: [group] })),
};

/** A guest with a stack, in place of the tap. */
async function stackOf(installation: Installation, own: GuestPlan, other: string): Promise<Machine> {
  const machine = await installation.machine();
  installation.hostMachines[own.host].cable(tapName(uidOf(own)), machine, "eth0", macOf(own));
  machine.run("sh", "-c", quiet);
  machine.run("ip", "addr", "add", `${own.address}/24`, "dev", "eth0");
  if (other === somebody) machine.run("ip", "route", "add", other, "dev", "eth0");
  machine.run("ip", "neigh", "add", other, "lladdr", gatewayMac, "dev", "eth0", "nud", "permanent");
  return machine;
}

async function measure(installation: Installation, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  await installation.start({ outside: "uplink" });
  const [wire] = installation.machines;
  for (const machine of installation.machines) machine.run("sh", "-c", quiet);
  wire?.run("bridge", "fdb", "replace", hosts.a[1], "dev", "wa", "master", "static");
  wire?.run("bridge", "fdb", "replace", hosts.b[1], "dev", "wb", "master", "static");
  wire?.run("bridge", "fdb", "replace", routerMac, "dev", "or", "master", "static");
  const stacks = {
    inside: await stackOf(installation, inside, there.address),
    there: await stackOf(installation, there, inside.address),
    web: await stackOf(installation, web, somebody),
  };
  const applied = await installation.apply(plans, [rules]);
  const notReady = [...applied.a.allocation.interfaces, ...applied.b.allocation.interfaces].find(({ ready }) => !ready);
  if (notReady !== undefined) throw new Error(`an interface is not ready: ${notReady.reason}`);
  await installation.drivers.a.call("untilRouter", routerMac, true);
  const tap = (guest: GuestPlan) => ({ pid: installation.hostMachines.a.pid, tap: tapName(uidOf(guest)) });
  const stack = (machine: Machine) => ({ pid: machine.pid, tap: "-" });
  const outward: PacketPath = {
    from: { ...stack(stacks.web), mac: macOf(web), address: web.address },
    to: { ...stack(installation.router.machine), address: somebody },
    nextMac: gatewayMac,
  };
  const alone = members.map((member) => pathOf(sender, tap(sender), member, tap(member), gatewayMac));
  const [first] = alone;
  if (first === undefined) throw new Error("nobody receives");
  const toMany: PacketPath = { ...first, to: { ...first.to, address: group }, nextMac: groupMac };
  const between = pathOf(inside, stack(stacks.inside), there, stack(stacks.there), gatewayMac);
  const program = new PacketProgram([between, outward, toMany, ...alone], 1);
  const cost =
    (path: number, packets: number, copies = 0) =>
    (): Promise<number> =>
      program.cost(path, packets, copies);
  try {
    const packets = 128 * (quick ? 8 : 64);
    const ways = { between: cost(0, packets), outward: cost(1, packets) };
    await interleave(2, ways);
    say(`sending ${packets} packets a round, to another VM and outside`);
    const way = await interleave(quick ? 5 : 201, ways);
    const many = { one: cost(3, copied), many: cost(2, copied, receivers - 1) };
    say(`sending ${copied} packets a round, to one and to ${receivers}`);
    const copies = { one: [] as number[], many: [] as number[] };
    for (let round = 0; round < (quick ? 3 : 41); round += 1) {
      await new Promise((resolve) => setTimeout(resolve, earnedMs));
      const measured = await interleave(1, many);
      // The first ones ask their rules.
      if (round === 0) continue;
      for (const name of ["one", "many"] as const) copies[name].push(median(measured[name]));
    }
    return [
      relative("out to a router on the uplink, relative to VM to VM", way.outward, way.between, 1.1),
      absolute("a packet from VM to VM across two hosts", way.between),
      absolute("a packet out to a router on the uplink", way.outward),
      relative(
        `one sent to ${receivers} on the sender's host, relative to one sent to one`,
        copies.many,
        copies.one,
        12,
      ),
      absolute("a packet to one on the sender's host, from tap to tap", copies.one),
      absolute(`a packet to ${receivers} there`, copies.many),
    ];
  } finally {
    await program.stop();
  }
}

export const ways: Bench = {
  title: "CPU per packet, out of the cloud and to many",
  method:
    "UDP packets of 60 bytes in 64 flows, one thread on one CPU, its CPU time per packet. Out: from a guest with a network stack " +
    "and an external address to a machine behind the upstream router, which is on the hosts' own segment, against one from such a guest " +
    `to one at the other host; both ends' stacks are included. To many: ${copied} packets at a time, as the bound on copies allows, from a tap to ` +
    `a group with ${receivers} members at the same host, against the same to one of them; all copies are made before the sending thread ` +
    "goes on, and those of nine members are taken out afterwards. Rounds in turn; ratios are taken within a round; the range is from the 10th to " +
    "the 90th percentile.",
  run: async (options) => {
    const installation = new Installation();
    try {
      return await measure(installation, options);
    } finally {
      await installation.stop();
    }
  },
};
