import { mostNice } from "../../../model/cell/tenants/wishes/nice.ts";
import {
  boolean,
  count,
  document,
  integer,
  json,
  list,
  nullable,
  object,
  oneOf,
  optional,
} from "../../../model/json/reader.ts";
import type { DesiredLiveness } from "../guest.ts";
import type { DesiredStandby, StandbyVolume } from "../standby.ts";
import type { ActualTrial, ActualVm, DesiredDisk, DesiredInterface, DesiredTrial, DesiredVm } from "../vocabulary.ts";
import type { GrownDisk } from "../volumes.ts";
import { instanceId } from "./eucalyptus.ts";
import { policy } from "./network.ts";
import { placedTerms } from "./pools.ts";
import { attachment } from "./storage.ts";
import {
  address,
  amountMiB,
  cellText,
  hostText,
  identityNumber,
  macAddress,
  most,
  pathText,
  peerText,
  port,
  progressFields,
  sentence,
  uidText,
  word,
  yes,
} from "./values.ts";

/** Readers of what controllers desire of hosts, and of what hosts say of VMs. */

const disk = object<DesiredDisk>({
  connection: uidText,
  path: optional(pathText),
  busType: oneOf("virtio", "ide", "scsi"),
  busNumber: nullable(count),
  busSlot: nullable(count),
  bootOrder: nullable(count),
  readOnly: boolean,
  attachment,
});
const virtualInterface = object<DesiredInterface>({
  uid: uidText,
  path: pathText,
  mac: macAddress,
  address,
  prefixLength: integer(0, 32),
  gateway: address,
  nameServer: address,
  hostName: word,
  domain: word,
  identity: identityNumber,
  vmIdentity: identityNumber,
  subnetIdentity: identityNumber,
  audience: list(hostText, most.hosts),
  management: yes,
  instance: optional(instanceId),
});
const liveness = object<DesiredLiveness>({
  protocol: oneOf("icmp", "udp"),
  port: nullable(port),
  interface: optional(uidText),
  intervalMs: count,
  failures: count,
});
const trial = object<DesiredTrial>({ disk, replaces: uidText, withinMs: count });
const vm = object<DesiredVm>({
  uid: uidText,
  cell: cellText,
  path: pathText,
  name: word,
  incarnation: count,
  power: oneOf("on", "off"),
  memoryMiB: amountMiB,
  cpus: count,
  disks: list(disk, most.ofMachine),
  interfaces: list(virtualInterface, most.ofMachine),
  data: json,
  liveness: optional(liveness),
  ready: optional(oneOf("booted")),
  start: optional(oneOf("boot", "resume")),
  display: optional(oneOf("vga")),
  besideMiB: optional(amountMiB),
  restart: optional(oneOf("host")),
  boot: optional(count),
  terms: optional(placedTerms),
  nice: optional(list(word, mostNice)),
  trial: optional(trial),
});
export const desiredVm = document(vm, { key: { field: "uid", of: ({ uid }) => uid } });

const actualTrial = object<ActualTrial>({ connection: uidText, boots: boolean, refused: nullable(sentence) });
export const actualVm = document(
  object<ActualVm>({
    ...progressFields,
    incarnation: count,
    power: oneOf("on", "off"),
    ended: oneOf("exited", "crashed", "stopped", null),
    health: optional(oneOf("starting", "answering", "silent")),
    probes: optional(nullable(liveness)),
    reboots: optional(count),
    guest: optional(oneOf("booting", "up", "late")),
    disks: optional(
      list(
        object<GrownDisk>({ connection: uidText, sizeMiB: nullable(amountMiB), reason: nullable(sentence) }),
        most.ofMachine,
      ),
    ),
    trial: optional(actualTrial),
  }),
);

const standbyVolume = object<StandbyVolume>({ volume: uidText, connection: uidText, agent: peerText, epoch: count });
export const desiredStandby = document(
  object<DesiredStandby>({
    vm,
    host: hostText,
    policy,
    volumes: list(standbyVolume, most.ofMachine),
    last: optional(list(hostText, most.hosts)),
  }),
);
