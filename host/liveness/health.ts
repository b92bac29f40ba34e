import type { DesiredLiveness } from "../../core/documents/guest.ts";
import type { ActualVm, DesiredInterface, DesiredVm } from "../../core/documents/vocabulary.ts";
import type { Effect } from "../../core/env.ts";
import type { ElementPath } from "../../model/cell/identifiers.ts";
import type { MachineCondition } from "../drivers/hypervisor/driver.ts";
import type { AskedWhat, VmRecord } from "../vm-record.ts";
import type { Found, Wanted } from "../wanted.ts";
import type { HealthChange, ProbeTarget } from "./liveness.ts";

/** What a VM that runs says of itself, through its hypervisor and its answers: kept in its record, published on change. */

/** The newest document of the incarnation that runs: liveness may change while it does. */
const documentOf = (record: VmRecord, wanted: Wanted): DesiredVm => {
  const newer = wanted.vms.get(record.vm.uid)?.desired;
  return newer?.incarnation === record.vm.incarnation ? newer : record.vm;
};

/** Where the VM is in its cell's model now: an element that is renamed goes on. */
export const pathOf = (record: VmRecord, wanted: Wanted): ElementPath =>
  wanted.vms.get(record.vm.uid)?.desired.path ?? record.vm.path;

/** Null: it is sent no probes, or it has no interface that could be asked. */
export const healthOf = (record: VmRecord, wanted: Wanted): ProbeTarget["health"] | null => {
  const desired = documentOf(record, wanted);
  if (desired.liveness === undefined || desired.interfaces.length === 0) return null;
  const isOfThis = record.asked === undefined || isAsked(desired, record.asked);
  return isOfThis ? (record.health ?? "starting") : "starting";
};
/** How it is asked whether it lives; null: not at all. */
export const probesOf = (record: VmRecord, wanted: Wanted): DesiredLiveness | null =>
  documentOf(record, wanted).liveness ?? null;

/** One that this incarnation was started without cannot be asked, and no other is in its place. */
const askedInterface = ({ liveness, interfaces }: DesiredVm): DesiredInterface | undefined => {
  const chosen = liveness?.interface;
  return chosen === undefined ? interfaces[0] : interfaces.find(({ uid }) => uid === chosen);
};
/** It has interfaces, and not the one that is to be asked. */
export const isUnaskable = (record: VmRecord, wanted: Wanted): boolean =>
  askedInterface(documentOf(record, wanted)) === undefined;
const isAsked = (desired: DesiredVm, asked: AskedWhat): boolean =>
  desired.liveness?.protocol === asked.protocol &&
  desired.liveness.port === asked.port &&
  askedInterface(desired)?.uid === asked.interface;

/** Whether its guest has come up; null: nobody asks. */
export const guestOf = (record: VmRecord, wanted: Wanted): NonNullable<ActualVm["guest"]> | null =>
  documentOf(record, wanted).ready === "booted" ? (record.guest ?? "booting") : null;

/** Every VM that runs here and can be asked. */
export const probeTargets = (wanted: Wanted, found: Found): readonly ProbeTarget[] =>
  [...found.records.values()].flatMap((record) => {
    const health = healthOf(record, wanted);
    const desired = documentOf(record, wanted);
    const { uid: vm, incarnation, liveness } = desired;
    const asked = askedInterface(desired);
    if (record.stage !== "running" || health === null || liveness === undefined || asked === undefined) return [];
    const isInPlace = found.allocation.interfaces.some(
      (allocated) => allocated.interface === asked.uid && allocated.ready,
    );
    if (!isInPlace) return [];
    const reboots = record.reboots ?? 0;
    return [{ vm, incarnation, interface: asked.uid, liveness, health, reboots, stalled: found.stalled.has(vm) }];
  });

/** The record after news from its hypervisor; the same one if they change nothing in it. */
export const withCondition = (record: VmRecord, { condition }: MachineCondition): VmRecord => {
  if (condition !== "rebooted") return record;
  const { silence: _, ...reset } = record;
  const { guest: __, ...booting } = reset;
  // One that is late stays so until it is up.
  const rest = record.guest === "up" ? booting : reset;
  const reboots = (record.reboots ?? 0) + 1;
  // It boots again, and may take its time for that.
  return record.health === undefined ? { ...rest, reboots } : { ...rest, reboots, health: "starting" };
};
/** Is it about the incarnation that runs, and about what that one is asked now? */
export const isHealthOf = (
  record: VmRecord | undefined,
  wanted: Wanted,
  { incarnation, asked }: HealthChange,
): record is VmRecord =>
  record?.stage === "running" && record.vm.incarnation === incarnation && isAsked(documentOf(record, wanted), asked);
export const withHealth = (record: VmRecord, { health, reason, asked }: HealthChange): VmRecord => {
  const { silence: _, ...rest } = record;
  return reason === null ? { ...rest, health, asked } : { ...rest, health, asked, silence: reason };
};

/** Why a VM's CPUs stand still, as a sentence. */
export const stalledSentence = (record: VmRecord, wanted: Wanted, condition: MachineCondition): string => {
  const disks = documentOf(record, wanted).disks.filter(({ connection }) =>
    condition.connections?.includes(connection),
  );
  const names = disks.map(({ connection, path }) => path ?? connection).join(", ");
  const which =
    names === ""
      ? "one of its disks gives"
      : disks.length === 1
        ? `its disk ${names} gives`
        : `its disks ${names} give`;
  return `${which} errors: ${condition.detail}; it goes on when the storage server answers`;
};

export const logHealth = (
  record: VmRecord,
  path: ElementPath,
  event: "machine/condition" | "machine/health" | "machine/guest",
  what: string,
  detail: string | null,
): Effect => {
  const { uid: vm, incarnation } = record.vm;
  return { kind: "log", event, fields: { vm, path, incarnation, what, reason: detail } };
};
