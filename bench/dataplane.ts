import { tapName } from "../host/drivers/network/diverter/devices.ts";
import { gatewayMac } from "../host/drivers/network/diverter/diverter.ts";
import {
  type GuestPlan,
  hosts,
  Installation,
  macOf,
  policy,
  rule,
  uidOf,
} from "../host/drivers/network/diverter/testing/installation.ts";
import { Machine } from "../host/drivers/network/diverter/testing/namespaces.ts";
import type { Bench, BenchOptions, Figure } from "./bench.ts";
import { interleave, median, percentile, ratios } from "./measure.ts";
import { type PacketPath, PacketProgram } from "./packet-program.ts";

/**
 * What the Diverter costs a packet. The comparison is a bridge on each host with no policy at all: the same taps, the same
 * cables and the same bridge between the hosts, so that the difference is the eBPF programs against two bridges' forwarding.
 */
const sender: GuestPlan = {
  name: "sender",
  host: "a",
  address: "10.64.0.11",
  number: 1,
  cell: 1,
  identities: [1, 101, 10],
};
const receiver: GuestPlan = {
  name: "receiver",
  host: "b",
  address: "10.64.0.12",
  number: 2,
  cell: 1,
  identities: [2, 102, 11],
};

/** The rule that admits the packets stands in the middle; the others are about other identities and other ports. */
const rulesOf = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    index === Math.floor(count / 2)
      ? rule(index + 1, 10, 11, "udp", 7000)
      : rule(index + 1, 10 + (index % 250), 1000 + Math.floor(index / 250), "tcp", 1024 + (index % 60_000)),
  );

/** No packet filter of the machine looks at bridged frames, and no IPv6 of a device's own is among them. */
const quiet = `
for way in all default; do echo 1 > /proc/sys/net/ipv6/conf/$way/disable_ipv6; done 2>/dev/null || :
for table in iptables ip6tables arptables; do echo 0 > /proc/sys/net/bridge/bridge-nf-call-$table; done 2>/dev/null || :
`;

interface Way {
  readonly path: PacketPath;
  stop(): Promise<void>;
}

async function divertedWay(rules: number): Promise<Way> {
  const installation = new Installation();
  try {
    await installation.start();
    const [wire] = installation.machines;
    if (wire === undefined) throw new Error("the installation has no wire");
    for (const machine of installation.machines) machine.run("sh", "-c", quiet);
    // A switch between hosts knows where they are.
    wire.run("bridge", "fdb", "add", hosts.a[1], "dev", "wa", "master", "static");
    wire.run("bridge", "fdb", "add", hosts.b[1], "dev", "wb", "master", "static");
    const { a, b } = await installation.apply([sender, receiver], [policy(1, 1, rulesOf(rules))]);
    const notReady = [...a.allocation.interfaces, ...b.allocation.interfaces].find(({ ready }) => !ready);
    if (notReady !== undefined) throw new Error(`an interface is not ready: ${notReady.reason}`);
  } catch (error) {
    await installation.stop();
    throw error;
  }
  return {
    path: {
      from: {
        pid: installation.hostMachines.a.pid,
        tap: tapName(uidOf(sender)),
        mac: macOf(sender),
        address: sender.address,
      },
      to: { pid: installation.hostMachines.b.pid, tap: tapName(uidOf(receiver)), address: receiver.address },
      nextMac: gatewayMac,
    },
    stop: () => installation.stop(),
  };
}

async function bridgedWay(): Promise<Way> {
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
    const host = async (port: string, hardware: string): Promise<Machine> => {
      const made = await machine();
      wire.cable(port, made, "eth0", hardware);
      wire.run("ip", "link", "set", port, "master", "br0");
      made.run("ip", "link", "set", "eth0", "master", "br0");
      made.run("ip", "tuntap", "add", "tap0", "mode", "tap", "vnet_hdr");
      made.run("ip", "link", "set", "tap0", "addrgenmode", "none", "master", "br0", "up");
      return made;
    };
    const a = await host("wa", hosts.a[1]);
    const b = await host("wb", hosts.b[1]);
    const to = macOf(receiver);
    a.run("bridge", "fdb", "add", to, "dev", "eth0", "master", "static");
    wire.run("bridge", "fdb", "add", to, "dev", "wb", "master", "static");
    b.run("bridge", "fdb", "add", to, "dev", "tap0", "master", "static");
    return {
      path: {
        from: { pid: a.pid, tap: "tap0", mac: macOf(sender), address: sender.address },
        to: { pid: b.pid, tap: "tap0", address: receiver.address },
        nextMac: to,
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function run({ quick, say }: BenchOptions): Promise<readonly Figure[]> {
  const ways: Way[] = [];
  let program: PacketProgram | null = null;
  try {
    ways.push(await bridgedWay());
    for (const rules of [10, 50_000]) {
      say(`two hosts with ${rules} rules`);
      ways.push(await divertedWay(rules));
    }
    program = new PacketProgram(
      ways.map(({ path }) => path),
      1,
    );
    const packets = 256 * (quick ? 8 : 40);
    const cost = (path: number) => (): Promise<number> => (program as PacketProgram).cost(path, packets);
    const variants = { bridge: cost(0), few: cost(1), many: cost(2) };
    await interleave(2, variants);
    say(`sending ${packets} packets a round`);
    const measured = await interleave(quick ? 5 : 201, variants);
    const ratio = (values: readonly number[]): Pick<Figure, "value" | "range"> => {
      const each = ratios(values, measured.bridge);
      return { value: median(each), range: [percentile(each, 0.1), percentile(each, 0.9)] };
    };
    const absolute = (what: string, values: readonly number[]): Figure => ({
      what,
      unit: "ns",
      value: median(values),
      range: [percentile(values, 0.1), percentile(values, 0.9)],
      atMost: null,
    });
    return [
      { what: "10 rules, relative to the bridge", unit: "×", atMost: 1.1, ...ratio(measured.few) },
      { what: "50,000 rules, relative to the bridge", unit: "×", atMost: 1.1, ...ratio(measured.many) },
      absolute("a packet through plain bridges", measured.bridge),
      absolute("a packet, 10 rules", measured.few),
      absolute("a packet, 50,000 rules", measured.many),
    ];
  } finally {
    await program?.stop();
    await Promise.all(ways.map((way) => way.stop()));
  }
}

export const dataplane: Bench = {
  title: "CPU per packet, VM to VM across two hosts",
  method:
    "UDP packets of 60 bytes in 64 flows from a tap of one host to a tap of another, one thread on one CPU; its CPU time " +
    "per packet that arrived, against a plain bridge on each host without any policy. Rounds in turn; ratios are taken " +
    "within a round; the range is from the 10th to the 90th percentile.",
  run,
};
