import { gatewayMac } from "../../host/drivers/network/diverter/diverter.ts";
import { tapName } from "../../host/drivers/network/diverter/taps/devices.ts";
import {
  type GuestPlan,
  hosts,
  Installation,
  policy,
  rule,
  uidOf,
} from "../../host/drivers/network/diverter/testing/installation.testing.ts";
import type { Machine } from "../../host/drivers/network/diverter/testing/namespaces.testing.ts";
import type { Bench, BenchOptions, Figure } from "../bench.ts";
import { interleave } from "../measure.ts";
import { absolute, pathOf, quiet, relative } from "./dataplane.ts";
import { PacketProgram } from "./packet-program.ts";

/** What one cell's packets pay for another cell's changes of rules, on hosts that both have interfaces on. */
const plan = (name: string, host: GuestPlan["host"], number: number, cell: number): GuestPlan => ({
  name,
  host,
  number,
  cell,
  address: `10.64.0.${10 + number}`,
  identities: [number, 100 + number, 10 + number],
});
const sender = plan("sender", "a", 1, 1);
const receiver = plan("receiver", "b", 2, 1);
const plans = [sender, receiver, plan("neighboura", "a", 3, 2), plan("neighbourb", "b", 4, 2)];
/** As many as there are flows, twice: at this rate one change after another is what every flow meets. */
const burst = 128;

async function measure(installation: Installation, { quick, say }: BenchOptions): Promise<readonly Figure[]> {
  await installation.start();
  const [wire] = installation.machines;
  for (const machine of installation.machines) machine.run("sh", "-c", quiet);
  wire?.run("bridge", "fdb", "add", hosts.a[1], "dev", "wa", "master", "static");
  wire?.run("bridge", "fdb", "add", hosts.b[1], "dev", "wb", "master", "static");
  let [own, other] = [1, 1];
  const apply = () =>
    installation.apply(plans, [
      policy(1, own, [rule(1, 11, 12, "udp", 7000), rule(2, 11, 12, "tcp", 1 + (own % 2))]),
      policy(2, other, [rule(1, 13, 14, "tcp", 1 + (other % 2))]),
    ]);
  await apply();
  const end = (host: Machine, guest: GuestPlan) => ({ pid: host.pid, tap: tapName(uidOf(guest)) });
  const { a, b } = installation.hostMachines;
  const program = new PacketProgram([pathOf(sender, end(a, sender), receiver, end(b, receiver), gatewayMac)], 1);
  try {
    const after = (change: () => void) => async (): Promise<number> => {
      change();
      await apply();
      return program.cost(0, burst);
    };
    const variants = {
      nothing: after(() => {}),
      neighbour: after(() => (other += 1)),
      itself: after(() => (own += 1)),
    };
    for (const [host, guest] of [
      [a, sender],
      [b, receiver],
    ] as const)
      await host.untilUp(tapName(uidOf(guest)));
    await interleave(2, variants);
    say(`${burst} packets after each change`);
    const measured = await interleave(quick ? 5 : 401, variants);
    return [
      relative("the neighbour has changed a rule, relative to nobody", measured.neighbour, measured.nothing, 1.02),
      relative("the cell itself has, relative to nobody", measured.itself, measured.nothing, null),
      absolute("a packet, nobody has changed anything", measured.nothing),
    ];
  } finally {
    await program.stop();
  }
}

export const neighbour: Bench = {
  title: "A neighbour that changes its rules",
  method:
    "128 UDP packets in 64 flows of one cell, from a tap on one host to a tap on another, after each change of a rule: of " +
    "another cell with interfaces on both hosts, of the cell itself, and after a document that changes nothing. CPU time " +
    "per packet of the sending thread. Rounds in turn; ratios are taken within a round; the range is from the 10th to the " +
    "90th percentile.",
  run: async (options) => {
    const installation = new Installation();
    try {
      return await measure(installation, options);
    } finally {
      await installation.stop();
    }
  },
};
