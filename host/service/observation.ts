import { counter, gauge, type Labels, type Metric, sample } from "../../core/telemetry/metrics.ts";
import type { InstallationStatus } from "../../model/api.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import type { HostCounters } from "../../model/contract/operator/numbers/counters.ts";
import type { Json } from "../../model/json/json.ts";
import type { DiskCounts } from "../drivers/hypervisor/block-stats.ts";
import type { MachineUsage } from "../drivers/hypervisor/usage.ts";
import type { InterfaceCounters, NetworkDriver, RuleCounters } from "../drivers/network/driver.ts";
import type { NetworkAgent } from "../drivers/network/eucalyptus/agent/agent.ts";
import { isBetween, unknownBetween } from "../drivers/network/eucalyptus/examine/network-host.ts";
import type { HostRequest, HostStatus } from "../host-requests.ts";
import { announces, announcingTrouble } from "../network/announced.ts";
import type { Inventory } from "./inventory.ts";

/**
 * A host's numbers that live in the kernel: packets per interface and rule, time and memory per machine. They are read
 * when somebody asks, and counted by the kernel in between.
 */
export interface HostObservation {
  metrics(): Promise<readonly Metric[]>;
  /** By the names that people know: `GET /counters`. */
  counters(): Promise<HostCounters>;
  /** One entry of `InstallationStatus.hosts`. */
  status(): Promise<InstallationStatus["hosts"][number]>;
}
export interface HostObservationOptions {
  readonly network: Pick<NetworkDriver, "counters" | "announced">;
  readonly usages: () => Promise<readonly MachineUsage[]>;
  /** Absent: nobody counts what disks read and write. */
  readonly hypervisor?: DiskCounts;
  readonly request: (request: Json) => Promise<Json>;
  /** CPU seconds of the management's own process, and a clock in seconds. */
  readonly ownCpuSeconds: () => number;
  readonly nowSeconds: () => number;
}

/** A load over less than this says little; then the load measured before is told again. */
const shortestSpanSeconds = 1;

interface Reading {
  readonly at: number;
  readonly own: number;
  readonly machines: ReadonlyMap<Uid, number>;
  /** Octets of their interfaces, both ways. */
  readonly octets: ReadonlyMap<Uid, number>;
  /** The same of their disks. */
  readonly disks: ReadonlyMap<Uid, number>;
}
interface Load {
  readonly management: number;
  readonly machines: ReadonlyMap<Uid, number>;
  /** Octets a second. */
  readonly octets: ReadonlyMap<Uid, number>;
  readonly disks: ReadonlyMap<Uid, number>;
}

