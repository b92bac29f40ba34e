import { gatewayMac } from "../../host/drivers/network/diverter/diverter.ts";
import { tapName } from "../../host/drivers/network/diverter/taps/devices.ts";
import {
  type GuestPlan,
  hosts,
  Installation,
  macOf,
  policy,
  rule,
  uidOf,
} from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave, median, percentile, ratios } from "../measure.ts";
import { type PacketPath, PacketProgram } from "./packet-program.ts";

/**
 * What the Diverter costs a packet. The comparison is a bridge on each host with no policy at all: the same taps, the same
 * cables and the same bridge between the hosts, so that the difference is the eBPF programs against two bridges' forwarding.
 */
const plan = (name: string, host: GuestPlan["host"], number: number, subnet: number): GuestPlan => ({
  name,
  host,
  number,
  cell: 1,
  address: `10.64.0.${10 + number}`,
  identities: [number, 100 + number, subnet],
});
/** Two with taps and nothing behind them, two with a network stack each behind a cable that stands in for the tap. */
const sender = plan("sender", "a", 1, 10);
const receiver = plan("receiver", "b", 2, 11);
const stackSender = plan("stacksender", "a", 3, 10);
const stackReceiver = plan("stackreceiver", "b", 4, 11);
const plans = [sender, receiver, stackSender, stackReceiver];

/** The rule that admits the packets stands in the middle; the others are about other identities and other ports. */
const rulesOf = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    index === Math.floor(count / 2)
      ? rule(index + 1, 10, 11, "udp", 7000)
      : rule(index + 1, 10 + (index % 250), 1000 + Math.floor(index / 250), "tcp", 1024 + (index % 60_000)),
  );

/** No packet filter of the machine looks at bridged frames, and no IPv6 of a device's own is among them. */
export const quiet = `
for way in all default; do echo 1 > /proc/sys/net/ipv6/conf/$way/disable_ipv6; done 2>/dev/null || :
for table in iptables ip6tables arptables; do echo 0 > /proc/sys/net/bridge/bridge-nf-call-$table; done 2>/dev/null || :
`;

export interface Ways {
  readonly taps: PacketPath;
  readonly guests: PacketPath;
  stop(): Promise<void>;
}
type End = { readonly pid: number; readonly tap: string };
export const pathOf = (from: GuestPlan, a: End, to: GuestPlan, b: End, nextMac: string): PacketPath => ({
  from: { ...a, mac: macOf(from), address: from.address },
  to: { ...b, address: to.address },
  nextMac,
});

/** A guest with a stack behind a cable that is called `device` at its host. It knows where everybody is. */
async function addStack(host: Machine, device: string, own: GuestPlan, other: GuestPlan, nextMac: string) {
  const machine = await Machine.start();
  host.cable(device, machine, "eth0", macOf(own));
  machine.run("sh", "-c", quiet);
  machine.run("ip", "addr", "add", `${own.address}/24`, "dev", "eth0");
  machine.run("ip", "neigh", "add", other.address, "lladdr", nextMac, "dev", "eth0", "nud", "permanent");
  return machine;
}

export async function divertedWays(rules: number): Promise<Ways> {
  const installation = new Installation();
  try {
    await installation.start();
    const [wire] = installation.machines;
    if (wire === undefined) throw new Error("the installation has no wire");
    for (const machine of installation.machines) machine.run("sh", "-c", quiet);
    // A switch between hosts knows where they are.
    wire.run("bridge", "fdb", "add", hosts.a[1], "dev", "wa", "master", "static");
    wire.run("bridge", "fdb", "add", hosts.b[1], "dev", "wb", "master", "static");
    const { a, b } = installation.hostMachines;
    const stackA = await addStack(a, tapName(uidOf(stackSender)), stackSender, stackReceiver, gatewayMac);
    const stackB = await addStack(b, tapName(uidOf(stackReceiver)), stackReceiver, stackSender, gatewayMac);
    installation.machines.push(stackA, stackB);
    const applied = await installation.apply(plans, [policy(1, 1, rulesOf(rules))]);
    const interfaces = [...applied.a.allocation.interfaces, ...applied.b.allocation.interfaces];
    const notReady = interfaces.find(({ ready }) => !ready);
    if (notReady !== undefined) throw new Error(`an interface is not ready: ${notReady.reason}`);
    const end = (host: Machine, guest: GuestPlan): End => ({ pid: host.pid, tap: tapName(uidOf(guest)) });
    const guest = (machine: Machine): End => ({ pid: machine.pid, tap: "-" });
    return {
      taps: pathOf(sender, end(a, sender), receiver, end(b, receiver), gatewayMac),
      guests: pathOf(stackSender, guest(stackA), stackReceiver, guest(stackB), gatewayMac),
      stop: () => installation.stop(),
    };
  } catch (error) {
    await installation.stop();
    throw error;
  }
}

