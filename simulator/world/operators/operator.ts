import type { CellManagerState } from "../../../core/cells/manager.ts";
import type { AdoptRequest } from "../../../core/env.ts";
import { type EndAnswer, mergeEnds } from "../../../core/presence/group/end.ts";
import { type HostName, peerName } from "../../../model/cell/identifiers.ts";
import type { Mode } from "../../../model/cell/network/modes.ts";
import type { Json } from "../../../model/json/json.ts";
import type { Random } from "../../kernel/random.ts";
import { modeOf } from "../history.ts";
import type { Installation } from "../installation.ts";
import { cluster } from "../modes/agent.ts";

/** What the Cell Manager knows; null: it does not run. */
export const cellManagerState = ({ processes }: Installation): CellManagerState | null =>
  (processes.get(peerName("cell-manager"))?.state ?? null) as CellManagerState | null;

/** `cells orphans adopt` of a child cell, by its name. */
export const adoptChild = (installation: Installation, cell: string): void => {
  const { processes, kernel } = installation;
  const record = [...(cellManagerState(installation)?.cells.values() ?? [])].find((each) => each.cell === cell);
  if (record === undefined) return;
  const { uid, client } = record;
  void processes
    .get(peerName("cell-manager"))
    ?.request({ kind: "adopt", client, key: `cell/${uid}` } satisfies AdoptRequest)
    ?.then((why) => kernel.log("operator", "adopts a child", { words: `${cell} ${uid}`, why }));
};

/**
 * An operator who knows that the power of a host is off, and says so as `cells host dead` does: asks every member of the
 * Presence group what is known, and a while later says it of that boot, though the power may be on again by then. What is
 * not taken is said again, for as long as it is so.
 */
const askAgainMs = 1000;
const patienceMs = 40_000;

export const sayPowerIsOff = (installation: Installation, host: HostName, random: Random): void => {
  const { kernel, members } = installation;
  const since = kernel.clock.nowMs;
  const ask = async (end: Json): Promise<EndAnswer | null> => {
    const request = { kind: "host-end", host, end };
    const asked = [...members.values()].flatMap((member) => member.request(request) ?? []);
    const answers = (await Promise.all(asked)) as unknown as readonly EndAnswer[];
    return answers.length === 0 ? null : mergeEnds(host, answers);
  };
  const later = (ms: number, what: () => void): void => void kernel.clock.after(ms, what);
  const again = (): void => {
    if (kernel.clock.nowMs - since < patienceMs) later(askAgainMs, attempt);
  };
  const say = async (generation: number, boot: number): Promise<void> => {
    kernel.log("operator", "says", { host, boot });
    const answer = await ask({ generation, boot });
    if (answer === null || answer.ended === null || answer.ended < boot) again();
  };
  const attempt = (): void => {
    // Nobody says of a machine that it is off which is on.
    if (kernel.network.isUp(host)) return;
    void ask(null).then((answer) => {
      const { known, against } = answer ?? { known: null, against: "nobody answers" };
      if (kernel.network.isUp(host)) return;
      if (against !== null || known === null || known.boot === null) {
        again();
        return;
      }
      const { generation, boot } = known;
      later(random.between(0, 3000), () => void say(generation, boot));
    });
  };
  attempt();
};

/** Of EDGE, with addresses for a few dozen machines. */
const edgeConfiguration = {
  Mode: "EDGE",
  InstanceDnsServers: ["10.0.0.12"],
  PublicIps: ["192.0.2.1-192.0.2.99"],
  Subnets: [{ Name: "site", Subnet: "172.20.0.0", Netmask: "255.255.0.0", Gateway: "172.20.0.1" }],
  Clusters: [{ Name: cluster, Subnet: { Name: "site" }, PrivateIps: ["172.20.0.10-172.20.0.99"] }],
};
const networkConfiguration: Json = edgeConfiguration;
/** Of MANAGED-NOVLAN, in the place of it. */
const managedConfiguration: Json = {
  Mode: "MANAGED-NOVLAN",
  InstanceDnsServers: ["10.0.0.12"],
  PublicIps: ["192.0.2.1-192.0.2.99"],
  ManagedSubnet: { Subnet: "172.20.0.0", Netmask: "255.255.0.0", MinVlan: 2, MaxVlan: 60, SegmentSize: 32 },
  Clusters: [{ Name: cluster }],
};
/** Of the modes without rules, by the site's own network. */
const { PublicIps: _, ...staticConfiguration } = { ...edgeConfiguration, Mode: "STATIC" };
const systemConfiguration: Json = { Mode: "SYSTEM", InstanceDnsServers: ["10.0.0.12"], Clusters: [{ Name: cluster }] };
const configurations: Readonly<Partial<Record<Mode, Json>>> = {
  "MANAGED-NOVLAN": managedConfiguration,
  STATIC: staticConfiguration,
  SYSTEM: systemConfiguration,
};
const lookEveryMs = 3000;

/** Whoever runs the cloud sets the network configuration where there is none, as after a store was lost. */
export const keepNetworkConfiguration = ({ processes, kernel, history }: Installation): void => {
  const document = configurations[modeOf(history)] ?? networkConfiguration;
  const manager = peerName("network-view-manager");
  const look = async (): Promise<void> => {
    const answer = await processes.get(manager)?.request({ kind: "configuration" });
    if (JSON.stringify(answer ?? null).includes("there is no network configuration"))
      await processes.get(manager)?.request({ kind: "configure", document });
  };
  const again = (): void => {
    kernel.clock.after(lookEveryMs, again);
    void look();
  };
  kernel.clock.after(lookEveryMs / 10, again);
};