export const createHostObservation = (options: HostObservationOptions): HostObservation => {
  const ask = async <T>(request: HostRequest): Promise<T> =>
    (await options.request(request as unknown as Json)) as unknown as T;
  let before: Reading = {
    at: options.nowSeconds(),
    own: options.ownCpuSeconds(),
    machines: new Map(),
    octets: new Map(),
    disks: new Map(),
  };
  let load: Load = { management: 0, machines: new Map(), octets: new Map(), disks: new Map() };

  const measureLoad = (usages: readonly MachineUsage[], { octets, disks }: Pick<Reading, "octets" | "disks">): Load => {
    const machines = new Map(usages.map(({ vm, cpuSeconds }) => [vm, cpuSeconds]));
    const now: Reading = { at: options.nowSeconds(), own: options.ownCpuSeconds(), machines, octets, disks };
    const span = now.at - before.at;
    if (span < shortestSpanSeconds) return load;
    const rates = (counts: ReadonlyMap<Uid, number>, counted: ReadonlyMap<Uid, number>) =>
      new Map(
        [...counts].map(([vm, count]) => {
          const earlier = counted.get(vm) ?? 0;
          // A smaller figure is another process: all of it fell into the span.
          return [vm, (count >= earlier ? count - earlier : count) / span] as const;
        }),
      );
    load = {
      management: (now.own - before.own) / span,
      machines: rates(machines, before.machines),
      octets: rates(octets, before.octets),
      disks: rates(disks, before.disks),
    };
    before = now;
    return load;
  };

  return {
    metrics: async () => {
      const [inventory, usages, { interfaces, rules }] = await Promise.all([
        ask<Inventory>({ kind: "inventory" }),
        options.usages(),
        options.network.counters(),
      ]);
      return [
        ...machineMetrics(inventory, usages),
        ...interfaceMetrics(inventory, interfaces),
        ...ruleMetrics(inventory, rules),
      ];
    },
    counters: async () => {
      const [inventory, { interfaces, rules }, disks] = await Promise.all([
        ask<Inventory>({ kind: "inventory" }),
        options.network.counters(),
        options.hypervisor?.diskOctets() ?? new Map<Uid, number>(),
      ]);
      return {
        interfaces: namedInterfaces(inventory, interfaces).map(({ known: { cell, path }, sent, received, drops }) => ({
          cell,
          path,
          sent,
          received,
          drops: Object.fromEntries(Object.entries(drops).filter(([, count]) => count > 0)),
        })),
        rules: ruleSums(inventory, rules),
        machines: inventory.machines.flatMap(({ vm, cell, path }) => {
          const bytes = disks.get(vm);
          return bytes === undefined ? [] : [{ cell, path, diskBytes: bytes }];
        }),
      };
    },
    status: async () => {
      const [status, inventory, usages, announced, counters, disks] = await Promise.all([
        ask<HostStatus>({ kind: "status" }),
        ask<Inventory>({ kind: "inventory" }),
        options.usages(),
        // What cannot be read now is no reason to say nothing of the rest.
        options.network.announced().catch(() => null),
        options.network.counters().catch(() => null),
        options.hypervisor?.diskOctets() ?? new Map<Uid, number>(),
      ]);
      const counted = { octets: octetsOf(inventory, counters?.interfaces ?? []), disks };
      const { management, machines, octets, disks: ofDisks } = measureLoad(usages, counted);
      const resident = new Map(usages.map(({ vm, residentBytes }) => [vm, residentBytes]));
      return {
        ...status,
        ...(announced === null
          ? {}
          : { ...remarks(status, announcingTrouble(announced)), announces: announces(announced) }),
        load: {
          vms: rounded([...machines.values()].reduce((sum, each) => sum + each, 0)),
          management: rounded(management),
        },
        machines: inventory.machines.map(({ vm, path, cell, stage, memoryMiB, cpus }) => {
          const bytes = resident.get(vm);
          return {
            path,
            cell,
            stage,
            memoryMiB,
            cpus,
            residentMiB: bytes === undefined ? null : Math.round(bytes / 1024 / 1024),
            load: rounded(machines.get(vm) ?? 0),
            ...(counters === null ? {} : { network: Math.round(octets.get(vm) ?? 0) }),
            ...(disks.has(vm) ? { disk: Math.round(ofDisks.get(vm) ?? 0) } : {}),
          };
        }),
      };
    },
  };
};

/** Of each machine, both ways, all of its interfaces. */
function octetsOf({ interfaces }: Inventory, counters: readonly InterfaceCounters[]): ReadonlyMap<Uid, number> {
  const machines = new Map(interfaces.map((local) => [local.interface, local.vm]));
  const octets = new Map<Uid, number>();
  for (const { interface: uid, sent, received } of counters) {
    const vm = machines.get(uid);
    if (vm !== undefined) octets.set(vm, (octets.get(vm) ?? 0) + sent.bytes + received.bytes);
  }
  return octets;
}

const remarks = ({ remark }: HostStatus, trouble: string | null): Pick<HostStatus, "remark"> =>
  trouble === null ? {} : { remark: remark === undefined ? trouble : `${remark}; ${trouble}` };

const rounded = (value: number): number => Math.round(value * 1000) / 1000;

const machineMetrics = ({ machines }: Inventory, usages: readonly MachineUsage[]): readonly Metric[] => {
  const named = usages.flatMap((usage) => {
    const machine = machines.find(({ vm }) => vm === usage.vm);
    return machine === undefined ? [] : [{ ...usage, labels: { cell: machine.cell, path: machine.path } }];
  });
  return [
    counter(
      "cells_vm_cpu_seconds_total",
      "CPU time of a VM's process, emulation included.",
      named.map(({ cpuSeconds, labels }) => sample(cpuSeconds, labels)),
    ),
    gauge(
      "cells_vm_resident_memory_bytes",
      "Resident memory of a VM's process.",
      named.map(({ residentBytes, labels }) => sample(residentBytes, labels)),
    ),
  ];
};

const namedInterfaces = (inventory: Inventory, counters: readonly InterfaceCounters[]) => {
  const names = new Map(inventory.interfaces.map((local) => [local.interface, local]));
  return counters.flatMap((each) => {
    const known = names.get(each.interface);
    return known === undefined ? [] : [{ ...each, known }];
  });
};