export async function bridgedWays(): Promise<Ways> {
  const machines: Machine[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(machines.map((machine) => machine.stop()));
  };
  const machine = async (): Promise<Machine> => {
    const made = await Machine.start();
    machines.push(made);
    made.run("sh", "-c", `${quiet}ip link add br0 type bridge mcast_snooping 0 && ip link set br0 up`);
    return made;
  };
  try {
    const wire = await machine();
    const host = async (port: string, hardware: string, own: GuestPlan, other: GuestPlan) => {
      const made = await machine();
      wire.cable(port, made, "eth0", hardware);
      made.run("ip", "tuntap", "add", "tap0", "mode", "tap", "vnet_hdr");
      made.run("ip", "link", "set", "tap0", "addrgenmode", "none", "up");
      const stack = await addStack(made, "tap1", own, other, macOf(other));
      machines.push(stack);
      wire.run("ip", "link", "set", port, "master", "br0");
      for (const device of ["eth0", "tap0", "tap1"]) made.run("ip", "link", "set", device, "master", "br0");
      return { host: made, stack };
    };
    const a = await host("wa", hosts.a[1], stackSender, stackReceiver);
    const b = await host("wb", hosts.b[1], stackReceiver, stackSender);
    // Nobody has spoken yet, and a bridge that does not know where to floods.
    for (const [to, device] of [
      [receiver, "tap0"],
      [stackReceiver, "tap1"],
    ] as const) {
      a.host.run("bridge", "fdb", "add", macOf(to), "dev", "eth0", "master", "static");
      wire.run("bridge", "fdb", "add", macOf(to), "dev", "wb", "master", "static");
      b.host.run("bridge", "fdb", "add", macOf(to), "dev", device, "master", "static");
    }
    const tap = (pid: number): End => ({ pid, tap: "tap0" });
    const guest = (pid: number): End => ({ pid, tap: "-" });
    return {
      taps: pathOf(sender, tap(a.host.pid), receiver, tap(b.host.pid), macOf(receiver)),
      guests: pathOf(stackSender, guest(a.stack.pid), stackReceiver, guest(b.stack.pid), macOf(stackReceiver)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const low = 0.1;
const high = 0.9;
export const absolute = (what: string, values: readonly number[]): Figure => ({
  what,
  unit: "ns",
  value: median(values),
  atMost: null,
  range: [percentile(values, low), percentile(values, high)],
});
export const relative = (
  what: string,
  values: readonly number[],
  to: readonly number[],
  atMost: number | null,
): Figure => {
  const each = ratios(values, to);
  return { what, unit: "×", value: median(each), range: [percentile(each, low), percentile(each, high)], atMost };
};

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const ways: Ways[] = [];
  let program: PacketProgram | null = null;
  try {
    ways.push(await bridgedWays());
    const [few, many] = [10, quick ? 2000 : 50_000];
    const manyRules = many.toLocaleString("en");
    for (const rules of [few, many]) {
      say(`two hosts with ${rules} rules`);
      ways.push(await divertedWays(rules));
    }
    program = new PacketProgram(
      ways.flatMap(({ guests, taps }) => [guests, taps]),
      1,
    );
    const packets = 128 * (quick ? 8 : 64);
    const cost = (path: number) => (): Promise<number> => (program as PacketProgram).cost(path, packets);
    const guests = { bridge: cost(0), few: cost(2), many: cost(4) };
    const taps = { tapBridge: cost(1), tapFew: cost(3), tapMany: cost(5) };
    await interleave(2, { ...guests, ...taps });
    say(`sending ${packets} packets a round`);
    const rounds = quick ? 5 : 201;
    const measured = await interleave(rounds, { ...guests, ...taps });
    return [
      relative(`${few} rules, relative to the bridge`, measured.few, measured.bridge, 1.1),
      relative(`${manyRules} rules, relative to the bridge`, measured.many, measured.bridge, 1.1),
      absolute("a packet through plain bridges", measured.bridge),
      absolute(`a packet, ${few} rules`, measured.few),
      absolute(`a packet, ${manyRules} rules`, measured.many),
      relative(`the hosts' part alone, from tap to tap, ${few} rules`, measured.tapFew, measured.tapBridge, null),
      relative(`the hosts' part alone, ${manyRules} rules`, measured.tapMany, measured.tapBridge, null),
      absolute("the hosts' part through plain bridges", measured.tapBridge),
      absolute(`the hosts' part, ${few} rules`, measured.tapFew),
    ];
  } finally {
    await program?.stop();
    await Promise.all(ways.map((way) => way.stop()));
  }
}

export const dataplane: Bench = {
  title: "CPU per packet, VM to VM across two hosts",
  method:
    "UDP packets of 60 bytes in 64 flows from a guest (a namespace with a network stack) on one host to one on another, one " +
    "thread on one CPU; its CPU time per packet that arrived, the guests' own included, against a plain bridge on each " +
    "host without any policy. The lower part leaves the guests out: a frame is written into a tap and read from a tap. " +
    "Rounds in turn; ratios are taken within a round; the range is from the 10th to the 90th percentile.",
  run,
};
