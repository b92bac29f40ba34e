import type { ActualHost } from "../../core/documents/vocabulary.ts";
import { gauge, type Metric, mebibyte, perPhase, sample } from "../../core/telemetry/metrics.ts";
import type { Uid } from "../../model/cell/identifiers.ts";
import { isPlain } from "../../model/cell/network/modes.ts";
import type { Json } from "../../model/json/json.ts";
import type { HostRequest, HostStatus } from "../host-requests.ts";
import type { HostState } from "../known.ts";
import { routerTrouble } from "../network/routers.ts";
import { usedMiB } from "./planner.ts";

/** What a host has, with the names that people know it by: numbers that come from drivers are told under these. */
export interface Inventory {
  readonly machines: readonly {
    readonly vm: Uid;
    readonly cell: string;
    readonly path: string;
    readonly stage: string;
    readonly memoryMiB: number;
    readonly cpus: number;
  }[];
  readonly interfaces: readonly {
    readonly interface: Uid;
    readonly vm: Uid;
    readonly cell: string;
    readonly path: string;
    /** Of a mode of Eucalyptus, by which its agent counts; absent: Diverter does. */
    readonly instance?: string;
  }[];
  /** Path of the element behind each compiled rule, by number. */
  readonly policies: readonly {
    readonly cellNumber: number;
    readonly cell: string;
    readonly rules: { readonly [id: string]: string };
  }[];
}

const knownVms = (state: HostState) =>
  [...new Set([...state.records.keys(), ...state.vms.keys()])].flatMap((vm) => {
    const record = state.records.get(vm);
    const desired = state.vms.get(vm)?.desired;
    const document = record?.vm ?? desired;
    // What runs goes on under the path that it has now.
    return document === undefined ? [] : [{ document: { ...document, path: desired?.path ?? document.path }, record }];
  });

export const inventoryOf = (state: HostState): Inventory => ({
  machines: knownVms(state).map(({ document, record }) => ({
    vm: document.uid,
    cell: document.cell,
    path: document.path,
    stage: record?.stage ?? "waiting",
    memoryMiB: document.memoryMiB,
    cpus: document.cpus,
  })),
  interfaces: knownVms(state).flatMap(({ document }) =>
    document.interfaces.map(({ uid, path, instance }) => ({
      interface: uid,
      vm: document.uid,
      cell: document.cell,
      path,
      ...(instance === undefined ? {} : { instance }),
    })),
  ),
  policies: [...state.policies.values()].map(({ cellNumber, cell, rules }) => ({
    cellNumber,
    cell,
    rules: Object.fromEntries(rules.map(({ id, path }) => [id, path])),
  })),
});

/** What is told to an instance of itself, as far as its VM says it. */
export interface InstanceHere {
  readonly instance: string;
  readonly address: string;
  readonly mac: string;
  readonly hostName: string;
  readonly data: Json;
}
/** Of what is started or runs: what is only desired has nobody who could ask. Where nothing is held to its address, whoever takes an instance's would be told. */
function instanceAt(state: HostState, address: string): InstanceHere | null {
  const { mode } = state.network;
  if (mode === null || isPlain(mode)) return null;
  for (const { stage, vm } of state.records.values())
    for (const { address: own, mac, hostName, instance } of vm.interfaces)
      if (instance !== undefined && own === address && stage !== "ended")
        return { instance, address, mac, hostName, data: vm.data };
  return null;
}

const stages = ["starting", "running", "ended"] as const;
const healths = ["starting", "answering", "silent"] as const;

/** A host in numbers, from what its manager knows. */
export const measureHost = (
  state: HostState,
  { memoryMiB, reservedMiB }: { readonly memoryMiB: number; readonly reservedMiB: number },
): readonly Metric[] => {
  const records = [...state.records.values()];
  return [
    gauge("cells_host_memory_bytes", "Memory of the host, and what is spoken for of it.", [
      sample(memoryMiB * mebibyte, { kind: "total" }),
      sample(reservedMiB * mebibyte, { kind: "reserved" }),
      sample(usedMiB(state.records) * mebibyte, { kind: "vms" }),
    ]),
    gauge(
      "cells_host_vms",
      "VMs by stage.",
      stages.map((stage) => sample(records.filter((record) => record.stage === stage).length, { stage })),
    ),
    gauge(
      "cells_vm_health",
      "1 for what the liveness probes of a VM say; VMs that are sent none are not listed.",
      records.flatMap(({ vm, health, stage }) =>
        vm.liveness === undefined || stage !== "running"
          ? []
          : healths.map((each) =>
              sample((health ?? "starting") === each ? 1 : 0, { cell: vm.cell, path: vm.path, health: each }),
            ),
      ),
    ),
    gauge(
      "cells_host_policy_version",
      "Version of a cell's rules that this host has.",
      [...state.policies.values()].map(({ cell, version }) => sample(version, { cell })),
    ),
    gauge("cells_host_locations", "Addresses on other hosts that this host was told of.", [
      sample([...state.locations.values()].reduce((sum, locations) => sum + locations.size, 0)),
    ]),
    gauge(
      "cells_host_interfaces",
      "Interfaces of VMs by whether they may be used.",
      perPhase(state.allocation.interfaces.map(({ ready }) => (ready ? "ready" : "failed"))),
    ),
    gauge("cells_host_troubles", "Actions that failed and are repeated.", [sample(state.troubles.size)]),
  ];
};

const remarkOn = ({ succession, routers, external }: HostState): Pick<HostStatus, "remark"> => {
  const remarks = [succession.trouble, routerTrouble(routers, external ?? [])].filter((text) => text !== null);
  return remarks.length === 0 ? {} : { remark: remarks.join("; ") };
};

export const hostStatus = (state: HostState, host: ActualHost): HostStatus => ({
  host: host.host,
  address: host.address,
  state: host.state,
  memoryMiB: host.memoryMiB,
  reservedMiB: host.reservedMiB,
  usedMiB: usedMiB(state.records),
  cpus: host.cpus,
  accelerator: host.accelerator,
  vms: [...state.records.values()].filter(({ stage }) => stage === "running").length,
  ...remarkOn(state),
});

/** What is asked of a host and changes nothing there. */
export function whatIsHere(
  state: HostState,
  host: ActualHost,
  request: Extract<HostRequest, { readonly kind: "inventory" | "instance" | "status" }>,
): Inventory | InstanceHere | HostStatus | null {
  switch (request.kind) {
    case "inventory":
      return inventoryOf(state);
    case "instance":
      return instanceAt(state, request.address);
    case "status":
      return hostStatus(state, host);
  }
}
