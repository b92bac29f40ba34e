import { type HaSettingName, haSettings, investigatorNames } from "../../../model/cell/attributes/ha-settings.ts";
import {
  boolean,
  count,
  document,
  either,
  integer,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
} from "../../../model/json/reader.ts";
import {
  type ActualFence,
  type ActualHeartbeat,
  type ActualMachine,
  type ActualMachines,
  type ActualOver,
  type ActualProbe,
  type ActualRequests,
  type DesiredAlerts,
  type DesiredBeat,
  type DesiredBeats,
  type DesiredFence,
  type DesiredGuard,
  type DesiredPower,
  type DesiredProbe,
  type DesiredProtected,
  type DesiredRequests,
  type DesiredSettings,
  type DesiredSpare,
  type DesiredUnguarded,
  type FencedVolume,
  fences,
  type MachineAnswers,
  type MachineRequests,
  type ManagerSettings,
  mostProbed,
  mostTold,
  type ProbedMachine,
  type SaidSystemHosts,
  type SystemHostsShort,
  type ToldAlert,
  toldKinds,
} from "../ha.ts";
import {
  address,
  alertSubject,
  cellText,
  hostText,
  macAddress,
  most,
  pathText,
  peerText,
  sentence,
  uidText,
  yes,
} from "./values.ts";

/** Readers of what is said about VMs that are started again when their host is lost. */

const ofVm = { key: { field: "vm", of: ({ vm }: { readonly vm: string }) => vm } } as const;

export const desiredProtected = document(
  object<DesiredProtected>({
    vm: uidText,
    cell: cellText,
    path: pathText,
    incarnation: count,
    host: hostText,
    boot: optional(count),
    lost: oneOf("restart", "end", "leave"),
    priority: number(-(2 ** 48), 2 ** 48),
    isolated: oneOf("keep", "restart"),
    storageManager: peerText,
    recreatable: yes,
    deleted: yes,
    leaves: yes,
    forced: yes,
    boundAt: optional(count),
    address: optional(address),
  }),
  ofVm,
);
export const desiredGuard = document(
  object<DesiredGuard>({ cell: cellText, haManager: peerText, boundAt: optional(count) }),
);
export const desiredUnguarded = document(object<DesiredUnguarded>({ cell: cellText, haManager: peerText }));
const toldAlert = object<ToldAlert>({ kind: oneOf(...toldKinds), subject: alertSubject, sentence });
export const desiredAlerts = document(object<DesiredAlerts>({ alerts: list(toldAlert, mostTold) }));
export const desiredPower = document(object<DesiredPower>({ host: hostText, boot: count, cut: yes }), {
  key: { field: "host", of: ({ host }: { readonly host: string }) => host },
});
const bounded = (name: HaSettingName) => integer(haSettings[name].least, haSettings[name].most);
const systemHostsShort = object<SystemHostsShort>({ kept: count, left: count });
const enough = object<Extract<SaidSystemHosts, { readonly enough: true }>>({ enough: oneOf(true) });
export const actualShort = document<SaidSystemHosts>(
  either(systemHostsShort, enough, "an object with `kept` and `left`, or with `enough`"),
);
export const desiredSettings = document(
  object<DesiredSettings>({
    settings: object<ManagerSettings>({
      syncInterval: optional(bounded("syncInterval")),
      timeBetweenCleanup: optional(bounded("timeBetweenCleanup")),
      timeBetweenFailures: optional(bounded("timeBetweenFailures")),
      restartRetryInterval: optional(bounded("restartRetryInterval")),
      maxRetries: optional(bounded("maxRetries")),
      timeToSleep: optional(bounded("timeToSleep")),
      investigateRetryInterval: optional(bounded("investigateRetryInterval")),
      stopRetryInterval: optional(bounded("stopRetryInterval")),
      haWorkers: optional(bounded("haWorkers")),
      investigators: optional(list(oneOf(...investigatorNames), investigatorNames.length)),
    }),
    short: optional(systemHostsShort),
    entrance: optional(cellText),
  }),
);
export const desiredSpare = document(object<DesiredSpare>({ hosts: bounded("spareHosts") }));
export const actualOver = document(
  object<ActualOver>({
    vm: uidText,
    incarnation: count,
    host: hostText,
    by: oneOf(...fences),
    boundAt: optional(count),
  }),
  ofVm,
);

export const desiredFence = document(
  object<DesiredFence>({ vm: uidText, cell: cellText, incarnation: count, boundAt: optional(count) }),
  ofVm,
);
const fencedVolume = object<FencedVolume>({ volume: uidText, epoch: count });
export const actualFence = document(
  object<ActualFence>({
    incarnation: count,
    boundAt: optional(count),
    complete: boolean,
    volumes: list(fencedVolume, most.ofMachine),
    reason: nullable(sentence),
  }),
);

const machine = object<ActualMachine>({ vm: uidText, incarnation: count, power: oneOf("on", "off") });
export const actualMachines = document(
  object<ActualMachines>({ host: hostText, boot: optional(count), machines: list(machine, most.networks) }),
  { speaker: { field: "host", of: ({ host }) => `host.${host}` } },
);

const ofHost = { key: { field: "host", of: ({ host }: { readonly host: string }) => host } } as const;
const probedMachine = object<ProbedMachine>({ vm: uidText, address });
export const desiredProbe = document(
  object<DesiredProbe>({
    host: hostText,
    address,
    mac: macAddress,
    machines: optional(list(probedMachine, mostProbed)),
  }),
  ofHost,
);
const machineAnswers = object<MachineAnswers>({ vm: uidText, answered: count });
export const actualProbe = document(
  object<ActualProbe>({
    host: hostText,
    asked: count,
    answered: count,
    mac: nullable(macAddress),
    machines: optional(list(machineAnswers, mostProbed)),
  }),
  ofHost,
);

export const desiredBeats = document(object<DesiredBeats>({ host: hostText, ends: list(uidText, most.networks) }));
export const desiredBeat = document(object<DesiredBeat>({ boot: count, count }));
export const actualHeartbeat = document(
  object<ActualHeartbeat>({ host: hostText, boot: count, fresh: boolean }),
  ofHost,
);

export const desiredRequests = document(object<DesiredRequests>({ host: hostText }), ofHost);
const machineRequests = object<MachineRequests>({ vm: uidText, incarnation: count, looked: count, served: count });
export const actualRequests = document(
  object<ActualRequests>({ host: hostText, machines: list(machineRequests, most.networks) }),
  ofHost,
);
