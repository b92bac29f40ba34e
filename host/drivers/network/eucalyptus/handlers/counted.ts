import type { InterfaceCounters } from "../../driver.ts";
import type { Run } from "./run.ts";

/** What has passed, by the network (`a.b.c.d/n`) that is counted. A chain that is written anew counts from 0. */
export interface Counted {
  readonly sent: ReadonlyMap<string, PacketCount>;
  readonly received: ReadonlyMap<string, PacketCount>;
}
type PacketCount = InterfaceCounters["sent"];
const ruleForm = /^\[(\d+):(\d+)\] -A EUCA_COUNTERS_(IN|OUT) -[sd] (\S+)$/;

/** Of the chains `EUCA_COUNTERS_IN` and `EUCA_COUNTERS_OUT`, which the recorded rules have. */
export async function readCounted(run: Run): Promise<Counted> {
  const [sent, received] = [new Map<string, PacketCount>(), new Map<string, PacketCount>()];
  for (const line of (await run("iptables-save", ["-c", "-t", "filter"])).split("\n")) {
    const [, packets, bytes, direction, network] = ruleForm.exec(line) ?? [];
    if (network === undefined) continue;
    (direction === "OUT" ? sent : received).set(network, { packets: Number(packets), bytes: Number(bytes) });
  }
  return { sent, received };
}