/** Directions as the VM sees them. */
const interfaceMetrics = (inventory: Inventory, counters: readonly InterfaceCounters[]): readonly Metric[] => {
  const named = namedInterfaces(inventory, counters).map(({ known: { cell, path }, ...each }) => ({
    ...each,
    labels: { cell, path },
  }));
  const both = (unit: "packets" | "bytes") =>
    named.flatMap(({ sent, received, labels }) => [
      sample(sent[unit], { ...labels, direction: "sent" }),
      sample(received[unit], { ...labels, direction: "received" }),
    ]);
  return [
    counter(
      "cells_interface_packets_total",
      "Packets of an interface that passed, as its VM sees them.",
      both("packets"),
    ),
    counter("cells_interface_bytes_total", "Bytes of an interface that passed, as its VM sees them.", both("bytes")),
    counter(
      "cells_interface_drops_total",
      "Packets of an interface that did not pass, by reason.",
      named.flatMap(({ drops, labels }) =>
        Object.entries(drops).map(([reason, count]) => sample(count, { ...labels, reason })),
      ),
    ),
  ];
};

/** Rules with a series of their own on one host; what is beyond is counted together. */
const mostRules = 500;
const others = "[others]";

/** Many compiled rules come from one element; their sums are its. Rules of cells that are gone, and rules that are no longer in the policy, are left out. */
const ruleSums = ({ policies }: Inventory, counters: readonly RuleCounters[]): HostCounters["rules"] => {
  const byNumber = new Map(policies.map((policy) => [policy.cellNumber, policy]));
  const sums = new Map<string, { readonly cell: string; readonly path: string; packets: number; bytes: number }>();
  for (const { cellNumber, rule, packets, bytes } of counters) {
    const policy = byNumber.get(cellNumber);
    const path = policy?.rules[String(rule)];
    if (policy === undefined || path === undefined) continue;
    const { cell } = policy;
    const known = sums.get(`${cell} ${path}`) ?? { cell, path, packets: 0, bytes: 0 };
    known.packets += packets;
    known.bytes += bytes;
    sums.set(`${cell} ${path}`, known);
  }
  return [...sums.values()];
};
const ruleMetrics = (inventory: Inventory, counters: readonly RuleCounters[]): readonly Metric[] => {
  const sums = new Map<string, { readonly labels: Labels; packets: number; bytes: number }>();
  for (const { cell, path, packets, bytes } of ruleSums(inventory, counters)) {
    const full = sums.size >= mostRules;
    const labels: Labels = full ? { cell: others, rule: others } : { cell, rule: path };
    const key = `${labels.cell} ${labels.rule}`;
    const known = sums.get(key) ?? { labels, packets: 0, bytes: 0 };
    known.packets += packets;
    known.bytes += bytes;
    sums.set(key, known);
  }
  return [
    counter(
      "cells_rule_packets_total",
      "Packets that a rule let pass at this host, by the element that the rule comes from.",
      [...sums.values()].map(({ labels, packets }) => sample(packets, labels)),
    ),
    counter(
      "cells_rule_bytes_total",
      "Bytes that a rule let pass at this host, by the element that the rule comes from.",
      [...sums.values()].map(({ labels, bytes }) => sample(bytes, labels)),
    ),
  ];
};

/** What of a host's networks is asked from outside of it. */
export type AskedNetwork = Pick<NetworkDriver, "examine" | "counters" | "announced">;

/**
 * Diverter, and beside it the agent of another mode: a question about an instance is the agent's, and what its chains have counted is told
 * under the instance's interface.
 * @param agent null: this host offers Diverter alone
 */
export const bothNetworks = (
  network: AskedNetwork,
  agent: Pick<NetworkAgent, "examine" | "counters"> | null,
  request: (request: Json) => Promise<Json>,
): AskedNetwork => ({
  announced: () => network.announced(),
  examine: async (question) =>
    (await agent?.examine(question)) ?? (isBetween(question) ? unknownBetween : network.examine(question)),
  async counters() {
    if (agent === null) return network.counters();
    const asked: HostRequest = { kind: "inventory" };
    const [{ interfaces, rules }, counted, inventory] = await Promise.all([
      network.counters(),
      // What cannot be read now is no reason to say nothing of the rest.
      agent.counters().catch(() => new Map<string, never>()),
      request(asked as unknown as Json),
    ]);
    const ofInstances = (inventory as unknown as Inventory).interfaces.flatMap(({ interface: uid, instance = "" }) => {
      const counts = counted.get(instance);
      return counts === undefined ? [] : [{ interface: uid, ...counts, drops: {} }];
    });
    return { interfaces: [...interfaces, ...ofInstances], rules };
  },
});
